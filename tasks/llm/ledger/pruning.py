"""Retention of raw replies: those that became a row long ago leave the ledger, and their space goes back to the disk.

What was removed answers no call any more. A row that is stored is never called for again; but another cell that the
same request would have answered (the same text under a new revision of the data set, a second trial with the same
answer) is then a call that is made and paid again. What was spent stays in the table `spend`.

Until when replies were deleted stands in the file as SQLite's `application_id`, so that whoever has copies of replies
(the report) can delete them too, without reading the ledger.
"""

import contextlib
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.llm.ledger.damage import DAMAGE, refused
from tasks.llm.ledger.files import alone, writer_of
from tasks.llm.ledger.paths import ledger_path
from tasks.llm.ledger.schema import ENDED

_AT_ONCE = 5_000
_MARK_AT, _MARK_BYTES, _MOST_MARK = 68, 4, 2**31 - 1
"""Where SQLite's file format has the `application_id`, and what fits into it."""
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


def deleted_until_s(folder: Path) -> int:
    """The moment (wall-clock time) before which the ledger in a folder has deleted old replies; 0: it never has."""
    try:
        with ledger_path(folder).open("rb") as file:
            file.seek(_MARK_AT)
            return int.from_bytes(file.read(_MARK_BYTES), "big")
    except OSError:  # there is no ledger
        return 0


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
            return connection.executemany(
                "delete from calls where cell = ? and finished_at_s <= ?", removed.items()
            ).rowcount

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
                _mark(connection, before_s)
        n_removed += len(gone)
        last = entries[-1][0]
    return n_removed


def _mark(connection: sqlite3.Connection, before_s: float) -> None:
    (marked_s,) = connection.execute("pragma application_id").fetchone()
    connection.execute(f"pragma application_id = {min(_MOST_MARK, max(marked_s, math.ceil(before_s)))}")
