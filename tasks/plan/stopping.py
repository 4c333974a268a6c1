"""The expected calls of a run that stops when its comparisons are settled, from stored scores of
the same models.

The rule is applied to random orders of the tasks with values of both models of a pair; a pair
without stored values is planned in full.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import sql
from tasks.config.job import Job
from tasks.plan.estimate import Planned
from tasks.plan.plan import Cells, plan_with_cells
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import SEED, Floats
from tasks.rules.stopping import FEWEST_TASKS, OPEN
from tasks.run.missing_work import wanted_tasks
from tasks.stopping.comparisons import EARLIER, JobComparisons, Progress
from warehouse import Reader, Warehouse

ORDERS = 200


Row = dict[str, Any]
Needed = Mapping[str, Sequence[tuple[Mapping[str, int], Floats]]]
"""Model label -> for each of its comparisons the position of each task, and how many tasks each
random order needs.
"""


def plan_stopping(job: Job) -> tuple[list[Row], list[Row]]:
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
    return compared, [expected_calls(each, cells, needed) for each, cells in planned]


def _history(comparisons: JobComparisons, reader: Reader) -> list[dict[str, float]]:
    """Return for each comparison the differences by task; for earlier nights, between a model's
    last two values.
    """
    if not comparisons.progress:
        return []
    planned = [each.comparison for each in comparisons.progress]
    given = {
        "benchmark": comparisons.key["benchmark"],
        "judge": comparisons.judge["judge"],
        "grading": comparisons.judge["grading"],
        "score": comparisons.score_name,
        "models": sorted({label for each in planned for label in each.labels}),
    }
    values: dict[str, dict[str, list[float]]] = {}
    for row in reader.rows(sql.read("queries/plan/history_values"), given):
        values.setdefault(row["model"], {}).setdefault(row["task_id"], []).append(row["value"])
    differences: list[dict[str, float]] = []
    for each in planned:
        first, second = (values.get(side.model, {}) for side in (each.first, each.second))
        if each.first.vintage == EARLIER:
            first = {task: own[:-1] for task, own in second.items()}
        differences.append(
            {task: own[-1] - first[task][-1] for task, own in second.items() if first.get(task)}
        )
    return differences


def simulated(
    progress: Sequence[Progress], history: Sequence[dict[str, float]]
) -> tuple[Needed, list[Row]]:
    """Return the tasks that each comparison needs in each random order, and a row for each
    comparison.

    A finished comparison needs no more tasks. In a row, `tasks` are those until it is decided, and
    `n_history` is the number of tasks with stored values, 0 if there are too few.
    """
    pool = sorted({task for of_pair in history for task in of_pair})
    longest = max((each.comparison.rule.n_planned for each in progress), default=0)
    samples = np.random.default_rng(SEED).integers(max(1, len(pool)), size=(longest, ORDERS))
    needed: dict[str, list[tuple[Mapping[str, int], Floats]]] = {}
    expected: list[Row] = []
    for each, differences in zip(progress, history, strict=True):
        comparison = each.comparison
        n_planned = each.comparison.rule.n_planned
        tasks = np.full(ORDERS, float(n_planned))
        decided = None
        if each.is_finished:
            tasks = np.full(ORDERS, float(each.n_tasks))
            decided = float(each.decision != OPEN)
        elif len(differences) >= FEWEST_TASKS:
            of_pool = np.array([differences.get(task, np.nan) for task in pool])[
                samples[:n_planned]
            ]
            # The tasks evaluated so far are known.
            done = comparison.order[: each.n_tasks]
            of_pool[: len(done)] = np.array([differences.get(task, np.nan) for task in done])[
                :, None
            ]
            # The number of tasks after which each order is settled; earlier looks left it open.
            is_open = np.ones(ORDERS, dtype=np.bool_)
            for end in comparison.rule.ends[each.block :]:
                now = is_open & comparison.rule.are_decided(of_pool[:end])
                tasks[now] = end
                is_open &= ~now
            decided = float(1.0 - is_open.mean())
        positions = {task_id: position for position, task_id in enumerate(comparison.order)}
        for label in comparison.labels:
            needed.setdefault(label, []).append((positions, tasks))
        model, compared = comparison.stored_sides
        expected.append(
            {
                "model": model.model,
                "compared_with": EARLIER if compared.vintage == EARLIER else compared.model,
                "n_history": 0 if decided is None else len(differences),
                "n_tasks_planned": n_planned,
                "tasks": _expected(tasks),
                "decided_share": decided,
            }
        )
    return needed, expected


def needed_calls(needed: Needed, cells: Cells) -> Floats:
    """Return the number of needed calls for the cells, in each random order."""
    calls = np.zeros(ORDERS)
    for label, task_id, n_calls in cells:
        needs = [
            positions[task_id] < n for positions, n in needed.get(label, ()) if task_id in positions
        ]
        # Tasks and models without a comparison are evaluated in full.
        calls += n_calls * (np.max(needs, axis=0) if needs else 1.0)
    return calls


def expected_calls(planned: Planned, cells: Cells, needed: Needed) -> Row:
    """Return a row with all missing and the needed calls of a row of the plan, and their costs in
    USD.

    All calls are needed if the row belongs to neither a model nor a judge.
    """
    missing = sum(n_calls for _, _, n_calls in cells)
    # A criterion may need more or less than one call of a judge: long responses, cascades.
    share = needed_calls(needed, cells) / missing if missing else np.ones(ORDERS)
    cost = None if planned.cost_usd is None else planned.cost_usd * float(np.median(share))
    return {
        "purpose": planned.purpose,
        "label": planned.label,
        "model": planned.model,
        "all_calls": planned.calls,
        "calls": _expected(np.round(share * planned.calls)),
        "all_cost_usd": planned.cost_usd,
        "cost_usd": cost,
    }


def _expected(values: Floats) -> dict[str, float]:
    """Return the median over random orders, and the range of 90 % of them."""
    return dict(
        zip(("median", "low", "high"), np.quantile(values, (0.5, 0.05, 0.95)).tolist(), strict=True)
    )
