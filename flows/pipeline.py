"""The full pipeline, one line for each stage: a run, a night, and a backfill model by model."""

import asyncio
from collections.abc import Sequence

from flows.job_flow import job_flow
from flows.run.errors import explained
from flows.run.outcomes import no_call_succeeded
from flows.run.recording import is_recorded
from flows.stage_log import log_stage
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
from flows.stopping.blocks import evaluate_in_blocks
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.text.numbers import coverage_text
from tasks.run.coverage import coverage
from tasks.run.missing_work import imported_models, wanted_rubrics, wanted_tasks
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from warehouse import Warehouse


@job_flow("evaluate")
async def evaluate(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Run the full pipeline: each stage does only what is missing."""
    async with open_run_context(job, retry_failed=retry_failed):  # one budget for sampling and judging
        reports = await _evaluated(job, retry_failed)
        return [*reports, *await _concluded(job, reports)]


@job_flow("night")
async def night(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Run one night: the full pipeline, the judges' control sets, and compaction if there are many files."""
    async with open_run_context(job, retry_failed=retry_failed):
        reports = [*await _evaluated(job, retry_failed), await drift_flow(job)]
        reports += await _concluded(job, reports)
    # The ledger's file can be compacted when this run does not write to it any more.
    return [*reports, await compact_flow(job, only_if_needed=True)]


@job_flow("sample-missing")
async def sample(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Sample the missing responses, and compare what is there with the coverage bar."""
    report = await sample_flow(job, retry_failed)
    return [report, coverage_report(job, "sample", is_quiet=no_call_succeeded([report]))]


@job_flow("judge-missing")
async def judge(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Judge the missing verdicts, and compare what is there with the coverage bar."""
    report = await judge_flow(job, retry_failed)
    return [report, coverage_report(job, "judge", is_quiet=no_call_succeeded([report]))]


@job_flow("backfill")
async def backfill(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Fill in what is missing, all models at the same time: one that fails does not stop the others."""
    reports = [await ingest_flow(job), await assemble_flow(job)]
    labels = await asyncio.to_thread(_to_fill, job)
    async with open_run_context(job, retry_failed=retry_failed):
        reports += await _derived(job, retry_failed)
        blocks, is_complete = await _in_blocks(job, retry_failed)
        reports += blocks
        if not is_complete:
            return [*reports, *await _concluded(job, reports)]
        filled = await asyncio.gather(*(_filled(job, label, retry_failed) for label in labels))
        reports += [report for of_model in filled for report in of_model]
        return [*reports, *await _concluded(job, reports)]


def _to_fill(job: Job) -> list[str]:
    """The models to fill in, configured ones and those of imported answers."""
    with Warehouse(job.warehouse).reader() as reader:
        imported = imported_models(job, wanted_tasks(job, reader), reader)
    return list(dict.fromkeys([*(model.label for model in job.settings.models), *imported]))


@job_flow("fill")
async def fill(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Sample and judge what is missing of one model."""
    return [await sample_flow(job, retry_failed), await judge_flow(job, retry_failed)]


async def _filled(job: Job, label: str, retry_failed: bool) -> list[StageReport]:
    models = tuple(model for model in job.settings.models if model.label == label)
    of_model = job.model_copy(
        update={"settings": job.settings.model_copy(update={"models": models}), "named_models": (label,)}
    )
    try:
        return await fill(of_model, retry_failed)
    except Exception as error:  # noqa: BLE001 - reported as the failure of this model; the others go on
        _, line = explained(error)
        report = StageReport("fill", notes=[f"{label} failed"], warnings=[f"{label}: {line}"], has_failed=True)
        return [await log_stage(job, report)]


async def _evaluated(job: Job, retry_failed: bool) -> list[StageReport]:
    """All stages up to the verdicts."""
    reports = [await ingest_flow(job), await assemble_flow(job)]
    blocks, is_complete = await _in_blocks(job, retry_failed)
    reports += blocks
    if not is_complete:
        return reports
    return [
        *reports,
        await sample_flow(job, retry_failed),
        *await _derived(job, retry_failed),
        await judge_flow(job, retry_failed),
    ]


async def _in_blocks(job: Job, retry_failed: bool) -> tuple[list[StageReport], bool]:
    """Evaluate block by block where comparisons are to be settled, and whether they were before anything stopped it.

    What is left then, failed work of earlier runs and models that are not compared, is done as in any run.
    """
    if job.settings.stopping is None:
        return [], True

    async def evaluate(narrowed: Job) -> list[StageReport]:
        return [
            await sample_flow(narrowed, retry_failed),
            *await _derived(narrowed, retry_failed),
            await judge_flow(narrowed, retry_failed),
        ]

    done = await evaluate_in_blocks(job, evaluate, retry_failed=retry_failed)
    return done.reports, done.is_complete


async def _derived(job: Job, retry_failed: bool) -> list[StageReport]:
    """Rewritten rubrics, if a judge uses one."""
    return [await derive_flow(job, retry_failed)] if wanted_rubrics(job) else []


async def _concluded(job: Job, before: Sequence[StageReport]) -> list[StageReport]:
    """Aggregate, select the hard subset, measure coverage, and write the report."""
    reports = [await aggregate_flow(job), await select_hard_flow(job, must_select=False)]
    reports.append(coverage_report(job, is_quiet=no_call_succeeded(before)))
    if is_recorded():
        from flows.recorded.result_tables import results_shown

        await results_shown(job)
    return [*reports, await report_flow(job)] if job.settings.report.enabled else reports


def coverage_report(job: Job, stage: str = "evaluate", *, is_quiet: bool = False) -> StageReport:
    """Compare what is stored of a stage's work (or of all stages') with the configured bar.

    Where no call succeeded, the cause is said and not what follows from it (`is_quiet`).
    """
    report = StageReport("coverage")
    configured = {judge.label for judge in job.settings.judges}
    matrix = coverage(job)
    absent = {model.label for model in job.settings.models if model.is_imported} - {c.model for c in matrix if c.due}
    report.is_below_bar = bool(absent)
    report.warnings += [
        f"{label}: nothing is imported under this label; `prbench import responses`" for label in absent
    ]
    for covered in matrix:
        is_asked = covered.judge in configured if covered.judge else stage != "judge"
        if is_asked and covered.due_share < job.settings.coverage.min and (stage != "sample" or not covered.judge):
            by = f"verdicts of {covered.judge} on" if covered.judge else "responses of"
            causes = ", ".join(f"{count} {status}" for status, count in sorted(covered.failures.items()))
            report.is_below_bar = True
            report.warnings.append(
                f"{by} {covered.model_name}, trial {covered.trial}: {covered.done} of {covered.due} are done "
                f"({coverage_text(covered.due_share)}, the bar is {job.settings.coverage.min:.1%}); "
                f"{causes or 'the rest is missing'}"
            )
    if not (job.is_quiet or is_quiet):
        for warning in report.warnings:
            notice(f"  {warning}")
    return report
