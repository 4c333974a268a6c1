"""The decorators of stages and batches: flows and tasks of Prefect where it records the run, else plain functions."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Generic, ParamSpec, TypeVar

from flows.run.errors import is_crash
from flows.run.recording import NotBegunError, is_recorded
from tasks.console import notice
from tasks.run.writing import StageReport

Arguments = ParamSpec("Arguments")
Reports = TypeVar("Reports", StageReport, list[StageReport])
Batch = Callable[[], Awaitable[StageReport]]
"""A call of a batch's function that is made when its turn comes."""


def job_flow(
    name: str,
) -> Callable[[Callable[Arguments, Awaitable[Reports]]], Callable[Arguments, Awaitable[Reports]]]:
    """Make a coroutine function on a job (its first argument) a flow.

    The run in Prefect ends in the state of its reports' outcome; awaited, it gives the reports whatever the state is.

    Raises:
        asyncio.CancelledError: it was cancelled, here or in Prefect's UI.
    """

    def decorate(work: Callable[Arguments, Awaitable[Reports]]) -> Callable[Arguments, Awaitable[Reports]]:
        @wraps(work)
        async def awaited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Reports:
            if is_recorded():
                from flows.recorded.runs import run_flow

                with suppress(NotBegunError):
                    return await run_flow(name, work, *args, **kwargs)
            return await work(*args, **kwargs)

        return awaited

    return decorate


class BatchTask(Generic[Arguments]):
    """A coroutine function on a batch of calls, as a task.

    A batch that crashes is run `retries` times more: calls that were made are in the ledger and not made again.
    """

    def __init__(self, work: Callable[Arguments, Awaitable[StageReport]], retries: int) -> None:
        self._work, self._retries = work, retries

    def named(self, name: str, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Batch:
        """A call for later, which has this name in Prefect's UI."""
        return partial(self._run, name, *args, **kwargs)

    async def _run(self, name: str, *args: Arguments.args, **kwargs: Arguments.kwargs) -> StageReport:
        if is_recorded():
            from flows.recorded.runs import run_task

            with suppress(NotBegunError):
                return await run_task(name, self._work, self._retries, *args, **kwargs)
        for _ in range(self._retries):
            try:
                return await self._work(*args, **kwargs)
            except Exception as error:
                if not is_crash(error):
                    raise
                notice(f"{name} is run again after {type(error).__name__}: {error}")
        return await self._work(*args, **kwargs)


def batch_task(
    retries: int = 0,
) -> Callable[[Callable[Arguments, Awaitable[StageReport]]], BatchTask[Arguments]]:
    """Make a coroutine function on a batch a task."""
    return lambda work: BatchTask(work, retries)
