"""A Prefect flow about a job: its name, how it is cancelled, and the state that says how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from prefect import State, flow
from prefect.client.schemas.objects import StateType

from flows.artifacts import run_name
from flows.run.cancellation import STOPPED, cancellable, is_watched
from flows.run.outcomes import BELOW_BAR, DONE, ENDINGS, INTERRUPTED, outcome_of
from tasks.config import Job
from tasks.run import StageReport
from warehouse import Warehouse

Arguments = ParamSpec("Arguments")
Reports = TypeVar("Reports", StageReport, list[StageReport])
_MOST_LINES = 3
_CALLING_STAGES = {"sample", "judge"}


def job_flow(
    name: str,
) -> Callable[[Callable[Arguments, Awaitable[Reports]]], Callable[Arguments, Awaitable[Reports]]]:
    """Make a coroutine function on a job (its first argument) a Prefect flow.

    The flow ends in the state of its reports' outcome; awaited, it gives the reports whatever the state is.

    Raises:
        asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
    """

    def decorate(work: Callable[Arguments, Awaitable[Reports]]) -> Callable[Arguments, Awaitable[Reports]]:
        @wraps(work)
        async def ended(*args: Arguments.args, **kwargs: Arguments.kwargs) -> State[Any]:
            return await _state_after(cast(Job, kwargs.get("job") or args[0]), partial(work, *args, **kwargs))

        prefect_flow = flow(name=name, flow_run_name=run_name)(ended)

        @wraps(work)
        async def awaited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Reports:
            state: State[Any] = await prefect_flow(*args, **kwargs, return_state=True)
            if state.is_cancelled():
                raise asyncio.CancelledError
            found = await state.aresult(raise_on_failure=False)
            if isinstance(found, BaseException):
                raise found
            return cast(Reports, found)

        return awaited

    return decorate


async def _state_after(job: Job, work: Callable[[], Awaitable[StageReport | list[StageReport]]]) -> State[Any]:
    """Do the work of a flow, and give the state that it ends in."""
    is_part = is_watched()
    try:
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
