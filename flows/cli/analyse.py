"""The commands that have models look at tasks and rubrics, and those that show what came of it."""

from typing import TYPE_CHECKING

import click

from flows.cli.figures import Records, answer, repetition, say_small, show_figures
from flows.cli.flow_runner import finish, refuse_early, run_flow
from flows.cli.options import CALLS, RUNS, SHOWS, Context, command
from flows.cli.output import show_json, show_nothing
from tasks.rules.text.characters import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from tasks.benchmarks.base import ReviewReference
    from tasks.config.job import Job


@command("split", "limit", *CALLS, output=RUNS)
@click.argument("vocabularies", nargs=-1, metavar="[VOCABULARY]...")
def annotate(context: Context) -> int:
    """Label tasks with a model, such as by decision type.

    The models are those of `annotator:` in the configuration, the vocabularies those that the benchmark declares
    (`prbench benchmarks NAME`); all of them by default. Labels that are stored already are not asked for again. Where
    the data set has no label of a kind, breakdowns and the report use those of the annotators and say so. How far
    annotators agree with the data set's labels and with each other is in the table `annotation_agreement`.

    Examples:
      prbench annotate
      prbench annotate jurisdiction --limit 20
      prbench annotate decision_type economic_pathway --max-usd 5
      prbench sql 'from annotation_agreement'
    """
    from tasks.analyses.annotate import refuse_unready

    return _run(context, "annotate", refuse_unready)


@command("split", "limit", *CALLS, output=RUNS)
def capabilities(context: Context) -> int:
    """Group criteria by capability, and find where models are weak.

    The `capabilities: model:` of the configuration writes a phrase for the capability that each criterion needs. The
    phrases of a field are put into a tree, by `capabilities: embedding:` or else by their words, and the model writes a
    name for each node. Then scores and weaknesses of all models are computed from stored verdicts. Only what is missing
    is done. `prbench weaknesses` and the report show the result.

    Examples:
      prbench capabilities --max-usd 5
      prbench capabilities --split finance
      prbench weaknesses MODEL                             shows the result
      prbench sql 'from capability_scores'
    """
    from tasks.analyses.phrases import refuse_unready

    return _run(context, "capabilities", refuse_unready)


@command("split", "limit", *CALLS, output=RUNS)
def review(context: Context) -> int:
    """Have models check how criteria are written.

    The models are those of `reviewer:` in the configuration. Each says of every criterion whether it is atomic,
    objective, self-contained, consistent with the rest of its rubric, and not given away by the request, with a reason.
    Reviews that are stored already are not asked for again. `prbench reviews` shows them.

    Examples:
      prbench review --limit 20 --max-usd 2
      prbench review --split finance_hard
      prbench reviews                        what reviewers say
    """
    from tasks.analyses.review import refuse_unready

    return _run(context, "review", refuse_unready)


def _run(context: Context, name: str, refuse_unready: "Callable[[Job], None]") -> int:
    refuse_early(context, must_be_stored=True)
    refuse_unready(context.job)
    return finish(context, run_flow(context, name))


_QUESTIONS = ("agreement", "reviewers", "checks", "failures", "predictions", "criteria")
"""The parts of the answer, each a query below sql/questions/compare/reviews/."""


@command(output=SHOWS)
@click.option("-n", "n_criteria", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="Number of criteria with objections to show.")  # fmt: skip
def reviews(context: Context, n_criteria: int) -> int:
    """Show what reviewers say of the rubrics.

    People's reviews come from `prbench import reviews`, models' from `prbench review`.

    Agreement is the share of criteria that people agree with, estimated for all criteria that the samples were drawn
    from. Reviewers shows how far reviewers of the same criteria agree with each other. Checks shows how many criteria
    pass each check. Predictions shows whether graders, or people, disagree more on criteria that fail a check. Criteria
    lists those with the most objections, with the reasons.

    Examples:
      prbench reviews
      prbench reviews -n 50
      prbench reviews --json
    """
    from tasks.benchmarks import load_benchmark

    job = context.stored_job(checked=())
    found = {
        name: answer(job, f"reviews/{name}", {"n_criteria": n_criteria} if name == "criteria" else {})
        for name in _QUESTIONS
    }
    if context.as_json:
        show_json(found)
    elif found["checks"] or found["failures"]:
        _show_reviews(found, load_benchmark(job.settings.benchmark).review_reference)
    else:
        show_nothing(job, "No criterion has been reviewed yet.")
    return 0


def _show_reviews(found: dict[str, Records], reference: "ReviewReference | None") -> None:
    populations = {row["population_id"]: row["n_population"] for row in found["agreement"]}
    for population_id, n_population in populations.items():
        rows = [row for row in found["agreement"] if row["population_id"] == population_id]
        show_figures(f"Agreement of people with criteria, estimated for {n_population} criteria", rows, {
            "by": "breakdown", "label": "label", "agree": ("agreeing_share", "ci_low", "ci_high"),
            "unweighted": "unweighted_share", "criteria": "n_criteria", "reviews": "n_reviews", "tasks": "n_tasks",
        })  # fmt: skip
    if populations and reference:
        click.echo(f"The benchmark's paper: {reference.value:.3f} ({reference.source})")
    show_figures("Reviewers of the same criteria", found["reviewers"], {
        "check": "review_check", "first": "reviewer_a", "second": "reviewer_b",
        "agreement": "agreement±",
        "kappa": "kappa±",
        "Krippendorff's alpha": "alpha±", "criteria": "n", "tasks": "n_tasks",
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
        "passes": "passing_rate", "difference": "difference±",
        "odds ratio": "odds_ratio±",
        "AUC": "auc±",
        "criteria": "n_criteria", "failing": "n_failing", "tasks": "n_tasks",
    })  # fmt: skip
    if known:
        click.echo("Each interval is a 95 % interval by itself; with many checks, some exclude 0 by chance.")
    if predictions and len(known) < len(predictions):
        click.echo("Where a figure is missing, too few criteria fail the check (or pass it), or are disagreed on.")


def _show_notes(found: dict[str, Records]) -> None:
    from tasks.rules.statistics.intervals import FEWEST_OTHERS

    if any(row["is_small"] is None for row in (*found["agreement"], *found["predictions"])):
        click.echo("Some figures are missing; `prbench aggregate` computes them.")
    if any(row["ci_low"] is None for row in found["agreement"]):
        click.echo(f"No interval: fewer than {FEWEST_OTHERS} tasks differ from the most common value.")
    say_small([*found["agreement"], *found["reviewers"]])


@command("judge", output=SHOWS)
@click.argument("model", metavar="MODEL")
@click.option("--than", metavar="MODEL", help="Compare with this model.  [default: the model's own other criteria]")
@click.option("-n", "n_examples", type=click.IntRange(min=0), default=2, show_default=True, metavar="N",
              help="Number of example criteria to show for each weakness.")  # fmt: skip
def weaknesses(context: Context, model: str, than: str | None, n_examples: int) -> int:
    """Show the capabilities in which a model is weak.

    `prbench capabilities` finds them on one half of the tasks and confirms them on the other; only confirmed ones are
    shown, with the figures of the second half. The score is the share of the criteria of a capability that were handled
    rightly, weighted by their points (a criterion with negative points is handled rightly if it is not met).

    Examples:
      prbench weaknesses gpt-5-high
      prbench weaknesses gpt-5-high --than claude-opus
      prbench weaknesses gpt-5-high --judge o4-mini --json
    """
    job = context.stored_job(checked=("judge",))
    given = {"model": model, "judges": list(context.arguments.judges)}
    _refuse_unknown(job, (model, *([than] if than else [])))
    found = answer(job, "capabilities/weaknesses", {**given, "than": than})
    nodes = sorted({row["node_id"] for row in found})
    lost = answer(job, "capabilities/examples", {**given, "nodes": nodes, "n_examples": n_examples})
    compared = answer(job, "capabilities/compared", given)
    by_node = {node: [row for row in lost if row["node_id"] == node] for node in nodes}
    if context.as_json:
        show_json({
            "weaknesses": [{**row, "examples": by_node[row["node_id"]]} for row in found], "compared": compared,
        })  # fmt: skip
        return 0
    n_candidates = sum(row["n_candidates"] for row in compared if row["compared_model"] == than)
    beside = _beside(than)
    if found:
        _show_weaknesses(f"Where {model} does worse {beside}", found, by_node)
    else:
        found_only = f"; {n_candidates} found on one half of the tasks, none confirmed" if n_candidates else ""
        show_nothing(job, f"{model} does not do worse {beside} in any capability, as far as is known{found_only}.")
    _show_others(model, than, compared)
    return 0


def _refuse_unknown(job: "Job", models: tuple[str, ...]) -> None:
    from tasks.rules.errors import UsageError

    known = [row["model"] for row in answer(job, "capabilities/models", {})]
    if not known:
        raise UsageError("no scores in capabilities are stored yet; `prbench capabilities` makes them")
    if len(set(models)) < len(models):
        raise UsageError(f"--than {models[0]}: name another model than {models[0]} itself")
    for model in models:
        if model not in known:
            raise UsageError(f"{model}: no such model; with scores in capabilities: {', '.join(known)}")


def _show_weaknesses(title: str, found: Records, by_node: dict[str, Records]) -> None:
    found = [{**row, "p_confirmed": f"{row['p_confirmed']:.2g}"} for row in found]
    show_figures(title, found, {
        "capability": "name", "within": "parent_name", "field": "field", "score": "value", "beside": "compared_value",
        "difference": "gap±", "p corrected": "p_confirmed", "tasks": "n_tasks",
        "judge": "judge", **repetition(found),
    })  # fmt: skip
    for node, criteria in by_node.items():
        if criteria:
            name = next(row["name"] for row in found if row["node_id"] == node)
            click.echo(f"\nNot handled rightly in {visible(name or '(no name)')}:")
        for row in criteria:
            click.echo(f"  {visible(row['task_id'])}  {row['weight']:+g}  {visible(' '.join(row['title'].split()))}")
    say_small(found)


def _show_others(model: str, than: str | None, compared: Records) -> None:
    for row in compared:
        other = row["compared_model"]
        if row["n_confirmed"] and other != than:
            option = f" --than {other}" if other else ""
            where = f"in {row['n_confirmed']} of its capabilities {_beside(other)}"
            click.echo(f"\nWorse {where}: prbench weaknesses {model}{option}")


def _beside(other: str | None) -> str:
    return f"than {other}" if other else "than in its other criteria"
