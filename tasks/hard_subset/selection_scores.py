"""Scoring models on a hard selection, of today or of long ago."""

import math
from typing import Any

import numpy as np

import sql
from tasks.rules.statistics.intervals import few_to_rest_on, mean_intervals
from warehouse import Reader

_FIGURES = (
    "mean_score", "ci_low", "ci_high", "raw_mean_score", "raw_ci_low", "raw_ci_high", "is_small", "mean_lower",
    "mean_upper", "n_tasks", "n_tasks_full", "n_tasks_wanted", "is_complete", "coverage", "is_below_bar",
    "model_config_hash", "judge", "judge_config_hash", "template_hash", "grading", "judge_trial", "vintage", "n_trials",
)  # fmt: skip


def scores_on(reader: Reader, parameters: dict[str, Any], bar: float) -> list[dict[str, Any]]:
    """A row for each split and model run: its mean score over the tasks of the selections, with its interval.

    Best first; there are no ranks, since models may rest on different tasks. `parameters` are those of
    the query `values` in `sql/queries/hard_subset.sql`, and which splits, models, judges and vintage; `bar` is the
    coverage below which a figure is marked.
    """
    given = {name: parameters[name] for name in ("selections", "score")}
    values = {
        (row["split"], row["model_run_id"]): np.array(row["task_values"], dtype=np.float64)
        for row in reader.rows(sql.read("queries/hard_subset/values"), given)
    }
    # The equations of the leaderboards (`intermediate/scores/mean_scores.sql`), on the selections' tasks of each split.
    return [
        _row(found, values.get((found["split"], found["model_run_id"]), np.empty(0)), bar)
        for found in reader.rows(sql.read("queries/hard_subset/scores"), parameters)
    ]


def _row(found: dict[str, Any], values: np.ndarray[Any, np.dtype[np.float64]], bar: float) -> dict[str, Any]:
    low, high = (None if math.isnan(end) else float(end) for end in mean_intervals(values[:, None])[0])
    floor = found["mean_floor"]
    row = found | {
        "raw_ci_low": low,
        "raw_ci_high": high,
        # The ends are clipped as the mean is.
        "ci_low": None if low is None else max(low, floor),
        "ci_high": None if high is None else max(high, floor),
        "is_small": bool(few_to_rest_on(values[:, None])[0]),
        "is_below_bar": found["coverage"] < bar,
    }
    return {name: row[name] for name in ("split", "model", *_FIGURES)}
