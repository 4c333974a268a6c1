"""The analyses that have commands of their own: labels of tasks, reviews of criteria, and capabilities."""

import asyncio
from collections import Counter
from collections.abc import Callable

from prefect import flow

from flows.recorded import batch, call, reported, run_name
from flows.stages import ITEMS_A_BATCH, aggregate_flow, as_batch, in_batches, log_stage, run_batches
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.node_scores import measure
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES, ROUNDS
from tasks.analyses.review import REVIEW
from tasks.analyses.trees import grow, write_names
from tasks.config.job import Job
from tasks.judge.neighbours import STAGE, Arranged, judge_arrangement, missing
from tasks.run.calls import Analysis, Item, analyse_items
from tasks.run.writing import StageReport
from warehouse import Warehouse

ask_batch, neighbours_batch = as_batch(analyse_items), as_batch(judge_arrangement)


@flow(name="review", flow_run_name=run_name, validate_parameters=False)
@reported
async def review_flow(job: Job) -> list[StageReport]:
    """Have reviewers check the criteria without a review, then update the measures."""
    return await _measured(job, await _ask(job, REVIEW, "reviews"))


@flow(name="annotate", flow_run_name=run_name, validate_parameters=False)
@reported
async def annotate_flow(job: Job) -> list[StageReport]:
    """Label the tasks without labels, then measure the agreement of annotators and the leaderboards by label."""
    return await _measured(job, await _ask(job, ANNOTATION, "annotations"))


@flow(name="capabilities", flow_run_name=run_name, validate_parameters=False)
@reported
async def capabilities_flow(job: Job) -> list[StageReport]:
    """Describe the capability behind each criterion, group capabilities in trees, name the nodes, and score models."""
    reports: list[StageReport] = []
    for analysis, what in ((PHRASES, "phrases"), (EMBEDDINGS, "vectors")):
        reports += await _ask(job, analysis, what)
        if any(report.skipped for report in reports):
            return reports  # names for a tree of incomplete data would be wasted calls
    reports += await _run_local(job, grow)
    for _ in range(ROUNDS):
        named = await _ask(job, NAMES, "names")
        reports += named
        if not named:
            break
        job = job.model_copy(update={"retry_failed": False})  # failed ones were retried in the first round
    return [*reports, *await _run_local(job, write_names), *await _run_local(job, measure)]


@flow(name="neighbours", flow_run_name=run_name, validate_parameters=False)
@reported
async def neighbours_flow(job: Job) -> list[StageReport]:
    """Judge a sample one by one, in groups, and in shuffled groups, then measure the differences."""

    def plan() -> list[Arranged]:
        with Warehouse(job.warehouse).reader() as reader:
            return missing(job, reader)

    arranged = await asyncio.to_thread(plan)
    batches = [
        batch(neighbours_batch, f"neighbours {each.judge_config.judge.label} {each.arrangement}", job, each)
        for each in arranged
    ]
    totals = Counter(row.model for each in arranged for row in each.criteria if row.is_missing)
    report = await run_batches(job, STAGE, "verdicts", batches, totals)
    return await _measured(job, [report])


async def _measured(job: Job, reports: list[StageReport]) -> list[StageReport]:
    """Update the measures if there are new rows, and return all reports, that of the update included."""
    return [*reports, await call(aggregate_flow, job)] if any(report.rows for report in reports) else reports


async def _ask(job: Job, analysis: Analysis, what: str) -> list[StageReport]:
    """Call the analysts for all missing items, in batches, and return the report; no report if nothing is missing.

    `what` is the plural noun for the rows in messages.
    """
    warehouse = Warehouse(job.warehouse)

    def to_call_for() -> dict[str, list[Item]]:
        with warehouse.reader() as reader:
            changed = analysis.changed_analysts(job, reader)
            items = analysis.missing(job, reader)
        warehouse.write("analysts", changed)
        warehouse.publish()
        return items

    items = await asyncio.to_thread(to_call_for)
    if not any(items.values()):
        return []
    batches = [
        batch(ask_batch, f"{analysis.stage} {label} {number}", job, analysis, label, some)
        for label, of_analyst in items.items()
        for number, some in enumerate(in_batches([item.row_id for item in of_analyst], ITEMS_A_BATCH), start=1)
    ]
    totals = {label: len(of_analyst) for label, of_analyst in items.items()}
    report = await run_batches(job, analysis.stage, what, batches, totals)
    report.is_below_bar |= bool(report.failures)
    return [report]


async def _run_local(job: Job, work: Callable[[Job], StageReport]) -> list[StageReport]:
    """Do work without calls and return its report; no report if there was nothing to do."""
    report = await asyncio.to_thread(work, job)
    return [await log_stage(job, report)] if report.notes else []
