"""One Prefect flow a stage. The work is in `tasks/`; here it is cut into Prefect tasks, watched and reported."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_link_artifact

from flows.batches import Batches, called
from flows.explaining import explained
from flows.showing import run_name, told
from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.check import SUITES, check
from tasks.derive import derive
from tasks.drift import choose_control_set, judge_control_set
from tasks.former_templates import tell_of_templates
from tasks.hard_subset import select_hard
from tasks.ingest import ingest
from tasks.judge import judge_batch, look_after_batches, plan_verdicts
from tasks.progress import say
from tasks.reports import StageReport
from tasks.sample import plan_samples, sample_batch
from tasks.scope import Owed
from tasks.settings import Job
from tasks.tidying import tidy

_SAMPLES_A_BATCH = 200
_VERDICTS_A_BATCH = 1_000


@flow(name="ingest", flow_run_name=run_name)
async def ingest_flow(job: Job) -> StageReport:
    """Bring the data set in and check it: a task that breaks an invariant is refused here."""

    def work() -> StageReport:
        report = ingest(job)
        report.adopt(check(job, ("ingest",), reuse=True))
        return report

    return await _timed(job, work)


@flow(name="assemble", flow_run_name=run_name)
async def assemble_flow(job: Job) -> StageReport:
    """Make the conversations of the admitted tasks."""
    return await _timed(job, assemble, job)


@flow(name="sample", flow_run_name=run_name)
async def sample_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Sample the responses that are missing, in batches."""
    cells = await asyncio.to_thread(plan_samples, job, retry_failed=retry_failed)
    batches: Batches = [
        (f"sample {label} {number}", sample_batch, (label, batch), {})
        for label, of_model in cells.items()
        for number, batch in enumerate(_cut(of_model, _SAMPLES_A_BATCH), start=1)
    ]
    return await called(job, "sample", "responses", batches, {label: len(found) for label, found in cells.items()})


@flow(name="derive", flow_run_name=run_name)
async def derive_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Word criteria anew where a judge asks for another rubric than the original one."""
    started_s = time.monotonic()
    report = await derive(job, retry_failed=retry_failed)
    report.seconds = time.monotonic() - started_s
    return await told(job, report)


@flow(name="judge", flow_run_name=run_name)
async def judge_flow(job: Job, retry_failed: bool = False) -> StageReport:
    """Judge the criteria that are missing, in batches of whole responses."""
    owed = await asyncio.to_thread(plan_verdicts, job, retry_failed=retry_failed)
    for line in await tell_of_templates(job) if any(responses for _, responses in owed) else ():
        say(f"judged again by {line}")
    again = {"retry_failed": retry_failed}
    batches: Batches = [
        (f"judge {_models(batch)} by {judging.judge.label} {number}", judge_batch,
         (judging, [each.response_id for each in batch]), {**again})
        for judging, responses in owed
        for number, batch in enumerate(_response_batches(responses), start=1)
    ]  # fmt: skip
    totals: Counter[str] = Counter()
    for _, responses in owed:
        for each in responses:
            totals[each.model] += each.n_criteria
    for number, (_, _, _, options) in enumerate(batches):
        options["place"] = number
    first: Batches = [
        (f"batches of {judging.judge.label}", look_after_batches,
         (judging, [each.response_id for each in responses]), again)
        for judging, responses in owed
        if judging.judge.mode == "batch" and responses
    ]  # fmt: skip
    return await called(job, "judge", "verdicts", batches, totals, first=first)


@flow(name="aggregate", flow_run_name=run_name)
async def aggregate_flow(job: Job) -> StageReport:
    """Publish scores and leaderboard, with intervals."""
    return await _timed(job, aggregate, job)


@flow(name="select-hard", flow_run_name=run_name)
async def select_hard_flow(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field, and give the leaderboard on a new one its intervals."""

    def work() -> StageReport:
        report = select_hard(job, must_select=must_select)
        if report.rows:
            aggregate(job)
        return report

    return await _timed(job, work)


@flow(name="check", flow_run_name=run_name)
async def check_flow(job: Job) -> StageReport:
    """Run all data-quality suites on what is stored."""
    return await _timed(job, check, job, SUITES)


@flow(name="drift", flow_run_name=run_name)
async def drift_flow(job: Job) -> StageReport:
    """Judge the judges' control sets anew, and choose one for a judge that has none."""
    started_s = time.monotonic()
    chosen = await asyncio.to_thread(choose_control_set, job)
    report = await judge_control_set(job)
    report.adopt(chosen)
    report.seconds = time.monotonic() - started_s
    return await told(job, report)


@flow(name="report", flow_run_name=run_name)
async def report_flow(job: Job) -> StageReport:
    """Write the report, and link to it; one that cannot be written is told and takes nothing from the run."""

    def work() -> StageReport:
        from flows.reporting import link_to, report_of_run  # imports what draws, which takes seconds

        try:
            written = report_of_run(job)
        except Exception as error:  # noqa: BLE001 - told as this stage's failure; what was evaluated is there
            return StageReport("report", warnings=[f"no report: {explained(error)[1]}"], has_failed=True)
        links.append(link_to(job, written))
        return StageReport("report", notes=[f"{written.index} ({written.n_bytes / 1e6:,.1f} MB)"])

    links: list[str] = []
    report = await _timed(job, work)
    for link in links:
        await acreate_link_artifact(link, link_text="The report", key="report-link", description=f"Run {job.run_id}")
    return report


@flow(name="compact", flow_run_name=run_name)
async def compact_flow(job: Job, only_if_needed: bool = False) -> StageReport:
    """Merge small files into large ones, and let go of raw replies that were kept long enough."""
    return await _timed(job, tidy, job, only_if_needed)


async def _timed(job: Job, work: Callable[..., StageReport], *arguments: Any) -> StageReport:
    started_s = time.monotonic()
    report = await asyncio.to_thread(work, *arguments)
    report.seconds = time.monotonic() - started_s
    return await told(job, report)


def _models(batch: Sequence[Owed]) -> str:
    labels = sorted({each.model for each in batch})
    return labels[0] if len(labels) == 1 else f"{len(labels)} models"


def _cut(items: Sequence[tuple[str, int]], size: int) -> list[list[tuple[str, int]]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def _response_batches(responses: Iterable[Owed]) -> list[list[Owed]]:
    """Whole responses together until they make a batch."""
    batches: list[list[Owed]] = []
    room = 0
    for each in responses:
        if not batches or room < each.n_criteria:
            batches.append([])
            room = _VERDICTS_A_BATCH
        batches[-1].append(each)
        room -= each.n_criteria
    return batches
