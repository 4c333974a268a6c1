"""The command `judges`: how far graders agree."""

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json, show_nothing
from flows.cli.compare.figures import is_small, show_figures
from flows.cli.compare.questions import Records, answer
from tasks.rules.text.numbers import SMALL_MARK

_BREAKDOWNS = ("category", "severity", "field", "model", "length")
_WITH_SETS = {None, "category", "severity"}
"""Breakdowns by which the agreement of whole sets of graders is measured."""


@click.command(cls=Command, epilog=examples(
    "prbench judges",
    "prbench judges --judge expert-1 --by category",
    "prbench judges --people expert-1 --people expert-2",
    "prbench judges --json",
))  # fmt: skip
@click.option("--by", type=click.Choice(_BREAKDOWNS), help="Break the agreement down.")
@click.option("--people", multiple=True, metavar="GRADER",
              help="Compare all other graders with this person; several people are pooled (repeatable).")  # fmt: skip
@shared_options(selection=("judge",), output=SHOWS, texts={"judge": "Only pairs with this grader (repeatable)."},
                metavars={"judge": "GRADER"})  # fmt: skip
def judges(context: Context, by: str | None, people: tuple[str, ...]) -> int:
    """Compare judges with each other and with people.

    A grader is a judge, a person whose labels were imported, one repetition of a judge, or a majority of several.

    With --people, every other grader is compared with the pooled decisions of these people, so a person with more
    decisions counts more. The mean over the pairs is shown too, as in table 3 of the paper.
    """
    if people:
        return _show_agreement_with_people(context, by, people)
    breakdown, job = {"breakdown": by or "all"}, context.stored_job(checked=())
    pairs = answer(job, "judges", breakdown | {"graders": list(context.arguments.judges)})
    sets = answer(job, "reliability", breakdown) if by in _WITH_SETS else []
    leniency = [] if by else answer(job, "leniency", {})
    if context.as_json:
        show_json({"pairs": pairs, "sets": sets, "leniency": leniency})
    elif pairs:
        _show(by, pairs, sets, leniency)
    else:
        show_nothing(job, "No criterion has been decided by two graders yet.")
    return 0


def _show(by: str | None, pairs: Records, sets: Records, leniency: Records) -> None:
    from tasks.rules.statistics.intervals import SMALL

    label = {by: "label"} if by else {}
    apart = [pair for pair in pairs if not pair["is_member"]]
    show_figures("Pairs of graders (--json also has each majority with its own voters)", apart, {
        "first": "grader_a", "second": "grader_b", **label, "kappa": ("kappa", "kappa_ci_low", "kappa_ci_high"),
        "macro-F1": "macro_f1", "task mean of macro-F1": "macro_f1_task_mean", "agreement": "agreement",
        "criteria": "n", "tasks": "n_tasks", "met by first": "met_share_a", "met by second": "met_share_b",
    })  # fmt: skip
    show_figures("Sets of graders", sets, {
        "set": "grader_set", **label, "graders": "n_graders",
        "Krippendorff's alpha": ("alpha", "alpha_ci_low", "alpha_ci_high"), "unanimous": "unanimous_share",
        "criteria": "n",
    })  # fmt: skip
    show_figures("Leniency: share of criteria met, minus that of the other graders", leniency, {
        "grader": "grader", "kind": "kind", "leniency": "leniency", "met": "met_share",
        "met by others": "others_met_share", "criteria": "n",
    })  # fmt: skip
    if any(pair["agreement"] is None for pair in apart):
        click.echo("Some figures are missing; `prbench aggregate` computes them.")
    if any(pair["n_tasks"] < SMALL for pair in apart):
        click.echo(f"{SMALL_MARK} fewer than {SMALL} tasks: the interval may be too narrow")


def _show_agreement_with_people(context: Context, by: str | None, people: tuple[str, ...]) -> int:
    from tasks.compare import against_people, small_note

    parameters = {"breakdown": by or "all", "people": list(people), "graders": list(context.arguments.judges)}
    job = context.stored_job(checked=())
    records = answer(job, "people", parameters, read=against_people)
    if context.as_json:
        show_json(records)
        return 0
    if not records:
        both = f"{' or '.join(people)} and another grader"
        show_nothing(job, f"No criterion has been decided by {both} yet.")
        return 0
    label = {by: "label"} if by else {}
    show_figures(f"Agreement with {', '.join(people)}, their decisions pooled", records, {
        "grader": "grader", **label, "kappa": ("kappa", "kappa_ci_low", "kappa_ci_high"),
        "macro-F1": ("macro_f1", "macro_f1_ci_low", "macro_f1_ci_high"),
        "agreement": ("agreement", "agreement_ci_low", "agreement_ci_high"), "people": "n_people", "criteria": "n",
        "tasks": "n_tasks", "task mean of macro-F1": "macro_f1_task_mean",
        "pair mean of kappa": "kappa_pair_mean", "pair mean of macro-F1": "macro_f1_pair_mean",
    })  # fmt: skip
    if any(is_small(record) for record in records):
        click.echo(small_note())
    return 0
