"""The leaderboard on a hard selection: scores on its tasks, without ranks."""

from typing import Any

import numpy as np

from tasks.figures.scope import Scope
from tasks.rules.errors import UsageError
from tasks.rules.identity import judge_config_of
from tasks.rules.statistics.intervals import have_few_tasks, mean_intervals, none_if_nan
from warehouse import Row

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


def scores_on_selection(scope: Scope, selection: str) -> list[Row]:
    """Return, for each split and model run, its mean score over the tasks of a hard selection, with
    the interval.

    The best are first; there are no ranks, because models may have different tasks.

    Args:
        scope: the scope of the leaderboard.
        selection: the id of a selection, the beginning of its id, or `latest`.

    Raises:
        UsageError: the warehouse has no such selection.
    """
    selection_ids = _matching_selections(scope, selection)
    rows = scope.rows("queries/hard_subset/scores", {"selections": selection_ids})
    labels = {judge_config_of(config): config["judge_config"] for config in scope.judge_configs}
    board = []
    for row in rows:
        if judge_config_of(row) not in labels:
            continue  # a judge without boards
        row.update(_interval(row))
        row["judge_config"] = labels[judge_config_of(row)]
        row["is_below_bar"] = row["coverage"] < scope.query_parameters["bar"]
        row["selections"] = selection_ids
        board.append({name: row[name] for name in _COLUMNS})
    return board


def _matching_selections(scope: Scope, selection: str) -> list[str]:
    """Return the ids of the requested selections (see `scores_on_selection`): one, or for `latest`
    the latest of each field.
    """
    key = scope.job.key
    rows = scope.reader.select("hard_subset", "distinct selection_id", **key)
    selection_ids = sorted(row["selection_id"] for row in rows)
    if selection == "latest":
        latest = scope.reader.select("intermediate.latest_selections", **key)
        matches = [row["selection_id"] for row in latest]
    else:
        matches = [
            selection_id for selection_id in selection_ids if selection_id.startswith(selection)
        ]
    # Only `latest` may stand for several.
    if not matches or (len(matches) > 1 and selection != "latest"):
        problem = f"fits {len(matches)} selections" if matches else "is not a selection"
        raise UsageError(
            f"--selection {selection}: {problem} of this data set; there are"
            f" {', '.join(selection_ids) or 'none'}"
        )
    return matches


def _interval(row: Row) -> dict[str, Any]:
    """Return the interval of a mean before and after clipping, with a flag: true if it rests on too
    few tasks. Its ends are clipped like the mean (`intermediate/scores/mean_scores.sql`).
    """
    task_values = np.array(row["task_values"], dtype=np.float64)[:, None]  # (n_tasks, 1)
    interval = mean_intervals(task_values)[0]
    low = none_if_nan(interval[0])
    high = none_if_nan(interval[1])
    return {
        "raw_ci_low": low,
        "raw_ci_high": high,
        "ci_low": None if low is None else max(low, row["mean_floor"]),
        "ci_high": None if high is None else max(high, row["mean_floor"]),
        "is_small": bool(have_few_tasks(task_values)[0]),
    }
