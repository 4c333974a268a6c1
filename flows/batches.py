"""The stages that make calls: batches as Prefect tasks, a few at a time, published now and then on the way."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from prefect import State, task
from prefect.cache_policies import NO_CACHE

from flows.cancellation import cancellable
from flows.showing import progress_shown, told
from tasks.check import check
from tasks.desk import calling
from tasks.llm.library import warm_up
from tasks.progress import progress
from tasks.reports import StageReport
from tasks.rules.errors import PipelineError
from tasks.settings import Job
from warehouse import Warehouse, WarehouseError

_BATCHES_IN_HAND = 4
_PUBLISH_EVERY_S = 300.0

Batch = Callable[..., Awaitable[StageReport]]
Batches = Sequence[tuple[str, Batch, tuple[Any, ...], dict[str, Any]]]
"""Name, function, its arguments after the job, its options."""


def _is_crash(_task: object, _run: object, state: State[Any]) -> bool:
    """Whether a batch failed in a way that the same batch may not fail in again."""
    return not isinstance(state.data, PipelineError | WarehouseError)


# A Prefect retry covers a batch that crashed; a call that failed is a row, and tried again by the gateway or next time.
@task(name="batch", cache_policy=NO_CACHE, retries=1, retry_condition_fn=_is_crash)
async def _batch_task(job: Job, batch: Batch, arguments: tuple[Any, ...], options: dict[str, Any]) -> StageReport:
    return await batch(job, *arguments, **options)


@task(name="own", cache_policy=NO_CACHE)
async def _own_task(job: Job, work: Batch, arguments: tuple[Any, ...], options: dict[str, Any]) -> StageReport:
    return await work(job, *arguments, **options)


async def called(
    job: Job, stage: str, what: str, batches: Batches, totals: Mapping[str, int], first: Batches = ()
) -> StageReport:
    """Run the batches of a stage that makes calls, and check what they made.

    `totals` are the calls by model; `first` is work of this process that the batches build on.
    """
    started_s = time.monotonic()
    report = StageReport(stage)
    with progress(stage, totals, is_quiet=job.is_quiet) as tallies:
        async with (
            cancellable(job),
            calling(job) as desk,
            progress_shown(stage, tallies),
        ):
            if any(totals.values()):
                await asyncio.to_thread(warm_up)
            for name, work, arguments, options in first:
                report.adopt(await _own_task.with_options(task_run_name=name)(job, work, arguments, options))
            await _all(job, batches, report)
            desk.tell(report)
    warehouse = Warehouse(job.warehouse)
    await asyncio.to_thread(warehouse.publish)
    if report.rows:
        report.notes.append(f"{report.rows} {what} made")
        report.adopt(await asyncio.to_thread(check, job, (stage,)))
    elif report.skipped == 0:
        report.notes.append(f"all {what} were there, no model call made")
    if report.skipped:
        report.notes.append(f"{report.skipped} {what} not asked for")
    report.seconds = time.monotonic() - started_s
    return await told(job, report)


async def _all(job: Job, batches: Batches, report: StageReport) -> None:
    warehouse = Warehouse(job.warehouse)
    in_hand = asyncio.Semaphore(_BATCHES_IN_HAND)

    async def one(name: str, batch: Batch, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        async with in_hand:
            run = _batch_task.with_options(task_run_name=name)
            report.add(await run(job, batch, arguments, options))
        await asyncio.to_thread(warehouse.publish_if_older_than, _PUBLISH_EVERY_S)

    async with asyncio.TaskGroup() as group:
        for batch in batches:
            group.create_task(one(*batch))
