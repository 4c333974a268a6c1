"""The command `import`: responses, verdicts, results, reviews and warehouses, and retracting an import."""

from pathlib import Path

import click
from click.core import ParameterSource

from flows.cli.flow_runner import write
from flows.cli.help import Group
from flows.cli.options import WAREHOUSE, Context, command
from tasks.rules.verdict import GRADINGS

_FILE = click.Path(path_type=Path)
RESULT_FORMATS = ("prbench", "inspect", "evalscope", "simple-evals", "m42")
"""`tasks.imports.FORMATS`, which takes too long to import for a command's help; a test compares them."""


@command(name="import", place=WAREHOUSE, cls=Group, invoke_without_command=True)
@click.option("--retract", metavar="BATCH", help="Retract the import with this batch id (column `import_batch`).")
def import_(context: Context, retract: str | None) -> int:
    """Import responses, verdicts, logs, reviews or a warehouse.

    Importing the same file again changes nothing. --retract retracts an import; importing the file again brings it
    back. `prbench import COMMAND --help` describes the formats and lists the options.

    Examples:
      prbench import responses answers.jsonl
      prbench import verdicts labels.csv
      prbench import results logs/*.eval
      prbench import reviews criteria.csv
      prbench import warehouse exported/
      prbench import --retract 4f1c2a9be0d37788
    """
    here = click.get_current_context()
    if here.invoked_subcommand is not None:
        for option in here.command.params:
            # Those before a subcommand belong to `import --retract`, and would be ignored.
            if here.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
                given, name = option.opts[-1], here.invoked_subcommand
                raise click.UsageError(f"{given} is given before `{name}`; move it behind that")
        return 0
    if retract is None:
        click.echo(here.get_help())
        return 0
    from tasks.imports.files import refuse_retraction
    from tasks.imports.files import retract as retract_batch

    job = context.job
    refuse_retraction(job, retract)
    return write(context, job, lambda: [retract_batch(job, retract)])


@command("vintage", "as", "skip-unknown", of=import_, name="responses", texts={
    "vintage": "Vintage of rows that name none.  [default: base]",
})  # fmt: skip
@click.argument("source", type=_FILE, metavar="FILE|FOLDER")
@click.option("--pattern", metavar="NAMES", help="File names in a folder, without endings, made of {task}, {model}, "
              "{trial} and {vintage}.  [default: {model}/{task}; with --as: {task}]")  # fmt: skip
@click.option("--skip-other", is_flag=True, help="Skip files in the folder that do not match, and show their number.")
def import_responses(
    context: Context, source: Path, as_model: str | None, pattern: str | None, skip_other: bool, skip_unknown: bool
) -> int:
    """Import responses made elsewhere.

    A file has rows `task, model, response[, trial, vintage]` (JSONL, CSV or Parquet), or is one JSON object
    `{task: response}`. Instead of `response` a row may have a column `file` with the path of a document, relative to
    the file it is in.

    A folder holds documents whose names give the task and the model. Documents are Markdown or text in UTF-8, which
    are used as they are, or PDF or DOCX, which are converted to Markdown.

    Examples:
      prbench import responses answers.jsonl
      prbench import responses answers.json --as gpt-5-high
      prbench import responses files.csv             rows with a column `file`
      prbench import responses reports/              a folder of MODEL/TASK.pdf
      prbench import responses reports/ --pattern '{task}/{model} run {trial}'
      prbench import responses reports/ --as gpt-5-high --skip-other
    """
    from tasks.imports.files import refuse_early
    from tasks.imports.responses import import_responses as bring_in

    job, leaving_out = context.job, {"skip_other": skip_other, "skip_unknown": skip_unknown}
    refuse_early(job, [source], may_be_folder=True)
    return write(context, job, lambda: [bring_in(job, source, as_model, pattern=pattern, **leaving_out)])


@command("vintage", "night", "as", "by", "skip-unknown", of=import_, name="verdicts", texts={
    "by": "Judge of rows that name none.  [default: imported; a labelling sheet must say it]",
    "vintage": "Vintage of rows that name none.  [default: base]",
    "night": "Vintage of rows that name none, for models with `resample: nightly`.  [default: same as --vintage]",
})  # fmt: skip
@click.argument("file", type=_FILE)
@click.option("--task", metavar="ID", help="Task of rows that name none.")
@click.option("--grading", type=click.Choice(GRADINGS), help="Grading of rows that name none.  "
              "[default: binary for true and false, else the benchmark's]")  # fmt: skip
@click.option("--skip-empty", is_flag=True, help="Skip rows without a decision.")
@click.option("--random-sample", "is_random_sample", is_flag=True, help="State that people gave these verdicts, and "
              "that they are a simple random sample of all verdicts of their models; `prbench leaderboard --debiased` "
              "then uses them.")  # fmt: skip
def import_verdicts(
    context: Context, file: Path, as_model: str | None, task: str | None, by_label: str | None, grading: str | None,
    skip_empty: bool, skip_unknown: bool, is_random_sample: bool,
) -> int:  # fmt: skip
    """Import verdicts made elsewhere, human labels included.

    Rows (JSONL, CSV or Parquet) have the columns `task, model, criterion, criteria_met` and may have `judge, trial,
    vintage, judge_trial, grading, explanation, confidence`. The files that the benchmark's own code writes can be read
    too.

    The decision is `criteria_met` (true or false, yes or no, 1 or 0), or `value` (0, 0.5 or 1), or `verdict` (in
    words). `criterion` is a criterion's id or its exact text; if several criteria have the same text, a column
    `category` or `occurrence` (1 for the first) says which one.

    A row whose `response` differs from the stored response is refused.

    Examples:
      prbench import verdicts labels.csv
      prbench import verdicts sheet.csv --skip-empty    not all rows are filled in
      prbench import verdicts compiled.csv --by people-2 --grading binary
      prbench import verdicts labels.csv --by eva --random-sample
    """
    from tasks.imports.files import refuse_early
    from tasks.imports.verdicts import import_verdicts as bring_in

    job = context.job
    refuse_early(job, [file])
    return write(context, job, lambda: [bring_in(
        job, file, as_model, task=task, judge=by_label, grading=grading, skip_empty=skip_empty,
        skip_unknown=skip_unknown, is_random_sample=is_random_sample,
    )])  # fmt: skip


@command("vintage", "as", "by", "skip-unknown", of=import_, name="results", texts={
    "as": "Label of the model; {model} in it is the name in the log.  [default: the name in the log]",
    "by": "Label of the judge; {judge} in it is the name in the log.  [default: the name in the log, else imported]",
    "skip-unknown": "Skip answers and grades whose task, conversation or criterion is not in the data set, and list "
    "them.",
    "vintage": "Vintage of the responses.  [default: base]",
})  # fmt: skip
@click.argument("files", type=_FILE, metavar="FILE", nargs=-1, required=True)
@click.option("--format", "format_name", type=click.Choice(["auto", *RESULT_FORMATS]), default="auto",
              show_default=True, help="What wrote the files; auto: recognised by their content.")  # fmt: skip
def import_results(
    context: Context, files: tuple[Path, ...], format_name: str, as_model: str | None, by_label: str | None,
    skip_unknown: bool,
) -> int:  # fmt: skip
    """Import responses and verdicts from the logs of other harnesses.

    FILE is a result of the published PRBench harness (JSON), a log of Inspect AI (.eval or JSON), an output folder of
    EvalScope, a result of simple-evals (JSON or HTML) or a result file of m42's code (JSONL).

    Tasks are recognised by their conversation, criteria by id or text. Failed calls stay failures. After the import the
    means in the log are compared with those of the imported rows, and the tasks that differ are listed.

    Examples:
      prbench import results results/finance_off_platform_judge_o4-mini.json
      prbench import results logs/*.eval --by '{judge} in Inspect'
      prbench import results outputs/20261124_101112/
      prbench import results judge_responses.jsonl --as llama --by qwen
    """
    from tasks.imports.files import refuse_early
    from tasks.imports.results.importing import import_results as bring_in

    job = context.job
    refuse_early(job, files, kinds=(), may_be_folder=True)
    return write(context, job, lambda: bring_in(
        job, files, format_name=format_name, model=as_model, judge=by_label, skip_unknown=skip_unknown,
    ))  # fmt: skip


@command("by", "skip-unknown", of=import_, name="reviews", texts={"by": "Reviewer of rows that name none."})
@click.argument("files", type=_FILE, metavar="FILE", nargs=-1, required=True)
def import_reviews(context: Context, files: tuple[Path, ...], by_label: str | None, skip_unknown: bool) -> int:
    """Import reviews of criteria that people entered in sheets of `prbench export review`.

    Rows (CSV, JSONL or Parquet) have the columns `task, criterion, decision` (agree or disagree) and `reviewer`, and
    may have `reason` (needed to disagree), `better_wording` and those by which a sheet names its sample. Rows without a
    decision are skipped and counted. A row on a criterion whose words have changed since is refused.

    Examples:
      prbench import reviews criteria.csv
      prbench import reviews from_eva.csv from_ben.csv
      prbench import reviews criteria.csv --by eva
    """
    from tasks.imports.files import refuse_early
    from tasks.imports.reviews import import_reviews as bring_in

    job = context.job
    refuse_early(job, files)
    return write(context, job, lambda: bring_in(job, files, reviewer=by_label, skip_unknown=skip_unknown))


@command(of=import_, name="warehouse", place=WAREHOUSE)
@click.argument("source", metavar="FOLDER|ADDRESS")
def import_warehouse(context: Context, source: str) -> int:
    """Import what `prbench export` or `prbench publish` wrote.

    Rows that are already present stay as they are.

    Examples:
      prbench import warehouse exported/
      prbench import warehouse s3://bucket/shared
    """
    from tasks.bundles.stores import place
    from tasks.exports.tables import import_tables, opened_export

    job = context.job
    with opened_export(place(source), is_quiet=job.is_quiet) as export:
        return write(context, job, lambda: [import_tables(job, export)])
