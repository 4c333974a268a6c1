"""The full pipeline, one line for each stage: a run, a night, and a backfill of all models."""

import asyncio
import time
from collections.abc import Sequence

from flows import stages
from flows.recorded import call, is_recorded
from flows.run.coverage_report import coverage_report, is_at_stop
from flows.run.outcomes import explained
from flows.stage_runs import log_stage
from flows.ui import recorded_flow, show_results
from tasks.config.job import Job
from tasks.judge.judge import missing_by_judge
from tasks.judge.panels import lacks_panel_verdicts
from tasks.run.missing_work import (
    imported_models,
    stored_comparisons,
    wanted_rubrics,
    wanted_tasks,
)
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tasks.sample import plan_samples
from tasks.stopping import conclude, look_at, next_block_of_job
from warehouse import Warehouse


@recorded_flow("evaluate")
async def evaluate(job: Job) -> list[StageReport]:
    """Run the full pipeline: each stage does only missing work."""
    async with open_run_context(job):  # one budget for sampling and judging
        reports = await _run_to_verdicts(job)
        return reports + await _finish(job, reports)


@recorded_flow("night")
async def night(job: Job) -> list[StageReport]:
    """Run one night: the full pipeline, the judges' control sets, and compaction if needed."""
    async with open_run_context(job):
        reports = await _run_to_verdicts(job)
        reports.append(await call(stages.drift_flow, job))
        reports += await _finish(job, reports)
    # The ledger can be compacted only after this run has closed it.
    reports.append(await call(stages.compact_flow, job, only_if_needed=True))
    return reports


@recorded_flow("sample-missing")
async def sample(job: Job) -> list[StageReport]:
    """Sample the missing responses, and compare coverage with the configured minimum."""
    report = await call(stages.sample_flow, job)
    return [report, coverage_report(job, "sample", [report])]


@recorded_flow("judge-missing")
async def judge(job: Job) -> list[StageReport]:
    """Judge the criteria without a verdict, and compare coverage with the configured minimum."""
    report = await call(stages.judge_flow, job)
    return [report, coverage_report(job, "judge", [report])]


@recorded_flow("backfill")
async def backfill(job: Job) -> list[StageReport]:
    """Fill in missing responses and verdicts, all models in parallel.

    A model that fails does not stop the others.
    """
    reports = await _prepare(job)
    with Warehouse(job.warehouse).reader() as reader:
        imported_labels = imported_models(job, wanted_tasks(job, reader), reader)
    labels = dict.fromkeys([*job.settings.model_labels, *imported_labels])
    async with open_run_context(job):
        reports += await _derive(job)
        block_reports = await _run_blocks(job)
        reports += block_reports
        if not _was_cut_short(block_reports):
            fills = [_fill_model(job, label) for label in labels]
            for model_reports in await asyncio.gather(*fills):
                reports += model_reports
        return reports + await _finish(job, reports)


@recorded_flow("fill")
async def fill(job: Job) -> list[StageReport]:
    """Sample and judge the missing work of one model."""
    return [await call(stages.sample_flow, job), await call(stages.judge_flow, job)]


async def _fill_model(job: Job, label: str) -> list[StageReport]:
    """Fill in one model; if it fails, return a report of the failure, so that the others go on."""
    models = tuple(model for model in job.settings.models if model.label == label)
    model_job = job.with_settings(models=models).model_copy(update={"named_models": (label,)})
    try:
        return await call(fill, model_job)
    except Exception as error:  # noqa: BLE001 - reported as a failure
        report = StageReport(
            "fill",
            notes=[f"{label} failed"],
            warnings=[f"{label}: {explained(error).line}"],
            has_failed=True,
        )
        return [await log_stage(job, report)]


async def _run_to_verdicts(job: Job) -> list[StageReport]:
    """Run all stages up to the verdicts, and return their reports."""
    reports = await _prepare(job)
    block_reports = await _run_blocks(job)
    reports += block_reports
    if not _was_cut_short(block_reports):
        reports += await _run_calls(job)
    return reports


async def _prepare(job: Job) -> list[StageReport]:
    return [await call(stages.ingest_flow, job), await call(stages.assemble_flow, job)]


async def _run_calls(job: Job) -> list[StageReport]:
    """Run the stages that make calls, and return their reports."""
    reports = [await call(stages.sample_flow, job)]
    reports += await _derive(job)
    reports.append(await call(stages.judge_flow, job))
    return reports


async def _derive(job: Job) -> list[StageReport]:
    """Rewrite the rubrics, if a judge uses rewritten ones."""
    if not wanted_rubrics(job):
        return []
    return [await call(stages.derive_flow, job)]


async def _run_blocks(job: Job) -> list[StageReport]:
    """Evaluate a job with `stopping` block by block until every comparison is settled.

    Only work of the comparisons is done here: the stages that follow do the rest, such as failed
    work of earlier runs and models that are not compared.
    """
    if job.settings.stopping is None:
        return []
    started_s = time.monotonic()
    reports = []
    n_looks = 0
    n_blocks = 0
    comparisons = await asyncio.to_thread(stored_comparisons, job)
    block = next_block_of_job(job, comparisons)
    while block is not None:
        for block_job in block.jobs(job):
            if await asyncio.to_thread(_has_missing_work, block_job):
                reports += await _run_calls(block_job)
        if _was_cut_short(reports):
            break
        n_looks += await asyncio.to_thread(look_at, job, comparisons, block)
        n_blocks += 1
        comparisons = await asyncio.to_thread(stored_comparisons, job)
        block = next_block_of_job(job, comparisons, block.number)
    notes = await asyncio.to_thread(conclude, job, comparisons, n_looks, n_blocks)
    report = StageReport("stopping", rows=n_looks, notes=notes)
    return [*reports, await log_stage(job, report, started_s)]


def _has_missing_work(job: Job) -> bool:
    """Return whether a job lacks responses or verdicts, or votes of panels, which need no call."""
    if any(plan_samples(job).values()):
        return True
    if any(responses for _, responses in missing_by_judge(job)):
        return True
    with Warehouse(job.warehouse).reader() as reader:
        return lacks_panel_verdicts(job, reader)


def _was_cut_short(reports: Sequence[StageReport]) -> bool:
    """Return whether the budget, the time or an outage ended the work of a stage."""
    return is_at_stop(reports) or any(report.skipped for report in reports)


async def _finish(job: Job, earlier_reports: list[StageReport]) -> list[StageReport]:
    """Aggregate, select the hard subset, measure coverage, and write the report.

    A limit or a stop at the budget or the stop time leaves out tasks, so no hard subset is selected
    then.
    """
    reports = [await call(stages.aggregate_flow, job)]
    if job.limit is None and not is_at_stop(earlier_reports):
        reports.append(await call(stages.select_hard_flow, job, must_select=False))
    reports.append(coverage_report(job, "evaluate", earlier_reports))
    if is_recorded():
        await show_results(job)
    if job.settings.report.enabled:
        reports.append(await call(stages.report_flow, job))
    return reports
