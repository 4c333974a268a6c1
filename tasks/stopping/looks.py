"""Blocks of tasks, looks at comparisons after each of them, and scores on a part of the tasks."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tasks.config.job import Job
from tasks.config.models import Model
from tasks.console import notice
from tasks.rules.statistics.intervals import Floats, Ints, none_if_nan
from tasks.rules.stopping import OPEN, unbiased_means
from tasks.stopping.comparisons import (
    EARLIER,
    ComparedModel,
    JobComparisons,
    PlannedComparison,
    Progress,
    earlier_values,
)
from warehouse import Reader, Warehouse

LookRow = dict[str, Any]
"""A row of `stopping_looks`."""
StoppingScoreRow = dict[str, Any]
"""A row of `stopping_scores`."""

_LEADERBOARD_ALPHA = 0.05
"""The alpha of the intervals of all scores on leaderboards."""


@dataclass(frozen=True)
class TaskBlock:
    """A block of tasks to evaluate.

    Attributes:
        number: its number, from 1.
        comparisons: those that are looked at after it.
        tasks: model -> its tasks of the block.
    """

    number: int
    comparisons: tuple[PlannedComparison, ...]
    tasks: Mapping[str, frozenset[str]]

    def jobs(self, job: Job) -> list[Job]:
        """Return jobs narrowed to the block, one for each group of models with the same tasks."""
        models_by_tasks: dict[frozenset[str], list[Model]] = {}
        for model in job.settings.models:
            task_ids = self.tasks.get(model.label)
            if task_ids:
                models_by_tasks.setdefault(task_ids, []).append(model)
        jobs = []
        for task_ids, models in models_by_tasks.items():
            selection = {
                "named_models": tuple(model.label for model in models),
                "named_tasks": tuple(sorted(task_ids)),
                "limit": None,
            }
            model_job = job.with_settings(models=tuple(models), stopping=None)
            jobs.append(model_job.model_copy(update=selection))
        return jobs


def next_block(progress: Iterable[Progress], last_number: int) -> TaskBlock | None:
    """Return the next block of the open comparisons; None if all are settled.

    `last_number` is the number of this run's last block. A comparison without a look at it, because
    the other model is not evaluated that far, goes on with the next block.
    """
    due: dict[int, list[PlannedComparison]] = {}
    for comparison, block, decision in progress:
        number = max(block, last_number) + 1
        if decision == OPEN and number <= len(comparison.rule.ends):
            due.setdefault(number, []).append(comparison)
    if not due:
        return None
    number = min(due)
    tasks: dict[str, frozenset[str]] = {}
    for comparison in due[number]:
        n_before = len(comparison.tasks_until(number - 1))
        task_ids = comparison.tasks_until(number)[n_before:]
        for label in comparison.labels:
            tasks[label] = tasks.get(label, frozenset()).union(task_ids)
    return TaskBlock(number, tuple(due[number]), tasks)


def next_block_of_job(
    job: Job,
    job_comparisons: JobComparisons,
    last_number: int = 0,
) -> TaskBlock | None:
    """Return the next block in which a model of this run takes part (see `next_block`)."""
    labels = set(job.settings.model_labels)
    progress = [state for state in job_comparisons.progress if state.comparison.labels & labels]
    return next_block(progress, last_number)


def is_unfinished(job: Job, job_comparisons: JobComparisons, reader: Reader) -> bool:
    """Return whether a job needs another block, or its scores are not stored yet."""
    if job_comparisons.left_out and not _has_scores(job_comparisons, reader):
        return True
    return next_block_of_job(job, job_comparisons) is not None


Values = dict[tuple[str, str], dict[str, float]]
"""(model, vintage) -> task id -> score."""


def look_at(job: Job, job_comparisons: JobComparisons, block: TaskBlock) -> int:
    """Look at the comparisons of an evaluated block; store, print and count the looks.

    A comparison that lacks values of a side has no look.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        values = _values_of(job_comparisons, block.comparisons, reader)
    labels = set(job.settings.model_labels)
    looks = []
    for comparison in block.comparisons:
        task_ids = comparison.tasks_until(block.number)
        first_scores, second_scores = _scores_of_sides(values, comparison, task_ids)
        # Models of this run count as evaluated even if some of their calls failed.
        coverage = min(np.isfinite(first_scores).mean(), np.isfinite(second_scores).mean())
        if coverage >= job.settings.coverage.min or comparison.labels <= labels:
            look = _look_row(
                job_comparisons, comparison, block.number, second_scores - first_scores
            )
            look["run_id"] = job.run_id
            look["created_at"] = datetime.now(UTC)
            looks.append(look)
    warehouse.write("stopping_looks", looks)
    warehouse.publish()
    if not job.is_quiet:
        for look in looks:
            notice(f"  {_look_line(look)}")
    return len(looks)


def last_looks(job_comparisons: JobComparisons, reader: Reader) -> list[LookRow]:
    """Return the last look at each nightly model against its earlier nights, if there is any.

    If a model has a look, no other comparison of it in that night is valid, because the looks
    decided on how many tasks it was evaluated.
    """
    looks = reader.select(
        "stopping_looks",
        "* exclude (is_second_minus_first, run_id, created_at)",
        order="model, block",
        stopping_id=job_comparisons.stopping_id,
        compared_vintage=EARLIER,
    )
    return list({look["model"]: look for look in looks}.values())


def _values_of(
    job_comparisons: JobComparisons,
    comparisons: Sequence[PlannedComparison],
    reader: Reader,
) -> Values:
    """Return the scores of both sides of some comparisons."""
    parameters = job_comparisons.score_parameters
    sides = set[ComparedModel]()
    values: Values = defaultdict(dict)
    for comparison in comparisons:
        sides.update(comparison.evaluated_sides)
        if comparison.is_of_nights:
            earlier = earlier_values(reader, parameters, comparison.second_side)
            values[comparison.first_side.model, EARLIER] = earlier
    parameters["sides"] = [f"{side.vintage} {side.config_hash} {side.model}" for side in sides]
    for row in reader.query("queries/stopping/values", parameters):
        values[row["model"], row["vintage"]][row["task_id"]] = row["value"]
    return values


def _scores_of_sides(
    values: Values,
    comparison: PlannedComparison,
    task_ids: Sequence[str],
) -> list[Floats]:
    """Return the scores of the first and of the second side, in the order of the tasks."""
    sides = (comparison.first_side, comparison.second_side)
    return [in_order(values[side.model, side.vintage], task_ids) for side in sides]


def in_order(values: Mapping[str, float], task_ids: Sequence[str]) -> Floats:
    """Return values by task in the order of the tasks; NaN for a task without one."""
    return np.array([values.get(task_id, np.nan) for task_id in task_ids])


def _strata_of(fields: Mapping[str, str], task_ids: Sequence[str]) -> Ints:
    """Return the number of each task's stratum, in the order of the tasks."""
    _, strata = np.unique([fields[task_id] for task_id in task_ids], return_inverse=True)
    return strata


def _look_row(
    job_comparisons: JobComparisons,
    comparison: PlannedComparison,
    block: int,
    differences: Floats,
) -> LookRow:
    """Return a look without its run and time.

    `differences` are those of the tasks until the end of the block, NaN for one that lacks a side.
    """
    rule = comparison.rule
    is_rounding_error = np.abs(differences) < 1e-12
    differences = np.where(is_rounding_error, 0.0, differences)
    interval = rule.intervals_after(differences[:, None])
    decision = str(rule.decisions(interval)[0])
    unbiased = np.nan
    if decision != OPEN or block == len(rule.ends):
        strata = _strata_of(job_comparisons.fields, comparison.tasks_until(block))
        unbiased = unbiased_means(differences, differences[:, None], strata, rule)[0]
    n_tasks = int(np.isfinite(differences).sum())
    return {
        **job_comparisons.key,
        **job_comparisons.judge,
        **comparison.columns,
        "stopping_id": job_comparisons.stopping_id,
        "score_name": job_comparisons.score_name,
        "block": block,
        "n_tasks": n_tasks,
        "n_tasks_evaluated": len(differences),
        "n_tasks_planned": rule.n_planned,
        "is_second_minus_first": True,
        "mean_difference": float(np.nanmean(differences)) if n_tasks else None,
        "unbiased_difference": none_if_nan(unbiased),
        "sequence_low": none_if_nan(interval[0, 0]),
        "sequence_high": none_if_nan(interval[0, 1]),
        "comparison_alpha": rule.alpha,
        "least_difference": rule.least_difference,
        "decision": decision,
    }


def _look_line(look: LookRow) -> str:
    """Return a look in one line."""
    model = look["model"]
    sides = f"{look['compared_model']} - {model}"
    if look["compared_vintage"] == EARLIER:
        sides = f"{model} - {EARLIER}"
    difference = "no task with both"
    if look["mean_difference"] is not None:
        difference = f"{look['mean_difference']:+.3f}"
    interval = "no interval yet"
    if look["sequence_low"] is not None:
        interval = f"{look['sequence_low']:+.3f} to {look['sequence_high']:+.3f}"
    decision = look["decision"].replace("_", " ")
    n_evaluated = look["n_tasks_evaluated"]
    n_planned = look["n_tasks_planned"]
    if decision == OPEN and n_evaluated == n_planned:
        decision = "open after all tasks"
    return (
        f"{sides} after {n_evaluated} of {n_planned} tasks: {difference} ({interval}), {decision}"
    )


def conclude(job: Job, job_comparisons: JobComparisons, n_looks: int, n_blocks: int) -> list[str]:
    """Store the scores of models that were not evaluated on all tasks.

    Returns:
        Notes on the settled comparisons and the responses that are not needed.
    """
    progress = job_comparisons.progress
    if not progress:
        return ["nothing is compared, so all tasks are evaluated"]
    _store_scores(job, job_comparisons, must_store=n_looks > 0)
    counts = Counter(
        state.decision.replace("_", " ") if state.is_finished else "unfinished"
        for state in progress
    )
    decisions = ", ".join(f"{count} {decision}" for decision, count in sorted(counts.items()))
    notes = [f"{len(progress)} comparisons: {decisions}; {n_looks} looks after {n_blocks} blocks"]
    n_skipped = sum(map(len, job_comparisons.left_out.values())) * len(job.trials)
    if n_skipped:
        n_models = len(job_comparisons.left_out)
        notes.append(f"{n_skipped} responses of {n_models} models not needed")
    return notes


def _has_scores(job_comparisons: JobComparisons, reader: Reader) -> bool:
    query = "select count(*) from stopping_scores where stopping_id = ?"
    return bool(reader.value(query, [job_comparisons.stopping_id]))


def _store_scores(job: Job, job_comparisons: JobComparisons, *, must_store: bool) -> None:
    """Store the scores of models on a random part of the tasks.

    Without `must_store` (no look was added), they are stored only if none are stored yet.
    """
    warehouse = Warehouse(job.warehouse)
    rows = []
    with warehouse.reader() as reader:
        if must_store or not _has_scores(job_comparisons, reader):
            for label in job_comparisons.left_out:
                rows += _score_rows(job_comparisons, label, reader)
    for row in rows:
        row["run_id"] = job.run_id
        row["created_at"] = datetime.now(UTC)
    if rows:
        warehouse.write("stopping_scores", rows)
        warehouse.publish()


def _score_rows(
    job_comparisons: JobComparisons,
    label: str,
    reader: Reader,
) -> list[StoppingScoreRow]:
    """Return a model's scores without run and time.

    The comparison that was settled last ended the evaluation of the model.
    """
    states = [state for state in job_comparisons.progress if label in state.comparison.labels]
    decisive = max(states, key=lambda state: len(state.evaluated_tasks))
    comparison = decisive.comparison
    evaluated = decisive.evaluated_tasks
    figures = _figures_of(job_comparisons, decisive, label, reader)
    if not figures:
        return []
    scores_by_task = [figure.pop("task_scores") for figure in figures]
    # Shape (n_tasks, n_figures).
    scores = np.column_stack(
        [in_order(figure_scores, evaluated) for figure_scores in scores_by_task]
    )
    values = _values_of(job_comparisons, [comparison], reader)
    first_scores, second_scores = _scores_of_sides(values, comparison, evaluated)
    strata = _strata_of(job_comparisons.fields, evaluated)
    unbiased = unbiased_means(second_scores - first_scores, scores, strata, comparison.rule)
    intervals = replace(comparison.rule, alpha=_LEADERBOARD_ALPHA).intervals_after(scores)
    for column, figure in enumerate(figures):
        figure.update(job_comparisons.key)
        figure["stopping_id"] = job_comparisons.stopping_id
        figure["n_tasks"] = int(np.isfinite(scores[:, column]).sum())
        figure["sequence_low"] = none_if_nan(intervals[column, 0])
        figure["sequence_high"] = none_if_nan(intervals[column, 1])
        figure["unbiased_mean_score"] = none_if_nan(unbiased[column])
    return figures


def _figures_of(
    job_comparisons: JobComparisons,
    decisive: Progress,
    label: str,
    reader: Reader,
) -> list[StoppingScoreRow]:
    """Return the rows of a model's figures that rest on the evaluated tasks alone.

    Each has its scores by task under `task_scores`, which is no column of `stopping_scores`.
    """
    comparison = decisive.comparison
    side = next(side for side in comparison.evaluated_sides if side.model == label)
    parameters = {
        **job_comparisons.key,
        "model": side.model,
        "model_config_hash": side.config_hash,
        "vintage": side.vintage,
        "tasks": list(job_comparisons.fields),
        "evaluated": list(decisive.evaluated_tasks),
        "skipped": sorted(decisive.unneeded_tasks),
    }
    return reader.query("queries/stopping/figures", parameters)
