"""The leaderboard: the figure, and its rows for a job."""

from typing import Any

from tasks.config.job import Job
from tasks.figures.figure import (
    BY_LABEL,
    MEAN_SCORE,
    Column,
    ColumnGroup,
    Figure,
    Interval,
    Row,
    Rows,
)
from tasks.figures.scope import Scope
from tasks.figures.selection import scores_on_selection
from tasks.figures.shown.categories import CRITICAL
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean
from warehouse import Warehouse

WHOLE = {"breakdown": "all", "of_criteria": False}
"""The parameters of the query for a leaderboard without a breakdown."""
POSSIBLE = (Interval("rank"), Column("mean_lower", end="low"), Column("mean_upper", end="high"))
"""The columns of the possible ranks, and of the possible mean over all tasks."""


def judged_in_groups(rows: Rows) -> list[str]:
    """Return a note for each judge that decides several criteria in one call, with its neighbour
    effect if measured.
    """
    notes: dict[str, str] = {}
    for row in rows:
        if row.get("criteria_per_call"):
            judge = row["judge_config"]
            notes[judge] = (
                f"{judge} decides up to {row['criteria_per_call']} criteria in one call;"
                f" {_neighbour_effect(row)}."
            )
    return list(notes.values())


def _neighbour_effect(row: Row) -> str:
    effect = row["neighbour_effect"]
    if effect is None:
        return "its neighbour effect was not measured (see prbench neighbours)"
    low = row["neighbour_effect_ci_low"]
    high = row["neighbour_effect_ci_high"]
    ends = "" if low is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    return (
        f"compared with one by one, this changes the share met by {100 * effect:+.1f} points{ends}"
    )


LEADERBOARD = Figure(
    "leaderboard",
    "Leaderboard",
    "Mean $score on each split, with its 95 % interval for other tasks of the same kind. A task's"
    " score is the mean over its complete trials. The all-task range is what the mean can become"
    " once every task is complete; the score of the complete ones may lie outside. Ranks compare"
    " models on the tasks for which every ranked model has a complete trial, before a mean below 0"
    " is clipped. Possible ranks are those that the intervals allow. A model is tied with the"
    " leader, and could be first, unless the paired test of `prbench diff` shows the leader ahead,"
    " with the p-values of all other models of the board corrected together (Holm). The $score of a"
    " response is $formula: points is the sum of the weights of the criteria that are met (half the"
    " weight of those partly met), positive and negative are the sums of all weights above and"
    " below 0.",
    (
        "judge_config",
        "split",
        "label",
        "rank",
        "model",
        *MEAN_SCORE,
        *POSSIBLE,
        "n_tasks",
        "n_tasks_full",
        "n_tasks_wanted",
        "n_tasks_ranked",
        "coverage",
        "is_below_bar",
        "n_trials",
        "met_share",
        Column("mean_chars_alnum", "Characters"),
        "responses_usd",
        ColumnGroup("Cost", [Column("verdicts_usd", "judging", "usd"), Column("cost_usd", "all")]),
    ),
    parameters={"is_hard": None, **WHOLE},
    listed=lambda rows: rows,
    notes=judged_in_groups,
    essential=["rank", "model", "mean_score", "ci_low", "coverage", "met_share", "cost_usd"],
    boards=BY_LABEL,
    query="leaderboard",
)


def leaderboard(
    job: Job,
    *,
    vintage: str | None = None,
    score: str | None = None,
    by: str | None = None,
    is_hard: bool = False,
    is_severity: bool = False,
    selection: str | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of a leaderboard on the job's data-set revision.

    Args:
        job: gives the splits, models and judges to show.
        vintage: None for the current vintage of each model; `all` for all vintages.
        score: None for the default score.
        by: a breakdown; None for the leaderboard of whole splits.
        is_hard: rank on the latest hard selection of each field instead of the splits.
        is_severity: show shares of critical criteria instead of scores.
        selection: show scores on a hard selection, without ranks: its id, the beginning of its id,
            or `latest`.

    Raises:
        UsageError: the benchmark has no such score or breakdown, or no severities, or the warehouse
            no such selection.
    """
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(job, reader, vintage, is_hard=is_hard, score=score)
        if selection is not None:
            return scores_on_selection(scope, selection)
        if is_severity:
            if not scope.benchmark.severities:
                raise UsageError(
                    f"--risk: {scope.benchmark.name} has no weight classes, so no criterion is"
                    " marked as critical"
                )
            return scope.rows_of(CRITICAL)
        return scope.rows_of(LEADERBOARD, board_parameters(scope, by))


def board_parameters(scope: Scope, by: str | None) -> dict[str, Any]:
    """Return the parameters of the query for a leaderboard; `by` is a breakdown, or None.

    Raises:
        UsageError: the benchmark has no such breakdown.
    """
    benchmark = scope.benchmark
    breakdowns = [*benchmark.common_breakdowns, *benchmark.own_breakdowns]
    if "severity" in breakdowns and not benchmark.severities:
        breakdowns.remove("severity")
    if by is not None and by not in breakdowns:
        hint = did_you_mean(by, breakdowns) or f"; {benchmark.name} has {', '.join(breakdowns)}"
        raise UsageError(f"--by {by}: no such breakdown{hint}")
    return {
        "breakdown": by or "all",
        "of_criteria": scope.kinds.get(by or "all", False),
        "is_hard": scope.is_hard,
    }
