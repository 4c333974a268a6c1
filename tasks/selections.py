"""Scoring models on a hard selection, of today or of long ago."""

import math
from typing import Any

import numpy as np

import sql
from tasks.rules.statistics import SMALL, mean_intervals
from warehouse import Reader


def scores_on(reader: Reader, asked: dict[str, Any], bar: float) -> list[dict[str, Any]]:
    """A row a split and series: its mean score over the tasks of the selection that are complete, with interval.

    Best first; there are no ranks, since models may rest on different tasks. `asked` has the parameters of
    `sql/questions/selection_values.sql`; `bar` is the coverage below which a figure is marked. Means are clipped where
    the score says so.
    """
    clips = reader.value(
        "select any_value(clips_mean) from score_definitions where score_name = ? and benchmark in "
        "(select benchmark from hard_subset where selection_id = ?)", [asked["score"], asked["selection"]],
    )  # fmt: skip
    rows = []
    for found in reader.rows(sql.read("questions/selection_values"), asked):
        values = np.array(found.pop("task_values"), dtype=np.float64)
        ((low, high),) = mean_intervals(values[:, None])
        mean = math.fsum(values) / len(values)
        bottom = 0.0 if clips else -math.inf
        coverage = len(values) / found["n_tasks_wanted"]
        rows.append({
            "split": found["split"], "model": found["model"], "mean_score": max(mean, bottom),
            "ci_low": None if math.isnan(low) else max(float(low), bottom),
            "ci_high": None if math.isnan(high) else max(float(high), bottom),
            "is_small": len(values) < SMALL, "n_tasks": len(values), "n_tasks_wanted": found["n_tasks_wanted"],
            "coverage": coverage, "is_below_bar": coverage < bar,
            **{name: value for name, value in found.items() if name not in {"split", "model", "n_tasks_wanted"}},
            "score_name": asked["score"], "selection_id": asked["selection"],
        })  # fmt: skip
    order = ("split", "judge", "judge_config_hash", "template_hash", "judge_trial", "vintage")
    return sorted(rows, key=lambda row: (*(row[name] for name in order), -row["mean_score"], row["model"]))
