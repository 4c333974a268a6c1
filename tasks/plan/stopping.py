"""The expected calls of a run that stops when its comparisons are settled, from stored scores of the same models.

The rule is applied to random orders of the tasks with values of both models of a pair; a pair without stored values is
planned in full.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import sql
from tasks.config.job import Job
from tasks.plan.estimate import Planned
from tasks.plan.plan import Cells, plan_with_cells
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import Floats
from tasks.rules.stopping import FEWEST_TASKS, OPEN
from tasks.run.missing_work import (
    EARLIER,
    PlannedComparison,
    Progress,
    StoppingPlan,
    WantedTasks,
    stopping_plan,
    wanted_tasks,
)
from warehouse import Reader, Warehouse

ORDERS = 200
_SEED = 20251114
_SPAN = (0.05, 0.5, 0.95)


@dataclass
class Needed:
    """By model: how many tasks, from the first on, each of its comparisons needs in each random order."""

    n_orders: int
    of_model: dict[str, list[tuple[dict[str, int], Floats]]] = field(default_factory=dict)

    def add(self, comparison: PlannedComparison, n_tasks: Floats) -> None:
        """Add the number of tasks that a comparison needs, to each of its models."""
        positions = {task_id: position for position, task_id in enumerate(comparison.order)}
        for label in comparison.labels:
            self.of_model.setdefault(label, []).append((positions, n_tasks))

    def calls(self, cells: Cells) -> Floats:
        """Return the number of needed calls for the cells, in each random order."""
        n_needed = np.zeros(self.n_orders)
        for label, task_id, n_calls in cells:
            needs = [(positions[task_id], n) for positions, n in self.of_model.get(label, ()) if task_id in positions]
            # Tasks and models without a comparison are evaluated in full.
            n_needed += n_calls * (np.max([position < n for position, n in needs], axis=0) if needs else 1.0)
        return n_needed


@dataclass(frozen=True)
class Expected:
    """An expected number: the median over random orders, and the range of 90 % of them."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class ExpectedComparison:
    """The tasks until a comparison is decided; `n_history` are the tasks with stored values, 0 if there are too few."""

    model: str
    compared_with: str
    n_history: int
    n_tasks_planned: int
    tasks: Expected
    decided_share: float | None


@dataclass(frozen=True)
class ExpectedCalls:
    """The calls of a model, or of a judge on a model: all missing ones, and the expected number; costs in USD."""

    purpose: str
    label: str
    model: str
    all_calls: int
    calls: Expected
    all_cost_usd: float | None
    cost_usd: float | None


def plan_stopping(job: Job) -> tuple[list[ExpectedComparison], list[ExpectedCalls]]:
    """Return the expected tasks of each comparison, and the calls that remain.

    Raises:
        UsageError: the configuration has no `stopping`.
        PipelineError: the data set is not ingested.
    """
    if job.settings.stopping is None:
        raise UsageError("--stopping: the configuration has no `stopping`; see prbench.example.yaml")
    planned = plan_with_cells(job)
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        comparisons = stopping_plan(job, wanted, reader)
        if comparisons is None:
            return [], []
        history, progress = _history(comparisons, wanted, reader), comparisons.progress(reader)
    needed, compared = simulated(progress, history)
    return compared, [expected_calls(each, cells, needed) for each, cells in planned]


def _history(comparisons: StoppingPlan, wanted: WantedTasks, reader: Reader) -> list[dict[str, float]]:
    """Return for each comparison the differences by task; for earlier nights, between a model's last two values."""
    columns = comparisons.judge_config.columns
    given = {
        "benchmark": wanted.benchmark.name, "judge": columns["judge"], "grading": columns["grading"],
        "score": comparisons.score_name,
        "models": sorted({label for each in comparisons.comparisons for label in each.labels}),
    }  # fmt: skip
    values: dict[str, dict[str, list[float]]] = {}
    for row in reader.rows(sql.read("queries/plan/history_values"), given):
        values.setdefault(row["model"], {}).setdefault(row["task_id"], []).append(row["value"])
    differences: list[dict[str, float]] = []
    for each in comparisons.comparisons:
        first, second = (values.get(side.model, {}) for side in (each.first, each.second))
        if each.second.vintage == EARLIER:
            differences.append({task: own[-1] - own[-2] for task, own in first.items() if len(own) > 1})
        else:
            differences.append({task: first[task][-1] - second[task][-1] for task in first.keys() & second.keys()})
    return differences


def simulated(
    progress: Sequence[Progress], history: Sequence[dict[str, float]]
) -> tuple[Needed, list[ExpectedComparison]]:
    """Return the tasks that each comparison needs in each random order, and the expected comparisons.

    A finished comparison needs no more tasks.
    """
    generator = np.random.default_rng(_SEED)
    pool = sorted({task for of_pair in history for task in of_pair})
    longest = max((each.comparison.rule.n_planned for each in progress), default=0)
    samples = generator.integers(max(1, len(pool)), size=(longest, ORDERS))
    needed, expected = Needed(ORDERS), []
    for each, differences in zip(progress, history, strict=True):
        comparison, n_planned = each.comparison, each.comparison.rule.n_planned
        tasks, decided = np.full(ORDERS, float(n_planned)), None
        if each.is_finished:
            tasks, decided = np.full(ORDERS, float(each.n_tasks)), float(each.decision != OPEN)
        elif len(differences) >= FEWEST_TASKS:
            of_pool = np.array([differences.get(task, np.nan) for task in pool])[samples[:n_planned]]
            # The tasks evaluated so far are known.
            done = comparison.order[: each.n_tasks]
            of_pool[: len(done)] = np.array([differences.get(task, np.nan) for task in done])[:, None]
            # The number of tasks after which each order is settled; earlier looks left it open.
            is_open = np.ones(ORDERS, dtype=np.bool_)
            for end in comparison.rule.ends[each.block :]:
                now = is_open & comparison.rule.are_decided(of_pool[:end])
                tasks[now] = end
                is_open &= ~now
            decided = float(1.0 - is_open.mean())
        needed.add(comparison, tasks)
        other = comparison.second.model if comparison.second.vintage != EARLIER else EARLIER
        n_history = len(differences) if decided is not None else 0
        expected.append(
            ExpectedComparison(comparison.first.model, other, n_history, n_planned, _expected(tasks), decided)
        )
    return needed, expected


def expected_calls(planned: Planned, cells: Cells, needed: Needed) -> ExpectedCalls:
    """Return the needed calls of a row of the plan; all calls if the row belongs to neither a model nor a judge."""
    missing = sum(n_calls for _, _, n_calls in cells)
    # A criterion may need more or less than one call of a judge: long responses, cascades.
    share = needed.calls(cells) / missing if missing else np.ones(ORDERS)
    calls = _expected(np.round(share * planned.calls))
    cost = None if planned.cost_usd is None else planned.cost_usd * float(np.median(share))
    return ExpectedCalls(planned.purpose, planned.label, planned.model, planned.calls, calls, planned.cost_usd, cost)


def _expected(values: Floats) -> Expected:
    low, median, high = (float(value) for value in np.quantile(values, _SPAN))
    return Expected(median, low, high)
