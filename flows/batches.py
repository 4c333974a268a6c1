"""Running a stage that makes calls: its batches a few at a time, published now and then on the way."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from flows.job_flow import Batch, BatchTask
from flows.run.cancellation import cancellable
from flows.stage_log import log_stage, progress_recorded
from tasks.check import check
from tasks.config.job import Job
from tasks.console import progress
from tasks.run.asking import Analysis, Item
from tasks.run.keys import CALLED_BY
from tasks.run.missing_work import MissingVerdicts
from tasks.run.run_context import open_run_context
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
        opening = open_run_context(job, CALLED_BY[stage], retry_failed=retry_failed)
        async with cancellable(), opening as context, progress_recorded(job, stage, tallies, context.senders):
            if any(totals.values()):
                await context.ready()
            for batch in first:
                report.adopt(await batch())
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


async def ask_in_batches(
    job: Job, analysis: Analysis, what: str, asking: BatchTask[[Job, str, list[str], bool]], *, retry_failed: bool
) -> StageReport:
    """Ask the analysts of an analysis about what is missing, in batches; `what` is the plural of its rows."""
    warehouse = Warehouse(job.warehouse)

    def missing() -> dict[str, list[Item]]:
        with warehouse.reader() as reader:
            changed = analysis.changed_analysts(job, reader)
            items = analysis.missing(job, reader, retry_failed=retry_failed)
        warehouse.write("analysts", changed)
        warehouse.publish()
        return items

    items = await asyncio.to_thread(missing)
    if not any(items.values()):
        return await log_stage(job, StageReport(analysis.stage, notes=["nothing is missing, no model call made"]))
    batches = [
        asking.named(f"{analysis.stage} {label} {number}", job, label, [item.row_id for item in batch], retry_failed)
        for label, of_analyst in items.items()
        for number, batch in enumerate(in_batches(of_analyst, ITEMS_A_BATCH), start=1)
    ]
    totals = {label: len(of_analyst) for label, of_analyst in items.items()}
    report = await run_batches(job, analysis.stage, what, batches, totals, retry_failed=retry_failed)
    report.is_below_bar |= bool(report.failures)
    return report


async def _run_all(job: Job, batches: Sequence[Batch], report: StageReport) -> None:
    warehouse = Warehouse(job.warehouse)
    slots = asyncio.Semaphore(_BATCHES_AT_ONCE)

    async def run(batch: Batch) -> None:
        async with slots:
            report.add(await batch())
        await asyncio.to_thread(warehouse.publish_if_due, _PUBLISH_LEAST_S, _PUBLISH_MOST_S)

    async with asyncio.TaskGroup() as group:
        for batch in batches:
            group.create_task(run(batch))


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
