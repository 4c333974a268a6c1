"""The expected calls of a run that stops when its comparisons are settled, from stored scores of
the same models.

The rule is applied to random orders of the tasks with values of both models of a pair; a pair
without stored values is planned in full.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.config.job import Job
from tasks.plan.estimate import Cells, Planned
from tasks.plan.plan import plan_with_cells
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import SEED, Floats
from tasks.rules.stopping import FEWEST_TASKS, OPEN
from tasks.run.missing_work import wanted_tasks
from tasks.stopping import EARLIER, JobComparisons, Progress, in_order
from warehouse import Reader, Warehouse

ORDERS = 200
"""Number of random orders."""

Differences = dict[str, float]
"""Task -> its difference, second minus first."""
ExpectedRow = dict[str, Any]
"""A row of one of the two tables."""


class NeededTasks(NamedTuple):
    """The tasks that a comparison needs: those before a position of its order.

    Attributes:
        positions: the position of each task.
        n_tasks: the number of needed tasks in each random order.
    """

    positions: Mapping[str, int]
    n_tasks: Floats


Needed = Mapping[str, Sequence[NeededTasks]]
"""Model label -> what each of its comparisons needs."""


def plan_stopping(job: Job) -> tuple[list[ExpectedRow], list[ExpectedRow]]:
    """Return rows with the expected tasks of each comparison, and rows with the calls that remain.

    Raises:
        UsageError: the configuration has no `stopping`.
        PipelineError: the data set is not ingested.
    """
    if job.settings.stopping is None:
        raise UsageError(
            "--stopping: the configuration has no `stopping`; see prbench.example.yaml"
        )
    planned = plan_with_cells(job)
    with Warehouse(job.warehouse).reader() as reader:
        comparisons = wanted_tasks(job, reader).comparisons
        history = _history(comparisons, reader)
    needed, compared = simulated(comparisons.progress, history)
    calls = [expected_calls(planned_row, cells, needed) for planned_row, cells in planned]
    return compared, calls


def _history(job_comparisons: JobComparisons, reader: Reader) -> list[Differences]:
    """Return the stored differences of each comparison.

    For earlier nights, they are those between a model's last two values.
    """
    labels = set[str]().union(*(state.comparison.labels for state in job_comparisons.progress))
    if not labels:
        return []
    parameters = {
        "benchmark": job_comparisons.key["benchmark"],
        "judge": job_comparisons.judge["judge"],
        "grading": job_comparisons.judge["grading"],
        "score": job_comparisons.score_name,
        "models": sorted(labels),
    }
    values: dict[str, dict[str, list[float]]] = {label: defaultdict(list) for label in labels}
    for row in reader.query("queries/plan/history_values", parameters):
        values[row["model"]][row["task_id"]].append(row["value"])
    history = []
    for state in job_comparisons.progress:
        comparison = state.comparison
        second_values = values[comparison.second_side.model]
        if comparison.is_of_nights:
            first_values = {task_id: numbers[:-1] for task_id, numbers in second_values.items()}
        else:
            first_values = values[comparison.first_side.model]
        differences = {}
        for task_id, numbers in second_values.items():
            if first_values.get(task_id):
                differences[task_id] = numbers[-1] - first_values[task_id][-1]
        history.append(differences)
    return history


def simulated(
    progress: Sequence[Progress],
    history: Sequence[Differences],
) -> tuple[Needed, list[ExpectedRow]]:
    """Return the tasks that each comparison needs in each random order, and a row for each
    comparison.

    A finished comparison needs no more tasks. In a row, `tasks` are those until it is decided, and
    `n_history` is the number of tasks with stored values, 0 if there are too few.
    """
    pool = sorted(set[str]().union(*history))
    n_longest = max((state.comparison.rule.n_planned for state in progress), default=0)
    samples = np.random.default_rng(SEED).integers(max(1, len(pool)), size=(n_longest, ORDERS))
    needed = defaultdict(list)
    rows = []
    for state, differences in zip(progress, history, strict=True):
        n_tasks, decided_share = _simulated(state, differences, pool, samples)
        comparison = state.comparison
        positions = {task_id: position for position, task_id in enumerate(comparison.order)}
        for label in comparison.labels:
            needed[label].append(NeededTasks(positions, n_tasks))
        side, compared_side = comparison.stored_sides
        rows.append(
            {
                "model": side.model,
                "compared_with": EARLIER if comparison.is_of_nights else compared_side.model,
                "n_history": 0 if decided_share is None else len(differences),
                "n_tasks_planned": comparison.rule.n_planned,
                "tasks": _expected(n_tasks),
                "decided_share": decided_share,
            }
        )
    return needed, rows


def _simulated(
    state: Progress,
    differences: Differences,
    pool: Sequence[str],
    samples: NDArray[np.int64],
) -> tuple[Floats, float | None]:
    """Return the tasks that a comparison needs in each random order, and the share decided then.

    The share is None without enough differences. `samples` are indices of the tasks in `pool`,
    shape (at least n_planned, ORDERS).
    """
    n_planned = state.comparison.rule.n_planned
    if state.is_finished:
        return np.full(ORDERS, float(len(state.evaluated_tasks))), float(state.decision != OPEN)
    if len(differences) < FEWEST_TASKS:
        return np.full(ORDERS, float(n_planned)), None
    sampled = in_order(differences, pool)[samples[:n_planned]]
    return _until_decided(state, differences, sampled)


def _until_decided(
    state: Progress,
    differences: Differences,
    sampled: Floats,
) -> tuple[Floats, float]:
    """Return the number of tasks after which each random order is decided, and the share that is.

    Args:
        state: the comparison, and the tasks evaluated so far, whose differences are known.
        differences: the known ones, by task.
        sampled: differences in random orders, shape (n_planned, ORDERS).
    """
    comparison = state.comparison
    evaluated = state.evaluated_tasks
    sampled[: len(evaluated)] = in_order(differences, evaluated)[:, None]
    n_tasks = np.full(ORDERS, float(comparison.rule.n_planned))
    is_open = np.ones(ORDERS, dtype=np.bool_)
    # Earlier looks left it open.
    for end in comparison.rule.ends[state.block :]:
        is_decided_now = is_open & comparison.rule.are_decided(sampled[:end])
        n_tasks[is_decided_now] = end
        is_open &= ~is_decided_now
    return n_tasks, float(1.0 - is_open.mean())


def needed_calls(needed: Needed, cells: Cells) -> Floats:
    """Return the number of needed calls for the cells, in each random order.

    Tasks and models without a comparison are evaluated in full.
    """
    n_needed = np.zeros(ORDERS)
    for label, task_id, n_calls in cells:
        is_needed = [
            comparison.positions[task_id] < comparison.n_tasks
            for comparison in needed.get(label, ())
            if task_id in comparison.positions
        ]
        n_needed += n_calls * np.any(is_needed, axis=0) if is_needed else n_calls
    return n_needed


def expected_calls(planned: Planned, cells: Cells, needed: Needed) -> ExpectedRow:
    """Return a row with all missing and the needed calls of a row of the plan, and their costs in
    USD.

    All calls are needed if the row belongs to neither a model nor a judge.
    """
    n_missing = sum(n_calls for _, _, n_calls in cells)
    # A criterion may need more or less than one call of a judge: long responses, cascades.
    share = np.ones(ORDERS)
    if n_missing:
        share = needed_calls(needed, cells) / n_missing
    cost_usd = None
    if planned.cost_usd is not None:
        cost_usd = planned.cost_usd * float(np.median(share))
    return {
        "purpose": planned.purpose,
        "label": planned.label,
        "model": planned.model,
        "all_calls": planned.calls,
        "calls": _expected(np.round(share * planned.calls)),
        "all_cost_usd": planned.cost_usd,
        "cost_usd": cost_usd,
    }


def _expected(values: Floats) -> dict[str, float]:
    """Return the median over random orders, and the range of 90 % of them."""
    low, median, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    return {"median": median, "low": low, "high": high}
