"""The command `diff`."""

import click
from click.core import ParameterSource

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json

_KINDS = ("model", "judge", "template", "run", "vintage", "revision")


@click.command(cls=Command, epilog=examples(
    "prbench diff gpt-5-high gpt-5-low               two models",
    "prbench diff base 2026-11-21 --model MODEL      one model, two vintages",
    "prbench diff o4-mini reader --of judge --json   two judges",
    "prbench diff a b c --split finance              a with b, and a with c",
    "prbench diff a b --debiased                     as labels correct it",
))  # fmt: skip
@click.argument("names", nargs=-1, metavar="A B [C]...")
@click.option("--of", "kind", type=click.Choice(_KINDS),
              help="Kind of the names.  [default: the kind for which all names exist]")  # fmt: skip
@click.option(
    "--hard", "is_hard", is_flag=True, help="Compare on your latest hard subset of each field instead of the splits."
)
@click.option("--score", metavar="NAME", help="Score to compare.  [default: the benchmark's primary score]")
@click.option("--flips", "n_flips", type=click.IntRange(min=0), default=10, show_default=True, metavar="N",
              help="Number of flipped criteria to show.")  # fmt: skip
@click.option("--debiased", "is_debiased", is_flag=True, help="Show the difference of models beside what people's "
              "labels on a part of the verdicts make of it.")  # fmt: skip
@shared_options(selection=("split", "model", "judge", "vintage"), output=SHOWS,
                texts={"vintage": "Only this vintage, unless vintages are compared."})  # fmt: skip
def diff(
    context: Context, names: tuple[str, ...], kind: str | None, is_hard: bool, score: str | None, n_flips: int,
    is_debiased: bool,
) -> int:  # fmt: skip
    """Compare models, judges, templates, runs, vintages, revisions.

    A is compared with each of the others, on the tasks that are complete on both sides. A difference is the second
    mean minus the first mean. It comes with its interval, a paired test, and the criteria whose verdict flipped.
    """
    if len(names) < 2:
        raise click.UsageError("give at least two names to compare, such as two models")
    if is_debiased:
        _refuse_beside_debiased(context, kind)
        from flows.cli.compare.debiased import show_debiased_differences

        return show_debiased_differences(context, names, score=score, is_hard=is_hard)
    from flows.cli.compare.diff_json import as_json
    from flows.cli.compare.diff_table import show
    from tasks.compare import compare, question_of
    from warehouse import Warehouse

    # Revisions that are compared need not be the configured one.
    job = context.job if kind == "revision" else context.stored_job(checked=("split",))
    question = question_of(job, names, kind, score=score, is_hard=is_hard, vintage=context.arguments.vintage)
    with Warehouse(job.warehouse).reader() as reader:
        answer = compare(reader, question)
        if context.as_json:
            show_json(as_json(reader, answer, n_flips))
        else:
            show(reader, answer, n_flips)
    return 0


def _refuse_beside_debiased(context: Context, kind: str | None) -> None:
    """Refuse what would be ignored: only models are compared by labels, and no verdict flips."""
    source = click.get_current_context().get_parameter_source
    is_model_named = bool(context.arguments.models)
    given = {"--of": kind not in {None, "model"}, "--flips": source("n_flips") is ParameterSource.COMMANDLINE,
             "--model": is_model_named}  # fmt: skip
    for option, is_given in given.items():
        if is_given:
            raise click.UsageError(f"{option} does not apply to --debiased, which compares models; leave it out")
