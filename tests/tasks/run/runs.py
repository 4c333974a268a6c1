"""Sampling and judging as a run does them, without Prefect."""

import asyncio

from tasks.assemble import assemble
from tasks.check import check
from tasks.config.job import Job
from tasks.ingest import ingest
from tasks.judge.judge import judge_by_provider_batches, judge_responses, plan_verdicts
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tasks.sample import plan_samples, sample_cells
from warehouse import Warehouse


def prepared(job: Job) -> Job:
    """The job, with its tasks ingested, checked and assembled."""
    ingest(job)
    check(job, ("ingest",), reuse=True)
    assemble(job)
    return job


def sampled(job: Job, *, retry_failed: bool = False) -> StageReport:
    """Sample what is missing, and publish it."""
    report = StageReport("sample")

    async def run() -> None:
        cells = plan_samples(job, retry_failed=retry_failed)
        async with open_run_context(job) as context:
            async with asyncio.TaskGroup() as group:
                done = [group.create_task(sample_cells(job, label, batch)) for label, batch in cells.items()]
            for each in done:
                report.add(each.result())
            context.add_notices(report)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()
    return report


def judged(job: Job, *, retry_failed: bool = False) -> StageReport:
    """Judge what is missing, and publish it."""
    report = StageReport("judge")

    async def run() -> None:
        missing = plan_verdicts(job, retry_failed=retry_failed)
        async with open_run_context(job) as context:
            for judging, responses in missing:
                ids = [each.response_id for each in responses]
                if judging.judge.mode == "batch" and ids:
                    report.adopt(await judge_by_provider_batches(job, judging, ids, retry_failed=retry_failed))
                report.add(await judge_responses(job, judging, ids, retry_failed=retry_failed))
            context.add_notices(report)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()
    return report
