"""Flows and tasks of Prefect: how a run is named, how it is cancelled, and the state that says how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from typing import Any, Generic, TypeVar, cast

from prefect import Flow, State, Task, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import StateType
from prefect.exceptions import Abort, Pause
from prefect.runtime import flow_run

from flows.recorded.artifacts import shown_on
from flows.recorded.names import run_name
from flows.recorded.patience import where
from flows.run.cancellation import STOPPED, cancellable, is_watched
from flows.run.errors import is_crash
from flows.run.outcomes import BELOW_BAR, DONE, ENDINGS, INTERRUPTED, outcome_of
from flows.run.recording import NotBegunError, give_up_recording
from tasks.config.job import Job
from tasks.run.writing import StageReport
from warehouse import Warehouse

Reports = TypeVar("Reports", StageReport, list[StageReport])
Result = TypeVar("Result")
_MOST_LINES = 3
_CALLING_STAGES = {"sample", "judge"}


@dataclass
class _Work(Generic[Result]):
    """Work that Prefect is to run, and what it came to: that must not depend on what becomes of the record."""

    begin: Callable[[], Awaitable[Result]]
    results: list[Result] = field(default_factory=list)
    error: BaseException | None = None

    async def run(self) -> Result:
        """Do the work; again, where Prefect retries it."""
        self.results, self.error = [], None
        try:
            self.results.append(await self.begin())
        except BaseException as error:
            self.error = error
            raise
        return self.results[0]

    async def recorded(self, run: Callable[[], Awaitable[State[Any]]]) -> Result:
        """What the work comes to in a run of Prefect's that does it.

        Raises:
            NotBegunError: Prefect failed before it began the work.
            asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
        """
        token = _work.set(self)
        state: State[Any] | None = None
        try:
            state = await run()
        except (Exception, Abort, Pause) as error:  # noqa: BLE001 - the work's own errors are in the state that it gives
            give_up_recording(f"{where()} cannot record the run ({type(error).__name__})")
            _end_if_cancelled()
        finally:
            _work.reset(token)
        if self.error is not None:
            raise self.error
        if self.results:
            return self.results[0]
        if state is not None and state.is_cancelled():
            raise asyncio.CancelledError
        give_up_recording(f"{where()} did not begin the run")
        raise NotBegunError


def _end_if_cancelled() -> None:
    """Go on with a cancellation that got lost when what Prefect did on it failed too."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


_work: ContextVar[_Work[Any]] = ContextVar("work")


async def run_flow(name: str, work: Callable[..., Awaitable[Reports]], *args: Any, **kwargs: Any) -> Reports:
    """Run a coroutine function on a job as a Prefect flow, and give its reports whatever state it ends in.

    Raises:
        NotBegunError: Prefect failed before it began the work.
        asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
    """
    run: Any = _flow(name, work)
    return await _Work(partial(work, *args, **kwargs)).recorded(partial(run, *args, **kwargs, return_state=True))


async def run_task(
    name: str, work: Callable[..., Awaitable[StageReport]], retries: int, *args: Any, **kwargs: Any
) -> StageReport:
    """Run a coroutine function on a batch as a Prefect task.

    Raises:
        NotBegunError: Prefect failed before it began the work.
    """
    run: Any = _task(work, retries).with_options(task_run_name=name)
    return await _Work(partial(work, *args, **kwargs)).recorded(partial(run, *args, **kwargs, return_state=True))


@cache
def _flow(name: str, work: Callable[..., Awaitable[Any]]) -> Flow[..., Any]:
    @wraps(work)
    async def ended(*args: Any, **kwargs: Any) -> State[Any]:
        return await _state_after(cast(Job, kwargs.get("job") or args[0]), _work.get().run)

    return flow(name=name, flow_run_name=run_name)(ended)


@cache
def _task(work: Callable[..., Awaitable[StageReport]], retries: int) -> Task[..., Any]:
    def is_to_retry(_task: object, _run: object, state: State[Any]) -> bool:
        return is_crash(state.data)

    @wraps(work)
    async def done(*_: Any, **__: Any) -> StageReport:
        return cast(StageReport, await _work.get().run())

    return task(name=work.__name__, cache_policy=NO_CACHE, retries=retries, retry_condition_fn=is_to_retry)(done)


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
