"""The command `conditions`."""

from typing import TYPE_CHECKING

import click

from flows.cli.figures import show_columns, show_figure
from flows.cli.options import SHOWS, Context, command
from flows.cli.output import show_json, show_nothing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tasks.aggregate.conditions import Definitions
    from tasks.figures.columns import Rows

_FIGURES = {
    "differences": "conditions", "categories": "condition_categories", "changes": "condition_changes",
    "criteria": "condition_criteria",
}  # fmt: skip
"""What is shown, by its name in the JSON."""


@command("split", "model", "judge", "vintage", "hard", "score", output=SHOWS, texts={
    "score": "Score to use.  [default: the benchmark's primary score, and by category its score for single categories]",
    "model": "Only this model: the name that its conditions share, or a label (repeatable).",
    "vintage": "Only this vintage, or `all`.  [default: the latest of each model]",
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
    from tasks.compare.conditions import current_steps, definitions_of, labels_of, not_compared
    from tasks.figures.registry import figure_of
    from tasks.figures.scope import open_scope
    from warehouse import Warehouse

    job = context.stored_job(checked=("split", "judge", "vintage"))
    with Warehouse(job.warehouse).reader() as reader:
        definitions = definitions_of(reader, job)
        named = labels_of(definitions, job.named_models or ())
        scope = open_scope(
            job.model_copy(update={"named_models": named or None}), reader, context.arguments.vintage, is_hard=is_hard,
            score=score, steps=current_steps(reader, job.settings.benchmark, definitions),
        )  # fmt: skip
        found = {
            key: scope.rows_of(figure_of(name), {"n_criteria": n_flips} if key == "criteria" else {})
            for key, name in _FIGURES.items()
        }
    whole = found["differences"]
    absent = not_compared(definitions, job.named_models or (), whole)
    notes = [*on_figures([*whole, *found["categories"]]), *on_responses(whole), *_on_absent(definitions, absent)]
    if context.as_json:
        about = {name: scope.values[name] for name in ("score", "label_score")}
        labels = {name: dict(of_name) for name, of_name in definitions.items()}
        show_json({"conditions": labels, **about, "family": FAMILY, **found, "notes": notes})
        return 0
    if not whole:
        show_nothing(job, "No two conditions of a model have been judged in this selection yet.")
    for key, name in _FIGURES.items():
        show_figure(figure_of(name), found[key])
        if key == "differences":
            responses = figure_of("condition_responses")
            show_columns(responses.columns, whole, responses.title)
    for note in notes:
        click.echo(note)
    return 0


FAMILY = (
    "“p corrected” (Holm) takes all comparisons over the whole rubric into account that have the same split, judge and "
    "vintage; of categories all comparisons by category, of all models and conditions."
)
_ONE_TRIAL = (
    "One trial: intervals and tests say what other tasks of the same kind would show, not what another run on the same "
    "tasks would; `trials` above 1 averages over runs."
)


def on_figures(rows: "Rows") -> "Iterator[str]":
    """Notes on intervals and tests."""
    from tasks.rules.statistics.intervals import FEW_OTHERS, FEWEST_OTHERS, SMALL

    if any(row["ci_low"] is not None and row["is_small"] for row in rows):
        yield f"Few tasks: fewer than {SMALL}, or fewer than {FEW_OTHERS} that differ; the interval may be too narrow."
    if any(row["n_tasks"] and row["p_value"] is None for row in rows):
        yield f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ."
    if any(row["p_value"] is not None for row in rows):
        yield f"Intervals, p and smallest detectable differences (power 80 %) are for each comparison alone. {FAMILY}"
    if any((row[name] or 0.0) < 0 for row in rows for name in ("baseline_mean_score", "mean_score")):
        yield "Means are before any clipping; the leaderboard may show a mean below 0 as 0."
    if any(1 in {row["n_trials"], row["baseline_n_trials"]} for row in rows):
        yield _ONE_TRIAL


def on_responses(rows: "Rows") -> "Iterator[str]":
    """Notes on length, cost and failures."""
    if any(row["n_unpriced"] or row["baseline_n_unpriced"] for row in rows):
        is_known = any(row["mean_cost_usd"] is not None for row in rows)
        yield (
            "Tasks with a response of unknown price are left out of both mean costs."
            if is_known
            else "No cost is shown: no task has known prices on both sides."
        )
    if any(row["n_failed"] or row["baseline_n_failed"] for row in rows):
        yield "A failed response has no score: its trial counts for neither side's mean, and is counted as failed."


def _on_absent(definitions: "Definitions", absent: "Iterable[tuple[str, str, str]]") -> "Iterator[str]":
    for name, condition, label in absent:
        baseline = next(iter(definitions[name]))
        yield (
            f"{name}, {condition} ({label}): no verdicts in this selection under a judge that also judged its "
            f"{baseline!r} ({definitions[name][baseline]}) in the same vintage."
        )
