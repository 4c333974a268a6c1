"""The full pipeline, one line for each stage: a run, a night, and a backfill model by model."""

import asyncio
import time
from collections.abc import Iterable, Sequence

from prefect import flow

from flows import stages
from flows.recorded import call, is_recorded, reported, run_name, show_results
from flows.run.outcomes import explained
from flows.stages import log_stage
from flows.work import coverage_report, has_calls
from tasks.config.job import Job
from tasks.run.missing_work import (
    imported_models,
    stored_comparisons,
    wanted_rubrics,
    wanted_tasks,
)
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tasks.stopping import conclude, look_at, upcoming_block
from warehouse import Warehouse


@flow(
    name="evaluate",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def evaluate(job: Job) -> list[StageReport]:
    """Run the full pipeline: each stage does only missing work."""
    async with open_run_context(job):  # one budget for sampling and judging
        reports = await _run_to_verdicts(job)
        return [*reports, *await _finish(job, reports)]


@flow(
    name="night",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def night(job: Job) -> list[StageReport]:
    """Run one night: the full pipeline, the control sets of the judges, and compaction if there are
    many files.
    """
    async with open_run_context(job):
        reports = [*await _run_to_verdicts(job), await call(stages.drift_flow, job)]
        reports += await _finish(job, reports)
    # The ledger can be compacted only after this run has closed it.
    return [*reports, await call(stages.compact_flow, job, only_if_needed=True)]


@flow(
    name="sample-missing",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def sample(job: Job) -> list[StageReport]:
    """Sample the missing responses, and compare coverage with the configured minimum."""
    report = await call(stages.sample_flow, job)
    return [report, coverage_report(job, "sample", [report])]


@flow(
    name="judge-missing",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def judge(job: Job) -> list[StageReport]:
    """Judge the criteria without a verdict, and compare coverage with the configured minimum."""
    report = await call(stages.judge_flow, job)
    return [report, coverage_report(job, "judge", [report])]


@flow(
    name="backfill",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def backfill(job: Job) -> list[StageReport]:
    """Fill in missing responses and verdicts, all models in parallel: one that fails does not stop
    the others.
    """
    reports = [await call(stages.ingest_flow, job), await call(stages.assemble_flow, job)]
    with Warehouse(job.warehouse).reader() as reader:
        imported = imported_models(job, wanted_tasks(job, reader), reader)
    labels = dict.fromkeys([*(model.label for model in job.settings.models), *imported])
    async with open_run_context(job):
        reports += await _derive(job)
        reports += (blocks := await _in_blocks(job))
        if not _was_cut_short(blocks):
            filled = await asyncio.gather(*(_fill_model(job, label) for label in labels))
            reports += [report for of_model in filled for report in of_model]
        return [*reports, *await _finish(job, reports)]


@flow(
    name="fill",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def fill(job: Job) -> list[StageReport]:
    """Sample and judge the missing work of one model."""
    return [await call(stages.sample_flow, job), await call(stages.judge_flow, job)]


async def _fill_model(job: Job, label: str) -> list[StageReport]:
    models = tuple(model for model in job.settings.models if model.label == label)
    try:
        return await call(
            fill, job.with_settings(models=models).model_copy(update={"named_models": (label,)})
        )
    except Exception as error:  # noqa: BLE001 - reported as the failure of this model; the others go on
        _, line = explained(error)
        report = StageReport(
            "fill",
            notes=[f"{label} failed"],
            warnings=[f"{label}: {line}"],
            has_failed=True,
        )
        return [await log_stage(job, report)]


async def _run_to_verdicts(job: Job) -> list[StageReport]:
    """Run all stages up to the verdicts, and return their reports."""
    reports = [await call(stages.ingest_flow, job), await call(stages.assemble_flow, job)]
    blocks = await _in_blocks(job)
    return [*reports, *blocks, *([] if _was_cut_short(blocks) else await _run_calls(job))]


async def _run_calls(job: Job) -> list[StageReport]:
    """Run the stages that make calls, and return their reports."""
    return [
        await call(stages.sample_flow, job),
        *await _derive(job),
        await call(stages.judge_flow, job),
    ]


async def _in_blocks(job: Job) -> list[StageReport]:
    """Evaluate a job with `stopping` block by block until every comparison is settled, and return
    the reports.

    Failed work of earlier runs and models that are not compared is done as in any run.
    """
    if job.settings.stopping is None:
        return []
    started_s = time.monotonic()
    reports = list[StageReport]()
    n_looks = n_blocks = after = 0
    comparisons = await asyncio.to_thread(stored_comparisons, job)
    while (block := upcoming_block(job, comparisons, after)) is not None:
        for narrowed in block.jobs(job):
            if await asyncio.to_thread(has_calls, narrowed):
                reports += await _run_calls(narrowed)
        if _was_cut_short(reports):
            break
        n_looks += await asyncio.to_thread(look_at, job, comparisons, block)
        n_blocks = n_blocks + 1
        after = block.number
        comparisons = await asyncio.to_thread(stored_comparisons, job)
    notes = await asyncio.to_thread(conclude, job, comparisons, n_looks, n_blocks)
    report = StageReport("stopping", rows=n_looks, notes=notes)
    return [*reports, await log_stage(job, report, started_s)]


def _was_cut_short(reports: Sequence[StageReport]) -> bool:
    """Return whether the budget, the time or an outage ended the work of a stage."""
    return _is_at_stop(reports) or any(each.skipped for each in reports)


def _is_at_stop(reports: Iterable[StageReport]) -> bool:
    """Return whether the budget or the stop time ended the work of a stage."""
    return any(each.is_at_budget or each.is_at_stop_time for each in reports)


async def _derive(job: Job) -> list[StageReport]:
    """Rewrite the rubrics, if a judge uses rewritten ones."""
    return [await call(stages.derive_flow, job)] if wanted_rubrics(job) else []


async def _finish(job: Job, before: list[StageReport]) -> list[StageReport]:
    """Aggregate, select the hard subset, measure coverage, and write the report.

    A limit or a stop at the budget or the stop time leaves out tasks, so no hard subset is selected
    then.
    """
    reports = [await call(stages.aggregate_flow, job)]
    if job.limit is None and not _is_at_stop(before):
        reports.append(await call(stages.select_hard_flow, job, must_select=False))
    reports.append(coverage_report(job, "evaluate", before))
    if is_recorded():
        await show_results(job)
    return (
        [*reports, await call(stages.report_flow, job)] if job.settings.report.enabled else reports
    )
