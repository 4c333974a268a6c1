"""A look: what the tasks evaluated so far say about each comparison."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

import sql
from tasks.config import Job
from tasks.rules.statistics.intervals import Floats
from tasks.rules.stopping import OPEN, unbiased_means
from tasks.run import EARLIER, Comparison, StoppingPlan, WantedTasks, earlier_values
from tasks.stopping.blocks import Block
from warehouse import Reader

Values = Mapping[tuple[str, str], Mapping[str, float]]
"""Model and vintage -> task -> its score."""


def looks_after(
    job: Job, wanted: WantedTasks, plan: StoppingPlan, block: Block, reader: Reader
) -> list[dict[str, Any]]:
    """The rows of `stopping_looks` of a block's comparisons, but of those of which a side is not evaluated so far."""
    values, fields = values_of(wanted, plan, block.comparisons, reader), fields_of(wanted, reader)
    rows = []
    for comparison in block.comparisons:
        tasks = comparison.order[: comparison.rule.ends[block.number - 1]]
        first, second = (
            in_order(values[side.model, side.vintage], tasks) for side in (comparison.first, comparison.second)
        )
        is_evaluated = all(np.isfinite(each).mean() >= job.settings.coverage.min for each in (first, second))
        # A model of this run that has failed cells is as far as it gets.
        here = {model.label for model in job.settings.models}
        if is_evaluated or comparison.labels <= here:
            strata = strata_of(fields, tasks)
            rows.append(_row(wanted, plan, comparison, block.number, first - second, strata) | _of_run(job))
    return rows


def unfinished_looks(block: Block, rows: Sequence[Mapping[str, Any]]) -> Iterator[Comparison]:
    """The comparisons of a block that no look was taken at."""
    seen = {(row["model"], row["vintage"], row["compared_model"], row["compared_vintage"]) for row in rows}
    return (each for each in block.comparisons if each.key not in seen)


def values_of(
    wanted: WantedTasks, plan: StoppingPlan, comparisons: Sequence[Comparison], reader: Reader
) -> dict[tuple[str, str], dict[str, float]]:
    """The scores that comparisons rest on."""
    given = wanted.key | plan.judging.columns | {"score": plan.score_name}
    sides = {side for each in comparisons for side in (each.first, each.second)}
    found: dict[tuple[str, str], dict[str, float]] = {(side.model, side.vintage): {} for side in sides}
    named = [f"{side.vintage} {side.config_hash} {side.model}" for side in sides if side.vintage != EARLIER]
    for row in reader.rows(sql.read("questions/stopping/values"), given | {"sides": named}):
        if (row["model"], row["vintage"]) in found:
            found[row["model"], row["vintage"]][row["task_id"]] = row["value"]
    for each in comparisons:
        if each.second.vintage == EARLIER:
            found[each.second.model, EARLIER] = earlier_values(reader, given, each.first)
    return found


def fields_of(wanted: WantedTasks, reader: Reader) -> dict[str, str]:
    """Task -> its field, which is its stratum."""
    rows = reader.rows(sql.read("questions/stopping/fields"), wanted.key | {"tasks": list(wanted.task_ids)})
    return {row["task_id"]: row["field"] or "" for row in rows}


def strata_of(fields: Mapping[str, str], tasks: Sequence[str]) -> Floats:
    """The number of each task's stratum, in the order of the tasks."""
    names = sorted(set(fields.values()))
    return np.array([names.index(fields[task]) for task in tasks], dtype=np.float64)


def in_order(values: Mapping[str, float], tasks: Sequence[str]) -> Floats:
    """Values in the order of the tasks, NaN where a task has none."""
    return np.array([values.get(task, np.nan) for task in tasks])


def _row(
    wanted: WantedTasks, plan: StoppingPlan, comparison: Comparison, number: int, differences: Floats, strata: Floats
) -> dict[str, Any]:
    rule = comparison.rule
    differences = np.where(np.abs(differences) < 1e-12, 0.0, differences)  # equal but for rounding
    low, high = rule.ends_at(differences[:, None])[0]
    is_last = number == len(rule.ends)
    decision = rule.decide(low, high)
    ends = decision != OPEN or is_last
    unbiased = unbiased_means(differences, differences[:, None], strata, rule)[0] if ends else np.nan
    n_tasks = int(np.isfinite(differences).sum())
    return {
        **wanted.key,
        **plan.judging.columns,
        "stopping_id": plan.stopping_id,
        "score_name": plan.score_name,
        "model": comparison.first.model,
        "model_config_hash": comparison.first.config_hash,
        "vintage": comparison.first.vintage,
        "compared_model": comparison.second.model,
        "compared_config_hash": comparison.second.config_hash,
        "compared_vintage": comparison.second.vintage,
        "block": number,
        "n_tasks": n_tasks,
        "n_tasks_evaluated": len(differences),
        "n_tasks_planned": rule.n_planned,
        "mean_difference": float(np.nanmean(differences)) if n_tasks else None,
        "unbiased_difference": known(unbiased),
        "sequence_low": known(low),
        "sequence_high": known(high),
        "comparison_alpha": rule.alpha,
        "least_difference": rule.least_difference,
        "decision": decision,
    }


def known(value: float) -> float | None:
    """A figure, None where it is unknown."""
    return None if np.isnan(value) else float(value)


def _of_run(job: Job) -> dict[str, Any]:
    return {"run_id": job.run_id, "created_at": datetime.now(UTC)}


def describe(row: Mapping[str, Any]) -> str:
    """A look in one line."""
    other = row["compared_model"] if row["compared_vintage"] == row["vintage"] else row["compared_vintage"]
    interval = "no interval yet"
    if row["sequence_low"] is not None:
        interval = f"{row['sequence_low']:+.3f} to {row['sequence_high']:+.3f}"
    difference = "no task with both" if row["mean_difference"] is None else f"{row['mean_difference']:+.3f}"
    is_last = row["n_tasks_evaluated"] == row["n_tasks_planned"]
    decision = "open after all tasks" if row["decision"] == OPEN and is_last else row["decision"].replace("_", " ")
    return (
        f"{row['model']} - {other} after {row['n_tasks_evaluated']} of {row['n_tasks_planned']} tasks: {difference} "
        f"({interval}), {decision}"
    )
