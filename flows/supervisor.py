"""Work in a process of its own that is stopped in good order: the runs it has under way end first, then it does.

The process has a session of its own, so that Ctrl-C in a terminal reaches the supervisor alone. A pipe joins the two:
when the supervisor's end closes, because it was asked to stop or because it was killed, the work comes to its end.
"""

import contextlib
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

from flows.engine_processes import end_engines
from flows.run.errors import explained
from tasks.console.progress import notice
from tasks.console.terminal import show_visibly
from tasks.rules.errors import PipelineError, UsageError

_LOOK_EVERY_S = 0.2
_ECHO_S = 1.0
"""Ctrl-C reaches `uv run` too, which may pass it on: a signal so soon after another is the same one."""
_SETTLE_S = 2.0
"""How long the runner has to tell the Prefect server what became of runs that could not say so themselves."""


@dataclass(frozen=True)
class Patience:
    """How long a stop waits: for the runs that are under way, then for the process that started them."""

    engines_s: float = 60.0
    work_s: float = 20.0


class WorkFailed(Exception):
    """The traceback of an error in the other process."""


def supervise(work: Callable[..., None], *arguments: Any, patience: Patience | None = None) -> None:
    """Do work in a process of its own until SIGINT or SIGTERM stops it; a second signal does not wait.

    Raises:
        PipelineError: the work failed, or it ended though nobody had asked it to.
    """
    patience = patience or Patience()
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    with _counted_signals() as signals:
        process = context.Process(target=_do, args=(theirs, patience, work, arguments))
        process.start()
        theirs.close()
        while process.is_alive() and not signals:
            process.join(_LOOK_EVERY_S)
        if signals:
            _stop(process, ours, signals, patience)
            return
    # The runs that it left behind.
    end_engines(_pid(process), patience.engines_s)
    raise _own_end(process, ours)


@contextlib.contextmanager
def _counted_signals() -> Iterator[list[float]]:
    """When signals to stop have come, in seconds of the monotonic clock; one that is ignored (nohup) stays so."""
    signals: list[float] = []

    def note(_number: int, _frame: FrameType | None) -> None:
        if not signals or time.monotonic() - signals[-1] > _ECHO_S:
            signals.append(time.monotonic())

    heeded = [
        number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]  # fmt: skip
    before = {number: signal.signal(number, note) for number in heeded}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(process: SpawnProcess, ours: "Connection[Any, Any]", signals: list[float], patience: Patience) -> None:
    notice("stopping: waiting for runs under way, which keep what they finished; interrupt again to stop at once")
    ours.close()
    deadline_s = time.monotonic() + patience.engines_s + _SETTLE_S + patience.work_s
    while process.is_alive() and len(signals) == 1 and time.monotonic() < deadline_s:
        process.join(_LOOK_EVERY_S)
    # Whatever is left now, for want of patience or of an end, goes with all that it started.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(_pid(process), signal.SIGKILL)
    process.kill()
    process.join()


def _pid(process: SpawnProcess) -> int:
    assert process.pid is not None
    return process.pid


def _own_end(process: SpawnProcess, ours: "Connection[Any, Any]") -> PipelineError:
    """Why the work ended: what it said itself, or else its exit code."""
    try:
        code, line, details = ours.recv()
    except EOFError:
        return PipelineError(f"what ran the deployments ended by itself (exit code {process.exitcode}); start it again")
    error = (UsageError if code == UsageError.exit_code else PipelineError)(line)
    error.__cause__ = WorkFailed(details)
    return error


def _do(supervisor: "Connection[Any, Any]", patience: Patience, work: Callable[..., None], arguments: Any) -> None:
    os.setsid()
    show_visibly()
    # A shell that starts the supervisor in the background has both ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_when_asked, args=(supervisor, patience), daemon=True).start()
    try:
        work(*arguments)
    except KeyboardInterrupt:
        return
    except Exception as error:  # noqa: BLE001 - the supervisor tells it
        supervisor.send((*explained(error), traceback.format_exc()))


def _end_when_asked(supervisor: "Connection[Any, Any]", patience: Patience) -> None:
    supervisor.poll(None)
    if end_engines(os.getsid(0), patience.engines_s):
        time.sleep(_SETTLE_S)
    os.kill(os.getpid(), signal.SIGINT)
