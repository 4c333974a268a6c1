"""One Prefect flow a stage. The work is in `tasks/`; here it is cut into Prefect tasks, watched and reported."""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Sequence

from prefect import flow, task
from prefect.artifacts import acreate_markdown_artifact
from prefect.cache_policies import NO_CACHE

from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.check import SUITES, check
from tasks.hard_subset import select_hard
from tasks.ingest import ingest
from tasks.judge import judge_batch, plan_verdicts
from tasks.progress import progress, say
from tasks.reports import StageReport
from tasks.sample import plan_samples, sample_batch
from tasks.scope import Judging
from tasks.settings import Job
from warehouse import Warehouse

_SAMPLES_A_BATCH = 200
_VERDICTS_A_BATCH = 1_000
_BATCHES_IN_HAND = 4
_PUBLISH_EVERY_S = 300.0


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
    report = StageReport("sample")
    cells = await asyncio.to_thread(plan_samples, job, retry_failed=retry_failed)
    total = sum(map(len, cells.values()))
    with progress("sample", total, is_quiet=job.is_quiet):
        parts = await _in_batches(job, [
            _sample_task.with_options(task_run_name=f"sample {label} {number}")(job, label, batch)
            for label, of_model in cells.items()
            for number, batch in enumerate(_cut(of_model, _SAMPLES_A_BATCH), start=1)
        ])  # fmt: skip
    return await _with_parts(job, report, parts, "responses", "sample", started_s)


@flow(name="judge")
async def judge_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Judge the criteria that are missing, in batches of whole responses."""
    started_s = time.monotonic()
    report = StageReport("judge")
    owed = await asyncio.to_thread(plan_verdicts, job, retry_failed=retry_failed)
    total = sum(count for _, responses in owed for _, count in responses)
    with progress("judge", total, is_quiet=job.is_quiet):
        parts = await _in_batches(job, [
            _judge_task.with_options(task_run_name=f"judge {judging.judge.label} {number}")(
                job, judging, batch, retry_failed
            )
            for judging, responses in owed
            for number, batch in enumerate(_response_batches(responses), start=1)
        ])  # fmt: skip
    return await _with_parts(job, report, parts, "verdicts", "judge", started_s)


@flow(name="aggregate")
async def aggregate_flow(job: Job) -> StageReport:
    """Publish scores and leaderboard, with intervals."""
    started_s = time.monotonic()
    return await _finished(job, await asyncio.to_thread(aggregate, job), started_s)


@flow(name="select-hard")
async def select_hard_flow(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field."""
    started_s = time.monotonic()
    return await _finished(job, await asyncio.to_thread(select_hard, job, must_select=must_select), started_s)


@flow(name="check")
async def check_flow(job: Job) -> StageReport:
    """Run all data-quality suites on what is stored."""
    started_s = time.monotonic()
    return await _finished(job, await asyncio.to_thread(check, job, SUITES), started_s)


# A Prefect retry covers a batch that crashed; a call that failed is a row, and tried again by the gateway or next time.
@task(name="sample-batch", cache_policy=NO_CACHE, retries=1)
async def _sample_task(job: Job, model_label: str, cells: list[tuple[str, int]]) -> StageReport:
    return await sample_batch(job, model_label, cells)


@task(name="judge-batch", cache_policy=NO_CACHE, retries=1)
async def _judge_task(job: Job, judging: Judging, response_ids: list[str], retry_failed: bool) -> StageReport:
    return await judge_batch(job, judging, response_ids, retry_failed=retry_failed)


async def _in_batches(job: Job, batches: Sequence[Awaitable[StageReport]]) -> list[StageReport]:
    """Work on a few batches at a time, and publish now and then on the way."""
    in_hand = asyncio.Semaphore(_BATCHES_IN_HAND)
    warehouse = Warehouse(job.warehouse)

    async def one(batch: Awaitable[StageReport]) -> StageReport:
        async with in_hand:
            report = await batch
        await asyncio.to_thread(warehouse.publish_if_older_than, _PUBLISH_EVERY_S)
        return report

    return list(await asyncio.gather(*map(one, batches)))


async def _with_parts(
    job: Job, report: StageReport, parts: Iterable[StageReport], what: str, suite: str, started_s: float
) -> StageReport:
    for part in parts:
        report.add(part)
    await asyncio.to_thread(Warehouse(job.warehouse).publish)
    if report.rows:
        report.notes.append(f"{report.rows} {what} made")
        report.adopt(await asyncio.to_thread(check, job, (suite,)))
    else:
        report.notes.append(f"all {what} were there, no model call made")
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
