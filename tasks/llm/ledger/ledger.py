"""The ledger: every finished call is on disk before anything else sees it; and the locks of calls.

It is one SQLite file in WAL mode, which all processes of a warehouse share. Calls are keyed by
`call_key` and attempt; they are durable when `record` returns. A separate thread commits all calls
since the last commit together, so that one `fsync` serves many calls. Calls that other processes
write meanwhile are read, too.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import sqlite3
import struct
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tasks.console import notice
from tasks.llm.ledger import files, opening
from tasks.llm.ledger.entries import (
    ATTEMPT_COLUMNS,
    ENDED,
    SPEND_COLUMNS,
    SPEND_KEY,
    SPENT,
    Entry,
    History,
    Statement,
    checksum_of,
    recorded,
)
from tasks.llm.replies import EMPTY, UNCLEAR
from tasks.llm.request import Call
from tasks.rules.errors import PipelineError
from tasks.rules.identity import adopted_key

Result = TypeVar("Result")
_FLOCK = struct.Struct("hhqqi0q")
"""`struct flock` of Linux: type, whence, start, length, process."""


class CallLocks:
    """Call locks: one process of a warehouse makes a call, and the others wait for its reply.

    A call lock is a lock on one byte of an empty file; the byte's offset is the hash of the name.
    The kernel frees a lock when its holder ends, however it ends. The locks belong to the opened
    file and not to the process (`F_OFD_SETLK`): POSIX locks of a process would not separate two
    runs in one process, and closing any file object on that file would free all of them. Two names
    with the same hash only wait for each other.

    Raises:
        OSError: the file of the locks cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "call-locks.lock").open("a+")
        self._held: set[int] = set()

    @contextlib.contextmanager
    def holding(self, name: str) -> Iterator[bool]:
        """Lock a name until the block ends, if it is free; yield whether it was locked."""
        # Below the largest offset of a file, so that the byte fits.
        offset = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 2
        # The kernel would grant a lock again to the process that holds it.
        if offset in self._held or not self._set(fcntl.F_WRLCK, offset):
            yield False
            return
        self._held.add(offset)
        try:
            yield True
        finally:
            self._held.discard(offset)
            if not self._file.closed:
                self._set(fcntl.F_UNLCK, offset)

    def _set(self, kind: int, offset: int) -> bool:
        """Lock or free a byte of the file; return False if another process holds it."""
        with contextlib.suppress(BlockingIOError):
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, 0, offset, 1, 0))
            return True
        return False

    def is_held(self, name: str) -> bool:
        """Return whether any process, this one included, holds the lock."""
        with self.holding(name) as is_free:
            return not is_free

    async def released(self, name: str, until_s: float | None = None) -> None:
        """Wait until no process holds the lock, or until a moment of wall-clock time."""
        look_s = 0.01
        while self.is_held(name) and (until_s is None or time.time() < until_s):
            await asyncio.sleep(look_s)
            look_s = min(0.25, 1.5 * look_s)

    def close(self) -> None:
        """Free all locks."""
        self._file.close()


_HISTORY = """
    select spent.attempt, spent.checksum, logprobs.tokens, logprobs.checksum, calls.rowid > ?, calls.*
    from (select ? as wanted)
    left join calls on calls.call_key = wanted left join spent on spent.call_key = wanted
    left join logprobs on logprobs.call_key = wanted and logprobs.attempt = calls.attempt
"""
"""A single statement, because each statement begins and ends a read transaction."""
_REPLIES_FOR = f"""
    select cell, call_key, attempt, finished_at_s, coalesce(text, ''), parameters from calls
    where is_final and (text is not null or status = '{EMPTY}') and cell in (select value from json_each(?))
"""


class Ledger:
    """The calls of a warehouse.

    `call_locks` prevent two processes from making the same call at the same time. `why_lost`
    returns the reason why nothing more may be written, or None.

    Raises:
        PipelineError: the folder cannot be written, or a file is of another version.
    """

    def __init__(self, folder: Path, why_lost: Callable[[], str | None] = lambda: None) -> None:
        self.path = files.ledger_path(folder)
        with files.refusing(folder, "written"):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = opening.in_use(folder)
            self.call_locks = CallLocks(folder)
        with files.refusing(self.path, "opened"):
            self._connection = files.connected(self.path)
        self._reader = LedgerReader(self.path)
        self.history = self._reader.history
        self.rows = self._reader.rows
        self._writes: deque[tuple[Sequence[Statement], Future[None]]] = deque()
        self._why_lost = why_lost
        self._broken: PipelineError | None = None
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    def history_of(self, call: Call, parameters: Mapping[str, Any]) -> History:
        """Return all attempts of a call with these parameters; without any, those that were adopted
        for it.

        Raises:
            PipelineError: the file is damaged.
        """
        history = self.history(call.key(parameters))
        other_key = None if history.entries else call.adopted_key(parameters)
        return history if other_key is None else self.history(other_key)

    def refuse_if_broken(self) -> None:
        """Raise an error if the ledger cannot be written, so that no call is made whose reply would
        be lost.
        """
        if self._broken is None and (why := self._why_lost()) is not None:
            self._broken = PipelineError(why)
        if self._broken is not None:
            raise self._broken

    async def kept(self, attempt: Coroutine[Any, Any, Result]) -> Result:
        """Await an attempt that goes on, until its reply is recorded, if its caller is
        cancelled.
        """
        task = asyncio.ensure_future(attempt)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Wait until the replies of all attempts are recorded, unless nothing can be recorded any
        more.
        """
        if self._in_flight and self._broken is None:
            notice(
                f"waiting for {len(self._in_flight)} calls under way, so that their replies are not"
                " paid for again"
            )
        while self._in_flight and self._broken is None:
            await asyncio.wait(self._in_flight)

    async def cancel_attempts(self) -> None:
        """End all attempts, whose replies are then lost."""
        for task in self._in_flight:
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)

    async def record(self, entry: Entry) -> None:
        """Write a finished call; it is durable when this returns.

        Raises:
            PipelineError: the disk refuses.
        """
        await self.write(*recorded([entry]))

    async def write(self, *statements: Statement) -> None:
        """Execute statements in one transaction; they are durable when this returns."""
        await asyncio.wrap_future(self._put(statements))

    def mark_used(self, paid: Sequence[tuple[str, int]]) -> None:
        """Record that attempts up to these numbers ended in failed rows, so that later calls do not
        use them.
        """
        if paid:
            self._put([(SPENT, paid)])

    def _put(self, statements: Sequence[Statement]) -> "Future[None]":
        self.refuse_if_broken()
        done: Future[None] = Future()
        # so that it is written even if its caller no longer waits
        done.set_running_or_notify_cancel()
        self._writes.append((statements, done))
        self._writer.submit(self._commit)
        return done

    def close(self) -> None:
        """Commit all queued statements and close the file."""
        self._writer.shutdown()
        # A writer that closes last moves the log into the file; it must not if another machine may
        # own the file by now.
        closing = [self._reader.close, self._connection.close]
        for close in closing if self._why_lost() is None else reversed(closing):
            close()
        self.call_locks.close()
        self._lock.close()

    def _commit(self) -> None:
        """Commit all statements together that are queued by now; later calls of this function then
        find none.
        """
        writes = [self._writes.popleft() for _ in range(min(512, len(self._writes)))]
        error: PipelineError | None = None
        try:
            self.refuse_if_broken()
            with self._connection:
                self._connection.execute("begin")
                for statement, values in (each for statements, _ in writes for each in statements):
                    self._connection.executemany(statement, values)
        except PipelineError as broken:
            error = broken
        except (sqlite3.Error, ValueError, OverflowError) as cause:
            error = self._broken = files.refused(self.path, "written", cause)
        for _, done in writes:
            done.set_result(None) if error is None else done.set_exception(error)


class LedgerReader:
    """A reader of the ledger's file; calls that are recorded after its creation count as late."""

    def __init__(self, path: Path) -> None:
        self._path = path
        address = f"{path.absolute().as_uri()}?mode=ro"
        self._connection = sqlite3.connect(
            address,
            uri=True,
            check_same_thread=False,
            timeout=30,
        )
        # Decode damaged texts too, so that other rows stay readable; a row's checksum detects the
        # damage.
        self._connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        self._noticed: set[str] = set()
        self._last_row = 0
        with contextlib.suppress(*files.DAMAGE):  # reported when a call is looked up
            self._last_row = self._connection.execute(
                "select coalesce(max(rowid), 0) from calls"
            ).fetchone()[0]

    def history(self, key: str) -> History:
        """Return all attempts of a call.

        Raises:
            PipelineError: the file is damaged.
        """
        rows = self.rows(_HISTORY, self._last_row, key)
        spent = rows[0][0]
        n_spent = self._as_written(rows[0][1], (key, spent), "number of failed attempts") or 0
        entries: list[Entry] = []
        for _, _, tokens, checksum, is_late, *row in rows:
            if is_late is None:  # the call was never made
                continue
            logprobs = self._as_written(
                checksum, (key, row[1], tokens), "reply's log-probabilities"
            )
            entry = Entry.of(row, logprobs, is_late)
            # A damaged index may find the row of another call.
            if entry is not None and entry.call_key == key:
                entries.append(entry)
            else:
                self._notice("reply is damaged; its call, and others like it, are made again")
        entries.sort(key=lambda entry: entry.attempt)
        return History(tuple(entries), n_spent)

    def _as_written(self, checksum: str | None, values: tuple[Any, ...], what: str) -> Any:
        """Return the last of a row's values; None if there is no row, or if it is damaged."""
        has_row = checksum is not None or values[-1] is not None
        if has_row and checksum != checksum_of(values):
            self._notice(f"{what} is damaged; it counts as unknown")
            return None
        return values[-1]

    def _notice(self, line: str) -> None:
        if line not in self._noticed:
            self._noticed.add(line)
            notice(f"{self._path}: a stored {line}")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            PipelineError: the file is damaged.
        """
        with files.refusing(self._path, "read"):
            return self._connection.execute(query, values).fetchall()

    def replies_for(self, cells: Collection[str]) -> Iterator["KeptReply"]:
        """Return the replies for some rows, including empty ones.

        Raises:
            PipelineError: the file is damaged.
        """
        return (KeptReply(*row) for row in self.rows(_REPLIES_FOR, json.dumps(sorted(cells))))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class KeptReply(NamedTuple):
    """A reply: the row that it was made for, its call, its time, and the call's parameters."""

    cell: str
    call_key: str
    attempt: int
    finished_at_s: float
    text: str
    parameters: str


@contextlib.contextmanager
def kept_replies(folder: Path) -> Iterator[LedgerReader]:
    """Yield a reader of the ledger in a folder, which counts as in use until the block ends."""
    with (
        opening.in_use(folder),
        contextlib.closing(LedgerReader(files.ledger_path(folder))) as reader,
    ):
        yield reader


def spend_in(folder: Path) -> list[dict[str, Any]]:
    """Return the spend of a ledger, a row for each run, day, purpose and called model, in that
    order.

    Tokens and `cost_usd` are sums of known values; `unpriced_calls` is the number of calls of
    unknown cost. Sums that were damaged are None, except for the numbers of calls. Nothing is
    written, and no calls are read, only sums.

    Raises:
        PipelineError: a file cannot be read, or is damaged.
    """
    path = files.readable_path(folder)
    if path is None:
        return []
    with files.refusing(path, "read"), files.read_only(path) as connection:
        files.refuse_other_version(connection, path)
        flaw = opening.flaw_in(connection, ["spend"])
        if flaw is not None:
            raise PipelineError(opening.damage_line(path, flaw))
        query = f"select {', '.join(SPEND_COLUMNS)} from spend not indexed"
        rows = connection.execute(query).fetchall()
    spend = [dict(zip(SPEND_COLUMNS, row, strict=True)) for row in rows]
    return sorted(spend, key=itemgetter(*SPEND_KEY))


_ATTEMPTS_AT_ONCE = 50_000


def move_attempts(folder: Path, store: Callable[[list[dict[str, Any]]], object]) -> None:
    """Pass the attempts that the ledger holds to `store`, and remove them.

    A kill between the two passes the same attempts again; of two with one id the later one counts.

    Raises:
        PipelineError: the file cannot be read or written.
    """
    path = files.ledger_path(folder)
    if not _holds_attempts(path):
        return
    columns = ", ".join(ATTEMPT_COLUMNS)
    query = f"select rowid, {columns} from attempts order by rowid limit {_ATTEMPTS_AT_ONCE}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(files.refusing(path, "written"))
        stack.enter_context(opening.in_use(folder))
        connection = stack.enter_context(contextlib.closing(files.connected(path)))
        while True:
            connection.execute("begin immediate")
            with connection:
                rows = connection.execute(query).fetchall()
                if not rows:
                    return
                attempts = [dict(zip(ATTEMPT_COLUMNS, row[1:], strict=True)) for row in rows]
                store(list({attempt["attempt_id"]: attempt for attempt in attempts}.values()))
                connection.execute("delete from attempts where rowid <= ?", [rows[-1][0]])


def _holds_attempts(path: Path) -> bool:
    """Return whether a file holds attempts, without the checks of an opening for writing."""
    if not path.exists():
        return False
    with files.refusing(path, "read"), files.read_only(path) as connection:
        table = connection.execute("select 1 from sqlite_master where name = 'attempts'").fetchone()
        return bool(table and connection.execute("select 1 from attempts limit 1").fetchone())


ROWS_AT_ONCE = 5_000
_LATEST_CALLS = """
    select rowid, cell, model, is_final and run_id not in (select value from json_each(?)) and exists (
        select 1 from spend
        where spend.run_id = calls.run_id and called_model = model and purpose in ('sample', 'judge')
    )
    from calls where rowid < ? order by rowid desc limit ?
"""


def unfinished_replies(folder: Path, ended_runs: Collection[str]) -> dict[str, str]:
    """Return the final replies to models and judges in runs that have not ended: cell -> called
    model.

    The latest calls are read, back to some thousands in a row that are all of ended runs.

    Raises:
        PipelineError: the file cannot be read, or is damaged.
    """
    path = files.readable_path(folder)
    if path is None:
        return {}
    replies: dict[str, str] = {}
    first_row = 2**63 - 1
    with files.refusing(path, "read"), files.read_only(path) as connection:
        files.refuse_other_version(connection, path)
        while True:
            values = (json.dumps(sorted(ended_runs)), first_row, ROWS_AT_ONCE)
            n_before = len(replies)
            for row, cell, model, is_unfinished in connection.execute(
                _LATEST_CALLS, values
            ).fetchall():
                first_row = row
                if is_unfinished:
                    replies[cell] = model
            if len(replies) == n_before:
                return replies


Stored = Callable[[Sequence[str]], Mapping[str, bool]]
"""Takes cells and returns the ones with a stored row, each with a flag: true if the row is decided.
"""


class Pruned(NamedTuple):
    """The result of pruning: deleted entries and freed bytes; nothing is deleted while the ledger
    is in use.
    """

    entries: int = 0
    freed_bytes: int = 0
    is_in_use: bool = False


def prune(folder: Path, before_s: float, stored: Stored) -> Pruned:
    """Remove unneeded entries that ended before a moment (wall-clock time).

    They are the entries of cells whose row is decided, and spent entries of failed rows; never one
    whose row is not stored, nor an unclear reply, which `ends_ok` may accept, nor a decision
    model's reply, from which another threshold makes new verdicts. A stored row needs no new call;
    but another cell with the same request (the same text in a new revision of the data set, or a
    second trial with the same response) then needs a new, paid call. The amount spent stays in the
    table `spend`.

    Each step is a transaction: a kill leaves a complete ledger, and the next call of this function
    continues. A ledger that is in use is left unchanged.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """
    query = f"""
        select calls.rowid, coalesce(calls.attempt <= spent.attempt, 0) and status <> '{UNCLEAR}', cell
        from calls left join spent using (call_key)
        where calls.rowid > ? and finished_at_s < ? and json_extract(parameters, '$.questions') is null
        order by calls.rowid limit ?
    """

    def work(connection: sqlite3.Connection) -> int:
        last = n_removed = 0
        while entries := connection.execute(query, (last, before_s, ROWS_AT_ONCE)).fetchall():
            rows = stored(sorted({cell for _, _, cell in entries}))
            gone = [
                (row_id,)
                for row_id, is_spent, cell in entries
                if cell in rows and (rows[cell] or is_spent)
            ]
            n_removed += _delete(folder, connection, "delete from calls where rowid = ?", gone)
            last = entries[-1][0]
        connection.execute(
            "delete from submitted_calls where submission in "
            "(select submission from submission_states where state = ? and at_s < ?)",
            (ENDED, before_s),
        )
        return n_removed

    return _shrunk(folder, work)


def forget(folder: Path, removed: Mapping[str, float]) -> Pruned:
    """Delete the replies for removed rows, for each cell up to a moment (wall-clock time).

    Later calls would not use them anyway (`Call.not_before_s`). The amount spent stays in the table
    `spend`. A ledger that is in use is left unchanged.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """
    query = "delete from calls where cell = ? and finished_at_s <= ?"
    return _shrunk(
        folder, lambda connection: _delete(folder, connection, query, list(removed.items()))
    )


def adopt(folder: Path, model: str, address: str, cells: Mapping[str, str]) -> Pruned:
    """Give replies that were stored without an address this one, so that calls to it find them.

    Attempts that ended in stored failures keep their keys. A ledger that is in use is left
    unchanged.

    Args:
        folder: the folder of the ledger.
        model: the LiteLLM name of the model that gave the replies.
        address: the model's address.
        cells: the new id of each row whose id has changed.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """

    def work(connection: sqlite3.Connection) -> int:
        keys = connection.execute(
            "select distinct call_key from calls where model = ? and endpoint = ''", [model]
        ).fetchall()
        connection.execute("begin immediate")
        n_adopted = 0
        with connection, contextlib.closing(LedgerReader(files.ledger_path(folder))) as reader:
            for (key,) in keys:
                adopted = [
                    replace(
                        entry,
                        call_key=adopted_key(key, address),
                        endpoint=address,
                        cell=cells.get(entry.cell, entry.cell),
                    )
                    for entry in reader.history(key).open
                ]
                calls, _, logprobs, _ = recorded(adopted)
                connection.executemany(*calls)
                connection.executemany(*logprobs)
                gone = [(key, entry.attempt) for entry in adopted]
                connection.executemany("delete from calls where call_key = ? and attempt = ?", gone)
                connection.executemany(
                    "delete from logprobs where call_key = ? and attempt = ?", gone
                )
                n_adopted += len(adopted)
            if n_adopted:
                files.change_mark(folder)  # the report's copies of replies belong to other rows now
        return n_adopted

    return _shrunk(folder, work)


def _shrunk(folder: Path, work: Callable[[sqlite3.Connection], int]) -> Pruned:
    """Do work that removes entries, and free their space."""
    if not folder.is_dir():
        return Pruned()
    with opening.alone(folder) as path:
        if path is None:
            return Pruned(is_in_use=True)
        before_bytes = path.stat().st_size
        with (
            files.refusing(path, "pruned"),
            contextlib.closing(files.connected(path)) as connection,
        ):
            n_removed = work(connection)
            # `execute` would free one page: it stops at the first step of a statement without
            # columns.
            connection.executescript("pragma incremental_vacuum")
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return Pruned(n_removed, before_bytes - path.stat().st_size)


def _delete(
    folder: Path, connection: sqlite3.Connection, query: str, values: Sequence[tuple[Any, ...]]
) -> int:
    """Delete replies with their log-probabilities, change the mark of deletions, and return the
    number of replies.
    """
    connection.execute("begin immediate")
    with connection:
        n_removed = max(0, connection.executemany(query, values).rowcount)
        if n_removed:
            connection.execute(
                "delete from logprobs where not exists (select 1 from calls "
                "where calls.call_key = logprobs.call_key and calls.attempt = logprobs.attempt)"
            )
            files.change_mark(folder)
        return n_removed
