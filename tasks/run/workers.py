"""Worker processes: where calls are many, batches run in processes of their own, under the limits of the one run.

A call costs milliseconds of CPU before and after it waits, so one process bears a few hundred a second. A worker gets
batches, asks the run's process for permission call by call, and has a ledger file of its own.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tasks.config.settings import Job
from tasks.console.progress import advance, forward_to
from tasks.console.terminal import guard_log_records, show_visibly
from tasks.llm.channel import Channel
from tasks.llm.leases import ACQUIRE, GRANT, RELEASE, LeasedPermits, Lessor
from tasks.llm.limits.admission import Permits
from tasks.llm.litellm_setup import collect_seldom, warm_up
from tasks.llm.redaction import guard_logs, safe
from tasks.rules.errors import PipelineError
from tasks.run.run_context import ROLES, Desk, sit_down
from tasks.run.stage_report import StageReport

Batch = Callable[..., Awaitable[StageReport]]
_READY, _RUN, _DONE, _FAILED, _ADVANCE = "ready", "run", "done", "failed", "advance"
_MOST_CLOSING_S = 20.0


class WorkerLost(PipelineError):
    """A worker process ended before its work."""


class Worker:
    """The run's side of one worker process."""

    def __init__(self, process: asyncio.subprocess.Process, channel: Channel, permits: Mapping[str, Permits]) -> None:
        self._process, self._channel = process, channel
        self._lessor = Lessor(permits, channel)
        self._numbers = itertools.count()
        self._running: dict[int, asyncio.Future[StageReport]] = {}
        self._is_ready = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, job: Job, permits: Mapping[str, Permits], marks: Mapping[str, int]) -> "Worker":
        """Start a process and give it the job, and how far the ledger's files had come when the run began."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tasks.run.workers", str(theirs.fileno()), pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip
        channel = await Channel.over(ours)
        channel.send(job, marks)
        worker = cls(process, channel, permits)
        await worker._is_ready.wait()
        return worker

    @property
    def load(self) -> int:
        """How many batches it has in hand."""
        return len(self._running)

    @property
    def is_alive(self) -> bool:
        """Whether it takes batches."""
        return not self._listening.done()

    async def run(self, batch: Batch, *arguments: Any, **options: Any) -> StageReport:
        """Let it run a batch.

        Raises:
            WorkerLost: the process ended.
        """
        number = next(self._numbers)
        self._running[number] = asyncio.get_running_loop().create_future()
        self._channel.send(_RUN, number, batch, arguments, options)
        try:
            return await self._running[number]
        finally:
            self._running.pop(number, None)

    async def close(self) -> None:
        """Let it write what it has finished, and end."""
        self._channel.finish()
        try:
            async with asyncio.timeout(_MOST_CLOSING_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._listening
        self._channel.close()

    async def _listen(self) -> None:
        async for kind, *rest in self._channel.messages():
            if kind == ACQUIRE:
                self._lessor.ask(*rest)
            elif kind == RELEASE:
                self._lessor.release(*rest)
            elif kind == _READY:
                self._is_ready.set()
            elif kind == _ADVANCE:
                advance(rest[0], rest[1], succeeded=rest[2])
            else:
                self._ended(kind, *rest)
        self._is_ready.set()  # whoever waits for it finds that it has ended
        self._lessor.take_all_back()
        for waiting in self._running.values():
            if not waiting.done():
                waiting.set_exception(WorkerLost("a worker process ended in the middle of its work; run again"))

    def _ended(self, kind: str, number: int, what: Any) -> None:
        waiting = self._running.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_exception(what) if kind == _FAILED else waiting.set_result(what)


async def _serve(end: socket.socket) -> None:
    """Be a worker: run the batches that come, until the run has no more or has ended."""
    channel = await Channel.over(end)
    messages = channel.messages()
    job, marks = await anext(messages)
    permits = {role: LeasedPermits(role, channel) for role in ROLES}
    forward_to(lambda what, label, succeeded: channel.send(_ADVANCE, what, label, succeeded))
    desk = Desk(job, permits, marks)
    sit_down(job, desk)
    await asyncio.to_thread(warm_up)
    channel.send(_READY)
    tasks: set[asyncio.Task[None]] = set()
    async for kind, *rest in messages:
        if kind == GRANT:
            role, number, lease = rest
            permits[role].granted(number, lease)
        else:
            tasks.add(task := asyncio.create_task(_run(channel, *rest)))
            task.add_done_callback(tasks.discard)
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    desk.close()


async def _run(
    channel: Channel, number: int, batch: Batch, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    try:
        report = await batch(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - it is raised again where the batch is waited for
        channel.send(_FAILED, number, _portable(error))
    else:
        channel.send(_DONE, number, report)


def _portable(error: BaseException) -> Exception:
    """An error that another process can raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, PipelineError):
        return error
    return PipelineError(safe(f"in a worker process: {type(error).__name__}: {error}"))


def main() -> None:
    """Be the worker process at the other end of the socket whose number is the only argument."""
    # Ctrl-C reaches every process of a terminal; the run's own process decides what follows from it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_seldom()
    guard_logs()
    guard_log_records()
    show_visibly()
    with contextlib.suppress(BrokenPipeError):
        asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
