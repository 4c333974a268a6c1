"""Stopping in order: a signal cancels a coroutine, and everything that was finished is written on the way out."""

import asyncio
import contextvars
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import FrameType
from typing import Any, Generic, TypeVar

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ECHO_S = 1.0
"""`uv run` may pass on a Ctrl-C that the terminal has sent to both: so soon after the first it is the same one."""
Result = TypeVar("Result")


def run_interruptibly(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end; SIGINT, SIGTERM or SIGHUP cancels it, and a second signal does not wait for it.

    A signal that is ignored (`nohup`) stays ignored.

    Raises:
        asyncio.CancelledError: it was cancelled.
        KeyboardInterrupt: a second signal came before it had ended.
    """
    running = _Running(work)
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, running.stop) for number in heeded}
    try:
        return running.outcome.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Running(Generic[Result]):
    """A coroutine that is run by an event loop in a thread of its own.

    A signal handler that raises, as Python's and Prefect's do in the main thread, would raise wherever the loop happens
    to be, where an exception can get lost or end up in a group.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> None:
        self.outcome: Future[Result] = Future()
        self._work = work
        # Of this thread: it holds the flow run that this may be a part of.
        self._context = contextvars.copy_context()
        self._is_ready = threading.Event()
        self._stopped_s: float | None = None
        threading.Thread(target=self._run, name="flow", daemon=True).start()
        self._is_ready.wait()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: cancel the coroutine, or, the second time, raise."""
        if self._stopped_s is None:
            self._stopped_s = time.monotonic()
            self._loop.call_soon_threadsafe(self._task.cancel)
        elif time.monotonic() - self._stopped_s > _ECHO_S:
            raise KeyboardInterrupt

    def _run(self) -> None:
        try:
            self.outcome.set_result(self._context.run(asyncio.run, self._watched()))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            self.outcome.set_exception(error)

    async def _watched(self) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self._loop, self._task = asyncio.get_running_loop(), task
        self._is_ready.set()
        return await self._work()
