"""The commands `diff`, `conditions`, `judges`, `criteria` and `lengths`."""

import click
from click.core import ParameterSource

from flows.cli.figures import Records, answer, repetition, say_small, show_figures
from flows.cli.options import SHOWS, Context, command
from flows.cli.output import show_json, show_nothing, shows_records
from tasks.rules.text.numbers import SMALL_MARK

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
    from flows.cli.compare_tables import diff_as_json, show_diff
    from tasks.compare.differences import compare
    from tasks.compare.pairs import question_of
    from warehouse import Warehouse

    # Revisions that are compared need not be the configured one.
    job = context.job if kind == "revision" else context.stored_job(checked=("split",))
    question = question_of(job, names, kind, score=score, is_hard=is_hard, vintage=context.arguments.vintage)
    with Warehouse(job.warehouse).reader() as reader:
        answer = compare(reader, question)
        if context.as_json:
            show_json(diff_as_json(reader, answer, n_flips))
        else:
            show_diff(reader, answer, n_flips)
    return 0


@command("split", "model", "judge", "vintage", "hard", "score", output=SHOWS, texts={
    "score": "Score to use.  [default: the benchmark's primary score, and by category its score for single categories]",
    "model": "Only this model: the name that its conditions share, or a label (repeatable).",
    "vintage": "Only this vintage, or `all`.  [default: the latest of each comparison]",
})  # fmt: skip
@click.option("--flips", "n_flips", type=click.IntRange(min=0), default=3, show_default=True, metavar="N",
              help="Number of criteria to show that gain most points, and that lose most, for each "
              "comparison.")  # fmt: skip
def conditions(context: Context, is_hard: bool, score: str | None, n_flips: int) -> int:
    """Compare a model with and without tools or effort.

    `conditions` in the configuration says which labels are one model, and which of them is the baseline. Each other
    condition is compared with it on the tasks that are complete on both sides: the difference of the scores with its
    interval and a paired test, over the whole rubric and by category. Length, cost and the criteria that changed are
    shown too.

    Examples:
      prbench conditions
      prbench conditions --model gpt-5 --flips 10
      prbench conditions --split finance_hard --json
    """
    from flows.cli.compare_tables import conditions_as_json, show_conditions
    from tasks.compare.conditions import conditions as compared
    from warehouse import Warehouse

    job = context.stored_job(checked=("split", "judge", "vintage"))
    with Warehouse(job.warehouse).reader() as reader:
        answer = compared(
            reader, job, score=score, is_hard=is_hard, vintage=context.arguments.vintage, n_criteria=n_flips
        )
    if context.as_json:
        show_json(conditions_as_json(answer))
    else:
        show_conditions(job, answer)
    return 0


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
    label = {by: "label"} if by else {}
    apart = [pair for pair in pairs if not pair["is_member"]]
    show_figures("Pairs of graders (--json also has each majority with its own voters)", apart, {
        "first": "grader_a", "second": "grader_b", **label, "kappa": "kappa±",
        "macro-F1": "macro_f1", "task mean of macro-F1": "macro_f1_task_mean", "agreement": "agreement",
        "criteria": "n", "tasks": "n_tasks", "met by first": "met_share_a", "met by second": "met_share_b",
    })  # fmt: skip
    show_figures("Sets of graders", sets, {
        "set": "grader_set", **label, "graders": "n_graders",
        "Krippendorff's alpha": "alpha±", "unanimous": "unanimous_share",
        "voters": "n_voters", "effective votes": "effective_votes±", "criteria": "n",
    })  # fmt: skip
    for note in sorted({each["effective_votes_note"] for each in sets} - {None}):
        click.echo(f"Effective votes: {note}.")
    show_figures("Leniency: share of criteria met, minus that of the other graders", leniency, {
        "grader": "grader", "kind": "kind", "leniency": "leniency", "met": "met_share",
        "met by others": "others_met_share", "criteria": "n",
    })  # fmt: skip
    if any(pair["agreement"] is None for pair in apart):
        click.echo("Some figures are missing; `prbench aggregate` computes them.")
    say_small(apart)


def _show_agreement_with_people(context: Context, by: str | None, people: tuple[str, ...]) -> int:
    from tasks.compare.people import against_people

    parameters = {"breakdown": by or "all", "people": list(people), "graders": list(context.arguments.judges)}
    job = context.stored_job(checked=())
    records = answer(job, "people", parameters, read=against_people)
    both = f"{' or '.join(people)} and another grader"
    if not shows_records(job, records, context.as_json, f"No criterion has been decided by {both} yet."):
        return 0
    label = {by: "label"} if by else {}
    show_figures(f"Agreement with {', '.join(people)}, their decisions pooled", records, {
        "grader": "grader", **label, "kappa": "kappa±",
        "macro-F1": "macro_f1±",
        "agreement": "agreement±", "people": "n_people", "criteria": "n",
        "tasks": "n_tasks", "task mean of macro-F1": "macro_f1_task_mean",
        "pair mean of kappa": "kappa_pair_mean", "pair mean of macro-F1": "macro_f1_pair_mean",
    })  # fmt: skip
    say_small(records)
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
    given = context.arguments
    parameters = {"which": which, "n_criteria": n_criteria, "judges": list(given.judges), "vintage": given.vintage}
    job = context.stored_job()
    records = answer(job, "criteria", parameters)
    if not shows_records(job, records, context.as_json, f"{_CRITERIA[which]}: none."):
        return 0
    # What graders differ on is about all of them; the other figures are about one judging each, which is named.
    figures = {"graded by several": "n_graded"} if which == "disagreed" else {
        "met": "met_share", "responses": "n_responses", "models": "n_models", "correlation": "rest_correlation",
        "upper limit": "rest_correlation_high",
    }  # fmt: skip
    judging = {} if which == "disagreed" else {"judge": "judge", **repetition(records)}
    show_figures(_CRITERIA[which], records, {
        "task": "task_id", "criterion": "criterion_id", "category": "category", "weight": "weight", **figures,
        "disagreement": "disagreement", "people disagreeing": "n_disagreeing", "reviewed by": "n_reviews",
        "failed checks": "failed_checks", **judging, "title": "title",
    })  # fmt: skip
    if which == "suspect" and not any((r["rest_correlation_high"] or 0) < 0 for r in records):
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
    given, job = context.arguments, context.stored_job()
    parameters = {
        "splits": list(job.settings.dataset.splits), "models": list(given.models),
        "judges": list(given.judges), "vintage": given.vintage, "is_hard": is_hard,
    }  # fmt: skip
    records = answer(job, "lengths", parameters, score=score)
    if not shows_records(job, records, context.as_json, "No model has a complete task in this selection yet."):
        return 0
    show_figures("Rank correlation between response length and score", records, {
        "split": "split", "model": "model", "length": "measure",
        "correlation": ("rank_correlation", "ci_low", "ci_high"), "tasks or models": "n",
        "judge": "judge", **repetition(records), "vintage": "vintage",
    })  # fmt: skip
    if any(record["is_small"] and record["rank_correlation"] is not None for record in records):
        click.echo(f"{SMALL_MARK} fewer than 50 tasks or models; fewer than 10 have no interval")
    return 0
