"""Records of a run in Prefect: stages and batches with their states, and the contents of Prefect's
UI.

Work does not depend on recording: without a server, or after it is lost, the same functions are
called undecorated.
"""

import asyncio
import hashlib
import logging
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast
from uuid import UUID

import httpx
from prefect import Flow, State, Task, artifacts, get_client, get_run_logger, tags
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, Pause
from prefect.runtime import flow_run

from flows.run.outcomes import BELOW_BAR, DONE, ENDINGS, INTERRUPTED, RUNNING, outcome_of
from tasks.config.job import Job
from tasks.console import Tally, notice
from tasks.figures.shown.leaderboard import leaderboard
from tasks.rules.errors import PipelineError
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.cells import markdown_cell
from tasks.rules.text.characters import visible
from tasks.run.run_context import RunContext
from tasks.run.writing import StageReport
from warehouse import Warehouse, WarehouseError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Work = Callable[Arguments, Coroutine[Any, Any, Result]]
Recordable = (
    Flow[Arguments, Coroutine[Any, Any, Result]] | Task[Arguments, Coroutine[Any, Any, Result]]
)
Batch = Callable[[RunContext], Awaitable[StageReport]]
"""A call of a Prefect task, made later in the context of the run."""

UNRECORDED = threading.Event()
"""Set if the run is not recorded: the user switched recording off, or the server was lost."""
STOPPED = "Stopped; finished work is kept, and the same run continues from here."
_LOOK_EVERY_S = 3.0
_RENEW_EVERY_S = 5.0
_MOST_LINES = 3
_NAMED = 3
_results: ContextVar[list[Any]] = ContextVar("results")
"""The result of the called flow, even if recording it fails."""


# Calling a flow or a task


def is_recorded() -> bool:
    """Return whether this is part of a run that Prefect records."""
    return FlowRunContext.get() is not None and not UNRECORDED.is_set()


async def call(
    work: Recordable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a flow or a task within a run: recorded if the run is, else as a plain function.

    Raises:
        asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
    """
    if is_recorded():
        return await recorded(work, *args, **kwargs)
    return await work.fn(*args, **kwargs)


async def recorded(
    work: Recordable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a flow or a task recorded by Prefect; if recording fails, the rest of the run is not
    recorded.
    """
    results: list[Result] = []
    token = _results.set(results)
    state: State[Any] | None = None
    try:
        state = await cast(Any, work)(*args, **kwargs, return_state=True)
    except (Exception, Abort, Pause) as error:  # noqa: BLE001
        # Errors of the work itself are in its state.
        _give_up(error)
    finally:
        _results.reset(token)
    here = asyncio.current_task()
    if (state is not None and state.is_cancelled()) or (here is not None and here.cancelling()):
        raise asyncio.CancelledError
    if results:
        return results[-1]
    return await (work.fn(*args, **kwargs) if state is None else state.aresult())


def batch(
    work: Task[Concatenate[Job, RunContext, Arguments], Any],
    name: str,
    job: Job,
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Batch:
    """Return a batch to run later, under this name in Prefect's UI."""
    return lambda context: call(
        work.with_options(task_run_name=name), job, context, *args, **kwargs
    )


def _give_up(error: BaseException) -> None:
    if not UNRECORDED.is_set():
        UNRECORDED.set()
        notice(
            f"Prefect's server does not record this run any more ({type(error).__name__}) and may"
            " keep showing it as running; the run continues, and `prbench status --runs` shows how"
            " it ends"
        )


def reported(work: Work[Arguments, Result]) -> Work[Arguments, Result]:
    """Make a flow end in the Prefect state of its outcome; called undecorated, it returns its
    reports.
    """

    @wraps(work)
    async def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        context = FlowRunContext.get()
        if context is None or context.flow is None or context.flow.fn is not run:
            return await work(*args, **kwargs)
        try:
            result = await work(*args, **kwargs)
        except asyncio.CancelledError:
            return cast(Result, state_of(INTERRUPTED, STOPPED))
        _results.get([]).append(result)
        reports: list[StageReport] = result if isinstance(result, list) else [cast(Any, result)]
        outcome = outcome_of(reports)
        is_part = context.flow_run is not None and context.flow_run.parent_task_run_id is not None
        if (
            outcome == DONE
            and not is_part
            and Warehouse((context.parameters or {})["job"].warehouse).is_damaged()
        ):
            outcome = BELOW_BAR
        return cast(Result, state_of(outcome, message_of(reports, outcome), result))

    return run


def state_of(outcome: str, message: str, data: Any = None) -> State[Any]:
    """Return the final Prefect state of a run with this outcome."""
    ending = ENDINGS[outcome]
    return State(
        type=StateType(ending.state_type),
        name=ending.state_name,
        message=message,
        data=data,
    )


def message_of(reports: Sequence[StageReport], outcome: str, first: Sequence[str] = ()) -> str:
    """Return a few lines about a run: `first`, else its warnings, else the notes of sampling and
    judging.
    """
    warnings = [warning for report in reports for warning in report.warnings]
    described = [
        report for report in reports if len(reports) == 1 or report.stage in {"sample", "judge"}
    ]
    notes = [note for report in described for note in report.notes[:1]]
    return (
        "; ".join(first[:_MOST_LINES] or warnings[:_MOST_LINES] or notes)
        or ENDINGS[outcome].state_name
    )


def may_pass(_task: object, _run: object, state: State[Any]) -> bool:
    """Return whether retrying a failed batch may help.

    A failed call is not a failed batch: it is a row, which the gateway or the next run retries.
    Calls in the ledger are not repeated.
    """
    return not isinstance(state.data, PipelineError | WarehouseError)


# The run as a whole


async def run_recorded(flow: Recordable[..., Result], job: Job, **options: Any) -> Result:
    """Run a flow on a job as a separate run, with tags to search for; it can be cancelled in the
    UI.
    """
    here = asyncio.current_task()
    assert here is not None
    logging.raiseExceptions = False  # Prefect would print every log line that it cannot send
    with tags(
        warehouse_name(job.warehouse), job.settings.benchmark, job.night or job.vintage, job.run_id
    ):
        watching = asyncio.create_task(_watch(job, here))
        try:
            return await recorded(flow, job, **options)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _watch(job: Job, work: "asyncio.Task[Any]") -> None:
    """Close the records of killed runs, and cancel the work when one of its runs is cancelled in
    the UI.
    """
    with _beside_the_work():
        async with get_client() as client:
            context = FlowRunContext.get()
            if context is not None and context.flow_run is not None:
                # The deployment's run around this one gets the same tag, so that a search finds
                # both.
                await client.update_flow_run(
                    context.flow_run.id, tags={*context.flow_run.tags, job.run_id}
                )
            here = {"any_": [warehouse_name(job.warehouse)]}
            shown = await _runs(client, here, "PENDING", "RUNNING", "CANCELLING")
            with Warehouse(job.warehouse).reader() as reader:
                rows = reader.select("runs", "run_id, outcome")
            ended = {row["run_id"]: row["outcome"] for row in rows if row["outcome"] != RUNNING}
            for run in shown:  # those in `ended` were killed, or Prefect's server was lost
                for outcome in [ended[tag] for tag in run.tags if tag in ended]:
                    state = state_of(
                        outcome, f"Ended unrecorded: {outcome}. The next run does the missing work."
                    )
                    await client.set_flow_run_state(run.id, state, force=True)
            while not UNRECORDED.is_set():
                await asyncio.sleep(_LOOK_EVERY_S)
                if await _runs(client, {"all_": [job.run_id]}, "CANCELLING", "CANCELLED"):
                    work.cancel()
                    return


async def _runs(client: PrefectClient, of_tags: dict[str, Any], *states: str) -> list[FlowRun]:
    wanted = FlowRunFilter.model_validate({"tags": of_tags, "state": {"type": {"any_": states}}})
    return await client.read_flow_runs(flow_run_filter=wanted)


# Names


def run_name() -> str:
    """Return the name of the new flow run: the flow, the warehouse, the night or vintage, the
    models.
    """
    job: Job = flow_run.parameters["job"]
    labels = list(job.named_models or [model.label for model in job.settings.models])
    more = f" +{len(labels) - _NAMED}" if len(labels) > _NAMED else ""
    when = job.night or (job.vintage if job.vintage != BASE_VINTAGE else "")
    where = (flow_run.flow_name, warehouse_name(job.warehouse), job.settings.benchmark)
    return " ".join(part for part in (*where, when, ", ".join(labels[:_NAMED]) + more) if part)


def warehouse_name(folder: Path) -> str:
    """Return the name of a warehouse: that of its folder, or of the folder around a default one."""
    is_default = folder.parts[-2:] in {("warehouse", "data"), ("warehouse", "embedded")}
    parts = folder.parts[:-2] if is_default else folder.parts
    return parts[-1].strip("/") or "root"


# Artifacts of a run in the UI


@contextmanager
def _beside_the_work() -> Iterator[None]:
    """Print that the UI does not show a part of the run if that fails; after a connection error,
    stop recording.
    """
    try:
        yield
    except httpx.TransportError as error:
        _give_up(error)
    except Exception as error:  # noqa: BLE001 - the UI is not the work
        if not UNRECORDED.is_set():
            notice(f"Prefect's UI does not show a part of this run ({type(error).__name__})")


async def _show(
    job: Job, what: str, kind: type[artifacts.Artifact], description: str, **content: Any
) -> None:
    """Show an artifact; a failure changes nothing about the run.

    Prefect keeps the history of artifacts with the same key, which names the warehouse and `what`.
    """
    name = warehouse_name(job.warehouse)
    path_hash = hashlib.sha256(str(job.warehouse).encode()).hexdigest()[:6]
    readable = re.sub(r"[^a-z0-9]+", "-", f"{name}-{job.settings.benchmark}-{what}".lower()).strip(
        "-"
    )
    with _beside_the_work():
        await kind(key=f"{readable}-{path_hash}", description=description, **content).acreate()


async def show_stage(job: Job, report: StageReport, line: str) -> None:
    """Write the result of a stage to the run's log and to an artifact."""
    log = get_run_logger()
    log.info(line)
    for warning in report.warnings:
        log.warning(warning)
    shown = [markdown_cell(visible(text)) for text in (line, *report.warnings)]
    text = "\n- ".join(shown)
    await _show(
        job,
        report.stage,
        artifacts.MarkdownArtifact,
        f"{report.stage}, run {job.run_id}",
        markdown=text,
    )


async def show_link(job: Job, link: str) -> None:
    """Link to the report of a run."""
    await _show(
        job,
        "report-link",
        artifacts.LinkArtifact,
        f"Run {job.run_id}",
        link=link,
        link_text="The report",
    )


_BOARD = (
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
    table = [
        {
            name: round(v, 4) if isinstance(v, float) else "" if v is None else v
            for name in _BOARD
            for v in [row[name]]
        }
        for row in leaderboard(job)[:200]
    ]
    if table:
        await _show(
            job,
            "leaderboard",
            artifacts.TableArtifact,
            f"Leaderboard after run {job.run_id}",
            table=table,
        )


@asynccontextmanager
async def progress_shown(stage: str, tallies: Sequence[Tally]) -> AsyncIterator[None]:
    """Show the progress of a stage that makes calls while the block runs, if it has any to make."""
    bars: list[UUID] = []

    async def watch() -> None:
        while True:
            await _show_progress(stage, tallies, bars)
            await asyncio.sleep(_RENEW_EVERY_S)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
    await _show_progress(stage, tallies, bars)


async def _show_progress(stage: str, tallies: Sequence[Tally], bars: list[UUID]) -> None:
    """Create the progress artifact and put it in `bars`, or update the one there; a lost server is
    left alone.
    """
    done, failed, total = (
        sum(getattr(each, name) for each in tallies) for name in ("done", "failed", "total")
    )
    text = f"{stage}: {done} of {total}" + (f", {failed} failed" if failed else "")
    with _beside_the_work():
        if bars and is_recorded():
            await artifacts.aupdate_progress_artifact(
                bars[0], 100.0 * done / total, description=text
            )
        elif total and is_recorded():  # without a key: only the page of the run shows it
            bars.append(
                await artifacts.acreate_progress_artifact(100.0 * done / total, description=text)
            )


# The log of a run: nothing is logged once it is no longer recorded

for _log in ("prefect.flow_runs", "prefect.task_runs"):
    logging.getLogger(_log).addFilter(lambda _: not UNRECORDED.is_set())
