"""The command `reviews`: how good the rubrics are, by people and by models."""

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json, show_nothing
from flows.cli.compare.figures import is_small, show_figures
from flows.cli.compare.questions import Records, answer
from tasks.rules.text.numbers import SMALL_MARK

_QUESTIONS = ("agreement", "reviewers", "checks", "failures", "predictions", "criteria")
"""The parts of the answer, each a query below sql/questions/compare/reviews/."""


@click.command(cls=Command, epilog=examples("prbench reviews", "prbench reviews -n 50", "prbench reviews --json"))
@click.option("-n", "n_criteria", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="Number of criteria with objections to show.")  # fmt: skip
@shared_options(output=SHOWS)
def reviews(context: Context, n_criteria: int) -> int:
    """Show what reviewers say of the rubrics.

    People's reviews come from `prbench import reviews`, models' from `prbench review`.

    Agreement is the share of criteria that people agree with, estimated for all criteria that the samples were drawn
    from. Reviewers shows how far reviewers of the same criteria agree with each other. Checks shows how many criteria
    pass each check. Predictions shows whether graders, or people, disagree more on criteria that fail a check. Criteria
    lists those with the most objections, with the reasons.
    """
    job = context.stored_job(checked=())
    found = {
        name: answer(job, f"reviews/{name}", {"n_criteria": n_criteria} if name == "criteria" else {})
        for name in _QUESTIONS
    }
    if context.as_json:
        show_json(found)
    elif found["checks"] or found["failures"]:
        _show(found, _reference(job.settings.benchmark))
    else:
        show_nothing(job, "No criterion has been reviewed yet.")
    return 0


def _reference(benchmark: str) -> str | None:
    from tasks.benchmarks import load_benchmark

    reference = load_benchmark(benchmark).review_reference
    return None if reference is None else f"The benchmark's paper: {reference.value:.3f} ({reference.source})"


def _show(found: dict[str, Records], reference: str | None) -> None:
    populations = {row["population_id"]: row["n_population"] for row in found["agreement"]}
    for population_id, n_population in populations.items():
        rows = [row for row in found["agreement"] if row["population_id"] == population_id]
        show_figures(f"Agreement of people with criteria, estimated for {n_population} criteria", rows, {
            "by": "breakdown", "label": "label", "agree": ("agreeing_share", "ci_low", "ci_high"),
            "unweighted": "unweighted_share", "criteria": "n_criteria", "reviews": "n_reviews", "tasks": "n_tasks",
        })  # fmt: skip
    if populations and reference:
        click.echo(reference)
    show_figures("Reviewers of the same criteria", found["reviewers"], {
        "check": "review_check", "first": "reviewer_a", "second": "reviewer_b",
        "agreement": ("agreement", "agreement_ci_low", "agreement_ci_high"),
        "kappa": ("kappa", "kappa_ci_low", "kappa_ci_high"),
        "Krippendorff's alpha": ("alpha", "alpha_ci_low", "alpha_ci_high"), "criteria": "n", "tasks": "n_tasks",
    })  # fmt: skip
    show_figures("Criteria that pass", found["checks"], {
        "reviewer": "reviewer", "kind": "kind", "check": "review_check", "pass": "pass_share", "criteria": "n_criteria",
        "tasks": "n_tasks", "repetitions": "n_trials",
    })  # fmt: skip
    for row in found["failures"]:
        click.echo(f"{row['reviewer']}: {row['n']} reviews failed ({row['status']})")
    _show_predictions(found["predictions"])
    show_figures(f"Criteria with the most objections, the first {len(found['criteria'])}", found["criteria"], {
        "task": "task_id", "criterion": "criterion_id", "category": "category", "weight": "weight",
        "people": "n_people", "checks": "n_checks", "reasons": "reasons", "better wording": "better_wording",
        "title": "title",
    })  # fmt: skip
    _show_notes(found)


def _show_predictions(predictions: Records) -> None:
    known = [row for row in predictions if row["auc"] is not None]
    show_figures("What checks predict: the rate of disagreement where the check fails and where it passes", known, {
        "disagreement of": "outcome", "reviewer": "reviewer", "check": "review_check", "fails": "failing_rate",
        "passes": "passing_rate", "difference": ("difference", "difference_ci_low", "difference_ci_high"),
        "odds ratio": ("odds_ratio", "odds_ratio_ci_low", "odds_ratio_ci_high"),
        "AUC": ("auc", "auc_ci_low", "auc_ci_high"),
        "criteria": "n_criteria", "failing": "n_failing", "tasks": "n_tasks",
    })  # fmt: skip
    if known:
        click.echo("Each interval is a 95 % interval by itself; with many checks, some exclude 0 by chance.")
    if predictions and len(known) < len(predictions):
        what = "No figure" if not known else f"No figure for {len(predictions) - len(known)} more"
        click.echo(
            f"{what} of what checks predict: too few tasks with a criterion that fails the check (or passes it), or "
            "too few criteria that are disagreed on (or agreed on)."
        )


def _show_notes(found: dict[str, Records]) -> None:
    from tasks.rules.statistics.intervals import FEWEST_OTHERS, SMALL

    if any(row["is_small"] is None for row in found["agreement"]) or any(
        row["is_small"] is None for row in found["predictions"]
    ):
        click.echo("Some figures are missing; `prbench aggregate` computes them.")
    if any(row["ci_low"] is None for row in found["agreement"]):
        click.echo(f"No interval: fewer than {FEWEST_OTHERS} tasks differ from the most common value.")
    if any(is_small(row) for row in (*found["agreement"], *found["reviewers"])):
        click.echo(f"{SMALL_MARK} fewer than {SMALL} tasks, or few that differ: the interval may be too narrow")
