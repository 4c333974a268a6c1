"""One Prefect flow for each stage of a run; the work itself is in `tasks/`."""

from asyncio import to_thread
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.recorded import is_recorded
from flows.report import is_up_to_date, on_everything, write_report
from flows.run.outcomes import explained
from flows.stage_runs import (
    Batch,
    batch,
    log_stage,
    numbered_parts,
    prefect_task,
    run_batches,
    run_step,
)
from flows.ui import recorded_flow, show_link
from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.check import check
from tasks.config.job import Job
from tasks.drift import judge_control_set
from tasks.hard_subset.select import select_hard
from tasks.ingest import ingest_and_check
from tasks.judge.judge import judge_by_provider_batches, judge_responses, missing_by_judge
from tasks.judge.panels import count_votes
from tasks.judge.rubric_variants import derive
from tasks.maintain.spend import store_calls
from tasks.maintain.tidying import tidy
from tasks.rules.errors import PipelineError
from tasks.run.coverage_rules import store_coverage_rules
from tasks.run.judge_configs import JudgeConfig
from tasks.run.missing_work import MissingVerdicts
from tasks.run.writing import StageReport
from tasks.sample import plan_samples, sample_cells

SAMPLES_A_BATCH = 200
VERDICTS_A_BATCH = 1_000

sample_batch = prefect_task(sample_cells)
judge_batch = prefect_task(judge_responses)
provider_batches = task(cache_policy=NO_CACHE)(judge_by_provider_batches)
"""Unlike the others not retried by Prefect: the next run continues the batches."""


@recorded_flow("ingest")
async def ingest_flow(job: Job) -> StageReport:
    """Read the data set and check it; tasks that break an invariant are quarantined."""
    return await run_step(job, "loading the data set", to_thread(ingest_and_check, job))


@recorded_flow("assemble")
async def assemble_flow(job: Job) -> StageReport:
    """Build the conversations of the admitted tasks."""
    return await run_step(job, "building conversations", to_thread(assemble, job))


@recorded_flow("sample")
async def sample_flow(job: Job) -> StageReport:
    """Sample the responses that are missing, in batches."""
    # A killed run leaves a vintage that must not count as complete.
    await to_thread(store_coverage_rules, job)
    cells_by_model = await to_thread(plan_samples, job)
    batches = []
    for model, cells in cells_by_model.items():
        for number, part in numbered_parts(cells, SAMPLES_A_BATCH):
            batches.append(batch(sample_batch, f"sample {model} {number}", job, model, part))
    totals = {model: len(cells) for model, cells in cells_by_model.items()}
    return await run_batches(job, "sample", "responses", batches, totals)


@recorded_flow("derive")
async def derive_flow(job: Job) -> StageReport:
    """Rewrite the criteria for judges that use another rubric than the original one."""
    return await run_step(job, "rewriting criteria", derive(job))


@recorded_flow("judge")
async def judge_flow(job: Job) -> StageReport:
    """Judge the criteria without a verdict, in batches of whole responses.

    Judges with `mode: batch` first submit their calls to the provider's batch service.
    """
    missing_verdicts = await to_thread(missing_by_judge, job)
    first_batches = []
    for config, responses in missing_verdicts:
        if config.judge.mode == "batch" and responses:
            response_ids = [response.response_id for response in responses]
            name = f"batches of {config.judge.label}"
            first_batches.append(batch(provider_batches, name, job, config, response_ids))
    return await judge_missing(job, missing_verdicts, "judge by", first_batches)


async def judge_missing(
    job: Job,
    missing_verdicts: list[tuple[JudgeConfig, list[MissingVerdicts]]],
    name: str,
    first_batches: Sequence[Batch] = (),
    sampled: Collection[tuple[str, str]] | None = None,
) -> StageReport:
    """Have each judge decide what it lacks, then count the votes of panels; report on both.

    Args:
        job: the job.
        missing_verdicts: each judge to call, with the responses that lack its verdicts.
        name: the beginning of the batches' names.
        first_batches: see `run_batches`.
        sampled: see `judge_responses`.
    """
    batches: list[Batch] = []
    totals: Counter[str] = Counter()
    for config, responses in missing_verdicts:
        for number, response_ids in enumerate(_response_batches(responses), start=1):
            batches.append(
                batch(
                    judge_batch,
                    f"{name} {config.judge.label} {number}",
                    job,
                    config,
                    response_ids,
                    batch_index=len(batches),
                    sampled=sampled,
                )
            )
        for response in responses:
            totals[response.model] += response.n_criteria
    report = await run_batches(job, "judge", "verdicts", batches, totals, first_batches)
    panel_report = await to_thread(count_votes, job)
    if panel_report.rows:
        await log_stage(job, panel_report)
    return report


def _response_batches(responses: list[MissingVerdicts]) -> list[list[str]]:
    """Group the ids of whole responses into batches of about a thousand verdicts."""
    batches: dict[int, list[str]] = {}
    n_verdicts = 0
    for response in responses:
        n_verdicts += response.n_criteria
        number = (n_verdicts - 1) // VERDICTS_A_BATCH
        batches.setdefault(number, []).append(response.response_id)
    return list(batches.values())


@recorded_flow("aggregate")
async def aggregate_flow(job: Job) -> StageReport:
    """Compute scores, leaderboard and intervals."""
    return await run_step(job, "computing scores", to_thread(_aggregate, job))


def _aggregate(job: Job) -> StageReport:
    """Compute scores, leaderboard and intervals, and publish them with the costs so far."""
    with suppress(PipelineError):  # the end of the run reports it
        store_calls(job)
    return aggregate(job)


@recorded_flow("select-hard")
async def select_hard_flow(job: Job, must_select: bool = True) -> StageReport:
    """Select the hard subset of each field."""
    return await run_step(job, "selecting hard tasks", to_thread(_select_hard, job, must_select))


def _select_hard(job: Job, must_select: bool) -> StageReport:
    """Select the hard subset of each field; if one is new, compute the scores on it."""
    report = select_hard(job, must_select=must_select)
    if report.rows:
        aggregate(job)
    return report


@recorded_flow("check")
async def check_flow(job: Job) -> StageReport:
    """Run all data-quality suites on the stored data."""
    return await run_step(job, "checking data", to_thread(check, job))


@recorded_flow("drift")
async def drift_flow(job: Job) -> StageReport:
    """Judge the control sets again, and choose one for each judge without one."""
    return await run_step(job, "judging control sets", judge_control_set(job))


@recorded_flow("report")
async def report_flow(job: Job) -> StageReport:
    """Write the report, and link to it."""
    report = await run_step(job, "writing the report", to_thread(_write_report, job))
    if is_recorded() and not report.has_failed:
        await show_link(job, job.report_url or job.report_index.resolve().as_uri())
    return report


def _write_report(job: Job) -> StageReport:
    """Write the report; one that cannot be written fails this stage only."""
    report = StageReport("report")
    try:
        if is_up_to_date(job):
            report.notes.append(f"{job.report_index} is up to date")
            return report
        n_bytes = write_report(on_everything(job))
    except Exception as error:  # noqa: BLE001 - reported as a failure; the results are stored
        report.warnings.append(f"no report: {explained(error).line}")
        report.has_failed = True
    else:
        report.notes.append(f"{job.report_index} ({n_bytes / 1e6:,.1f} MB)")
    return report


@recorded_flow("compact")
async def compact_flow(job: Job, only_if_needed: bool = False) -> StageReport:
    """Merge small files into large ones, and delete raw replies after the configured days."""
    return await run_step(job, "merging files", to_thread(tidy, job, only_if_needed))
