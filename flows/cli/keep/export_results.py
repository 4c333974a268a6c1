"""The commands `export inspect` and `export datasets`: results for other tools."""

from pathlib import Path

import click

from flows.cli.common.flow_runner import report_done
from flows.cli.common.help import Command, examples
from flows.cli.common.options import Context, shared_options

_PATH = click.Path(path_type=Path)


@click.command("inspect", cls=Command, epilog=examples(
    "prbench export inspect logs/",
    "prbench export inspect logs/ --judge o4-mini --split legal",
    "prbench export inspect logs/ --vintage all",
))  # fmt: skip
@click.argument("folder", type=_PATH)
@shared_options(selection=("split", "model", "judge", "vintage"), texts={
    "vintage": "Only this vintage, or `all`.  [default: the latest of each model]",
})  # fmt: skip
def export_inspect(context: Context, folder: Path) -> int:
    """Write logs that Inspect View opens, one for each model and judge.

    A sample is a task in one trial: conversation, answer, score with the verdict on each criterion, tokens and cost.
    `inspect view --log-dir FOLDER` shows them; `inspect_ai.log.read_eval_log` reads one.
    """
    from tasks.exports import export_inspect as written

    return report_done(context, written(context.stored_job(), folder, context.arguments.vintage))


@click.command("datasets", cls=Command, epilog=examples(
    "prbench export datasets results/",
    "prbench export datasets results/ --table verdict_details --table leaderboard",
))  # fmt: skip
@click.argument("folder", type=_PATH)
@click.option("--table", "tables", multiple=True, metavar="NAME",
              help="Only this table or view (repeatable).  [default: leaderboard, tasks, criteria, messages, "
              "responses, verdicts, scores]")  # fmt: skip
@shared_options()
def export_datasets(context: Context, folder: Path, tables: tuple[str, ...]) -> int:
    """Write a data set for the library `datasets` and the Hugging Face hub, with a data set card.

    `load_dataset("FOLDER", "verdicts")` reads its Parquet files, `load_from_disk("FOLDER/verdicts")` an Arrow copy of
    them. The card (README.md) describes every column and says what the data may be used for. Canaries are left out.
    """
    from tasks.exports import export_data_sets as written

    return report_done(context, written(context.stored_job(checked=()), folder, tables))
