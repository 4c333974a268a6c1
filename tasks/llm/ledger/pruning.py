"""Retention of raw replies: those that became a row long ago leave the ledger, and their space goes back to the disk.

What was removed answers no call any more. A row that is stored is never called for again; but another cell that the
same request would have answered (the same text under a new revision of the data set, a second trial with the same
answer) is then a call that is made and paid again. What was spent stays in the table `spend`.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.llm.ledger.entries import ENDED
from tasks.llm.ledger.files import DAMAGE, alone, refused, set_mark, writer_of

_AT_ONCE = 5_000
Stored = Callable[[Sequence[str]], Mapping[str, bool]]
"""Of some cells those that are stored as rows, each with whether its row is decided."""


@dataclass(frozen=True)
class Pruned:
    """What came of it: entries and bytes that are gone, or that the ledger was left alone since it is in use."""

    entries: int = 0
    freed_bytes: int = 0
    is_in_use: bool = False


def prune(folder: Path, before_s: float, stored: Stored) -> Pruned:
    """Remove the entries that ended before a moment (wall-clock time) and are not needed any more.

    These are the entries of cells whose row is decided, and the entries of failed rows that are noted as spent; never
    one whose row is not stored. Each step is a transaction: a kill in the middle leaves a whole ledger, and the next
    call goes on. A ledger that is in use is left for later.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """

    def work(connection: sqlite3.Connection) -> int:
        n_removed = _remove_old(connection, before_s, stored)
        connection.execute(
            "delete from submitted_calls where submission in "
            "(select submission from submission_states where state = ? and at_s < ?)",
            (ENDED, before_s),
        )
        return n_removed

    return _shrunk(folder, work)


def forget(folder: Path, removed: Mapping[str, float]) -> Pruned:
    """Delete the replies that were made for removed rows: until a moment (wall-clock time) for each cell.

    They answer nothing any more in any case (`Call.not_before_s`). What was spent stays in the table `spend`. A ledger
    that is in use is left for later.

    Raises:
        PipelineError: the ledger cannot be opened, read or written.
    """

    def work(connection: sqlite3.Connection) -> int:
        connection.execute("begin immediate")
        with connection:
            query = "delete from calls where cell = ? and finished_at_s <= ?"
            n_removed = connection.executemany(query, removed.items()).rowcount
            if n_removed > 0:
                _delete_what_went_with_them(connection)
            return n_removed

    return _shrunk(folder, work)


def _shrunk(folder: Path, work: Callable[[sqlite3.Connection], int]) -> Pruned:
    """Do work that removes entries, and give their space back."""
    if not folder.is_dir():
        return Pruned()
    with alone(folder) as path:
        if path is None:
            return Pruned(is_in_use=True)
        before_bytes = path.stat().st_size
        try:
            with contextlib.closing(writer_of(path)) as connection:
                n_removed = max(0, work(connection))
                # `execute` would give back one page: it stops at the first step of a statement that has no columns.
                connection.executescript("pragma incremental_vacuum")
                connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        except DAMAGE as error:
            raise refused(path, "pruned", error, "make room for it and try again") from error
        return Pruned(n_removed, before_bytes - path.stat().st_size)


def _remove_old(connection: sqlite3.Connection, before_s: float, stored: Stored) -> int:
    """Remove old entries that are not needed, some thousand in each transaction; how many they were."""
    query = """
        select calls.rowid, coalesce(calls.attempt <= spent.attempt, 0), cell
        from calls left join spent using (call_key)
        where calls.rowid > ? and finished_at_s < ? order by calls.rowid limit ?
    """
    last = n_removed = 0
    while entries := connection.execute(query, (last, before_s, _AT_ONCE)).fetchall():
        rows = stored(sorted({cell for _, _, cell in entries}))
        gone = [(place,) for place, is_spent, cell in entries if cell in rows and (rows[cell] or is_spent)]
        connection.execute("begin immediate")
        with connection:
            connection.executemany("delete from calls where rowid = ?", gone)
            if gone:
                _delete_what_went_with_them(connection)
        n_removed += len(gone)
        last = entries[-1][0]
    return n_removed


def _delete_what_went_with_them(connection: sqlite3.Connection) -> None:
    """Delete the log-probabilities of replies that are gone, and change the mark of deletions."""
    connection.execute(
        "delete from logprobs where not exists (select 1 from calls "
        "where calls.call_key = logprobs.call_key and calls.attempt = logprobs.attempt)"
    )
    set_mark(connection, connection.execute("pragma application_id").fetchone()[0] + 1)
