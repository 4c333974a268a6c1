"""The commands that have models look at tasks and rubrics, and those that show what came of it."""

from typing import TYPE_CHECKING

import click

from flows.cli.figures import say_missing, show_figure, shown
from flows.cli.flow_runner import finish, refuse_early, run_flow
from flows.cli.options import CALLS, RUNS, SHOWS, Context, command
from flows.cli.output import show_json, show_nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tasks.config.job import Job
    from tasks.figures.columns import Rows


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
    found = shown(context, job, {
        "agreement": ("review_agreement", {}), "reviewers": ("reviewer_agreement", {}), "checks": ("review_checks", {}),
        "failures": ("review_failures", {}), "predictions": ("review_predictions", {}),
        "criteria": ("review_objections", {"n_criteria": n_criteria}),
    }, nothing="No criterion has been reviewed yet.")  # fmt: skip
    if found:
        say_missing(row["is_small"] is None for row in (*found["agreement"], *found["predictions"]))
        if reference := load_benchmark(job.settings.benchmark).review_reference:
            click.echo(f"The benchmark's paper: {reference.value:.3f} ({reference.source})")
    return 0


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
    from tasks.figures.registry import figure_of
    from tasks.figures.scope import open_scope
    from warehouse import Warehouse

    job = context.stored_job(checked=("judge",))
    with Warehouse(job.warehouse).reader() as reader:
        # People who label count here too.
        found_by = reader.select("weaknesses", "distinct judge", benchmark=job.settings.benchmark, model=model)
        judges = job.named_judges or tuple(row["judge"] for row in found_by)
        scope = open_scope(job.model_copy(update={"named_judges": judges}), reader)
        key = {"benchmark": scope.benchmark.name, "dataset_revision": scope.revision}
        known = [row["model"] for row in reader.select("capability_scores", "distinct model", **key)]
        _refuse_unknown(known, (model, *([than] if than else [])))
        found = scope.rows_of(figure_of("weaknesses"), {"model": model, "than": than})
        nodes = sorted({row["node_id"] for row in found})
        asked = {"model": model, "nodes": nodes, "n_examples": n_examples}
        examples = scope.rows_of(figure_of("weakness_examples"), asked)
        compared = scope.rows_of(figure_of("weakness_candidates"), {"model": model})
    if context.as_json:
        show_json({
            "weaknesses": [
                {**row, "examples": [each for each in examples if each["node_id"] == row["node_id"]]} for row in found
            ],
            "compared": compared,
        })  # fmt: skip
        return 0
    beside = _beside(than)
    if found:
        show_figure(figure_of("weaknesses"), found, f"Where {model} does worse {beside}")
        names = {row["node_id"]: row["capability"] for row in found}
        show_figure(figure_of("weakness_examples"), [{**row, "node_id": names[row["node_id"]]} for row in examples])
    else:
        n_candidates = sum(row["n_candidates"] for row in compared if row["compared_model"] == than)
        found_only = f"; {n_candidates} found on one half of the tasks, none confirmed" if n_candidates else ""
        show_nothing(job, f"{model} does not do worse {beside} in any capability, as far as is known{found_only}.")
    _show_others(model, than, compared)
    return 0


def _refuse_unknown(known: "Sequence[str]", models: tuple[str, ...]) -> None:
    from tasks.rules.errors import UsageError

    if not known:
        raise UsageError("no scores in capabilities are stored yet; `prbench capabilities` makes them")
    if len(set(models)) < len(models):
        raise UsageError(f"--than {models[0]}: name another model than {models[0]} itself")
    for model in models:
        if model not in known:
            raise UsageError(f"{model}: no such model; with scores in capabilities: {', '.join(known)}")


def _show_others(model: str, than: str | None, compared: "Rows") -> None:
    for row in compared:
        other = row["compared_model"]
        if row["n_confirmed"] and other != than:
            option = f" --than {other}" if other else ""
            where = f"in {row['n_confirmed']} of its capabilities {_beside(other)}"
            click.echo(f"\nWorse {where}: prbench weaknesses {model}{option}")


def _beside(other: str | None) -> str:
    return f"than {other}" if other else "than in its other criteria"
