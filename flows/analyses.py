"""One Prefect flow for each analysis with a command of its own; the work itself is in `tasks/`."""

from asyncio import to_thread
from collections import Counter
from collections.abc import Callable

from flows.recorded import call
from flows.stage_runs import batch, log_stage, numbered_parts, prefect_task, run_batches
from flows.stages import aggregate_flow, judge_missing
from flows.ui import recorded_flow
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.node_scores import measure
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES, ROUNDS
from tasks.analyses.review import REVIEW
from tasks.analyses.trees import grow, write_names
from tasks.config.job import Job
from tasks.judge.neighbours import STAGE as NEIGHBOURS
from tasks.judge.neighbours import ArrangedWork, judge_arrangement, missing_arrangements
from tasks.run.calls import Analysis, analyse_items
from tasks.run.writing import StageReport
from tasks.succession.estimate import next_look
from tasks.succession.sample import store_sample
from warehouse import Warehouse

ITEMS_A_BATCH = 1_000

analysis_batch = prefect_task(analyse_items)
neighbours_batch = prefect_task(judge_arrangement)


@recorded_flow("review")
async def review_flow(job: Job) -> list[StageReport]:
    """Have reviewers check the criteria without a review, then update the measures."""
    reports = await _analyse(job, REVIEW, "reviews")
    return await _update_measures(job, reports)


@recorded_flow("annotate")
async def annotate_flow(job: Job) -> list[StageReport]:
    """Label the tasks without labels, then update annotators' agreement and boards by label."""
    reports = await _analyse(job, ANNOTATION, "annotations")
    return await _update_measures(job, reports)


@recorded_flow("capabilities")
async def capabilities_flow(job: Job) -> list[StageReport]:
    """Describe the capability behind each criterion, build and name trees of capabilities, and
    score models on them.
    """
    reports = []
    for analysis, rows_name in ((PHRASES, "phrases"), (EMBEDDINGS, "vectors")):
        reports += await _analyse(job, analysis, rows_name)
        if any(report.skipped for report in reports):
            return reports  # names for a tree of incomplete data would be wasted calls
    reports += await _run_local(job, grow)
    for _ in range(ROUNDS):
        name_reports = await _analyse(job, NAMES, "names")
        if not name_reports:
            break
        reports += name_reports
        # Failed ones were retried in the first round.
        job = job.model_copy(update={"retry_failed": False})
    reports += await _run_local(job, write_names)
    return reports + await _run_local(job, measure)


@recorded_flow("neighbours")
async def neighbours_flow(job: Job) -> list[StageReport]:
    """Judge a sample of criteria one by one, in groups and in shuffled groups, and compare."""

    def plan() -> list[ArrangedWork]:
        with Warehouse(job.warehouse).reader() as reader:
            return missing_arrangements(job, reader)

    batches = []
    totals: Counter[str] = Counter()
    for arranged in await to_thread(plan):
        name = f"neighbours {arranged.judge_config.judge.label} {arranged.arrangement}"
        batches.append(batch(neighbours_batch, name, job, arranged))
        totals.update(row.model for row in arranged.criteria if row.is_missing)
    report = await run_batches(job, NEIGHBOURS, "verdicts", batches, totals)
    return await _update_measures(job, [report])


@recorded_flow("succeed")
async def succeed_flow(job: Job) -> list[StageReport]:
    """Have the new judge decide a sample of the old one's criteria, until it is large enough."""
    reports = []
    while True:
        sample = await to_thread(store_sample, job)
        report = await judge_missing(
            job, sample.missing_verdicts, "succeed", sampled=sample.criterion_keys
        )
        reports.append(report)
        larger = await to_thread(next_look, job, sample)
        if larger is None or report.skipped:
            return await _update_measures(job, reports)
        job = job.model_copy(update={"succession": larger})


async def _update_measures(job: Job, reports: list[StageReport]) -> list[StageReport]:
    """Update the measures if there are new rows, and return all reports."""
    if any(report.rows for report in reports):
        return [*reports, await call(aggregate_flow, job)]
    return reports


async def _analyse(job: Job, analysis: Analysis, rows_name: str) -> list[StageReport]:
    """Call the analysts for all missing items, in batches; no report if none is missing.

    `rows_name` is the plural of the rows, in messages.
    """
    row_ids_by_label = await to_thread(_prepare_analysis, job, analysis)
    if not any(row_ids_by_label.values()):
        return []
    batches = []
    for label, row_ids in row_ids_by_label.items():
        for number, part in numbered_parts(row_ids, ITEMS_A_BATCH):
            name = f"{analysis.stage} {label} {number}"
            batches.append(batch(analysis_batch, name, job, analysis, label, part))
    totals = {label: len(row_ids) for label, row_ids in row_ids_by_label.items()}
    report = await run_batches(job, analysis.stage, rows_name, batches, totals)
    # Coverage does not count these rows, so any failure of an analyst is below the bar.
    if report.failures:
        report.is_below_bar = True
    return [report]


def _prepare_analysis(job: Job, analysis: Analysis) -> dict[str, list[str]]:
    """Store changed configurations of analysts, and return the ids of the missing rows by
    analyst.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        changed_analysts = analysis.changed_analysts(job, reader)
        items_by_analyst = analysis.missing(job, reader)
    warehouse.write("analysts", changed_analysts)
    warehouse.publish()
    row_ids_by_label = {}
    for label, items in items_by_analyst.items():
        row_ids_by_label[label] = [item.row_id for item in items]
    return row_ids_by_label


async def _run_local(job: Job, work: Callable[[Job], StageReport]) -> list[StageReport]:
    """Do work without calls and return its report; no report if there was nothing to do."""
    report = await to_thread(work, job)
    if not report.notes:  # work that does something leaves a note
        return []
    return [await log_stage(job, report)]
