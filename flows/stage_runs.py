"""How a stage runs: as one step, or in batches of calls, each a Prefect task; and its report."""

import time
from asyncio import Semaphore, TaskGroup, to_thread
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, TypeVar

from prefect import State, Task, task
from prefect.cache_policies import NO_CACHE

from flows import ui
from flows.recorded import Parameters, call, is_recorded
from tasks.check import check
from tasks.config.job import Job
from tasks.console import notice, progress, working
from tasks.rules.errors import PipelineError
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import AT_BUDGET, STAGES, StageReport
from warehouse import WarehouseError

Key = TypeVar("Key")
"""Identifies a call to make: the cell of a response, or the id of a row."""
Batch = Callable[[RunContext], Awaitable[StageReport]]
"""A Prefect task with all its arguments but the context of the run, which it gets when it runs."""
_PUBLISH_LEAST_S = 30.0
_PUBLISH_MOST_S = 300.0
"""The bounds of the time between two publications (see `Warehouse.publish_if_due`)."""
_BATCHES_AT_ONCE = 4


async def run_step(job: Job, step: str, work: Awaitable[StageReport]) -> StageReport:
    """Do the work of a stage, shown as a step in progress, and print its report."""
    started_s = time.monotonic()
    with working(step, is_quiet=job.is_quiet):
        report = await work
    return await log_stage(job, report, started_s)


async def log_stage(job: Job, report: StageReport, started_s: float | None = None) -> StageReport:
    """Print the report of a stage and its warnings, and show them in Prefect if recorded."""
    if started_s is not None:
        report.seconds = time.monotonic() - started_s
    line = report.line
    labels = job.named_models or ()
    # Several models may be sampled and judged at the same time.
    if report.stage in {"sample", "judge"} and len(labels) == 1:
        line = line.replace(report.stage, f"{report.stage} {labels[0]}", 1)
    if not job.is_quiet:
        notice(line)
        for warning in report.warnings:
            # The run prints this one once, at its end.
            if not warning.startswith(AT_BUDGET):
                notice(f"  {warning}")
    if is_recorded():
        await ui.show_stage(job, report, line)
    return report


# Batches


def _may_succeed(_task: object, _run: object, state: State[Any]) -> bool:
    """Return whether retrying a failed batch may help.

    A failed call is not a failed batch: it is a row, which the gateway or the next run retries.
    Calls in the ledger are not repeated.
    """
    return not isinstance(state.data, PipelineError | WarehouseError)


prefect_task = task(cache_policy=NO_CACHE, retries=1, retry_condition_fn=_may_succeed)
"""Makes a Prefect task of a function that works on a batch."""


def batch(
    work: Task[Concatenate[Job, RunContext, Parameters], Any],
    name: str,
    job: Job,
    *args: Parameters.args,
    **kwargs: Parameters.kwargs,
) -> Batch:
    """Return a batch to run later, under this name in Prefect's UI."""
    named_work = work.with_options(task_run_name=name)
    return lambda context: call(named_work, job, context, *args, **kwargs)


def numbered_parts(keys: list[Key], size: int) -> Iterator[tuple[int, list[Key]]]:
    """Yield the keys of calls in parts of at most `size`, numbered from 1."""
    for number, start in enumerate(range(0, len(keys), size), start=1):
        yield number, keys[start : start + size]


async def run_batches(
    job: Job,
    stage: str,
    rows_name: str,
    batches: Sequence[Batch],
    totals: Mapping[str, int],
    first_batches: Sequence[Batch] = (),
) -> StageReport:
    """Run the batches of a stage that makes calls, and check the new rows.

    Args:
        job: the job of the run.
        stage: the name of the stage.
        rows_name: the plural of the stage's rows, in messages.
        batches: run several at a time.
        totals: the rows to make by model, for the progress.
        first_batches: run one by one, before the others; they make no rows, but submit calls to a
            provider's batch service, and collect the replies for `batches`.
    """
    started_s = time.monotonic()
    report = StageReport(stage)
    with progress(stage, totals, is_quiet=job.is_quiet) as tallies:
        async with (
            open_run_context(job, STAGES[stage].calls) as context,
            ui.progress_shown(stage, tallies),
        ):
            if any(totals.values()):
                await context.get_ready()
            if first_batches:  # they may take a day, and readers see the run meanwhile
                await to_thread(context.warehouse.publish)
            for first_batch in first_batches:
                report.add_messages(await first_batch(context))
            await _run_all(context, batches, report)
            context.add_notices(report)
    with working(f"publishing and checking {rows_name}", is_quiet=job.is_quiet):
        # The context may be closed by now; its warehouse can still publish.
        await to_thread(context.warehouse.publish)
        findings = StageReport("check")
        if report.rows:
            findings = await to_thread(check, job, (stage,))
    _add_notes(report, rows_name, findings)
    return await log_stage(job, report, started_s)


def _add_notes(report: StageReport, rows_name: str, findings: StageReport) -> None:
    """Add what was made and what was not, and the findings of the checks."""
    if report.rows:
        report.notes.append(f"{report.rows} {rows_name} made")
    elif report.skipped == 0:
        report.notes.append(f"nothing to {report.stage}, no model call made")
    if report.skipped:
        # Incomplete rows follow from the skipped calls, which have a line of their own.
        findings.warnings.clear()
    report.add_messages(findings)
    if report.skipped:
        cause = f" ({AT_BUDGET})" if report.is_at_budget else ""
        report.notes.append(f"{report.skipped} {rows_name} not requested{cause}")


async def _run_all(context: RunContext, batches: Sequence[Batch], report: StageReport) -> None:
    slots = Semaphore(_BATCHES_AT_ONCE)

    async def run(run_batch: Batch) -> None:
        async with slots:
            report.add(await run_batch(context))
        await to_thread(context.warehouse.publish_if_due, _PUBLISH_LEAST_S, _PUBLISH_MOST_S)

    async with TaskGroup() as group:
        for run_batch in batches:
            group.create_task(run(run_batch))
