"""Running a stage: its batches a few at a time, published now and then on the way, and what is said of it."""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from flows.recorded import Batch, is_recorded, progress_shown, show_stage
from tasks.check import check
from tasks.config.job import Job
from tasks.console import notice, progress
from tasks.run.missing_work import MissingVerdicts
from tasks.run.run_context import open_run_context
from tasks.run.stages import STAGES
from tasks.run.writing import StageReport
from warehouse import Warehouse

_BATCHES_AT_ONCE = 4
_PUBLISH_LEAST_S, _PUBLISH_MOST_S = 30.0, 300.0
"""How long after a publishing the next one is due: the sooner, the faster it is."""
SAMPLES_A_BATCH, VERDICTS_A_BATCH, ITEMS_A_BATCH = 200, 1_000, 1_000

Each = TypeVar("Each")


async def run_batches(
    job: Job, stage: str, what: str, batches: Sequence[Batch], totals: Mapping[str, int],
    first: Sequence[Batch] = (), *, retry_failed: bool,
) -> StageReport:  # fmt: skip
    """Run the batches of a stage that makes calls, and check what they made.

    `what` is the plural of the stage's rows, `totals` are the calls by model; `first` runs alone, before the others.
    With `retry_failed` failed work is among them.
    """
    started_s = time.monotonic()
    report = StageReport(stage)
    with progress(stage, totals, is_quiet=job.is_quiet) as tallies:
        opening = open_run_context(job, STAGES[stage].calls, retry_failed=retry_failed)
        async with opening as context, progress_shown(job, stage, tallies, context.senders):
            if any(totals.values()):
                await context.ready()
            for each in first:
                report.adopt(await each())
            await _run_all(job, batches, report)
            context.add_notices(report)
    warehouse = Warehouse(job.warehouse)
    await asyncio.to_thread(warehouse.publish)
    if report.rows:
        report.notes.append(f"{report.rows} {what} made")
        report.adopt(await asyncio.to_thread(check, job, (stage,)))
    elif report.skipped == 0:
        report.notes.append(f"nothing to {stage}, no model call made")
    if report.skipped:
        report.notes.append(f"{report.skipped} {what} not called for")
    report.seconds = time.monotonic() - started_s
    return await log_stage(job, report)


async def _run_all(job: Job, batches: Sequence[Batch], report: StageReport) -> None:
    warehouse = Warehouse(job.warehouse)
    slots = asyncio.Semaphore(_BATCHES_AT_ONCE)

    async def run(each: Batch) -> None:
        async with slots:
            report.add(await each())
        await asyncio.to_thread(warehouse.publish_if_due, _PUBLISH_LEAST_S, _PUBLISH_MOST_S)

    async with asyncio.TaskGroup() as group:
        for each in batches:
            group.create_task(run(each))


def in_batches(items: Sequence[Each], size: int = SAMPLES_A_BATCH) -> list[list[Each]]:
    """Cells to sample, or items to ask about, in batches."""
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def in_response_batches(responses: Sequence[MissingVerdicts]) -> list[list[MissingVerdicts]]:
    """Whole responses together until they make a batch."""
    batches: list[list[MissingVerdicts]] = []
    room = 0
    for each in responses:
        if not batches or room < each.n_criteria:
            batches.append([])
            room = VERDICTS_A_BATCH
        batches[-1].append(each)
        room -= each.n_criteria
    return batches


async def timed(job: Job, work: Awaitable[StageReport]) -> StageReport:
    """Do the work of a stage, and say what it did and how long it took."""
    started_s = time.monotonic()
    report = await work
    report.seconds = time.monotonic() - started_s
    return await log_stage(job, report)


async def log_stage(job: Job, report: StageReport) -> StageReport:
    """Say what a stage did, in a line and one for each warning: on standard error, and in Prefect where it records."""
    line, labels = report.line, job.named_models or ()
    if report.stage in {"sample", "judge"} and len(labels) == 1:  # several may be under way side by side
        line = line.replace(report.stage, f"{report.stage} {labels[0]}", 1)
    for each in () if job.is_quiet else (line, *(f"  {warning}" for warning in report.warnings)):
        notice(each)
    if is_recorded():
        await show_stage(job, report, line)
    return report
