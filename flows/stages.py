"""One Prefect flow a stage. The work is in `tasks/`; here it is cut into Prefect tasks, watched and reported."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any

from prefect import State, flow, task
from prefect.artifacts import acreate_markdown_artifact
from prefect.cache_policies import NO_CACHE

from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.check import SUITES, check
from tasks.crew import crew_for, crew_of, n_processes
from tasks.desk import calling
from tasks.hard_subset import select_hard
from tasks.ingest import ingest
from tasks.judge import judge_batch, look_after_batches, plan_verdicts
from tasks.progress import progress, say
from tasks.reports import StageReport
from tasks.rules.errors import PipelineError
from tasks.sample import plan_samples, sample_batch
from tasks.settings import Job
from tasks.workers import Batch, WorkerLost
from warehouse import Warehouse, WarehouseError

_SAMPLES_A_BATCH = 200
_VERDICTS_A_BATCH = 1_000
_BATCHES_IN_HAND = 4
_PUBLISH_EVERY_S = 300.0

Batches = Sequence[tuple[str, Batch, tuple[Any, ...], dict[str, Any]]]
"""Name, function, its arguments after the job, its options."""


@flow(name="ingest")
async def ingest_flow(job: Job) -> StageReport:
    """Bring the data set in and check it: a task that breaks an invariant is refused here."""
    started_s = time.monotonic()
    report = await asyncio.to_thread(ingest, job)
    report.adopt(await asyncio.to_thread(check, job, ("ingest",), reuse=True))
    return await _finished(job, report, started_s)


@flow(name="assemble")
async def assemble_flow(job: Job) -> StageReport:
    """Make the conversations of the admitted tasks."""
    started_s = time.monotonic()
    return await _finished(job, await asyncio.to_thread(assemble, job), started_s)


@flow(name="sample")
async def sample_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Sample the responses that are missing, in batches."""
    started_s = time.monotonic()
    cells = await asyncio.to_thread(plan_samples, job, retry_failed=retry_failed)
    batches: Batches = [
        (f"sample {label} {number}", sample_batch, (label, batch), {})
        for label, of_model in cells.items()
        for number, batch in enumerate(_cut(of_model, _SAMPLES_A_BATCH), start=1)
    ]
    total = sum(map(len, cells.values()))
    return await _called(job, "sample", "responses", batches, total, started_s)


@flow(name="judge")
async def judge_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Judge the criteria that are missing, in batches of whole responses."""
    started_s = time.monotonic()
    owed = await asyncio.to_thread(plan_verdicts, job, retry_failed=retry_failed)
    again = {"retry_failed": retry_failed}
    batches: Batches = [
        (f"judge {judging.judge.label} {number}", judge_batch, (judging, ids), {**again})
        for judging, responses in owed
        for number, ids in enumerate(_response_batches(responses), start=1)
    ]
    total = sum(count for _, responses in owed for _, count in responses)
    # As many batches as there are processes share a place: the first alone would take all slots for one process.
    together = n_processes(job, total)
    for number, (_, _, _, options) in enumerate(batches):
        options["place"] = number // together
    first: Batches = [
        (f"batches of {judging.judge.label}", look_after_batches, (judging, [i for i, _ in responses]), again)
        for judging, responses in owed
        if judging.judge.mode == "batch" and responses
    ]
    return await _called(job, "judge", "verdicts", batches, total, started_s, first=first)


@flow(name="aggregate")
async def aggregate_flow(job: Job) -> StageReport:
    """Publish scores and leaderboard, with intervals."""
    started_s = time.monotonic()
    return await _finished(job, await asyncio.to_thread(aggregate, job), started_s)


@flow(name="select-hard")
async def select_hard_flow(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field, and give the leaderboard on a new one its intervals."""
    started_s = time.monotonic()
    report = await asyncio.to_thread(select_hard, job, must_select=must_select)
    if report.rows:
        await asyncio.to_thread(aggregate, job)
    return await _finished(job, report, started_s)


@flow(name="check")
async def check_flow(job: Job) -> StageReport:
    """Run all data-quality suites on what is stored."""
    started_s = time.monotonic()
    return await _finished(job, await asyncio.to_thread(check, job, SUITES), started_s)


def _is_crash(_task: object, _run: object, state: State[Any]) -> bool:
    """Whether a batch failed in a way that the same batch may not fail in again."""
    return isinstance(state.data, WorkerLost) or not isinstance(state.data, PipelineError | WarehouseError)


# A Prefect retry covers a batch that crashed; a call that failed is a row, and tried again by the gateway or next time.
@task(name="batch", cache_policy=NO_CACHE, retries=1, retry_condition_fn=_is_crash)
async def _batch_task(job: Job, batch: Batch, arguments: tuple[Any, ...], options: dict[str, Any]) -> StageReport:
    return await crew_of(job).run(batch, job, *arguments, **options)


@task(name="provider-batches", cache_policy=NO_CACHE)
async def _own_task(job: Job, work: Batch, arguments: tuple[Any, ...], options: dict[str, Any]) -> StageReport:
    return await work(job, *arguments, **options)


async def _called(
    job: Job, stage: str, what: str, batches: Batches, total: int, started_s: float, first: Batches = ()
) -> StageReport:
    """Run the batches of a stage that makes calls, a few at a time, and publish now and then on the way.

    `first` is work of this process that the batches build on.
    """
    report = StageReport(stage)
    warehouse = Warehouse(job.warehouse)
    in_hand = asyncio.Semaphore(_BATCHES_IN_HAND)
    with progress(stage, total, is_quiet=job.is_quiet):
        async with calling(job) as desk, crew_for(job, desk, total):

            async def one(name: str, batch: Batch, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
                async with in_hand:
                    run = _batch_task.with_options(task_run_name=name)
                    report.add(await run(job, batch, arguments, options))
                await asyncio.to_thread(warehouse.publish_if_older_than, _PUBLISH_EVERY_S)

            for name, work, arguments, options in first:
                report.adopt(await _own_task.with_options(task_run_name=name)(job, work, arguments, options))
            async with asyncio.TaskGroup() as group:
                for batch in batches:
                    group.create_task(one(*batch))
            desk.tell(report)
    await asyncio.to_thread(warehouse.publish)
    if report.rows:
        report.notes.append(f"{report.rows} {what} made")
        report.adopt(await asyncio.to_thread(check, job, (stage,)))
    elif report.skipped == 0:
        report.notes.append(f"all {what} were there, no model call made")
    if report.skipped:
        report.notes.append(f"{report.skipped} {what} not asked for")
    return await _finished(job, report, started_s)


async def _finished(job: Job, report: StageReport, started_s: float) -> StageReport:
    report.seconds = time.monotonic() - started_s
    if not job.is_quiet:
        say(report.line)
        for warning in report.warnings:
            say(f"  {warning}")
    await acreate_markdown_artifact(
        key=report.stage,
        markdown="\n".join([report.line, *(f"- {warning}" for warning in report.warnings)]),
        description=f"{report.stage}, run {job.run_id}",
    )
    return report


def _cut(items: Sequence[tuple[str, int]], size: int) -> list[list[tuple[str, int]]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def _response_batches(responses: Iterable[tuple[str, int]]) -> list[list[str]]:
    """Whole responses together until they make a batch."""
    batches: list[list[str]] = []
    room = 0
    for response_id, count in responses:
        if not batches or room < count:
            batches.append([])
            room = _VERDICTS_A_BATCH
        batches[-1].append(response_id)
        room -= count
    return batches
