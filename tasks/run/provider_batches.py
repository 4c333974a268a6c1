"""Having a provider's batches make calls."""

from collections.abc import Sequence

from tasks.config import Job
from tasks.llm import Batching, Call, Outcome, Target
from tasks.run.run_context import RunContext
from tasks.run.stage_report import StageReport


async def submit_and_collect(
    job: Job, context: RunContext, target: Target, calls: Sequence[Call], report: StageReport
) -> None:
    """Submit the calls that no batch has yet, and collect the batches that have ended, for the stage of a report.

    The replies are in the ledger then. Calls of a batch that goes on when the waiting ends stay missing until a later
    run.
    """
    limiter = context.limiters[report.stage]
    batching = Batching(
        target, context.ledger, context.budget, job.run_id, stop_at_s=limiter.stop_at_s, outage_s=limiter.outage_s
    )
    outcome = await batching.submit_and_collect(calls, job.settings.limits.batch_wait_s)
    limiter.too_late += outcome.too_late
    for reply in outcome.replies:
        limiter.totals.add(Outcome(reply))
    report.warnings += outcome.notes
    if outcome.n_failed:
        then = "live calls follow" if any(call.allows_live for call in calls) else "the next run submits them again"
        report.warnings.append(f"{outcome.n_failed} calls failed in a batch; {then}")
    if outcome.n_submitted:
        report.notes.append(f"{outcome.n_submitted} calls submitted as batches")
