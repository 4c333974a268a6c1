"""The ledger: every finished call is on disk before anything else sees it.

One SQLite file in WAL mode, which all processes at work on a warehouse share. Calls are keyed by `call_key` and
attempt; what is written is durable when `record` returns. A thread of its own commits whatever came in since the last
commit together, so that one `fsync` serves many calls.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.llm.ledger.call_locks import CallLocks
from tasks.llm.ledger.damage import refused
from tasks.llm.ledger.entries import Entry, History, logprobs_as_text
from tasks.llm.ledger.files import in_use, writer_of
from tasks.llm.ledger.paths import ledger_path
from tasks.llm.ledger.reading import LedgerReader
from tasks.llm.ledger.schema import INSERT, KEEP_LOGPROBS, SPENT, with_checksum
from tasks.llm.ledger.spend import ADD_SPEND, spend_of
from tasks.rules.errors import PipelineError

_GROUP = 512
Statement = tuple[str, Sequence[tuple[Any, ...]]]
"""SQL and the rows of values that it is executed with."""


def recorded(entries: Sequence[Entry]) -> tuple[Statement, ...]:
    """What writes finished calls down, with what they cost."""
    calls = [with_checksum(entry.values) for entry in entries]
    logprobs = [
        (entry.call_key, entry.attempt, logprobs_as_text(entry.reply.logprobs))
        for entry in entries
        if entry.reply.logprobs is not None
    ]
    kept = [(KEEP_LOGPROBS, logprobs)] if logprobs else []
    return (INSERT, calls), (ADD_SPEND, [spend_of(entry) for entry in entries]), *kept


@dataclass(frozen=True)
class _Write:
    statements: tuple[Statement, ...]
    loop: asyncio.AbstractEventLoop | None = None
    done: "asyncio.Future[None] | None" = None


class Ledger:
    """The calls of a warehouse.

    `call_locks` keep processes from making the same call at once. `why_lost` gives a reason to write nothing more.

    Raises:
        PipelineError: the folder cannot be written, or a file is of another version.
    """

    def __init__(self, folder: Path, why_lost: Callable[[], str | None] = lambda: None) -> None:
        self.path = ledger_path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = in_use(folder)
            self.call_locks = CallLocks(folder)
        except OSError as error:
            raise PipelineError(
                f"{folder}: cannot be written ({error.strerror}); make room or another place"
            ) from error
        self._connection = writer_of(self.path)
        self._reader = LedgerReader(self.path)
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._why_lost = why_lost
        self._broken: PipelineError | None = None
        self._writer = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._writer.start()

    def history(self, key: str) -> History:
        """All that is known of a call, by any process.

        Raises:
            PipelineError: the file is damaged.
        """
        return self._reader.history(key)

    def refuse_if_broken(self) -> None:
        """Raise why nothing can be written, such as what the disk said: no call is made that has no place."""
        if (broken := self._why_broken()) is not None:
            raise broken

    async def record(self, entry: Entry) -> None:
        """Write a finished call; it is durable when this returns.

        Raises:
            PipelineError: the disk refuses.
        """
        await self.write(*recorded([entry]))

    async def write(self, *statements: Statement) -> None:
        """Execute statements in one transaction; they are durable when this returns."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._put(_Write(statements, loop, done))
        await done

    def mark_used(self, paid: Sequence[tuple[str, int]]) -> None:
        """Note that attempts up to these have become failed rows: they are no answer to a later call."""
        if paid:
            self._put(_Write(((SPENT, paid),)))

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds."""
        return self._reader.rows(query, *values)

    def close(self) -> None:
        """Commit what is left and close the file."""
        self._writes.put(None)
        self._writer.join()
        # The last writer moves what is in its log to the file itself, which may be another machine's by now.
        closing = [self._reader.close, self._connection.close]
        for close in closing if self._why_lost() is None else reversed(closing):
            close()
        self.call_locks.close()
        self._lock.close()

    def _why_broken(self) -> PipelineError | None:
        if self._broken is None and (why := self._why_lost()) is not None:
            self._broken = PipelineError(why)
        return self._broken

    def _put(self, write: _Write) -> None:
        self.refuse_if_broken()
        self._writes.put(write)

    def _write(self) -> None:
        """Commit what came in, all at once, until it is stopped."""
        is_open = True
        while is_open:
            group = [self._writes.get()]
            with contextlib.suppress(queue.Empty):
                while len(group) < _GROUP:
                    group.append(self._writes.get_nowait())
            is_open = None not in group
            writes = [write for write in group if write is not None]
            _resolve(writes, self._commit(writes))

    def _commit(self, writes: list[_Write]) -> PipelineError | None:
        if writes and self._why_broken() is None:
            try:
                with self._connection:
                    self._connection.execute("begin")
                    for write in writes:
                        for statement, values in write.statements:
                            self._connection.executemany(statement, values)
            except (sqlite3.Error, ValueError, OverflowError) as error:
                self._broken = refused(self.path, "written", error, "make room for it and run again")
        return self._broken


def _resolve(writes: list[_Write], error: PipelineError | None) -> None:
    """Wake those that wait for a commit, once for each event loop."""
    waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for write in writes:
        if write.loop is not None and write.done is not None:
            waiting.setdefault(write.loop, []).append(write.done)

    def wake(futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(error) if error else future.set_result(None)

    for loop, futures in waiting.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(wake, futures)
