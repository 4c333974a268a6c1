"""Calls of stages and batches, which Prefect records within a recorded run.

Work does not depend on recording: if Prefect's server is lost, unfinished and later calls run as
plain functions. Prefect alone would fail the run. `call` is for whoever calls a stage or a batch,
`reported` for the flow of a stage; the others are for what Prefect's UI shows (`flows/ui.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import httpx
from prefect import Flow, State, Task
from prefect.client.schemas.objects import StateType
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, Pause

from flows.run.outcomes import (
    BELOW_BAR,
    DONE,
    ENDINGS,
    INTERRUPTED,
    INTERRUPTED_MESSAGE,
    message_of,
    outcome_of,
)
from tasks.console import notice
from warehouse import Warehouse

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
StageWork = Callable[Parameters, Coroutine[Any, Any, Result]]
Recordable = (
    Flow[Parameters, Coroutine[Any, Any, Result]] | Task[Parameters, Coroutine[Any, Any, Result]]
)


@dataclass
class _Recording:
    """The recording of one run, shared by all its calls; once it is lost, it stays lost."""

    is_lost: bool = False


# A call finds the recording of its run in its context, however deep it is. Without one, as in a run
# with `--no-prefect`, calls are plain.
_recording: ContextVar[_Recording | None] = ContextVar("recording", default=None)
# Prefect does not return the result of a flow whose end it could not record. So each flow leaves
# its result here for its caller, which need not do the work again.
_results: ContextVar[list[Any]] = ContextVar("results")


async def call(
    work: Recordable[Parameters, Result],
    *args: Parameters.args,
    **kwargs: Parameters.kwargs,
) -> Result:
    """Call a flow or a task: recorded within a recorded run, else as a plain function.

    Raises:
        asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
    """
    if not is_recorded():
        return await work.fn(*args, **kwargs)
    task = asyncio.current_task()
    assert task is not None
    n_cancellations = task.cancelling()
    results: list[Result] = []
    token = _results.set(results)
    state: State[Any] | None = None
    try:
        # Errors of the work are in its state.
        state = await cast(Any, work)(*args, **kwargs, return_state=True)
    except (Exception, Abort, Pause) as error:  # noqa: BLE001 - not of the work
        _give_up(error)
    finally:
        _results.reset(token)
    # Prefect makes a state or an error of a cancellation, but the caller must end, too. An error
    # that ends a task group leaves a cancellation of its own (before Python 3.13).
    has_failed = state is not None and state.is_failed()
    if task.cancelling() > n_cancellations and not has_failed:
        raise asyncio.CancelledError
    if state is not None and state.is_cancelled():
        raise asyncio.CancelledError
    if results:
        return results[-1]
    if state is None:
        return await work.fn(*args, **kwargs)  # what it has finished is not done again
    result: Result = await state.aresult()
    return result


def reported(work: StageWork[Parameters, Result]) -> StageWork[Parameters, Result]:
    """Make a flow end in the Prefect state of its outcome; as a plain function it returns reports.

    Without it, Prefect would show every flow that returns as *Completed*, also one below the bar.
    """

    @wraps(work)
    async def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        context = FlowRunContext.get()
        # A plain call may be made within the run of another flow.
        if context is None or context.flow is None or context.flow.fn is not run:
            return await work(*args, **kwargs)
        with recording():  # a flow that is called in Python is a run of its own
            try:
                result = await work(*args, **kwargs)
            except asyncio.CancelledError:
                return cast(Result, state_of(INTERRUPTED, INTERRUPTED_MESSAGE))
        _results.get([]).append(result)  # a run that Prefect itself started has no caller here
        return cast(Result, _final_state(context, result))

    return run


def _final_state(context: FlowRunContext, result: Any) -> State[Any]:
    """Return the state of a flow run with these reports.

    On a damaged warehouse it is below the bar: the run as a whole shows the damage, not each of its
    stages.
    """
    reports = result if isinstance(result, list) else [result]
    outcome = outcome_of(reports)
    is_stage = context.flow_run is not None and context.flow_run.parent_task_run_id is not None
    if outcome == DONE and not is_stage:
        assert context.parameters is not None
        if Warehouse(context.parameters["job"].warehouse).is_damaged():
            outcome = BELOW_BAR
    return state_of(outcome, message_of(reports, outcome), result)


def state_of(outcome: str, message: str, data: Any = None) -> State[Any]:
    """Return the final Prefect state of a run with this outcome."""
    ending = ENDINGS[outcome]
    return State(
        type=StateType(ending.state_type),
        name=ending.state_name,
        message=message,
        data=data,
    )


# Whether the run is recorded


@contextmanager
def recording() -> Iterator[None]:
    """Let Prefect record the calls in this block, unless its server is lost."""
    if _recording.get() is not None:
        yield
        return
    token = _recording.set(_Recording())
    try:
        yield
    finally:
        _recording.reset(token)


def is_recorded() -> bool:
    """Return whether this is part of a run that Prefect records."""
    run_recording = _recording.get()
    return run_recording is not None and not run_recording.is_lost


def _give_up(error: BaseException) -> None:
    """End the recording of the run, and say so once."""
    run_recording = _recording.get()
    if run_recording is None or run_recording.is_lost:
        return
    run_recording.is_lost = True
    notice(
        f"Prefect's server does not record this run any more ({type(error).__name__}) and may"
        " keep showing it as running; the run continues, and `prbench status --runs` shows how"
        " it ends"
    )


@contextmanager
def ignoring_ui_errors() -> Iterator[None]:
    """Ignore errors of code for Prefect's UI; a lost server ends the recording."""
    try:
        yield
    except httpx.TransportError as error:
        _give_up(error)
    except Exception as error:  # noqa: BLE001 - the UI is not the work
        if is_recorded():
            notice(f"Prefect's UI does not show a part of this run ({type(error).__name__})")


def _can_be_sent(_line: logging.LogRecord) -> bool:
    run_recording = _recording.get()
    return run_recording is None or not run_recording.is_lost


# Prefect would try to send each log line of a run to its server, also when that is lost.
for _name in ("prefect.flow_runs", "prefect.task_runs"):
    logging.getLogger(_name).addFilter(_can_be_sent)
