"""One Prefect flow for each stage. The work is in `tasks/`; here it is split into Prefect tasks and reported."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from flows.batches import ask_in_batches, in_batches, in_response_batches, run_batches
from flows.job_flow import BatchTask, batch_task, job_flow
from flows.report_basis import is_up_to_date
from flows.run.errors import explained
from flows.run.recording import is_recorded
from flows.stage_log import log_stage
from tasks.aggregate import aggregate
from tasks.analyses.annotate import ANNOTATION, measure_annotations
from tasks.analyses.node_scores import measure
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES, ROUNDS, refuse_unready
from tasks.analyses.review import REVIEW
from tasks.analyses.trees import grow, write_names
from tasks.assemble import assemble
from tasks.check import check
from tasks.config.job import Job
from tasks.console import notice
from tasks.drift import choose_control_set, judge_control_set
from tasks.hard_subset import select_hard
from tasks.ingest import ingest
from tasks.judge.judge import judge_by_provider_batches, judge_responses, plan_verdicts
from tasks.judge.rubric_variants import derive
from tasks.maintain import tidy
from tasks.plan import former_template_notices
from tasks.run.asking import Analysis, ask_about
from tasks.run.judgings import Judging
from tasks.run.missing_work import MissingVerdicts
from tasks.run.writing import StageReport
from tasks.sample import Cell, plan_samples, sample_cells
from warehouse import Warehouse


@job_flow("ingest")
async def ingest_flow(job: Job) -> StageReport:
    """Read the data set and check it; tasks that break an invariant are quarantined."""

    def work() -> StageReport:
        report = ingest(job)
        report.adopt(check(job, ("ingest",), reuse=True))
        return report

    return await _timed(job, asyncio.to_thread(work))


@job_flow("assemble")
async def assemble_flow(job: Job) -> StageReport:
    """Build the conversations of the admitted tasks."""
    return await _timed(job, asyncio.to_thread(assemble, job))


@job_flow("sample")
async def sample_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Sample the responses that are missing, in batches."""
    cells = await asyncio.to_thread(plan_samples, job, retry_failed=retry_failed)
    batches = [
        sample_batch.named(f"sample {label} {number}", job, label, batch)
        for label, of_model in cells.items()
        for number, batch in enumerate(in_batches(of_model), start=1)
    ]
    totals = {label: len(of_model) for label, of_model in cells.items()}
    return await run_batches(job, "sample", "responses", batches, totals, retry_failed=retry_failed)


@batch_task(retries=1)
async def sample_batch(job: Job, model_label: str, cells: list[Cell]) -> StageReport:
    """Sample a batch of one model's cells."""
    return await sample_cells(job, model_label, cells)


@job_flow("derive")
async def derive_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Rewrite the criteria for judges that use another rubric than the original one."""
    return await _timed(job, derive(job, retry_failed=retry_failed))


@job_flow("judge")
async def judge_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Judge the criteria that are missing, in batches of whole responses."""
    missing = await asyncio.to_thread(plan_verdicts, job, retry_failed=retry_failed)
    for line in await former_template_notices(job) if any(responses for _, responses in missing) else ():
        notice(f"judged again by {line}")
    all_batches = [
        (judging, batch, f"judge {_models(batch)} by {judging.judge.label} {number}")
        for judging, responses in missing
        for number, batch in enumerate(in_response_batches(responses), start=1)
    ]
    batches = [
        judge_batch.named(name, job, judging, _ids(batch), retry_failed, place)
        for place, (judging, batch, name) in enumerate(all_batches)
    ]
    first = [
        provider_batches.named(f"batches of {judging.judge.label}", job, judging, _ids(responses), retry_failed)
        for judging, responses in missing
        if judging.judge.mode == "batch" and responses
    ]
    totals: Counter[str] = Counter()
    for each in (each for _, responses in missing for each in responses):
        totals[each.model] += each.n_criteria
    return await run_batches(job, "judge", "verdicts", batches, totals, first, retry_failed=retry_failed)


@batch_task(retries=1)
async def judge_batch(
    job: Job, judging: Judging, response_ids: list[str], retry_failed: bool, place: int
) -> StageReport:
    """Judge a batch of responses; `place` is the batch's among all."""
    return await judge_responses(job, judging, response_ids, retry_failed=retry_failed, place=place)


@batch_task()
async def provider_batches(job: Job, judging: Judging, response_ids: list[str], retry_failed: bool) -> StageReport:
    """Have a provider's batches make the calls of a judge."""
    return await judge_by_provider_batches(job, judging, response_ids, retry_failed=retry_failed)


@job_flow("review")
async def review_flow(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Have the reviewers check the criteria that they have not checked, and measure what changed."""
    asked = await ask_in_batches(job, REVIEW, "reviews", review_batch, retry_failed=retry_failed)
    return [asked, *([await aggregate_flow(job)] if asked.rows else [])]


@batch_task(retries=1)
async def review_batch(job: Job, reviewer_label: str, row_ids: list[str], retry_failed: bool) -> StageReport:
    """Have a reviewer check a batch of criteria."""
    return await ask_about(job, REVIEW, reviewer_label, row_ids, retry_failed=retry_failed)


@job_flow("aggregate")
async def aggregate_flow(job: Job) -> StageReport:
    """Compute scores, leaderboard and intervals."""
    return await _timed(job, asyncio.to_thread(aggregate, job))


@job_flow("select-hard")
async def select_hard_flow(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field, and compute the intervals of the leaderboard on a new one."""

    def work() -> StageReport:
        report = select_hard(job, must_select=must_select)
        if report.rows:
            aggregate(job)
        return report

    return await _timed(job, asyncio.to_thread(work))


@job_flow("check")
async def check_flow(job: Job) -> StageReport:
    """Run all data-quality suites on what is stored."""
    return await _timed(job, asyncio.to_thread(check, job))


@job_flow("drift")
async def drift_flow(job: Job) -> StageReport:
    """Judge the control sets again, and choose one for each judge that has none."""

    async def work() -> StageReport:
        chosen = await asyncio.to_thread(choose_control_set, job)
        report = await judge_control_set(job)
        report.adopt(chosen)
        return report

    return await _timed(job, work())


@job_flow("annotate")
async def annotate_flow(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Label tasks where labels are missing, and measure how far annotations agree."""
    asked = await ask_in_batches(job, ANNOTATION, "annotations", annotate_batch, retry_failed=retry_failed)
    measured = await _timed(job, asyncio.to_thread(measure_annotations, job))
    # New labels have leaderboards of their own.
    return [asked, measured, *([await aggregate_flow(job)] if asked.rows else [])]


@batch_task(retries=1)
async def annotate_batch(job: Job, annotator: str, row_ids: list[str], retry_failed: bool) -> StageReport:
    """Have an annotator label a batch of tasks."""
    return await ask_about(job, ANNOTATION, annotator, row_ids, retry_failed=retry_failed)


@job_flow("capabilities")
async def capabilities_flow(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Describe what criteria ask for, put that into trees, name their nodes, and measure models in them."""
    refuse_unready(job)
    reports: list[StageReport] = []
    for analysis, what, batch in ((PHRASES, "phrases", phrase_batch), (EMBEDDINGS, "vectors", vector_batch)):
        reports += await _asked(job, analysis, what, batch, retry_failed)
        if any(report.skipped for report in reports):
            return reports  # the tree of a part would be named, and paid for, for nothing
    reports += await _worked(job, grow)
    for _ in range(ROUNDS):
        named = await _asked(job, NAMES, "names", name_batch, retry_failed)
        reports += named
        if not named:
            break
        retry_failed = False  # failed ones were tried again in the first round
    reports += [*await _worked(job, write_names), *await _worked(job, measure)]
    if not reports:
        nothing = StageReport("capabilities", notes=["nothing is missing, no model call made"])
        reports.append(await log_stage(job, nothing))
    return reports


async def _worked(job: Job, work: Callable[[Job], StageReport]) -> list[StageReport]:
    """The report of work that makes no call; none where there was nothing to do."""
    started_s = time.monotonic()
    report = await asyncio.to_thread(work, job)
    if not report.notes:
        return []
    report.seconds = time.monotonic() - started_s
    return [await log_stage(job, report)]


async def _asked(
    job: Job, analysis: Analysis, what: str, batch: BatchTask[[Job, str, list[str], bool]], retry_failed: bool
) -> list[StageReport]:
    """The report of asking about what is missing; none where nothing is."""

    def is_missing() -> bool:
        with Warehouse(job.warehouse).reader() as reader:
            return any(analysis.missing(job, reader, retry_failed=retry_failed).values())

    if not await asyncio.to_thread(is_missing):
        return []
    return [await ask_in_batches(job, analysis, what, batch, retry_failed=retry_failed)]


@batch_task(retries=1)
async def phrase_batch(job: Job, label: str, row_ids: list[str], retry_failed: bool) -> StageReport:
    """Have phrases written for a batch of criteria."""
    return await ask_about(job, PHRASES, label, row_ids, retry_failed=retry_failed)


@batch_task(retries=1)
async def vector_batch(job: Job, label: str, row_ids: list[str], retry_failed: bool) -> StageReport:
    """Have vectors made of a batch of phrases."""
    return await ask_about(job, EMBEDDINGS, label, row_ids, retry_failed=retry_failed)


@batch_task(retries=1)
async def name_batch(job: Job, label: str, row_ids: list[str], retry_failed: bool) -> StageReport:
    """Have names written for a batch of nodes."""
    return await ask_about(job, NAMES, label, row_ids, retry_failed=retry_failed)


@job_flow("report")
async def report_flow(job: Job) -> StageReport:
    """Write the report, and link to it; a report that cannot be written fails this stage only."""

    def work() -> StageReport:
        if is_up_to_date(job):
            return StageReport("report", notes=[f"{job.report_index} is up to date"])
        from flows.report import link_to, report_of_run  # imports what draws, which takes seconds

        try:
            written = report_of_run(job)
        except Exception as error:  # noqa: BLE001 - reported as the failure of this stage; the results are stored
            return StageReport("report", warnings=[f"no report: {explained(error)[1]}"], has_failed=True)
        links.append(link_to(job, written))
        return StageReport("report", notes=[f"{written.index} ({written.n_bytes / 1e6:,.1f} MB)"])

    links: list[str] = []
    report = await _timed(job, asyncio.to_thread(work))
    if is_recorded():
        from flows.recorded.artifacts import link_shown

        for link in links:
            await link_shown(job, link)
    return report


@job_flow("compact")
async def compact_flow(job: Job, only_if_needed: bool = False) -> StageReport:
    """Merge small files into large ones, and delete raw replies that are older than the configured days."""
    return await _timed(job, asyncio.to_thread(tidy, job, only_if_needed))


async def _timed(job: Job, work: Awaitable[StageReport]) -> StageReport:
    started_s = time.monotonic()
    report = await work
    report.seconds = time.monotonic() - started_s
    return await log_stage(job, report)


def _models(batch: Sequence[MissingVerdicts]) -> str:
    labels = sorted({each.model for each in batch})
    return labels[0] if len(labels) == 1 else f"{len(labels)} models"


def _ids(responses: Sequence[MissingVerdicts]) -> list[str]:
    return [each.response_id for each in responses]
