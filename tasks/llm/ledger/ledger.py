"""The ledger: every finished call is on disk before anything else sees it.

It is one SQLite file in WAL mode, which all processes of a warehouse share. Calls are keyed by
`call_key` and attempt; they are durable when `record` returns. A separate thread commits all calls
since the last commit together, so that one `fsync` serves many calls. Calls that other processes
write meanwhile are read, too.
"""

import asyncio
import contextlib
import json
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tasks.console import notice
from tasks.llm.ledger import files, opening
from tasks.llm.ledger.call_locks import CallLocks
from tasks.llm.ledger.entries import (
    ATTEMPT_COLUMNS,
    MARK_SPENT,
    SPEND_COLUMNS,
    SPEND_KEY,
    Entry,
    History,
    Statement,
    checksum_of,
    statements_recording,
)
from tasks.llm.replies import EMPTY, LedgerKey
from tasks.llm.request import Call, Parameters
from tasks.rules.errors import PipelineError

Result = TypeVar("Result")
_HISTORY = """
    select
        wanted,
        spent.attempt,
        spent.checksum,
        logprobs.tokens,
        logprobs.checksum,
        calls.rowid > ? as is_late,
        calls.*
    from (select value as wanted from json_each(?))
    left join calls on calls.call_key = wanted
    left join spent on spent.call_key = wanted
    left join logprobs on logprobs.call_key = wanted and logprobs.attempt = calls.attempt
"""
"""The rows of some calls. It is a single statement, because each statement begins and ends a read
transaction.
"""
_REPLIES_FOR = f"""
    select cell, call_key, attempt, finished_at_s, coalesce(text, ''), parameters
    from calls
    where is_final
        and (text is not null or status = '{EMPTY}')
        and cell in (select value from json_each(?))
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
            self._lock = opening.lock_for_use(folder)
            self.call_locks = CallLocks(folder)
        with files.refusing(self.path, "opened"):
            self._connection = files.connected(self.path)
        self._reader = LedgerReader(self.path)
        self.history = self._reader.history
        self.rows = self._reader.rows
        self._wanted_keys: set[str] = set()
        self._next_look_up: asyncio.Task[dict[str, History]] | None = None
        self._writes: deque[tuple[Sequence[Statement], Future[None]]] = deque()
        self._why_lost = why_lost
        self._broken: PipelineError | None = None
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    async def history_of(self, call: Call, parameters: Parameters) -> History:
        """Return the attempts of a call with these parameters; if there are none, those that were
        adopted for it.

        Attempts that the call does not accept (`after_attempt`, `not_before_s`) are left out, and
        `ends_ok` of its target decides which replies are complete.

        Raises:
            PipelineError: the file is damaged.
        """
        history = await self._look_up_with_others(call.key(parameters))
        adopted_key = call.adopted_key(parameters)
        if not history.entries and adopted_key is not None:
            history = await self._look_up_with_others(adopted_key)
        return history.after(call.after_attempt, call.not_before_s).accepting(call.target.ends_ok)

    async def _look_up_with_others(self, key: str) -> History:
        """Return all attempts of a call. All calls that are looked up at the same moment are read
        in one transaction, because each transaction locks the file and frees it.
        """
        self._wanted_keys.add(key)
        # The task begins when this one waits: until then other calls add their keys.
        if self._next_look_up is None:
            self._next_look_up = asyncio.ensure_future(self._look_up_wanted())
        histories = await asyncio.shield(self._next_look_up)
        return histories[key]

    async def _look_up_wanted(self) -> dict[str, History]:
        keys = self._wanted_keys
        self._wanted_keys = set()
        self._next_look_up = None
        return self._reader.histories(keys)

    def refuse_if_broken(self) -> None:
        """Raise an error if the ledger cannot be written, so that no call is made whose reply would
        be lost.
        """
        if self._broken is None:
            reason = self._why_lost()
            if reason is not None:
                self._broken = PipelineError(reason)
        if self._broken is not None:
            raise self._broken

    async def run_to_end(self, attempt: Coroutine[Any, Any, Result]) -> Result:
        """Await an attempt; if the caller is cancelled, the attempt goes on until its reply is
        recorded.
        """
        task = asyncio.ensure_future(attempt)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        return await asyncio.shield(task)

    async def wait_for_attempts(self) -> None:
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
        await self.write(*statements_recording([entry]))

    async def write(self, *statements: Statement) -> None:
        """Execute statements in one transaction; they are durable when this returns."""
        await asyncio.wrap_future(self._put(statements))

    def mark_spent(self, keys: Sequence[LedgerKey]) -> None:
        """Record that attempts up to these numbers ended in failed rows, so that later calls do not
        use them.
        """
        if keys:
            self._put([(MARK_SPENT, keys)])

    def _put(self, statements: Sequence[Statement]) -> "Future[None]":
        self.refuse_if_broken()
        completion: Future[None] = Future()
        # so that it is written even if its caller no longer waits
        completion.set_running_or_notify_cancel()
        self._writes.append((statements, completion))
        self._writer.submit(self._commit)
        return completion

    def close(self) -> None:
        """Commit all queued statements and close the file."""
        self._writer.shutdown()
        # The connection that closes last moves the log into the file, unless it is the reader's.
        # That must not happen if another machine may own the file by now.
        if self._why_lost() is None:
            self._reader.close()
            self._connection.close()
        else:
            self._connection.close()
            self._reader.close()
        self.call_locks.close()
        self._lock.close()

    def _commit(self) -> None:
        """Commit all statements together that are queued by now; later calls of this function then
        find none.
        """
        writes = [self._writes.popleft() for _ in range(len(self._writes))]
        error: PipelineError | None = None
        try:
            self.refuse_if_broken()
            with self._connection:
                self._connection.execute("begin")
                for statements, _ in writes:
                    for statement, rows in statements:
                        self._connection.executemany(statement, rows)
        except PipelineError as broken:
            error = broken
        except (sqlite3.Error, ValueError, OverflowError) as cause:
            error = files.refused(self.path, "written", cause)
            self._broken = error
        for _, completion in writes:
            if error is None:
                completion.set_result(None)
            else:
                completion.set_exception(error)


class LedgerReader:
    """A reader of the ledger's file; calls that are recorded after its creation count as late."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = files.opened(path)
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
        return self.histories([key])[key]

    def histories(self, keys: Collection[str]) -> dict[str, History]:
        """Return all attempts of some calls, by their keys.

        Raises:
            PipelineError: the file is damaged.
        """
        rows_by_key: dict[str, list[list[Any]]] = {key: [] for key in keys}
        for key, *row in self.rows(_HISTORY, self._last_row, json.dumps(list(keys))):
            rows_by_key[key].append(row)
        return {key: self._history_in(key, rows) for key, rows in rows_by_key.items()}

    def _history_in(self, key: str, rows: Sequence[list[Any]]) -> History:
        """Return the history of a call in its rows of `_HISTORY`: one or more."""
        spent, spent_checksum, *_ = rows[0]
        last_spent = self._verified(spent_checksum, (key, spent), "number of failed attempts")
        entries = []
        for _, _, tokens, checksum, is_late, *row in rows:
            if is_late is None:  # the call was never made
                continue
            _, attempt, *_ = row
            logprobs = self._verified(checksum, (key, attempt, tokens), "reply's log-probabilities")
            entry = Entry.of(row, logprobs, bool(is_late))
            # A damaged index may find the row of another call.
            if entry is not None and entry.call_key == key:
                entries.append(entry)
            else:
                self._notice("reply is damaged; its call, and others like it, are made again")
        entries.sort(key=lambda entry: entry.attempt)
        return History(tuple(entries), last_spent or 0)

    def _verified(self, checksum: str | None, values: tuple[Any, ...], description: str) -> Any:
        """Return the last of a row's values; None if there is no row, or if it is damaged."""
        has_row = checksum is not None or values[-1] is not None
        if has_row and checksum != checksum_of(values):
            self._notice(f"{description} is damaged; it counts as unknown")
            return None
        return values[-1]

    def _notice(self, text: str) -> None:
        """Print a notice once."""
        if text not in self._noticed:
            self._noticed.add(text)
            notice(f"{self._path}: a stored {text}")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query.

        Raises:
            PipelineError: the file is damaged.
        """
        with files.refusing(self._path, "read"):
            return self._connection.execute(query, values).fetchall()

    def replies_for(self, cells: Collection[str]) -> list["KeptReply"]:
        """Return the replies for some rows, including empty ones.

        Raises:
            PipelineError: the file is damaged.
        """
        rows = self.rows(_REPLIES_FOR, json.dumps(sorted(cells)))
        return [KeptReply(*row) for row in rows]

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
def opened_reader(folder: Path) -> Iterator[LedgerReader]:
    """Yield a reader of the ledger in a folder, which counts as in use until the block ends."""
    with (
        opening.lock_for_use(folder),
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
    with files.opened_for_reading(path) as connection:
        flaw = opening.flaw_in(connection, ["spend"])
        if flaw is not None:
            raise PipelineError(opening.damage_line(path, flaw))
        columns = ", ".join(SPEND_COLUMNS)
        key = ", ".join(SPEND_KEY)
        query = f"select {columns} from spend not indexed order by {key}"
        rows = connection.execute(query).fetchall()
    return [dict(zip(SPEND_COLUMNS, row, strict=True)) for row in rows]


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
    with (
        files.refusing(path, "written"),
        opening.lock_for_use(folder),
        contextlib.closing(files.connected(path)) as connection,
    ):
        while True:
            connection.execute("begin immediate")
            with connection:
                rows = connection.execute(query).fetchall()
                if not rows:
                    return
                attempts = [dict(zip(ATTEMPT_COLUMNS, row[1:], strict=True)) for row in rows]
                latest_by_id = {attempt["attempt_id"]: attempt for attempt in attempts}
                store(list(latest_by_id.values()))
                last_rowid, *_ = rows[-1]
                connection.execute("delete from attempts where rowid <= ?", [last_rowid])


def _holds_attempts(path: Path) -> bool:
    """Return whether a file holds attempts, without the checks of an opening for writing."""
    if not path.exists():
        return False
    with files.refusing(path, "read"), files.read_only(path) as connection:
        table = connection.execute("select 1 from sqlite_master where name = 'attempts'").fetchone()
        return bool(table and connection.execute("select 1 from attempts limit 1").fetchone())


ROWS_AT_ONCE = 5_000
_LATEST_CALLS = """
    select
        rowid,
        cell,
        model,
        is_final
            and run_id not in (select value from json_each(?))
            and exists (
                select 1
                from spend
                where spend.run_id = calls.run_id
                    and called_model = model
                    and purpose in ('sample', 'judge')
            ) as is_unfinished
    from calls
    where rowid < ?
    order by rowid desc
    limit ?
"""
"""Calls with a rowid below a limit, the latest first: whether each has the final reply of a model
or judge in a run that has not ended.
"""


def unfinished_replies(folder: Path, ended_runs: Collection[str]) -> dict[str, str]:
    """Return the final replies of models and judges in runs that have not ended: cell -> called
    model.

    The latest calls are read, back to some thousands in a row that are all of ended runs.

    Raises:
        PipelineError: the file cannot be read, or is damaged.
    """
    path = files.readable_path(folder)
    if path is None:
        return {}
    model_by_cell: dict[str, str] = {}
    ended_json = json.dumps(sorted(ended_runs))
    first_rowid = 2**63 - 1
    with files.opened_for_reading(path) as connection:
        while True:
            n_earlier = len(model_by_cell)
            rows = connection.execute(_LATEST_CALLS, (ended_json, first_rowid, ROWS_AT_ONCE))
            for rowid, cell, model, is_unfinished in rows.fetchall():
                first_rowid = rowid
                if is_unfinished:
                    model_by_cell[cell] = model
            if len(model_by_cell) == n_earlier:
                return model_by_cell
