"""Stopping a flow in good order: a signal cancels it, and everything that was finished is written on the way out."""

import asyncio
import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import FrameType
from typing import Any, TypeVar

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
Result = TypeVar("Result")


def run_interruptibly(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end; SIGINT or SIGTERM cancels it, and a second one stops waiting for it.

    The event loop has a thread of its own. A signal handler that raises, as Python's and Prefect's do in the main
    thread, would raise wherever the loop happens to be, where an exception can get lost or end up in a group.

    Raises:
        asyncio.CancelledError: it was cancelled.
        KeyboardInterrupt: a second signal came before it had ended.
    """
    outcome: Future[Result] = Future()
    context = contextvars.copy_context()
    is_ready = threading.Event()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

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
        for number in _SIGNALS:
            signal.signal(number, signal.default_int_handler)
        loop, task = running[0]
        loop.call_soon_threadsafe(task.cancel)

    threading.Thread(target=thread, name="flow", daemon=True).start()
    is_ready.wait()
    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        return outcome.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
