"""The command `prbench diff`."""

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json

_KINDS = ("model", "judge", "template", "run", "vintage", "revision")


@click.command(epilog=examples(
    "prbench diff gpt-5-high gpt-5-low          two models, paired by task",
    "prbench diff base 2026-11-21 --model gpt-5-high",
    "prbench diff o4-mini reader --of judge --json",
    "prbench diff a b c --split finance         a against b, and a against c",
))  # fmt: skip
@click.argument("names", nargs=-1, metavar="A B [C ...]")
@click.option("--of", "kind", type=click.Choice(_KINDS), help="What the names are.  [default: found out]")
@click.option("--hard", "is_hard", is_flag=True, help="On the latest own hard selection.")
@click.option("--score", metavar="NAME", help="Which score.  [default: the benchmark's main one]")
@click.option("--flips", "n_flips", type=click.IntRange(min=0), default=10, show_default=True, metavar="N",
              help="How many flipped criteria to show.")  # fmt: skip
@shared_options
def diff(
    context: Context, names: tuple[str, ...], kind: str | None, is_hard: bool, score: str | None, n_flips: int
) -> int:
    """Compare models, judges, templates, runs, vintages or revisions, paired by task: A against each other one.

    Differences are second minus first, over the tasks that are complete on both sides.
    """
    if len(names) < 2:
        raise click.UsageError("diff: give the names of two to compare, such as two models")
    from flows.cli.compare.diff_query import as_json, question_of
    from flows.cli.compare.diff_table import show
    from tasks.compare import compare
    from warehouse import Warehouse

    job = context.job
    question = question_of(job, names, kind, score=score, is_hard=is_hard, vintage=context.asked.vintage)
    with Warehouse(job.warehouse).reader() as reader:
        answer = compare(reader, question)
        if context.as_json:
            show_json(as_json(reader, answer, n_flips))
        else:
            show(reader, answer, n_flips)
    return 0
