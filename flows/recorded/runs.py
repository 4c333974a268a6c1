"""Flows and tasks of Prefect: how a run is named, how it is cancelled, and the state that says how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial, wraps
from typing import Any, TypeVar, cast

from prefect import Flow, State, Task, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import StateType
from prefect.runtime import flow_run

from flows.recorded.artifacts import shown_on
from flows.recorded.names import run_name
from flows.run.cancellation import STOPPED, cancellable, is_watched
from flows.run.errors import is_crash
from flows.run.outcomes import BELOW_BAR, DONE, ENDINGS, INTERRUPTED, outcome_of
from tasks.config import Job
from tasks.run import StageReport
from warehouse import Warehouse

Reports = TypeVar("Reports", StageReport, list[StageReport])
_MOST_LINES = 3
_CALLING_STAGES = {"sample", "judge"}


async def run_flow(name: str, work: Callable[..., Awaitable[Reports]], *args: Any, **kwargs: Any) -> Reports:
    """Run a coroutine function on a job as a Prefect flow, and give its reports whatever state it ends in.

    Raises:
        asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
    """
    run: Any = _flow(name, work)
    state: State[Any] = await run(*args, **kwargs, return_state=True)
    if state.is_cancelled():
        raise asyncio.CancelledError
    found = await state.aresult(raise_on_failure=False)
    if isinstance(found, BaseException):
        raise found
    return cast(Reports, found)


async def run_task(
    name: str, work: Callable[..., Awaitable[StageReport]], retries: int, *args: Any, **kwargs: Any
) -> StageReport:
    """Run a coroutine function on a batch as a Prefect task."""
    run: Any = _task(work, retries).with_options(task_run_name=name)
    return cast(StageReport, await run(*args, **kwargs))


@cache
def _flow(name: str, work: Callable[..., Awaitable[Any]]) -> Flow[..., Any]:
    @wraps(work)
    async def ended(*args: Any, **kwargs: Any) -> State[Any]:
        return await _state_after(cast(Job, kwargs.get("job") or args[0]), partial(work, *args, **kwargs))

    return flow(name=name, flow_run_name=run_name)(ended)


@cache
def _task(work: Callable[..., Awaitable[StageReport]], retries: int) -> Task[..., Any]:
    def is_to_retry(_task: object, _run: object, state: State[Any]) -> bool:
        return is_crash(state.data)

    return task(name=work.__name__, cache_policy=NO_CACHE, retries=retries, retry_condition_fn=is_to_retry)(work)


async def _state_after(job: Job, work: Callable[[], Awaitable[StageReport | list[StageReport]]]) -> State[Any]:
    """Do the work of a flow, and give the state that it ends in."""
    is_part = is_watched()
    try:
        with shown_on(flow_run.id):
            async with cancellable():
                found = await work()
    except asyncio.CancelledError:
        return state_of(INTERRUPTED, STOPPED)
    reports = found if isinstance(found, list) else [found]
    outcome = outcome_of(reports)
    if outcome == DONE and not is_part and Warehouse(job.warehouse).is_damaged():
        outcome = BELOW_BAR
    return state_of(outcome, message_of(reports, outcome), found)


def state_of(outcome: str, message: str, data: Any = None) -> State[Any]:
    """The final state in Prefect of a run with an outcome."""
    ending = ENDINGS[outcome]
    return State(type=StateType(ending.state_type), name=ending.state_name, message=message, data=data)


def message_of(reports: Sequence[StageReport], outcome: str, first: Sequence[str] = ()) -> str:
    """What to know about a run in a few lines: `first`, else its warnings, else what was sampled and judged."""
    warnings = [warning for report in reports for warning in report.warnings]
    notes = [
        note for report in reports for note in report.notes[:1] if len(reports) == 1 or report.stage in _CALLING_STAGES
    ]
    return "; ".join(first[:_MOST_LINES] or warnings[:_MOST_LINES] or notes) or ENDINGS[outcome].state_name
