"""The commands `diff`, `judges`, `criteria` and `lengths`."""

import click
from click.core import ParameterSource

from flows.cli.figures import say_missing, show_figure, shown
from flows.cli.options import SHOWS, Context, command
from flows.cli.output import show_json

_KINDS = ("model", "judge", "template", "run", "vintage", "revision")


@command("split", "model", "judge", "vintage", "hard", "score", output=SHOWS, texts={
    "vintage": "Only this vintage, unless vintages are compared.",
})  # fmt: skip
@click.argument("names", nargs=-1, metavar="A B [C]...")
@click.option("--of", "kind", type=click.Choice(_KINDS),
              help="Kind of the names.  [default: the kind for which all names exist]")  # fmt: skip
@click.option("--flips", "n_flips", type=click.IntRange(min=0), default=10, show_default=True, metavar="N",
              help="Number of flipped criteria to show.")  # fmt: skip
@click.option("--debiased", "is_debiased", is_flag=True, help="Show the difference of models beside what people's "
              "labels on a part of the verdicts make of it.")  # fmt: skip
def diff(
    context: Context, names: tuple[str, ...], kind: str | None, is_hard: bool, score: str | None, n_flips: int,
    is_debiased: bool,
) -> int:  # fmt: skip
    """Compare models, judges, templates, runs, vintages, revisions.

    A is compared with each of the others, on the tasks that are complete on both sides. A difference is the second
    mean minus the first mean. It comes with its interval, a paired test, and the criteria whose verdict flipped.

    Examples:
      prbench diff gpt-5-high gpt-5-low               two models
      prbench diff base 2026-11-21 --model MODEL      one model, two vintages
      prbench diff o4-mini reader --of judge --json   two judges
      prbench diff a b c --split finance              a with b, and a with c
      prbench diff a b --debiased                     as labels correct it
    """
    if len(names) < 2:
        raise click.UsageError("give at least two names to compare, such as two models")
    if is_debiased:
        from flows.cli.debiased import show_debiased_differences

        # Only models are compared by labels.
        are_flips_given = click.get_current_context().get_parameter_source("n_flips") is ParameterSource.COMMANDLINE
        given = {"--of": kind not in {None, "model"}, "--flips": are_flips_given, "--model": context.arguments.models}
        if option := next((option for option, is_given in given.items() if is_given), None):
            raise click.UsageError(f"{option} does not apply to --debiased, which compares models; leave it out")
        return show_debiased_differences(context, names, score=score, is_hard=is_hard)
    from tasks.compare.differences import compare
    from tasks.compare.pairs import question_of
    from tasks.compare.rows import apart, rows_of
    from tasks.figures.shown.comparisons import CHANGED_CATEGORIES, CHANGED_TASKS, DIFF, FLIPS, VERDICTS
    from warehouse import Warehouse

    # Revisions that are compared need not be the configured one.
    job = context.job if kind == "revision" else context.stored_job(checked=("split",))
    question = question_of(job, names, kind, score=score, is_hard=is_hard, vintage=context.arguments.vintage)
    with Warehouse(job.warehouse).reader() as reader:
        answer = compare(reader, question)
        is_whole = context.as_json or len(answer.differences) <= _MOST_DETAILED
        found = apart(reader, answer, answer.differences if is_whole else answer.differences[:1], n_flips)
    if context.as_json:
        show_json({"comparisons": rows_of(answer), **found})
        return 0
    show_figure(DIFF, rows_of(answer))
    for figure, part in zip((VERDICTS, CHANGED_CATEGORIES, CHANGED_TASKS, FLIPS), found.values(), strict=True):
        show_figure(figure, part)
    if not is_whole:
        click.echo(f"--json shows the flips of the other {len(answer.differences) - 1} comparisons.")
    return 0


_MOST_DETAILED = 2
"""Up to so many differences are all taken apart; of more, only the first."""
_BREAKDOWNS = ("category", "severity", "field", "model", "length")
_WITH_SETS = {None, "category", "severity"}
"""Breakdowns by which the agreement of whole sets of graders is measured."""


@command("judge", output=SHOWS, texts={
    "judge": "Only pairs with this grader (repeatable).",
})  # fmt: skip
@click.option("--by", type=click.Choice(_BREAKDOWNS), help="Break the agreement down.")
@click.option("--people", multiple=True, metavar="GRADER",
              help="Compare all other graders with this person; several people are pooled (repeatable).")  # fmt: skip
def judges(context: Context, by: str | None, people: tuple[str, ...]) -> int:
    """Compare judges with each other and with people.

    A grader is a judge, a person whose labels were imported, one repetition of a judge, or a majority of several.

    With --people, every other grader is compared with the pooled decisions of these people, so a person with more
    decisions counts more. The mean over the pairs is shown too, as in table 3 of the paper.

    Examples:
      prbench judges
      prbench judges --judge expert-1 --by category
      prbench judges --people expert-1 --people expert-2
      prbench judges --json
    """
    from tasks.run.stored_data import refuse_unknown_graders

    job, given = context.stored_job(checked=()), {"breakdown": by or "all", "graders": list(context.arguments.judges)}
    refuse_unknown_graders(job, judge=given["graders"], people=people)
    job = job.model_copy(update={"named_judges": None})  # graders are no judges only
    if people:
        both = f"{' or '.join(people)} and another grader"
        nothing = f"No criterion has been decided by {both} yet."
        shown(context, job, ("people_agreement", {**given, "people": list(people)}), nothing=nothing)
        return 0
    parts = {"pairs": ("judge_agreement", given)}
    if by in _WITH_SETS:
        parts["sets"] = ("judge_reliability", {"breakdown": given["breakdown"]})
    if not by:
        parts["leniency"] = ("judge_leniency", {})
    found = shown(context, job, parts, nothing="No criterion has been decided by two graders yet.")
    say_missing(pair["agreement"] is None for pair in found.get("pairs", ()))
    return 0


_CRITERIA = {
    "never-met": "Criteria that no complete response meets",
    "always-met": "Criteria that every complete response meets",
    "disagreed": "Criteria that graders disagree on most",
    "suspect": "Criteria whose points correlate negatively with the rest of their task: weight or sign may be wrong",
}


@command("judge", "vintage-only", output=SHOWS)
@click.argument("which", metavar="KIND", type=click.Choice(list(_CRITERIA)))
@click.option("-n", "n_criteria", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Number of criteria to show.")  # fmt: skip
def criteria(context: Context, which: str, n_criteria: int) -> int:
    """Find criteria worth a second look.

    Criteria that are `never-met` are met by no complete response, and `always-met` by every one. Graders disagree most
    on those that are `disagreed`. The points of `suspect` ones correlate negatively with the rest of their task, so
    their weight or sign may be wrong. Reviews of these criteria (`prbench reviews`) are in the same table.

    Examples:
      prbench criteria suspect
      prbench criteria never-met -n 50 --json
      prbench criteria disagreed
    """
    title = _CRITERIA[which]
    rows = shown(
        context, context.stored_job(), ("criteria", {"which": which, "n_criteria": n_criteria}),
        nothing=f"{title}: none.", vintage=context.arguments.vintage, title=title,
    ).get("", ())  # fmt: skip
    if which == "suspect" and rows and not any((row["rest_correlation_high"] or 0) < 0 for row in rows):
        click.echo("All of these may be due to chance: none has an upper limit below 0, which needs at least 4 models.")
    return 0


@command("split", "model", "judge", "vintage-only", "hard", "score", output=SHOWS)
def lengths(context: Context, is_hard: bool, score: str | None) -> int:
    """Show the correlation between response length and score.

    It is Spearman's rank correlation, over the tasks of each model and over the models, with its interval (figure 7 of
    the paper).

    Examples:
      prbench lengths
      prbench lengths --hard --model gpt-5-high
    """
    shown(
        context, context.stored_job(), ("length_correlations", {}), vintage=context.arguments.vintage or "all",
        nothing="No model has a complete task in this selection yet.", is_hard=is_hard, score=score,
    )  # fmt: skip
    return 0
