"""The commands `export inspect` and `export datasets`: results for other tools."""

from pathlib import Path

import click

from flows.cli.common.flow_runner import report_done
from flows.cli.common.help import Command, examples
from flows.cli.common.options import Context, shared_options

_PATH = click.Path(path_type=Path)


@click.command("inspect", cls=Command, epilog=examples(
    "prbench export inspect logs/",
    "prbench export inspect logs/ --model gpt-5-high --judge o4-mini --split legal",
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
