"""What is said of a stage while it runs and when it has ended: on standard error, and in Prefect where it records."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from flows.run.recording import is_recorded
from tasks.config.job import Job
from tasks.console import Tally, notice
from tasks.llm import SenderPool
from tasks.run.writing import StageReport


async def log_stage(job: Job, report: StageReport) -> StageReport:
    """Say what a stage did, in a line and one for each warning."""
    line = _line(job, report)
    if not job.is_quiet:
        notice(line)
        for warning in report.warnings:
            notice(f"  {warning}")
    if is_recorded():
        from flows.recorded.artifacts import stage_recorded

        await stage_recorded(job, report, line)
    return report


def _line(job: Job, report: StageReport) -> str:
    """The report in one line; work on one model alone names it, since several may be under way side by side."""
    if report.stage not in {"sample", "judge"} or len(job.named_models or ()) != 1:
        return report.line
    (label,) = job.named_models or ()
    return report.line.replace(report.stage, f"{report.stage} {label}", 1)


@asynccontextmanager
async def progress_recorded(
    job: Job, stage: str, tallies: Sequence[Tally], senders: SenderPool | None
) -> AsyncIterator[None]:
    """Show in Prefect's UI how far a stage with calls to make is, and its senders, while the block runs."""
    if not is_recorded() or not any(tally.total for tally in tallies):
        yield
        return
    from flows.recorded.artifacts import progress_shown
    from flows.recorded.sender_table import senders_shown

    async with progress_shown(stage, tallies), senders_shown(job, lambda: senders.states if senders else []):
        yield
