"""Aggregate: scores and leaderboard are SQL, built at every publishing; here their intervals are added."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tasks.reports import StageReport
from tasks.rules.statistics import bootstrap_intervals
from tasks.settings import Job
from warehouse import Reader, Warehouse

_KEY = (
    "benchmark", "dataset_revision", "split", "judge", "judge_config_hash", "template_hash", "grading", "judge_trial",
    "vintage", "model", "model_config_hash", "score_name",
)  # fmt: skip


def aggregate(job: Job) -> StageReport:
    """Publish what is stored and give every leaderboard figure that has none yet its bootstrap interval."""
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    with warehouse.reader() as reader:
        intervals = _intervals(reader)
        warehouse.write("intervals", intervals)
    warehouse.publish()
    with warehouse.reader() as reader:
        n_rows = reader.value("select count(*) from leaderboard where benchmark = ?", [job.settings.benchmark])
    note = f"{n_rows} leaderboard rows, {len(intervals)} intervals drawn"
    return StageReport("aggregate", rows=n_rows, notes=[note])


def _intervals(reader: Reader) -> list[dict[str, Any]]:
    figures = reader.rows(
        f"""
        select {", ".join(f"board_rows.{name}" for name in _KEY)}, board_rows.n_tasks, board_rows.unclipped_mean,
            list(task_scores.task_id order by task_scores.task_id) as task_ids,
            list(task_scores.value order by task_scores.task_id) as task_values
        from board_rows
        inner join boards using (board_id)
        inner join task_scores using (series_id, score_name, task_id)
        where task_scores.is_complete and not exists (
            select 1 from intervals
            where {" and ".join(f"intervals.{name} = board_rows.{name}" for name in _KEY)}
                and intervals.n_tasks = board_rows.n_tasks
                and abs(intervals.unclipped_mean - board_rows.unclipped_mean) < 1e-12
        )
        group by all
        """
    )
    same_tasks: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for figure in figures:
        same_tasks[tuple(figure["task_ids"])].append(figure)
    return [row for group in same_tasks.values() for row in _interval_rows(group)]


def _interval_rows(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The intervals of figures that rest on the same tasks, from the same draws."""
    drawn = bootstrap_intervals(np.array([figure["task_values"] for figure in figures], dtype=np.float64).T)
    if drawn is None:
        return []
    now = datetime.now(UTC)
    return [
        {name: figure[name] for name in (*_KEY, "n_tasks", "unclipped_mean")}
        | {"ci_low": low, "ci_high": high, "created_at": now}
        for figure, (low, high) in zip(figures, drawn, strict=True)
    ]
