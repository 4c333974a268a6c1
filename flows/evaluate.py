"""The whole job, one line a stage: once, as a night, and filled in model by model."""

import asyncio

from prefect import flow

from flows.cancellation import cancellable
from flows.explaining import explained
from flows.results import results_shown
from flows.showing import run_name, told
from flows.stages import (
    aggregate_flow,
    assemble_flow,
    compact_flow,
    derive_flow,
    drift_flow,
    ingest_flow,
    judge_flow,
    report_flow,
    sample_flow,
    select_hard_flow,
)
from tasks.coverage import coverage
from tasks.desk import open_run_context
from tasks.progress import say
from tasks.reports import StageReport
from tasks.scope import imported_models, open_scope, wanted_rubrics
from tasks.settings import Job
from warehouse import Warehouse


@flow(name="evaluate", flow_run_name=run_name)
async def evaluate(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Ingest, assemble, sample, judge, aggregate and select; each stage does only what is missing."""
    async with cancellable(job), open_run_context(job):  # one budget for sampling and judging
        return [
            await ingest_flow(job),
            await assemble_flow(job),
            await sample_flow(job, retry_failed),
            *await _derived(job, retry_failed),
            await judge_flow(job, retry_failed),
            *await _concluded(job),
        ]


@flow(name="night", flow_run_name=run_name)
async def night(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """A night: the whole job, the judges' control set, and tidying up where there are many files."""
    async with cancellable(job):
        async with open_run_context(job):
            reports = [
                await ingest_flow(job),
                await assemble_flow(job),
                await sample_flow(job, retry_failed),
                *await _derived(job, retry_failed),
                await judge_flow(job, retry_failed),
                await drift_flow(job),
                *await _concluded(job),
            ]
        # The ledger's file can be tidied up when this run does not write to it any more.
        return [*reports, await compact_flow(job, only_if_needed=True)]


@flow(name="backfill", flow_run_name=run_name)
async def backfill(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Fill in what is missing, each model by itself and all at once: one that fails does not hold up the others."""
    reports = [await ingest_flow(job), await assemble_flow(job)]
    labels = await asyncio.to_thread(_to_fill, job)
    async with cancellable(job), open_run_context(job):
        reports += await _derived(job, retry_failed)
        filled = await asyncio.gather(*(_filled(job, label, retry_failed) for label in labels))
        return [*reports, *(report for of_model in filled for report in of_model), *await _concluded(job)]


def _to_fill(job: Job) -> list[str]:
    """The models to fill in, configured ones and those of imported answers."""
    with Warehouse(job.warehouse).reader() as reader:
        imported = imported_models(job, open_scope(job, reader), reader)
    return list(dict.fromkeys([*(model.label for model in job.settings.models), *imported]))


@flow(name="fill", flow_run_name=run_name)
async def fill(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Sample and judge what one model lacks."""
    return [await sample_flow(job, retry_failed), await judge_flow(job, retry_failed)]


async def _filled(job: Job, label: str, retry_failed: bool) -> list[StageReport]:
    models = tuple(model for model in job.settings.models if model.label == label)
    of_model = job.model_copy(
        update={"settings": job.settings.model_copy(update={"models": models}), "named_models": (label,)}
    )
    try:
        return await fill(of_model, retry_failed)
    except Exception as error:  # noqa: BLE001 - told as this model's failure; the others go on
        _, line = explained(error)
        report = StageReport("fill", notes=[f"{label} failed"], warnings=[f"{label}: {line}"], has_failed=True)
        return [await told(job, report)]


async def _derived(job: Job, retry_failed: bool) -> list[StageReport]:
    """Other wordings of the rubric, where a judge asks for one."""
    return [await derive_flow(job, retry_failed)] if wanted_rubrics(job) else []


async def _concluded(job: Job) -> list[StageReport]:
    """Aggregate, select, say what is there, and write the report of it."""
    reports = [await aggregate_flow(job), await select_hard_flow(job, must_select=False), coverage_report(job)]
    await results_shown(job)
    return [*reports, await report_flow(job)] if job.settings.report.enabled else reports


def coverage_report(job: Job, stage: str = "evaluate") -> StageReport:
    """Whether what a stage was to do (or all stages) is there, to the configured bar."""
    report = StageReport("coverage")
    configured = {judge.label for judge in job.settings.judges}
    for covered in coverage(job):
        is_asked = covered.judge in configured if covered.judge else stage != "judge"
        if is_asked and covered.share < job.settings.coverage.min and (stage != "sample" or not covered.judge):
            by = f"verdicts of {covered.judge} on" if covered.judge else "responses of"
            causes = ", ".join(f"{count} {status}" for status, count in sorted(covered.failures.items()))
            report.is_below_bar = True
            report.warnings.append(
                f"{by} {covered.series}, trial {covered.trial}: {covered.done} of {covered.wanted} are there "
                f"({covered.share:.1%}, the bar is {job.settings.coverage.min:.1%}); {causes or 'the rest is missing'}"
            )
    if not job.is_quiet:
        for warning in report.warnings:
            say(f"  {warning}")
    return report
