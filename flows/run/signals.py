"""Running a coroutine that SIGINT, SIGTERM or SIGHUP cancels."""

import asyncio
import contextvars
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, TypeVar

_ECHO_S = 1.0
"""A second signal within this time counts as the first: the terminal sends a Ctrl-C to both
processes, and `uv run` may pass its own on.
"""
Result = TypeVar("Result")


def run_interruptibly(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end; SIGINT, SIGTERM or SIGHUP cancels it.

    A second signal ends the wait. A signal that is ignored (`nohup`) stays ignored.

    The coroutine runs on an event loop in another thread. In the main thread, the handlers of
    Python and Prefect would raise at any point of the loop, where an exception can get lost or end
    up in a group.

    Raises:
        asyncio.CancelledError: it was cancelled.
        KeyboardInterrupt: a second signal came before it had ended.
    """
    canceller: Future[Callable[[], object]] = Future()
    outcome: Future[Result] = Future()
    context = contextvars.copy_context()  # it holds the parent flow run, if any

    async def run_cancellably() -> Result:
        task = asyncio.current_task()
        assert task is not None
        canceller.set_result(partial(task.get_loop().call_soon_threadsafe, task.cancel))
        return await work()

    def run_loop() -> None:
        try:
            outcome.set_result(context.run(asyncio.run, run_cancellably()))
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it again
            outcome.set_exception(error)
            if not canceller.done():  # the loop could not start
                canceller.set_exception(error)

    threading.Thread(target=run_loop, daemon=True).start()
    with _signals_cancel(canceller.result()):
        return outcome.result()


@contextmanager
def _signals_cancel(cancel: Callable[[], object]) -> Iterator[None]:
    """Let the first signal in the block cancel, and a second one raise `KeyboardInterrupt`."""
    first_signal_s = None

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal first_signal_s
        if first_signal_s is None:
            first_signal_s = time.monotonic()
            with suppress(RuntimeError):  # the loop has just been closed
                cancel()
        elif time.monotonic() - first_signal_s > _ECHO_S:
            raise KeyboardInterrupt

    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # None: a handler that is not Python's, which could not be restored.
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            handlers[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
