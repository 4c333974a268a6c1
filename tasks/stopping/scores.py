"""A model's scores on the random part that was evaluated: intervals that hold under stopping, means without bias."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

import sql
from tasks.config import Job
from tasks.rules.statistics.intervals import Floats
from tasks.rules.stopping import unbiased_means
from tasks.run import Compared, Comparison, Progress, StoppingPlan, WantedTasks, left_out_of
from tasks.stopping.looks import fields_of, in_order, known, strata_of, values_of
from warehouse import Reader, Warehouse

_LEVEL_ALPHA = 0.05
"""Intervals of a model's own score are 95 % intervals, as everywhere on leaderboards."""
_FIGURE = (
    "split", "model", "model_config_hash", "vintage", "judge", "judge_config_hash", "template_hash", "grading",
    "judge_trial", "score_name",
)  # fmt: skip


def has_scores(plan: StoppingPlan, reader: Reader) -> bool:
    """Whether the scores are stored that belong to a plan."""
    return bool(reader.value("select count(*) from stopping_scores where stopping_id = ?", [plan.stopping_id]))


def store_scores(
    job: Job, wanted: WantedTasks, plan: StoppingPlan, progress: Sequence[Progress], reader: Reader
) -> int:
    """Store the scores of the models that rest on a random part; how many rows these are."""
    skipped = left_out_of(progress)
    rows: list[dict[str, Any]] = []
    for label in skipped:
        last = max((each for each in progress if label in each.comparison.labels), key=lambda each: each.n_tasks)
        rows += _rows_of(wanted, plan, label, last, reader)
    created = {"run_id": job.run_id, "created_at": datetime.now(UTC)}
    Warehouse(job.warehouse).write("stopping_scores", [row | created for row in rows])
    return len(rows)


def _rows_of(
    wanted: WantedTasks, plan: StoppingPlan, label: str, last: Progress, reader: Reader
) -> list[dict[str, Any]]:
    """A model's figures; `last` is its comparison that was settled last, on which it depended when to stop."""
    comparison = last.comparison
    side = comparison.first if comparison.first.model == label else comparison.second
    evaluated, later = comparison.order[: last.n_tasks], comparison.order[last.n_tasks :]
    found, members = _figures(wanted, side, evaluated, reader)
    if not found:
        return []
    columns = np.column_stack([in_order(values, evaluated) for values in found.values()])
    differences = _differences(wanted, plan, comparison, evaluated, reader)
    unbiased = unbiased_means(differences, columns, strata_of(fields_of(wanted, reader), evaluated), comparison.rule)
    ends = replace(comparison.rule, alpha=_LEVEL_ALPHA).ends_at(columns)
    return [
        {
            **wanted.key,
            **dict(zip(_FIGURE, figure, strict=True)),
            "stopping_id": plan.stopping_id,
            "n_tasks": len(values),
            "n_tasks_evaluated": len(members[figure[0]].intersection(evaluated)),
            "n_tasks_skipped": len(members[figure[0]].intersection(later)),
            "sequence_low": known(ends[place, 0]),
            "sequence_high": known(ends[place, 1]),
            "unbiased_mean_score": known(unbiased[place]),
        }
        for place, (figure, values) in enumerate(found.items())
    ]


def _figures(
    wanted: WantedTasks, side: Compared, evaluated: Sequence[str], reader: Reader
) -> tuple[dict[tuple[Any, ...], dict[str, float]], Mapping[str, set[str]]]:
    """A model's scores by task: what is a figure of its own -> its tasks; and the wanted tasks of each split.

    A figure that has other tasks as well does not rest on the random part.
    """
    given = wanted.key | {
        "model": side.model, "model_config_hash": side.config_hash, "vintage": side.vintage,
        "tasks": list(wanted.task_ids),
    }  # fmt: skip
    found: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in reader.rows(sql.read("questions/stopping/figures"), given):
        found[tuple(row[name] for name in _FIGURE)][row["task_id"]] = row["value"]
    members: dict[str, set[str]] = defaultdict(set)
    rows = reader.rows(
        "select split, task_id from split_members where benchmark = ? and dataset_revision = ?", [*wanted.key.values()]
    )
    wanted_ids = set(wanted.task_ids)
    for row in rows:
        if row["task_id"] in wanted_ids:
            members[row["split"]].add(row["task_id"])
    rests_on_part = {figure: values for figure, values in found.items() if values.keys() <= set(evaluated)}
    return dict(sorted(rests_on_part.items())), members


def _differences(
    wanted: WantedTasks, plan: StoppingPlan, comparison: Comparison, evaluated: Sequence[str], reader: Reader
) -> Floats:
    values = values_of(wanted, plan, [comparison], reader)
    first, second = (
        in_order(values[side.model, side.vintage], evaluated) for side in (comparison.first, comparison.second)
    )
    return first - second
