"""The command `conditions`."""

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json


@click.command(cls=Command, epilog=examples(
    "prbench conditions",
    "prbench conditions --model gpt-5 --flips 10",
    "prbench conditions --split finance_hard --json",
))  # fmt: skip
@click.option(
    "--hard", "is_hard", is_flag=True, help="Compare on your latest hard subset of each field instead of the splits."
)
@click.option("--score", metavar="NAME",
              help="Score to compare.  [default: the benchmark's primary score, and by category its score for single "
              "categories]")  # fmt: skip
@click.option("--flips", "n_flips", type=click.IntRange(min=0), default=3, show_default=True, metavar="N",
              help="Number of criteria to show that gain most points, and that lose most, for each "
              "comparison.")  # fmt: skip
@shared_options(selection=("split", "model", "judge", "vintage"), output=SHOWS, texts={
    "model": "Only this model: the name that its conditions share, or a label (repeatable).",
    "vintage": "Only this vintage, or `all`.  [default: the latest of each comparison]",
}, metavars={"model": "NAME"})  # fmt: skip
def conditions(context: Context, is_hard: bool, score: str | None, n_flips: int) -> int:
    """Compare a model with and without tools or effort.

    `conditions` in the configuration says which labels are one model, and which of them is the baseline. Each other
    condition is compared with it on the tasks that are complete on both sides: the difference of the scores with its
    interval and a paired test, over the whole rubric and by category. Length, cost and the criteria that changed are
    shown too.
    """
    from flows.cli.compare.conditions_json import as_json
    from flows.cli.compare.conditions_table import show
    from tasks.compare import conditions as compared
    from warehouse import Warehouse

    job = context.stored_job(checked=("split", "judge", "vintage"))
    with Warehouse(job.warehouse).reader() as reader:
        answer = compared(
            reader, job, score=score, is_hard=is_hard, vintage=context.arguments.vintage, n_criteria=n_flips
        )
    if context.as_json:
        show_json(as_json(answer))
    else:
        show(job, answer)
    return 0
