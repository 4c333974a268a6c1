"""Stopping in order: a signal cancels a coroutine, and everything that was finished is written on the way out."""

import asyncio
import contextvars
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import FrameType
from typing import Any, TypeVar

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ECHO_S = 1.0
"""`uv run` may pass on a Ctrl-C that the terminal has sent to both: so soon after the first it is the same one."""
Result = TypeVar("Result")


def run_interruptibly(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end; SIGINT, SIGTERM or SIGHUP cancels it, and a second signal does not wait for it.

    A signal that is ignored (`nohup`) stays ignored. The event loop has a thread of its own: a signal handler that
    raises, as Python's and Prefect's do in the main thread, would raise wherever the loop happens to be, where an
    exception can get lost or end up in a group.

    Raises:
        asyncio.CancelledError: it was cancelled.
        KeyboardInterrupt: a second signal came before it had ended.
    """
    outcome: Future[Result] = Future()
    context = contextvars.copy_context()
    is_ready = threading.Event()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    stopped_s: list[float] = []

    async def watched() -> Result:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        is_ready.set()
        return await work()

    def thread() -> None:
        try:
            # In a copy of this thread's context, which holds the flow run that this may be a part of.
            outcome.set_result(context.run(asyncio.run, watched()))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            outcome.set_exception(error)

    def stop(_number: int, _frame: FrameType | None) -> None:
        if not stopped_s:
            stopped_s.append(time.monotonic())
            loop, task = running[0]
            loop.call_soon_threadsafe(task.cancel)
        elif time.monotonic() - stopped_s[0] > _ECHO_S:
            raise KeyboardInterrupt

    threading.Thread(target=thread, name="flow", daemon=True).start()
    is_ready.wait()
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        return outcome.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
