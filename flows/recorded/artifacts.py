"""What Prefect's UI shows of a run: log lines, how far a stage is, and tables of what came out, all on its top run."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    LinkArtifact,
    MarkdownArtifact,
    ProgressArtifact,
    TableArtifact,
    aupdate_progress_artifact,
)
from prefect.exceptions import ParameterTypeError, SignatureMismatchError

from flows.recorded.names import artifact_key
from flows.run.recording import be_patient, is_recorded
from tasks.config.job import Job
from tasks.console import Tally, notice
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from warehouse import WarehouseError

RENEWED_EVERY_S = 5.0
Result = TypeVar("Result")

_top_run_id: ContextVar[str | None] = ContextVar("top_run_id", default=None)


@contextmanager
def shown_on(run_id: str | None) -> Iterator[None]:
    """Show what the block has to show on one flow run: the outermost, unless one was named before."""
    token = _top_run_id.set(_top_run_id.get() or run_id)
    try:
        yield
    finally:
        _top_run_id.reset(token)


def top_run() -> UUID | None:
    """The id of the flow run that everything is shown on."""
    run_id = _top_run_id.get()
    return UUID(run_id) if run_id else None


async def sent(request: Awaitable[Result]) -> Result | None:
    """What the server gives for a request; None if it fails, which changes nothing about the run."""
    try:
        return await request
    except Exception as error:  # noqa: BLE001 - what is shown in the UI is not the work
        if is_recorded():
            notice(f"Prefect's UI does not show a part of this run ({type(error).__name__})")
        return None


async def stage_recorded(job: Job, report: StageReport, line: str) -> None:
    """Keep the result of a stage: in the run's log and as an artifact."""
    log = get_run_logger()
    log.info(line)
    for warning in report.warnings:
        log.warning(warning)
    artifact = MarkdownArtifact(
        key=artifact_key(job, report.stage),
        markdown="\n".join([line, *(f"- {warning}" for warning in report.warnings)]),
        description=f"{report.stage}, run {job.run_id}",
        flow_run_id=top_run(),
    )
    await sent(artifact.acreate())


async def link_shown(job: Job, link: str) -> None:
    """Link to the report of a run."""
    artifact = LinkArtifact(
        key=artifact_key(job, "report-link"), link=link, link_text="The report", description=f"Run {job.run_id}",
        flow_run_id=top_run(),
    )  # fmt: skip
    await sent(artifact.acreate())


@asynccontextmanager
async def progress_shown(stage: str, tallies: Sequence[Tally]) -> AsyncIterator[None]:
    """Show in the UI how far the stage is, now and then, while the block runs."""
    total = sum(tally.total for tally in tallies)
    first = ProgressArtifact(progress=0.0, description=f"{stage}: 0 of {total}", flow_run_id=top_run())
    artifact = await sent(first.acreate())
    if artifact is None:
        yield
        return
    watching = asyncio.create_task(_renewed(stage, artifact.id, tallies, total))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await _renew(stage, artifact.id, tallies, total)


async def _renewed(stage: str, artifact: UUID, tallies: Sequence[Tally], total: int) -> None:
    be_patient()
    is_shown = True
    while is_shown:
        await asyncio.sleep(RENEWED_EVERY_S)
        is_shown = await _renew(stage, artifact, tallies, total)


async def _renew(stage: str, artifact: UUID, tallies: Sequence[Tally], total: int) -> bool:
    """Show how far a stage is, and whether that worked."""
    done, failed = sum(tally.done for tally in tallies), sum(tally.failed for tally in tallies)
    text = f"{stage}: {done} of {total}" + (f", {failed} failed" if failed else "")
    request = aupdate_progress_artifact(artifact, progress=100.0 * done / total, description=text)
    return await sent(request) is not None


async def table_shown(job: Job, what: str, description: str, rows: Iterable[dict[str, Any]]) -> None:
    """Show a table in the UI; without rows, nothing."""
    cells = [{name: "" if value is None else value for name, value in row.items()} for row in rows]
    if cells:
        key = artifact_key(job, what)
        artifact = TableArtifact(key=key, table=cells, description=description, flow_run_id=top_run())
        await sent(artifact.acreate())


_SAY_ALL = (PipelineError, WarehouseError, ParameterTypeError, SignatureMismatchError)
"""Errors whose message says all."""


class OneLine(logging.Filter):
    """Makes one line of an error that a user can cause: what Prefect adds to it is a traceback of its own engine."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass, but no crash that was asked for; an error whose message says all loses its traceback."""
        if "Execution was cancelled by the runtime environment" in record.getMessage():
            return False
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, _SAY_ALL):
            record.msg, record.args, record.exc_info, record.exc_text = " ".join(str(error).split()), (), None, None
        return True


def keep_logs_short() -> None:
    """Let a failed stage's log show the one line that matters."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        log = logging.getLogger(name)
        if not any(isinstance(each, OneLine) for each in log.filters):
            log.addFilter(OneLine())
