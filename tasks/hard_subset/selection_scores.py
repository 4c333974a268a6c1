"""Scoring models on a hard selection, of today or of long ago."""

import math
from typing import Any

import numpy as np

import sql
from tasks.rules.statistics import few_to_rest_on, mean_intervals
from warehouse import Reader

_FIGURES = (
    "mean_score", "ci_low", "ci_high", "raw_mean_score", "raw_ci_low", "raw_ci_high", "is_small", "mean_lower",
    "mean_upper", "n_tasks", "n_tasks_full", "n_tasks_wanted", "is_complete", "coverage", "is_below_bar",
    "model_config_hash", "judge", "judge_config_hash", "template_hash", "grading", "judge_trial", "vintage", "n_trials",
)  # fmt: skip


def scores_on(reader: Reader, asked: dict[str, Any], bar: float) -> list[dict[str, Any]]:
    """A row a split and series: its mean score over the tasks of the selections, as on any board, with interval.

    Best first; there are no ranks, since models may rest on different tasks. `asked` has the parameters of
    `sql/questions/selection_values.sql`, and which splits, models, judges and vintage; `bar` is the coverage below
    which a figure is marked.
    """
    values = {
        (row["split"], row["series_id"]): np.array(row["task_values"], dtype=np.float64)
        for row in reader.rows(
            sql.read("questions/selection_values"), {name: asked[name] for name in ("selections", "score")}
        )
    }
    return [
        _row(found, values.get((found["split"], found["series_id"]), np.empty(0)), bar)
        for found in reader.rows(_figures_on_selections(), asked)
    ]


def _figures_on_selections() -> str:
    """The equations of the leaderboards (`cut_rows`), with the selections' tasks of each split for boards."""
    return f"""
        with boards as (
            select distinct hash(split) as board_id, benchmark, dataset_revision, split, true as is_own_hard, task_id
            from hard_subset
            inner join split_members using (benchmark, dataset_revision, task_id)
            inner join tasks using (benchmark, dataset_revision, task_id)
            where list_contains($selections::varchar[], selection_id) and tasks.is_admitted
        ),
        cut_sizes as ({sql.read("staging/cut_sizes")}
        ),
        cut_rows as ({sql.read("staging/cut_rows")}
        )
        select cut_rows.* from cut_rows
        inner join series using (series_id)
        where
            cut_rows.cut = 'all' and cut_rows.score_name = $score
            and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], cut_rows.split))
            and (len($models::varchar[]) = 0 or list_contains($models::varchar[], cut_rows.model))
            and (len($judges::varchar[]) = 0 or list_contains($judges::varchar[], cut_rows.judge))
            and (
                $vintage::varchar = 'all' or cut_rows.vintage = $vintage
                or ($vintage::varchar is null and series.is_latest)
            )
        order by
            split, judge, judge_config_hash, template_hash, judge_trial, grading, vintage,
            raw_mean_score desc nulls last, model
    """


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
