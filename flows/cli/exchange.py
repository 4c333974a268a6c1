"""The commands `import` and `export`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from flows.cli.options import PATH, WAREHOUSE, Context, Group, command, number
from flows.cli.output import refuse_early, report_done, run_work, show_json, show_table
from tasks.rules.errors import UsageError
from tasks.rules.verdict import GRADINGS

if TYPE_CHECKING:
    from tasks.config.job import Job
    from tasks.run.writing import StageReport

_files = click.argument("files", type=PATH, metavar="FILE", nargs=-1, required=True)
RESULT_FORMATS = ("prbench", "inspect", "evalscope", "simple-evals", "m42")
"""The formats of `tasks.imports.FORMATS`. A help page cannot wait for that import; a test compares
the lists.
"""


@command(name="import", location_options=WAREHOUSE, cls=Group, invoke_without_command=True)
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="Show all imports with their batch ids, rows, times and files.",
)
@click.option(
    "--retract",
    metavar="BATCH",
    help="Retract the import with this batch id (column `import_batch`).",
)
def import_(context: Context, is_list: bool, retract: str | None) -> int:
    """Import responses, verdicts, logs, reviews or a warehouse.

    Importing the same file again changes nothing. --retract retracts an import; importing the file
    again brings it back. --list shows the imports. `prbench import COMMAND --help` describes the
    formats and lists the options.

    Examples:
      prbench import responses responses.jsonl
      prbench import verdicts labels.csv
      prbench import results logs/*.eval
      prbench import reviews criteria.csv
      prbench import warehouse exported/
      prbench import --list
      prbench import --retract 4f1c2a9be0d37788
    """
    group = click.get_current_context()
    if group.invoked_subcommand is not None:
        # An option before a subcommand belongs to `import` itself, and would be ignored.
        for name in group.params:
            if group.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"give options behind `{group.invoked_subcommand}`")
        return 0
    if is_list and retract is not None:
        raise click.UsageError("--list and --retract cannot be combined; leave one out")
    if is_list:
        _show_batches(context)
        return 0
    if retract is None:
        click.echo(group.get_help())
        return 0
    from tasks.imports.files import retract as retract_batch

    return _write_import(context, [], lambda job: [retract_batch(job, retract)])


def _show_batches(context: Context) -> None:
    """Show all import batches with their rows, times and commands."""
    from tasks.imports.files import batches

    refuse_early(context, must_be_stored=True)
    rows = batches(context.job)
    if context.as_json:
        show_json(context, rows)
    elif not rows:
        click.echo("Nothing was imported yet.")
    else:
        show_table(["batch", "time (UTC)", "rows", "import"], [_batch_cells(row) for row in rows])


def _batch_cells(row: Mapping[str, Any]) -> list[Any]:
    from tasks.rules.text.numbers import counted

    counts = {
        "response": row["n_responses"],
        "verdict": row["n_verdicts"],
        "review": row["n_reviews"],
    }
    parts = [counted(n_rows, noun) for noun, n_rows in counts.items() if n_rows]
    if row["is_retracted"]:
        parts.append("retracted")
    command_text = (row["command"] or "").removeprefix("prbench import ")
    imported_at = f"{row['imported_at']:%Y-%m-%d %H:%M}"
    return [row["import_batch"], imported_at, ", ".join(parts), command_text or None]


def _write_import(
    context: Context,
    sources: Sequence[Path],
    work: Callable[["Job"], list["StageReport"]],
) -> int:
    """Do an import as a run, and show its result; what cannot succeed is refused first."""
    job = context.job  # a wrong configuration is refused first
    for source in sources:
        if not source.exists():
            raise UsageError(f"{source}: no such file; check the path")
    refuse_early(context, must_be_stored=True)
    return run_work(context, job, lambda: work(job))


@command(
    "vintage",
    "as",
    "skip-unknown",
    group=import_,
    name="responses",
    texts={"vintage": "Vintage of rows that name none.  [default: base]"},
)
@click.argument("source", type=PATH, metavar="FILE|FOLDER")
@click.option(
    "--pattern",
    metavar="NAMES",
    help=(
        "File names in a folder, without endings, made of {task}, {model}, "
        "{trial} and {vintage}.  [default: {model}/{task}; with --as: {task}]"
    ),
)
@click.option(
    "--skip-other",
    is_flag=True,
    help="Skip files in the folder that do not match, and show their number.",
)
def import_responses(context: Context, source: Path, **options: Any) -> int:
    """Import responses made elsewhere.

    A file has rows `task, model, response[, trial, vintage]` (JSONL, CSV or Parquet), or is one
    JSON object `{task: response}`. Instead of `response` a row may have a column `file` with the
    path of a document, relative to the file it is in.

    A folder holds documents whose names give the task and the model. Documents are Markdown or text
    in UTF-8, which are used as they are, or PDF or DOCX, which are converted to Markdown.

    Examples:
      prbench import responses responses.jsonl
      prbench import responses responses.json --as gpt-5.6-sol-high
      prbench import responses files.csv             rows with a column `file`
      prbench import responses reports/              a folder of MODEL/TASK.pdf
      prbench import responses reports/ --pattern '{task}/{model} run {trial}'
      prbench import responses reports/ --as gpt-5.6-sol-high --skip-other
    """
    from tasks.imports.responses import import_responses as store_responses

    return _write_import(context, [source], lambda job: [store_responses(job, source, **options)])


@command(
    "vintage",
    "night",
    "as",
    "by",
    "skip-unknown",
    group=import_,
    name="verdicts",
    texts={
        "by": (
            "Judge of rows that name none.  [default: imported; a labelling sheet must name its"
            " grader]"
        ),
        "vintage": "Vintage of rows that name none.  [default: base]",
        "night": (
            "Vintage of rows that name none, for models with `resample: nightly`.  [default: same"
            " as --vintage]"
        ),
    },
)
@click.argument("file", type=PATH)
@click.option("--task", metavar="ID", help="Task of rows that name none.")
@click.option(
    "--grading",
    type=click.Choice(GRADINGS),
    help=(
        "Grading of rows that name none.  "
        "[default: binary for true and false, else the benchmark's]"
    ),
)
@click.option("--skip-empty", is_flag=True, help="Skip rows without a decision.")
@click.option(
    "--random-sample",
    "is_random_sample",
    is_flag=True,
    help=(
        "State that people gave these verdicts, and that they are a simple random sample of all"
        " verdicts of their models; `prbench leaderboard --debiased` then uses them."
    ),
)
def import_verdicts(context: Context, file: Path, **options: Any) -> int:
    """Import verdicts made elsewhere, human labels included.

    Rows (JSONL, CSV or Parquet) have the columns `task, model, criterion, criteria_met` and may
    have `judge, trial, vintage, judge_trial, grading, explanation, confidence`. The files that the
    benchmark's own code writes can be read too.

    The decision is `criteria_met` (true or false, yes or no, 1 or 0), or `value` (0, 0.5 or 1), or
    `verdict` (in words). `criterion` is a criterion's id or its exact text; if several criteria
    have the same text, a column `category` or `occurrence` (1 for the first) says which one.

    A row whose `response` differs from the stored response is refused.

    Examples:
      prbench import verdicts labels.csv
      prbench import verdicts sheet.csv --skip-empty    not all rows are filled in
      prbench import verdicts compiled.csv --by people-2 --grading binary
      prbench import verdicts labels.csv --by eva --random-sample
    """
    from tasks.imports.verdicts import import_verdicts as store_verdicts

    return _write_import(context, [file], lambda job: [store_verdicts(job, file, **options)])


@command(
    "vintage",
    "as",
    "by",
    "skip-unknown",
    group=import_,
    name="results",
    texts={
        "as": (
            "Label of the model; {model} in it is the name in the log.  [default: the name in the"
            " log]"
        ),
        "by": (
            "Label of the judge; {judge} in it is the name in the log.  [default: the name in the"
            " log, else imported]"
        ),
        "skip-unknown": (
            "Skip responses and verdicts whose task, conversation or criterion is not in the data"
            " set, and list them."
        ),
        "vintage": "Vintage of the responses.  [default: base]",
    },
)
@_files
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["auto", *RESULT_FORMATS]),
    default="auto",
    show_default=True,
    help="Harness that wrote the files; auto: recognise it by their content.",
)
def import_results(context: Context, files: tuple[Path, ...], **options: Any) -> int:
    """Import responses and verdicts from the logs of other harnesses.

    FILE is a result of the published PRBench harness (JSON), a log of Inspect AI (.eval or JSON),
    an output folder of EvalScope, a result of simple-evals (JSON or HTML) or a result file of m42's
    code (JSONL).

    Tasks are recognised by their conversation, criteria by id or text. Failed calls stay failures.
    After the import the means in the log are compared with those of the imported rows, and the
    tasks that differ are listed.

    Examples:
      prbench import results results/finance_off_platform_judge_gpt-5.6-terra.json
      prbench import results logs/*.eval --by '{judge} in Inspect'
      prbench import results outputs/20261124_101112/
      prbench import results judge_responses.jsonl --as llama --by qwen
    """
    from tasks.imports.results.importing import import_results as store_results

    return _write_import(context, files, lambda job: store_results(job, files, **options))


@command(
    "by",
    "skip-unknown",
    group=import_,
    name="reviews",
    texts={"by": "Reviewer of rows that name none."},  # the shared option calls it `judge`
)
@_files
def import_reviews(
    context: Context,
    files: tuple[Path, ...],
    judge: str | None,
    skip_unknown: bool,
) -> int:
    """Import reviews of criteria that people entered in sheets of `prbench export review`.

    Rows (CSV, JSONL or Parquet) have the columns `task, criterion, decision` (agree or disagree)
    and `reviewer`, and may have `reason` (needed to disagree), `better_wording` and those by which
    a sheet names its sample. Rows without a decision are skipped and counted. A row on a criterion
    whose words have changed since is refused.

    Examples:
      prbench import reviews criteria.csv
      prbench import reviews from_eva.csv from_ben.csv
      prbench import reviews criteria.csv --by eva
    """
    from tasks.imports.reviews import import_reviews as store_reviews

    return _write_import(
        context,
        files,
        lambda job: store_reviews(job, files, reviewer=judge, skip_unknown=skip_unknown),
    )


@command(group=import_, name="warehouse", location_options=WAREHOUSE)
@click.argument("source", metavar="FOLDER|ADDRESS")
def import_warehouse(context: Context, source: str) -> int:
    """Import the output of `prbench export` or `prbench publish`.

    Rows that are already present stay as they are.

    Examples:
      prbench import warehouse exported/
      prbench import warehouse s3://bucket/shared
    """
    from tasks.bundles.stores import open_location
    from tasks.exports.tables import import_tables, opened_export

    job = context.job
    with opened_export(open_location(source)) as export:
        return run_work(context, job, lambda: [import_tables(job, export)])


class _LocationOrCommand(Group):
    """A group whose first argument may be a location, which is passed to its command `tables`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["tables", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_LocationOrCommand, invoke_without_command=True)
def export() -> None:
    """Export tables, results for other tools, or sheets for people.

    `prbench export FOLDER` (or the address of a store) is short for `prbench export tables FOLDER`.
    `prbench export COMMAND --help` lists the options.

    Examples:
      prbench export shared/                 all tables, for another warehouse
      prbench export board/ --table leaderboard --table verdict_details
      prbench export s3://bucket/shared
      prbench export labelling sheet.csv -n 200 --model gpt-5.6-sol-high
      prbench export review criteria.csv -n 300 --by category
      prbench export inspect logs/
      prbench export datasets results/
    """
    group = click.get_current_context()
    if group.invoked_subcommand is None:
        click.echo(group.get_help())


@command(
    "table",
    group=export,
    name="tables",
    texts={"benchmark": "Only rows of this benchmark, in tables with a column `benchmark`."},
)
@click.argument("target", metavar="FOLDER|ADDRESS")
def export_tables(context: Context, target: str, tables: tuple[str, ...]) -> None:
    """Write tables to a folder or a store as Parquet files.

    `manifest.json` lists them with the hashes of their contents. `prbench import warehouse` reads
    them.

    Examples:
      prbench export shared/
      prbench export tables board/ --table leaderboard
    """
    from tasks.bundles.stores import open_location
    from tasks.exports.tables import export_tables as write_tables

    benchmark = context.arguments.benchmark
    report = write_tables(context.job, open_location(target), tables, benchmark)
    report_done(context, report)


@command(
    "split",
    "model",
    "judge",
    "trial",
    "limit",
    "vintage",
    "night",
    "seed",
    group=export,
    name="labelling",
    texts={
        "judge": (
            "With --for: the judge that labels are to correct.  [default: the first configured one]"
        )
    },
)
@click.argument("file", type=PATH)
@number("-n n_rows", 200, "Number of rows; only the last response may lack some of its criteria.")
@click.option(
    "--for",
    "interval",
    metavar="INTERVAL",
    help=(
        "Choose single verdicts whose labels narrow one interval "
        "of `prbench leaderboard --debiased` most: `leaderboard`, the difference of two models "
        '("A B"), or a category.'
    ),
)
def labelling(context: Context, file: Path, interval: str | None, **options: Any) -> int:
    """Write a sheet for human graders (CSV).

    It has one row for each criterion of a response, with columns to fill in: `judge` (the grader's
    name) and `criteria_met` (yes or no). `prbench import verdicts --skip-empty` reads it back. The
    column `vintage` names the vintage of the model.

    With --for, a verdict's probability of being sampled is in proportion to its weight and to the
    expected error of the judge, which is estimated from the disagreement of judges and repetitions
    and from earlier labels. The probabilities are stored (tables `label_sheets`, `label_draws`).
    Each model gets the same number of verdicts. The output says which figures the sheet gives once
    it is filled in, how many rows give all figures, which splits are too small, and the expected
    width of the interval. Import a sheet before you write the next one: labelled verdicts are not
    sampled again.

    Examples:
      prbench export labelling sheet.csv -n 200
      prbench export labelling sheet.csv --night 2026-11-22
      prbench export labelling sheet.csv -n 180 --for leaderboard
      prbench export labelling sheet.csv -n 60 --for "gpt-5.6-sol-high gpt-oss"
      prbench export labelling sheet.csv -n 180 --for "Financial Accuracy"
      prbench import verdicts sheet.csv --skip-empty     read the sheet back
    """
    from tasks.exports.sheets import export_labelling, export_sampled_labelling

    if interval is None:
        if context.arguments.named_judges:
            raise click.UsageError(
                "--judge needs --for; a sheet of whole responses is not about a judge"
            )
        job = context.stored_job(vintage=())
        report_done(context, export_labelling(job, file, **options))
        return 0
    refuse_early(context, must_be_stored=True)
    job = context.stored_job(vintage=())
    # Without a vintage on the command line, sample from the current vintage of each model.
    options["is_latest"] = not (context.arguments.vintage or context.arguments.night)
    return run_work(
        context, job, lambda: [export_sampled_labelling(job, file, sampled_for=interval, **options)]
    )


@command("split", "limit", "seed", group=export, name="review")
@click.argument("target", type=PATH, metavar="FILE|FOLDER")
@number("-n n_criteria", 200, "Number of criteria to sample.")
@number("--tasks n_tasks", None, "Sample N whole tasks with all their criteria instead of -n.")
@click.option(
    "--by",
    "labels",
    type=click.Choice(["category", "severity", "field", "topic"]),
    multiple=True,
    help="Sample equally from each of these (repeatable).",
)
def export_review(context: Context, target: Path, n_tasks: int | None, **options: Any) -> int:
    """Write a sheet for experts who review rubrics (CSV).

    It has one row for each sampled criterion, with the task's conversation and columns to fill in:
    `reviewer` (the name), `decision` (agree or disagree that the criterion is well-constructed,
    accurate and relevant to the task), `reason` and `better_wording`. `prbench import reviews`
    reads it back. Give the same sheet to several people to measure how far they agree with each
    other.

    Each criterion's probability of being sampled is stored (table `review_samples`), so the share
    of agreement can be estimated for all criteria (`prbench reviews`).

    Examples:
      prbench export review criteria.csv -n 300
      prbench export review criteria.csv -n 300 --by category --by severity
      prbench export review sheets/ --tasks 25            all criteria of 25 tasks
      prbench import reviews criteria.csv                 read the sheet back
    """
    from tasks.exports.sheets import export_review as write_sheet

    refuse_early(context, must_be_stored=True)
    job = context.stored_job()
    return run_work(context, job, lambda: [write_sheet(job, target, n_tasks=n_tasks, **options)])


@command("split", "model", "judge", "vintage-shown", group=export, name="inspect")
@click.argument("folder", type=PATH)
@click.option(
    "--scored",
    "is_scored_only",
    is_flag=True,
    help=(
        "Leave out samples without a score (failed responses, "
        "undecided criteria). Converters such as Every Eval Ever refuse them."
    ),
)
def export_inspect(context: Context, folder: Path, is_scored_only: bool) -> None:
    """Write logs that Inspect View opens, one for each model and judge.

    A sample is a task in one trial: conversation, response, score with the verdict on each
    criterion, tokens and cost. `inspect view --log-dir FOLDER` shows them;
    `inspect_ai.log.read_eval_log` reads one; `every_eval_ever convert inspect` converts them. A log
    names the model as its provider does, and its label among the tags.

    Examples:
      prbench export inspect logs/
      prbench export inspect logs/ --judge gpt-5.6-terra --split legal
      prbench export inspect logs/ --vintage all
      prbench export inspect logs/ --scored     for every_eval_ever
    """
    from tasks.exports.inspect_logs import export_inspect as write_logs

    vintage = context.arguments.vintage
    report = write_logs(context.stored_job(), folder, vintage, is_scored_only=is_scored_only)
    report_done(context, report)


@command(
    "table",
    group=export,
    name="datasets",
    texts={
        "table": (
            "Only this table or view (repeatable).  [default: leaderboard, tasks, criteria,"
            " messages, responses, verdicts, scores]"
        )
    },
)
@click.argument("folder", type=PATH)
def export_datasets(context: Context, folder: Path, tables: tuple[str, ...]) -> None:
    """Write a data set for the library `datasets` and the Hugging Face hub, with a data set card.

    `load_dataset("FOLDER", "verdicts")` reads its Parquet files,
    `load_from_disk("FOLDER/verdicts")` an Arrow copy of them. The card (README.md) describes every
    column and the permitted use of the data. Canaries are left out.

    Examples:
      prbench export datasets results/
      prbench export datasets results/ --table verdict_details --table leaderboard
    """
    from tasks.exports.result_files import export_data_sets

    report = export_data_sets(context.stored_job(), folder, tables)
    report_done(context, report)
