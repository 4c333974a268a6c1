"""The command `export`: tables for another warehouse, results for other tools, sheets for graders and reviewers."""

from pathlib import Path

import click
from click.core import ParameterSource

from flows.cli.flow_runner import refuse_early, report_done, write
from flows.cli.help import Group
from flows.cli.options import Context, command

_PATH = click.Path(path_type=Path)


class _PlaceOrCommand(Group):
    """A group whose first argument may also be a place: what is not one of its commands goes to `tables`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["tables", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_PlaceOrCommand, invoke_without_command=True)
def export() -> None:
    """Export tables, results for other tools, or sheets for people.

    `prbench export FOLDER` is short for `prbench export tables FOLDER`, and so it is for the address of a store.
    `prbench export COMMAND --help` lists the options.

    Examples:
      prbench export shared/                 all tables, for another warehouse
      prbench export board/ --table leaderboard --table verdict_details
      prbench export s3://bucket/shared
      prbench export labelling sheet.csv -n 200 --model gpt-5-high
      prbench export review criteria.csv -n 300 --by category
      prbench export inspect logs/
      prbench export datasets results/
    """
    here = click.get_current_context()
    if here.invoked_subcommand is None:
        click.echo(here.get_help())


@command("table", of=export, name="tables", texts={
    "benchmark": "Only rows of this benchmark, in tables with a column `benchmark`.",
})  # fmt: skip
@click.argument("target", metavar="FOLDER|ADDRESS")
def export_tables(context: Context, target: str, tables: tuple[str, ...]) -> int:
    """Write tables to a folder or a store as Parquet files.

    `manifest.json` lists them with the hashes of their contents. `prbench import warehouse` reads them.

    Examples:
      prbench export shared/
      prbench export tables board/ --table leaderboard
    """
    from tasks.bundles.stores import place
    from tasks.exports.tables import export_tables as written

    return report_done(context, written(context.job, place(target), tables, context.arguments.benchmark))


@command("split", "model", "judge", "trial", "limit", "vintage", "night", "seed", of=export, name="labelling", texts={
    "judge": "With --for: the judge that labels are to correct.  [default: the first configured one]",
})  # fmt: skip
@click.argument("file", type=_PATH)
@click.option("-n", "n_rows", type=click.IntRange(min=1), default=200, show_default=True, metavar="N",
              help="Number of rows; only the last response may lack some of its criteria.")  # fmt: skip
@click.option("--for", "drawn_for", metavar="INTERVAL", help="Draw single verdicts whose labels narrow this interval "
              "of `prbench leaderboard --debiased` most: `leaderboard`, two models (\"A B\"), or a "
              "category.")  # fmt: skip
def labelling(context: Context, file: Path, n_rows: int, seed: int, drawn_for: str | None) -> int:
    """Write a sheet for human graders (CSV).

    It has one row for each criterion of a response, with columns to fill in: `judge` (the grader's name) and
    `criteria_met` (yes or no). `prbench import verdicts --skip-empty` reads it back.
    The column `vintage` says which vintage of the model a row shows.

    With --for, verdicts are drawn with probabilities in proportion to their weight and to the error that is expected of
    the judge there, from the disagreement of judges and repetitions and from earlier labels. The probabilities are
    stored (tables `label_sheets`, `label_draws`). Each model gets equally many, of what the judge decided; the last
    line says how many are needed, and the expected width of the interval. Draw the next sheet when the last one is
    imported; labelled verdicts are not drawn again.

    Examples:
      prbench export labelling sheet.csv -n 200
      prbench export labelling sheet.csv --night 2026-11-22
      prbench export labelling sheet.csv -n 180 --for leaderboard
      prbench export labelling sheet.csv -n 60 --for "gpt-5-high gpt-5-low"
      prbench export labelling sheet.csv -n 180 --for "Financial Accuracy"
      prbench import verdicts sheet.csv --skip-empty     read the sheet back
    """
    from tasks.exports.sheets import export_drawn_labelling, export_labelling

    if drawn_for is None:
        if context.arguments.judges:
            raise click.UsageError("--judge goes with --for; a sheet of whole responses is not about a judge")
        job = context.stored_job(checked=("split", "model"))
        return report_done(context, export_labelling(job, file, n_rows=n_rows, seed=seed))

    refuse_early(context, must_be_stored=True)
    job = context.stored_job(checked=("split", "model", "judge"))
    return write(context, job, lambda: [
        export_drawn_labelling(job, file, drawn_for=drawn_for, n_rows=n_rows, seed=seed,
                               of_latest=not (context.arguments.vintage or context.arguments.night))
    ])  # fmt: skip


@command("split", "limit", "seed", of=export, name="review")
@click.argument("target", type=_PATH, metavar="FILE|FOLDER")
@click.option("-n", "n_criteria", type=click.IntRange(min=1), default=200, show_default=True, metavar="N",
              help="Number of criteria to sample.")  # fmt: skip
@click.option("--tasks", "n_tasks", type=click.IntRange(min=1), metavar="N",
              help="Sample N whole tasks with all their criteria instead.")  # fmt: skip
@click.option("--by", type=click.Choice(["category", "severity", "field", "topic"]), multiple=True,
              help="Sample equally from each of these (repeatable).")  # fmt: skip
def export_review(
    context: Context, target: Path, n_criteria: int, n_tasks: int | None, by: tuple[str, ...], seed: int
) -> int:
    """Write a sheet for experts who review rubrics (CSV).

    It has one row for each sampled criterion, with the task's conversation and columns to fill in: `reviewer` (the
    name), `decision` (agree or disagree that the criterion is well-constructed, accurate and relevant to the task),
    `reason` and `better_wording`. `prbench import reviews` reads it back. Give the same sheet to several people to
    measure how far they agree with each other.

    Each criterion's probability of being sampled is stored (table `review_samples`), so the share of agreement can be
    estimated for all criteria (`prbench reviews`).

    Examples:
      prbench export review criteria.csv -n 300
      prbench export review criteria.csv -n 300 --by category --by severity
      prbench export review sheets/ --tasks 25            all criteria of 25 tasks
      prbench import reviews criteria.csv                 read the sheet back
    """
    from tasks.exports.sheets import export_review as written

    here = click.get_current_context()
    if n_tasks is not None and here.get_parameter_source("n_criteria") is not ParameterSource.DEFAULT:
        raise click.UsageError("-n counts criteria and --tasks counts tasks: give one of the two")
    refuse_early(context, must_be_stored=True)
    job = context.stored_job(checked=("split",))
    return write(context, job, lambda: [written(job, target, n_criteria=n_criteria, n_tasks=n_tasks, by=by, seed=seed)])


@command("split", "model", "judge", "vintage-shown", of=export, name="inspect")
@click.argument("folder", type=_PATH)
def export_inspect(context: Context, folder: Path) -> int:
    """Write logs that Inspect View opens, one for each model and judge.

    A sample is a task in one trial: conversation, answer, score with the verdict on each criterion, tokens and cost.
    `inspect view --log-dir FOLDER` shows them; `inspect_ai.log.read_eval_log` reads one.

    Examples:
      prbench export inspect logs/
      prbench export inspect logs/ --judge o4-mini --split legal
      prbench export inspect logs/ --vintage all
    """
    from tasks.exports.inspect_logs import export_inspect as written

    return report_done(context, written(context.stored_job(), folder, context.arguments.vintage))


@command("table", of=export, name="datasets", texts={
    "table": "Only this table or view (repeatable).  [default: leaderboard, tasks, criteria, messages, responses, "
    "verdicts, scores]",
})  # fmt: skip
@click.argument("folder", type=_PATH)
def export_datasets(context: Context, folder: Path, tables: tuple[str, ...]) -> int:
    """Write a data set for the library `datasets` and the Hugging Face hub, with a data set card.

    `load_dataset("FOLDER", "verdicts")` reads its Parquet files, `load_from_disk("FOLDER/verdicts")` an Arrow copy of
    them. The card (README.md) describes every column and says what the data may be used for. Canaries are left out.

    Examples:
      prbench export datasets results/
      prbench export datasets results/ --table verdict_details --table leaderboard
    """
    from tasks.exports.data_set import export_data_sets as written

    return report_done(context, written(context.stored_job(checked=()), folder, tables))
