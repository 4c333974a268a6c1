"""What Prefect's UI shows of a run: names, tags, log lines, how far a stage is, and tables of what came out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.runtime import flow_run

from tasks.config import Job
from tasks.console import Tally
from tasks.rules.errors import PipelineError
from tasks.rules.identity import BASE_VINTAGE
from tasks.run import StageReport
from warehouse import WarehouseError

_PROGRESS_EVERY_S = 5.0
_NAMED = 3
_MOST_TAGS = 12


def run_name() -> str:
    """The name of the flow run that begins: the flow, the night or vintage, the models."""
    return f"{flow_run.flow_name} {about(flow_run.parameters['job'])}".strip()


def about(job: Job) -> str:
    """A job in a few words."""
    labels = list(job.named_models or [model.label for model in job.settings.models])
    more = f" +{len(labels) - _NAMED}" if len(labels) > _NAMED else ""
    when = job.night or (job.vintage if job.vintage != BASE_VINTAGE else "")
    return " ".join(part for part in (when, ", ".join(labels[:_NAMED]) + more) if part)


def tags_of(job: Job) -> list[str]:
    """What the runs of a job are found by: benchmark, night or vintage, splits, models."""
    when = [job.night] if job.night else [job.vintage]
    found = [job.settings.benchmark, *when, *job.settings.dataset.splits, *(m.label for m in job.settings.models)]
    return list(dict.fromkeys(found))[:_MOST_TAGS]


async def stage_recorded(job: Job, report: StageReport, line: str) -> None:
    """Keep the result of a stage: in the run's log and as an artifact."""
    log = get_run_logger()
    log.info(line)
    for warning in report.warnings:
        log.warning(warning)
    await acreate_markdown_artifact(
        key=report.stage.replace("_", "-"),
        markdown="\n".join([line, *(f"- {warning}" for warning in report.warnings)]),
        description=f"{report.stage}, run {job.run_id}",
    )


async def link_shown(job: Job, link: str) -> None:
    """Link to the report of a run."""
    await acreate_link_artifact(link, link_text="The report", key="report-link", description=f"Run {job.run_id}")


@asynccontextmanager
async def progress_shown(stage: str, tallies: Sequence[Tally]) -> AsyncIterator[None]:
    """Show in the UI how far the stage is, now and then, while the block runs."""
    total = sum(tally.total for tally in tallies)
    artifact = await acreate_progress_artifact(0.0, description=f"{stage}: 0 of {total}")
    watching = asyncio.create_task(_renewed(stage, artifact, tallies, total))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await _renew(stage, artifact, tallies, total)


async def _renewed(stage: str, artifact: UUID, tallies: Sequence[Tally], total: int) -> None:
    while True:
        await asyncio.sleep(_PROGRESS_EVERY_S)
        await _renew(stage, artifact, tallies, total)


async def _renew(stage: str, artifact: UUID, tallies: Sequence[Tally], total: int) -> None:
    done, failed = sum(tally.done for tally in tallies), sum(tally.failed for tally in tallies)
    text = f"{stage}: {done} of {total}" + (f", {failed} failed" if failed else "")
    await aupdate_progress_artifact(artifact, progress=100.0 * done / total, description=text)


async def table_shown(key: str, description: str, rows: Iterable[dict[str, Any]]) -> None:
    """Show a table in the UI; without rows, nothing."""
    cells = [{name: "" if value is None else value for name, value in row.items()} for row in rows]
    if cells:
        await acreate_table_artifact(key=key, table=cells, description=description)


class OneLine(logging.Filter):
    """Makes one line of an error that a user can cause: what Prefect adds to it is a traceback of its own engine."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass, but no crash that was asked for; an error whose message says all loses its traceback."""
        if "Execution was cancelled by the runtime environment" in record.getMessage():
            return False
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, PipelineError | WarehouseError):
            record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True


def keep_logs_short() -> None:
    """Let a failed stage's log show the one line that matters."""
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        log = logging.getLogger(name)
        if not any(isinstance(each, OneLine) for each in log.filters):
            log.addFilter(OneLine())
