"""Notes that readers need below comparisons of conditions."""

from collections.abc import Iterator

from tasks.compare import ConditionsAnswer, small_note

FAMILY = (
    "“p corrected” (Holm) takes all comparisons over the whole rubric into account that have the same split, judge and "
    "vintage; of categories all comparisons by category, of all models and conditions."
)
_ONE_TRIAL = (
    "One trial: intervals and tests say what other tasks of the same kind would show, not what another run on the same "
    "tasks would; `trials` above 1 averages over runs."
)


def notes_on(answer: ConditionsAnswer) -> list[str]:
    """Notes on the figures, one line each."""
    return [*_on_figures(answer), *_on_responses(answer), *_on_absent(answer)]


def _on_figures(answer: ConditionsAnswer) -> Iterator[str]:
    from tasks.rules.statistics.intervals import FEWEST_OTHERS

    rows = [row for table in answer.tables for row in (*table.whole, *table.categories)]
    if any(row["ci_low"] is not None and row["is_small"] for row in rows):
        yield small_note()
    if any(row["n_tasks"] and row["p_value"] is None for row in rows):
        yield f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ."
    if any(row["p_value"] is not None for row in rows):
        yield f"Intervals, p and smallest detectable differences (power 80 %) are for each comparison alone. {FAMILY}"
    if any((row[name] or 0.0) < 0 for row in rows for name in ("baseline_mean_score", "mean_score")):
        yield "Means are before any clipping; the leaderboard may show a mean below 0 as 0."
    if any(1 in {row["n_trials"], row["baseline_n_trials"]} for row in rows):
        yield _ONE_TRIAL


def _on_responses(answer: ConditionsAnswer) -> Iterator[str]:
    rows = [row for table in answer.tables for row in table.whole]
    if any(row["n_unpriced"] or row["baseline_n_unpriced"] for row in rows):
        is_known = any(row["mean_cost_usd"] is not None for row in rows)
        yield (
            "Tasks with a response of unknown price are left out of both mean costs."
            if is_known
            else "No cost is shown: no task has known prices on both sides."
        )
    if any(row["n_failed"] or row["baseline_n_failed"] for row in rows):
        yield "A failed response has no score: its trial counts for neither side's mean, and is counted as failed."


def _on_absent(answer: ConditionsAnswer) -> Iterator[str]:
    for name, condition, label in answer.absent:
        baseline = next(iter(answer.definitions[name]))
        yield (
            f"{name}, {condition} ({label}): no verdicts in this selection under a judge that also judged its "
            f"{baseline!r} ({answer.definitions[name][baseline]}) in the same vintage."
        )
