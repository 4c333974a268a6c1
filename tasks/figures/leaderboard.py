"""The leaderboards of a job: their figures and rows."""

from typing import Any

import numpy as np

import sql
from tasks.config.job import Job
from tasks.figures.figure import Figure
from tasks.figures.scope import JUDGE_CONFIG, Scope
from tasks.figures.shown.categories import CRITICAL
from tasks.figures.shown.overview import LEADERBOARD
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean
from warehouse import Warehouse


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
        selection: rank on a hard selection: its id, the beginning of its id, or `latest`.

    Raises:
        UsageError: the benchmark has no such score or breakdown, or the warehouse no such
            selection.
    """
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(job, reader, vintage, is_hard=is_hard, score=score)
        if selection is not None:
            return _on_selection(scope, selection)
        return scope.rows_of(*chosen(scope, by, is_severity=is_severity))


def chosen(
    scope: Scope, by: str | None, *, is_severity: bool = False
) -> tuple[Figure, dict[str, Any]]:
    """Return the figure of a leaderboard, and the parameters of its query; arguments as in
    `leaderboard`.

    Raises:
        UsageError: the benchmark has no such breakdown.
    """
    benchmark = scope.benchmark
    breakdown = by or "all"
    common = (
        each for each in benchmark.common_breakdowns if each != "severity" or benchmark.severities
    )
    breakdowns = [*common, *benchmark.own_breakdowns]
    if by is not None and by not in breakdowns:
        hint = did_you_mean(by, breakdowns) or f"; {benchmark.name} has {', '.join(breakdowns)}"
        raise UsageError(f"--by {by}: no such breakdown{hint}")
    if is_severity:
        if not benchmark.severities:
            raise UsageError(
                f"--risk: {benchmark.name} has no weight classes, so no criterion is marked as"
                " critical"
            )
        return CRITICAL, {}
    of_criteria = scope.kinds.get(breakdown, False)
    return LEADERBOARD, {
        "breakdown": breakdown,
        "of_criteria": of_criteria,
        "is_hard": scope.is_hard,
    }


def _on_selection(scope: Scope, selection: str) -> list[dict[str, Any]]:
    """Return the leaderboard on the tasks of each split that are in a hard selection; compute its
    intervals.
    """
    key = scope.job.key
    known = sorted(
        row["selection_id"]
        for row in scope.reader.select("hard_subset", "distinct selection_id", **key)
    )
    matches = [name for name in known if name.startswith(selection)]
    if selection == "latest":
        matches = [
            row["selection_id"]
            for row in scope.reader.select("intermediate.latest_selections", **key)
        ]
    if not matches or (len(matches) > 1 and selection != "latest"):
        what = f"fits {len(matches)} selections" if matches else "is not a selection"
        raise UsageError(
            f"--selection {selection}: {what} of this data set; there are"
            f" {', '.join(known) or 'none'}"
        )
    return [{name: row[name] for name in _COLUMNS} for row in _scores_on(scope, matches)]


_COLUMNS = (
    "judge_config",
    "split",
    "model",
    "mean_score",
    "ci_low",
    "ci_high",
    "raw_mean_score",
    "raw_ci_low",
    "raw_ci_high",
    "is_small",
    "mean_lower",
    "mean_upper",
    "n_tasks",
    "n_tasks_full",
    "n_tasks_wanted",
    "is_complete",
    "coverage",
    "is_below_bar",
    "model_config_hash",
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
    "vintage",
    "n_trials",
    "score_name",
    "selections",
)


def _scores_on(scope: Scope, selections: list[str]) -> list[dict[str, Any]]:
    """Return, for each split and model run, its mean score over the tasks of the selections, with
    the interval.

    The best are first; there are no ranks, because models may have different tasks.
    """
    from tasks.rules.statistics.intervals import few_to_rest_on, known, mean_intervals

    given = {
        name: scope.values[name] for name in ("score", "splits", "models", "judges", "vintage")
    }
    labels = {
        tuple(each[name] for name in JUDGE_CONFIG): each["judge_config"]
        for each in scope.judge_configs
    }
    rows = []
    # The equations of leaderboards (`intermediate/scores/mean_scores.sql`), on the selections'
    # tasks of each split.
    for score in scope.reader.rows(
        sql.read("queries/hard_subset/scores"), given | {"selections": selections}
    ):
        own = np.array(score["task_values"], dtype=np.float64)[:, None]
        low, high = map(known, mean_intervals(own)[0])
        rows.append(
            score
            | {
                "raw_ci_low": low,
                "raw_ci_high": high,
                # The ends are clipped like the mean.
                "ci_low": None if low is None else max(low, score["mean_floor"]),
                "ci_high": None if high is None else max(high, score["mean_floor"]),
                "is_small": bool(few_to_rest_on(own)[0]),
                "is_below_bar": score["coverage"] < scope.values["bar"],
                "score_name": given["score"],
                "selections": selections,
                "judge_config": labels.get(
                    tuple(score[name] for name in JUDGE_CONFIG), score["judge"]
                ),
            }
        )
    return rows
