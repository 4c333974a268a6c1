"""Prefect's UI of a run: names, tags, Cancel, and artifacts."""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import Flow, artifacts, flow, get_client, get_run_logger, tags
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.runtime import flow_run

from flows.recorded import (
    Parameters,
    Recordable,
    Result,
    StageWork,
    call,
    ignoring_ui_errors,
    is_recorded,
    recording,
    reported,
    state_of,
)
from flows.run.outcomes import RUNNING
from flows.run.record import stored_runs
from tasks.config.job import Job
from tasks.console import Tally
from tasks.figures.shown.leaderboard import leaderboard
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.cells import markdown_cell
from tasks.rules.text.characters import visible
from tasks.run.writing import StageReport

_CANCEL_CHECK_S = 3.0
_RENEW_EVERY_S = 5.0
_MOST_NAMED_MODELS = 3


# The run as a whole


async def run_recorded(command_flow: Recordable[..., Result], job: Job) -> Result:
    """Run a flow on a job as a Prefect run that can be searched by its tags and cancelled."""
    work = asyncio.current_task()
    assert work is not None
    logging.raiseExceptions = False  # Prefect would print every log line that it cannot send
    sampling = job.night or job.vintage
    run_tags = (warehouse_name(job.warehouse), job.benchmark, sampling, job.run_id)
    with recording(), tags(*run_tags):
        watching = asyncio.create_task(_watch(job, work))
        try:
            return await call(command_flow, job)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _watch(job: Job, work: "asyncio.Task[Any]") -> None:
    """Correct the records of earlier runs, and cancel the work when its run is cancelled."""
    with ignoring_ui_errors():
        async with get_client() as client:
            await _tag_deployed_run(client, job)
            await _close_ended_runs(client, job)
            while is_recorded():
                await asyncio.sleep(_CANCEL_CHECK_S)
                if await _runs(client, job.run_id, ["CANCELLING", "CANCELLED"]):
                    work.cancel()
                    return


async def _tag_deployed_run(client: PrefectClient, job: Job) -> None:
    """Tag the deployment's run around this one with its id, so that a search finds both."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        deployed_run = context.flow_run
        await client.update_flow_run(deployed_run.id, tags={*deployed_run.tags, job.run_id})


async def _close_ended_runs(client: PrefectClient, job: Job) -> None:
    """Correct runs that Prefect shows as running although they have ended.

    They were killed, or Prefect's server was lost. They get the state of their outcome.
    """
    warehouse_tag = warehouse_name(job.warehouse)
    shown_runs = await _runs(client, warehouse_tag, ["PENDING", "RUNNING", "CANCELLING"])
    outcomes = {
        row["run_id"]: row["outcome"] for row in stored_runs(job) if row["outcome"] != RUNNING
    }
    for run in shown_runs:
        for tag in run.tags:
            if tag in outcomes:
                outcome = outcomes[tag]
                message = f"Ended unrecorded: {outcome}. The next run does the missing work."
                await client.set_flow_run_state(run.id, state_of(outcome, message), force=True)


async def _runs(client: PrefectClient, tag: str, states: Sequence[str]) -> list[FlowRun]:
    """Return the flow runs with a tag that are in one of these states."""
    document = {"tags": {"any_": [tag]}, "state": {"type": {"any_": states}}}
    return await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(document))


# Flows and their names


def recorded_flow(
    name: str,
) -> Callable[
    [StageWork[Parameters, Result]],
    Flow[Parameters, Coroutine[Any, Any, Result]],
]:
    """Return a decorator that makes a function a Prefect flow, whose runs have this project's names
    and states.
    """

    def as_flow(
        work: StageWork[Parameters, Result],
    ) -> Flow[Parameters, Coroutine[Any, Any, Result]]:
        make_flow = flow(name=name, flow_run_name=_run_name, validate_parameters=False)
        return make_flow(reported(work))

    return as_flow


def _run_name() -> str:
    """Return the name of the new flow run: the flow, the data, the night or vintage, the models."""
    job = flow_run.parameters["job"]
    labels = job.named_models or job.settings.model_labels
    models = ", ".join(labels[:_MOST_NAMED_MODELS])
    if len(labels) > _MOST_NAMED_MODELS:
        models += f" +{len(labels) - _MOST_NAMED_MODELS}"
    sampling = job.night or job.vintage
    if sampling == BASE_VINTAGE:
        sampling = ""
    parts = (
        flow_run.flow_name,
        warehouse_name(job.warehouse),
        job.benchmark,
        sampling,
        models,
    )
    return " ".join(filter(None, parts))


def warehouse_name(folder: Path) -> str:
    """Return the name of a warehouse: that of its folder, or of the folder around a default one."""
    is_default = folder.parts[-2:] in {("warehouse", "data"), ("warehouse", "embedded")}
    parts = folder.parts[:-2] if is_default else folder.parts
    return parts[-1].strip("/") or "root"


# Artifacts of a run


async def _show_artifact(
    job: Job,
    subject: str,
    artifact_type: type[artifacts.Artifact],
    description: str,
    **content: Any,
) -> None:
    """Show an artifact; a failure changes nothing about the run.

    Prefect keeps the history of artifacts with the same key, which names the warehouse and the
    subject.
    """
    name = f"{warehouse_name(job.warehouse)}-{job.benchmark}-{subject}".lower()
    readable = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
    path_hash = hashlib.sha256(str(job.warehouse).encode()).hexdigest()[:6]
    with ignoring_ui_errors():
        await artifact_type(
            key=f"{readable}-{path_hash}", description=description, **content
        ).acreate()


async def show_stage(job: Job, report: StageReport, line: str) -> None:
    """Write the result of a stage to the log of the run and to an artifact."""
    log = get_run_logger()
    log.info(line)
    for warning in report.warnings:
        log.warning(warning)
    cells = [markdown_cell(visible(text)) for text in (line, *report.warnings)]
    await _show_artifact(
        job,
        report.stage,
        artifacts.MarkdownArtifact,
        f"{report.stage}, run {job.run_id}",
        markdown="\n- ".join(cells),
    )


async def show_link(job: Job, link: str) -> None:
    """Link to the report of a run."""
    await _show_artifact(
        job,
        "report-link",
        artifacts.LinkArtifact,
        f"Run {job.run_id}",
        link=link,
        link_text="The report",
    )


_BOARD_COLUMNS = (
    "split",
    "rank",
    "model",
    "judge",
    "vintage",
    "mean_score",
    "ci_low",
    "ci_high",
    "coverage",
    "cost_usd",
)


async def show_results(job: Job) -> None:
    """Show a table with the leaderboard, if it has rows."""
    table = [_board_row(row) for row in leaderboard(job)[:200]]
    if table:
        await _show_artifact(
            job,
            "leaderboard",
            artifacts.TableArtifact,
            f"Leaderboard after run {job.run_id}",
            table=table,
        )


def _board_row(row: Mapping[str, Any]) -> dict[str, Any]:
    board_row = {}
    for name in _BOARD_COLUMNS:
        value = row[name]
        if isinstance(value, float):
            value = round(value, 4)
        board_row[name] = "" if value is None else value
    return board_row


@asynccontextmanager
async def progress_shown(stage: str, tallies: Sequence[Tally]) -> AsyncIterator[None]:
    """Show the progress of a stage in Prefect's UI while the block runs, if it makes any calls."""
    artifact_id: UUID | None = None

    async def renew() -> None:
        nonlocal artifact_id
        while True:
            artifact_id = await _show_progress(stage, tallies, artifact_id)
            await asyncio.sleep(_RENEW_EVERY_S)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
    await _show_progress(stage, tallies, artifact_id)


async def _show_progress(
    stage: str,
    tallies: Sequence[Tally],
    artifact_id: UUID | None,
) -> UUID | None:
    """Update the progress artifact, or create it if there is none yet; return its id."""
    n_done = sum(tally.done for tally in tallies)
    n_failed = sum(tally.failed for tally in tallies)
    n_total = sum(tally.total or 0 for tally in tallies)
    if not n_total or not is_recorded():
        return artifact_id
    text = f"{stage}: {n_done} of {n_total}"
    if n_failed:
        text += f", {n_failed} failed"
    percent = 100.0 * n_done / n_total
    with ignoring_ui_errors():
        if artifact_id is None:
            # Without a key: only the page of the run shows it.
            return await artifacts.acreate_progress_artifact(percent, description=text)
        await artifacts.aupdate_progress_artifact(artifact_id, percent, description=text)
    return artifact_id
