"""The ledger: every finished call is on disk before anything else sees it.

One SQLite file a process, in WAL mode, below one folder. Calls are keyed by `call_key` and attempt; what is written is
durable when `record` returns. A thread of its own commits whatever came in since the last commit together, so that
one `fsync` serves many calls.
"""

import asyncio
import contextlib
import fcntl
import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tasks.llm.entries import COLUMNS, Entry, History
from tasks.llm.salvage import set_aside
from tasks.progress import say
from tasks.rules.errors import PipelineError

_MOST_FILES = 256
_GROUP = 512
_SCHEMA = f"""
    create table if not exists calls ({", ".join(COLUMNS)}, primary key (call_key, attempt));
    create table if not exists spent (call_key text primary key, attempt integer not null);
"""
_INSERT = f"insert or replace into calls values ({', '.join('?' * len(COLUMNS))})"
_SPEND = "insert into spent values (?, ?) on conflict do update set attempt = max(attempt, excluded.attempt)"
_MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is looked through for damage when it is opened; larger ones show it when they are read."""


Statement = tuple[str, Sequence[tuple[Any, ...]]]
"""SQL and the rows of values that it is executed with."""


@dataclass(frozen=True)
class _Write:
    statements: tuple[Statement, ...]
    loop: asyncio.AbstractEventLoop | None = None
    done: "asyncio.Future[None] | None" = None


class Ledger:
    """The calls of a warehouse: those of this process, and read-only those of all others.

    Raises:
        PipelineError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock, self.path = _own_file(folder)
        except OSError as error:
            raise PipelineError(
                f"{folder}: cannot be written ({error.strerror}); make room or another place"
            ) from error
        self._connection = opened(self.path)
        self._readers = {self.path: _reader(self.path)}
        self.look_around()
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._broken: PipelineError | None = None
        self._writer = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._writer.start()

    def look_around(self) -> None:
        """Take notice of the files of other processes, those that began after this one included."""
        for path in sorted(self._folder.glob("calls-*.sqlite")):
            if path not in self._readers:
                with _if_nobody_writes(path) as is_free:
                    if is_free:
                        opened(path).close()  # mends what a crash left
                self._readers[path] = _reader(path)

    def history(self, key: str) -> History:
        """All that is known of a call.

        Raises:
            PipelineError: a file is damaged.
        """
        entries: list[Entry] = []
        spent = 0
        for path, connection in self._readers.items():
            try:
                entries += map(Entry.of, connection.execute("select * from calls where call_key = ?", [key]))
                for (attempt,) in connection.execute("select attempt from spent where call_key = ?", [key]):
                    spent = max(spent, attempt)
            except sqlite3.DatabaseError as error:
                raise PipelineError(f"{path}: cannot be read ({error}); move it away and run again") from error
        return History(tuple(sorted(entries, key=lambda entry: entry.attempt)), spent)

    async def record(self, entry: Entry) -> None:
        """Write a finished call; it is durable when this returns.

        Raises:
            PipelineError: the disk refuses.
        """
        await self.write((_INSERT, [entry.values]))

    async def write(self, *statements: Statement) -> None:
        """Execute statements in one transaction; they are durable when this returns."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._put(_Write(statements, loop, done))
        await done

    def spend(self, paid: Sequence[tuple[str, int]]) -> None:
        """Note that attempts up to these have become failed rows: they are no answer to a later call."""
        if paid:
            self._put(_Write(((_SPEND, paid),)))

    def add_tables(self, schema: str) -> None:
        """Have further tables in every file; called before anything is written to them."""
        self._connection.executescript(schema)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds in all files; one that lacks the table has nothing."""
        found: list[tuple[Any, ...]] = []
        for connection in self._readers.values():
            try:
                found += connection.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
        return found

    def close(self) -> None:
        """Commit what is left and give the file back."""
        self._writes.put(None)
        self._writer.join()
        for connection in (self._connection, *self._readers.values()):
            connection.close()
        self._lock.close()

    def _put(self, write: _Write) -> None:
        if self._broken is not None:
            raise self._broken
        self._writes.put(write)

    def _write(self) -> None:
        """Commit what came in, all at once, until told to stop."""
        is_open = True
        while is_open:
            group = [self._writes.get()]
            with contextlib.suppress(queue.Empty):
                while len(group) < _GROUP:
                    group.append(self._writes.get_nowait())
            is_open = None not in group
            writes = [write for write in group if write is not None]
            _tell(writes, self._commit(writes))

    def _commit(self, writes: list[_Write]) -> PipelineError | None:
        if self._broken is None and writes:
            try:
                with self._connection:
                    self._connection.execute("begin")
                    for write in writes:
                        for statement, values in write.statements:
                            self._connection.executemany(statement, values)
            except sqlite3.Error as error:
                self._broken = PipelineError(
                    f"{self.path}: cannot be written ({error}); make room for it and run again"
                )
        return self._broken


def _tell(writes: list[_Write], error: PipelineError | None) -> None:
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


def opened(path: Path) -> sqlite3.Connection:
    """A ledger file, made where it is missing, and begun anew from what can be read where it is damaged."""
    try:
        return _connect(path)
    except sqlite3.DatabaseError as error:
        kept, aside = set_aside(path, COLUMNS)
        connection = _connect(path)
        with connection:
            connection.executemany(_INSERT, kept)
        say(
            f"{path}: is damaged ({error}); {len(kept)} calls were saved from it, the file is now {aside.name}; "
            "calls that are neither in it nor in a table are made again"
        )
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
    try:
        connection.execute("pragma journal_mode = wal")
        # FULL: a commit is on the disk when it returns, also if the machine loses its power.
        connection.execute("pragma synchronous = full")
        connection.executescript(_SCHEMA)
        _look_through(connection, path)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _look_through(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size <= _MOST_CHECKED_BYTES:
        verdict = connection.execute("pragma quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)


def _reader(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed and nothing else."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False, timeout=30)


@contextlib.contextmanager
def _if_nobody_writes(path: Path) -> Iterator[bool]:
    """Hold a file's lock if it is free; tells whether it was."""
    with path.with_suffix(".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _own_file(folder: Path) -> tuple[TextIO, Path]:
    """The first file that no other process writes, with the lock that keeps it so."""
    for number in range(_MOST_FILES):
        lock = (folder / f"calls-{number}.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return lock, folder / f"calls-{number}.sqlite"
    raise PipelineError(f"{folder}: {_MOST_FILES} processes are at work on this warehouse")
