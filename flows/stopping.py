"""Evaluation in blocks of tasks, with a look after each, until all comparisons are settled."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tasks.config.job import Job
from tasks.config.settings import EARLIER_NIGHTS
from tasks.console import notice
from tasks.judge.judge import plan_verdicts
from tasks.run.missing_work import EARLIER, Progress, StoppingPlan, WantedTasks, stopping_plan, wanted_tasks
from tasks.run.writing import StageReport
from tasks.sample import plan_samples
from tasks.stopping import TaskBlock, describe, has_scores, looks_after, next_block, store_scores
from warehouse import Warehouse

Evaluate = Callable[[Job], Awaitable[list[StageReport]]]
"""Samples and judges the missing work of a job."""


def was_cut_short(reports: Iterable[StageReport]) -> bool:
    """Return whether the budget, the time or an outage ended the work of a stage."""
    return any(each.is_at_budget or each.is_at_stop_time or each.skipped for each in reports)


async def evaluate_in_blocks(job: Job, evaluate: Evaluate) -> list[StageReport]:
    """Evaluate block by block until every comparison of a job with `stopping` is settled, and return the reports."""
    started_s = time.monotonic()
    reports, passed = list[StageReport](), dict[tuple[str, ...], int]()
    n_looks = n_blocks = 0
    while (block := await asyncio.to_thread(_next, job, passed)) is not None:
        for narrowed in block.jobs(job):
            if await asyncio.to_thread(_has_calls, narrowed):
                reports += await evaluate(narrowed)
        if was_cut_short(reports):
            break
        n_looks += await asyncio.to_thread(_look, job, block, passed)
        n_blocks += 1
    report = await asyncio.to_thread(_concluded, job, n_looks, n_blocks)
    report.seconds = time.monotonic() - started_s
    return [*reports, report]


def has_open_block(job: Job) -> bool:
    """Return whether a comparison of a job with `stopping` is open, or its scores are not stored yet."""
    _, plan, progress = _plan(job)
    if _next(job, {}) is not None:
        return True
    with Warehouse(job.warehouse).reader() as reader:
        return plan is not None and bool(progress) and not has_scores(plan, reader)


def _has_calls(job: Job) -> bool:
    return any(plan_samples(job).values()) or any(responses for _, responses in plan_verdicts(job))


def _plan(job: Job) -> tuple[WantedTasks, StoppingPlan | None, list[Progress]]:
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        plan = stopping_plan(job, wanted, reader)
        return wanted, plan, plan.progress(reader) if plan else []


def _next(job: Job, passed: dict[tuple[str, ...], int]) -> TaskBlock | None:
    """Return the next block in which a model of this run takes part."""
    _, _, progress = _plan(job)
    here = {model.label for model in job.settings.models}
    return next_block([each for each in progress if each.comparison.labels & here], passed)


def _look(job: Job, block: TaskBlock, passed: dict[tuple[str, ...], int]) -> int:
    """Look at a block's comparisons, store and print the results, and return the number of looks."""
    warehouse = Warehouse(job.warehouse)
    wanted, plan, _ = _plan(job)
    assert plan is not None
    with warehouse.reader() as reader:
        looks = looks_after(job, wanted, plan, block, reader)
    passed |= {key: block.number for key, row in looks.items() if row is None}
    rows = [row for row in looks.values() if row is not None]
    warehouse.write("stopping_looks", rows)
    warehouse.publish()
    if not job.is_quiet:
        for row in rows:
            notice(f"  {describe(row)}")
    return len(rows)


def _concluded(job: Job, n_looks: int, n_blocks: int) -> StageReport:
    """Store the scores on a random part of the tasks; return a report on settled comparisons and skipped responses."""
    warehouse = Warehouse(job.warehouse)
    wanted, plan, progress = _plan(job)
    report = StageReport("stopping", rows=n_looks)
    if plan is None or not progress:
        report.notes.append("nothing is compared, so all tasks are evaluated")
        return report
    decisions = Counter(each.decision.replace("_", " ") for each in progress if each.is_finished)
    decisions["unfinished"] = len(progress) - decisions.total()
    counts = ", ".join(f"{count} {name}" for name, count in sorted((+decisions).items()))
    report.notes.append(f"{len(progress)} comparisons: {counts}; {n_looks} looks after {n_blocks} blocks")
    with warehouse.reader() as reader:
        is_stored = not n_looks and has_scores(plan, reader)
        n_stored = 0 if is_stored else store_scores(job, wanted, plan, progress, reader)
    if n_stored:
        warehouse.publish()
    n_skipped = sum(len(tasks) for tasks in wanted.left_out.values()) * len(job.trials)
    if n_skipped:
        report.notes.append(f"{n_skipped} responses of {len(wanted.left_out)} models not needed")
    return report


def last_looks(job: Job) -> list[dict[str, Any]]:
    """Return the last look at each nightly model against its earlier nights; none if nights do not use `stopping`.

    If a model has a look, no other comparison of it in that night is valid, because the looks decided on how many
    tasks it was evaluated.
    """
    stopping = job.settings.stopping
    if stopping is None or stopping.pairs != EARLIER_NIGHTS:
        return []
    _, plan, _ = _plan(job)
    if plan is None:
        return []
    with Warehouse(job.warehouse).reader() as reader:
        of_night = {"stopping_id": plan.stopping_id, "compared_vintage": EARLIER}
        looks = reader.select("stopping_looks", "* exclude (run_id, created_at)", order="model, block", **of_night)
    return list({look["model"]: look for look in looks}.values())
