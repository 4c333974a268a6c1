"""One Prefect flow for each stage and each analysis: their work in `tasks/`, split into Prefect
tasks and reported.
"""

import time
from asyncio import Semaphore, TaskGroup, to_thread
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import accumulate, count, groupby
from typing import Any, Concatenate

from prefect import Task, flow, task
from prefect.cache_policies import NO_CACHE

from flows import recorded
from flows.recorded import Batch, batch, call, is_recorded, may_pass, reported, run_name
from flows.report import is_up_to_date, whole_of, write_report
from flows.run.outcomes import explained
from tasks.aggregate import aggregate
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.node_scores import measure
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES, ROUNDS
from tasks.analyses.review import REVIEW
from tasks.analyses.trees import grow, write_names
from tasks.assemble import assemble
from tasks.check import check
from tasks.config.job import Job
from tasks.console import notice, progress, working
from tasks.drift import judge_control_set
from tasks.hard_subset.select import select_hard
from tasks.ingest import ingest_and_check
from tasks.judge.judge import judge_by_provider_batches, judge_responses, plan_verdicts
from tasks.judge.neighbours import STAGE, Arranged, judge_arrangement
from tasks.judge.neighbours import missing as missing_arrangements
from tasks.judge.rubric_variants import derive
from tasks.maintain.upkeep import tidy
from tasks.run.calls import Analysis, analyse_items
from tasks.run.coverage_rules import store_coverage_rules
from tasks.run.missing_work import MissingVerdicts
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import AT_BUDGET, STAGES, StageReport
from tasks.sample import plan_samples, sample_cells
from warehouse import Warehouse

_PUBLISH_LEAST_S = 30.0
_PUBLISH_MOST_S = 300.0
"""Shortest and longest time between two publications: a fast publication is repeated sooner."""
SAMPLES_A_BATCH = 200
VERDICTS_A_BATCH = 1_000
ITEMS_A_BATCH = 1_000

as_batch = task(
    cache_policy=NO_CACHE,
    retries=1,
    retry_condition_fn=may_pass,
)
"""Makes a Prefect task of a function that works on a batch."""
sample_batch = as_batch(sample_cells)
judge_batch = as_batch(judge_responses)
ask_batch = as_batch(analyse_items)
neighbours_batch = as_batch(judge_arrangement)
provider_batches = task(cache_policy=NO_CACHE)(judge_by_provider_batches)


async def run_batches(
    job: Job,
    stage: str,
    what: str,
    batches: Sequence[Batch],
    totals: Mapping[str, int],
    first: Sequence[Batch] = (),
) -> StageReport:
    """Run the batches of a stage that makes calls, and check the new rows.

    `what` is the plural of the stage's rows, `totals` are the calls by model; the batches in
    `first` run one by one, before the others.
    """
    started_s = time.monotonic()
    report = StageReport(stage)
    with progress(stage, totals, is_quiet=job.is_quiet) as tallies:
        async with (
            open_run_context(job, STAGES[stage].calls) as context,
            recorded.progress_shown(stage, tallies),
        ):
            if tallies:
                await context.ready()
            for each in first:
                report.add_messages(await each(context))
            await _run_all(context, batches, report)
            context.add_notices(report)
    with working(f"publishing and checking {what}", is_quiet=job.is_quiet):
        await to_thread(context.warehouse.publish)
        findings = await to_thread(check, job, (stage,)) if report.rows else StageReport("check")
    if report.rows:
        report.notes.append(f"{report.rows} {what} made")
        if report.skipped:
            # That the responses in hand lack verdicts is a consequence; the cause has a line.
            findings.warnings.clear()
        report.add_messages(findings)
    elif report.skipped == 0:
        report.notes.append(f"nothing to {stage}, no model call made")
    if report.skipped:
        cause = f" ({AT_BUDGET})" if report.is_at_budget else ""
        report.notes.append(f"{report.skipped} {what} not called for{cause}")
    return await log_stage(job, report, started_s)


async def _run_all(context: RunContext, batches: Sequence[Batch], report: StageReport) -> None:
    slots = Semaphore(4)

    async def run(each: Batch) -> None:
        async with slots:
            report.add(await each(context))
        await to_thread(context.warehouse.publish_if_due, _PUBLISH_LEAST_S, _PUBLISH_MOST_S)

    async with TaskGroup() as group:
        for each in batches:
            group.create_task(run(each))


async def _run_by_label(
    job: Job,
    stage: str,
    what: str,
    work: Task[Concatenate[Job, RunContext, ...], Any],
    items: Mapping[str, Sequence[Any]],
    size: int,
    *given: Any,
) -> StageReport:
    """Run a stage on cells or items by label, in batches of at most `size` with the same label."""
    batches = [
        batch(
            work,
            f"{stage} {label} {number}",
            job,
            *given,
            label,
            list(of_label[start : start + size]),
        )
        for label, of_label in items.items()
        for number, start in enumerate(range(0, len(of_label), size), start=1)
    ]
    return await run_batches(
        job, stage, what, batches, {label: len(of_label) for label, of_label in items.items()}
    )


def _response_batches(responses: Sequence[MissingVerdicts]) -> list[list[str]]:
    """Group the ids of whole responses into batches of about a thousand verdicts."""
    ends = accumulate(each.n_criteria for each in responses)
    numbered = groupby(
        zip(ends, responses, strict=True), key=lambda pair: (pair[0] - 1) // VERDICTS_A_BATCH
    )
    return [[each.response_id for _, each in pairs] for _, pairs in numbered]


async def log_stage(job: Job, report: StageReport, started_s: float | None = None) -> StageReport:
    """Print the report of a stage, one line and one for each warning, and show it in Prefect if
    recorded.
    """
    if started_s is not None:
        report.seconds = time.monotonic() - started_s
    line = report.line
    labels = job.named_models or ()
    if (
        report.stage in {"sample", "judge"} and len(labels) == 1
    ):  # several stages may run at the same time
        line = line.replace(report.stage, f"{report.stage} {labels[0]}", 1)
    if not job.is_quiet:
        notice(line)
        for warning in report.warnings:
            # The end of the run has that line.
            if not warning.startswith(AT_BUDGET):
                notice(f"  {warning}")
    if is_recorded():
        await recorded.show_stage(job, report, line)
    return report


async def _stage(job: Job, step: str, work: Awaitable[StageReport]) -> StageReport:
    """Do the work of a stage, shown as a step in progress, and print its report."""
    started_s = time.monotonic()
    with working(step, is_quiet=job.is_quiet):
        report = await work
    return await log_stage(job, report, started_s)


@flow(
    name="ingest",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def ingest_flow(job: Job) -> StageReport:
    """Read the data set and check it; tasks that break an invariant are quarantined."""
    return await _stage(job, "loading the data set", to_thread(ingest_and_check, job))


@flow(
    name="assemble",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def assemble_flow(job: Job) -> StageReport:
    """Build the conversations of the admitted tasks."""
    return await _stage(job, "building conversations", to_thread(assemble, job))


@flow(
    name="sample",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def sample_flow(job: Job) -> StageReport:
    """Sample the responses that are missing, in batches."""
    # A killed run leaves a vintage that must not count as complete.
    await to_thread(store_coverage_rules, job)
    cells = await to_thread(plan_samples, job)
    return await _run_by_label(job, "sample", "responses", sample_batch, cells, SAMPLES_A_BATCH)


@flow(
    name="derive",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def derive_flow(job: Job) -> StageReport:
    """Rewrite the criteria for judges that use another rubric than the original one."""
    return await _stage(job, "rewriting criteria", derive(job))


@flow(
    name="judge",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def judge_flow(job: Job) -> StageReport:
    """Judge the criteria without a verdict, in batches of whole responses."""
    missing = await to_thread(plan_verdicts, job)
    index = count()
    batches = [
        batch(
            judge_batch,
            f"judge by {config.judge.label} {number}",
            job,
            config,
            some,
            batch_index=next(index),
        )
        for config, responses in missing
        for number, some in enumerate(_response_batches(responses), start=1)
    ]
    first = [
        batch(
            provider_batches,
            f"batches of {config.judge.label}",
            job,
            config,
            [each.response_id for each in every],
        )
        for config, every in missing
        if config.judge.mode == "batch" and every
    ]
    totals: Counter[str] = Counter()
    for each in (each for _, responses in missing for each in responses):
        totals[each.model] += each.n_criteria
    return await run_batches(job, "judge", "verdicts", batches, totals, first)


@flow(
    name="aggregate",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def aggregate_flow(job: Job) -> StageReport:
    """Compute scores, leaderboard and intervals."""
    return await _stage(job, "computing scores", to_thread(aggregate, job))


def _select_hard(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field; if one is new, compute the intervals of its
    leaderboard.
    """
    report = select_hard(job, must_select=must_select)
    if report.rows:
        aggregate(job)
    return report


@flow(
    name="select-hard",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def select_hard_flow(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field."""
    return await _stage(job, "selecting hard tasks", to_thread(_select_hard, job, must_select))


@flow(
    name="check",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def check_flow(job: Job) -> StageReport:
    """Run all data-quality suites on the stored data."""
    return await _stage(job, "checking data", to_thread(check, job))


@flow(
    name="drift",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def drift_flow(job: Job) -> StageReport:
    """Judge the control sets again, and choose one for each judge without one."""
    return await _stage(job, "judging control sets", judge_control_set(job))


def _write_report(job: Job) -> StageReport:
    """Write the report; one that cannot be written fails this stage only."""
    if is_up_to_date(job):
        return StageReport("report", notes=[f"{job.report_index} is up to date"])
    try:
        n_bytes = write_report(whole_of(job), is_of_run=True)
    except Exception as error:  # noqa: BLE001 - reported as the failure of this stage; the results are stored
        return StageReport(
            "report", warnings=[f"no report: {explained(error)[1]}"], has_failed=True
        )
    return StageReport("report", notes=[f"{job.report_index} ({n_bytes / 1e6:,.1f} MB)"])


@flow(
    name="report",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def report_flow(job: Job) -> StageReport:
    """Write the report, and link to it."""
    report = await _stage(job, "writing the report", to_thread(_write_report, job))
    if is_recorded() and not report.has_failed:
        await recorded.show_link(job, job.report_url or job.report_index.resolve().as_uri())
    return report


@flow(
    name="compact",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def compact_flow(job: Job, only_if_needed: bool = False) -> StageReport:
    """Merge small files into large ones, and delete raw replies that are older than the configured
    days.
    """
    return await _stage(job, "merging files", to_thread(tidy, job, only_if_needed))


# Analyses, which have commands of their own: labels of tasks, reviews of criteria, capabilities,
# and neighbours


@flow(
    name="review",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def review_flow(job: Job) -> list[StageReport]:
    """Have reviewers check the criteria without a review, then update the measures."""
    return await _measured(job, await _ask(job, REVIEW, "reviews"))


@flow(
    name="annotate",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def annotate_flow(job: Job) -> list[StageReport]:
    """Label the tasks without labels, then measure the agreement of annotators and the leaderboards
    by label.
    """
    return await _measured(job, await _ask(job, ANNOTATION, "annotations"))


@flow(
    name="capabilities",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def capabilities_flow(job: Job) -> list[StageReport]:
    """Describe the capability behind each criterion, group capabilities in trees, name the nodes,
    and score models.
    """
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
        job = job.model_copy(
            update={"retry_failed": False}
        )  # failed ones were retried in the first round
    return [*reports, *await _run_local(job, write_names), *await _run_local(job, measure)]


@flow(
    name="neighbours",
    flow_run_name=run_name,
    validate_parameters=False,
)
@reported
async def neighbours_flow(job: Job) -> list[StageReport]:
    """Judge a sample one by one, in groups, and in shuffled groups, then measure the
    differences.
    """

    def plan() -> list[Arranged]:
        with Warehouse(job.warehouse).reader() as reader:
            return missing_arrangements(job, reader)

    arranged = await to_thread(plan)
    batches = [
        batch(
            neighbours_batch,
            f"neighbours {each.judge_config.judge.label} {each.arrangement}",
            job,
            each,
        )
        for each in arranged
    ]
    totals = Counter(row.model for each in arranged for row in each.criteria if row.is_missing)
    return await _measured(job, [await run_batches(job, STAGE, "verdicts", batches, totals)])


async def _measured(job: Job, reports: list[StageReport]) -> list[StageReport]:
    """Update the measures if there are new rows, and return all reports, that of the update
    included.
    """
    return (
        [*reports, await call(aggregate_flow, job)]
        if any(report.rows for report in reports)
        else reports
    )


async def _ask(job: Job, analysis: Analysis, what: str) -> list[StageReport]:
    """Call the analysts for all missing items, in batches, and return the report; no report if
    nothing is missing.

    `what` is the plural noun for the rows in messages.
    """
    warehouse = Warehouse(job.warehouse)

    def to_call_for() -> dict[str, list[str]]:
        with warehouse.reader() as reader:
            changed = analysis.changed_analysts(job, reader)
            items = analysis.missing(job, reader)
        warehouse.write("analysts", changed)
        warehouse.publish()
        return {label: [item.row_id for item in of_analyst] for label, of_analyst in items.items()}

    row_ids = await to_thread(to_call_for)
    if not any(row_ids.values()):
        return []
    report = await _run_by_label(
        job, analysis.stage, what, ask_batch, row_ids, ITEMS_A_BATCH, analysis
    )
    report.is_below_bar |= bool(report.failures)
    return [report]


async def _run_local(job: Job, work: Callable[[Job], StageReport]) -> list[StageReport]:
    """Do work without calls and return its report; no report if there was nothing to do."""
    report = await to_thread(work, job)
    return [await log_stage(job, report)] if report.notes else []
