"""Retention of raw replies: what has long become a row leaves the ledger, and its space goes back to the disk.

What was removed answers no call any more. A row that is stored is never asked for again; but another cell that the same
request would have answered (the same text under a new revision of the data set, a second trial with the same answer)
is then a call that is made and paid again. What was spent stays in the table `spend`.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.llm.batches.records import ENDED
from tasks.llm.ledger.files import DAMAGE, if_nobody_writes, opened, reader_of
from tasks.rules.errors import PipelineError

_AT_ONCE = 5_000
_INCREMENTAL = 2
Rows = Sequence[tuple[Any, ...]]
Stored = Callable[[Sequence[str]], Mapping[str, bool]]
"""Of some cells those that are stored as rows, each with whether its row is decided."""


@dataclass(frozen=True)
class Pruned:
    """What came of it: entries and bytes that are gone, and files that were left alone since somebody writes them."""

    entries: int = 0
    freed_bytes: int = 0
    busy_files: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            self.entries + other.entries, self.freed_bytes + other.freed_bytes, self.busy_files + other.busy_files
        )


def prune(folder: Path, before_s: float, stored: Stored) -> Pruned:
    """Remove the entries that ended before a moment (wall-clock time) and are not needed any more.

    These are the entries of cells whose row is decided, and the entries of failed rows that are noted as spent; never
    one whose row is not stored. Each step is a transaction: a kill in the middle leaves a whole ledger, and the next
    call goes on. A file that a process writes is left for later.

    Raises:
        PipelineError: a file cannot be opened, read or written.
    """
    paths = sorted(folder.glob("calls-*.sqlite"))
    pruned = Pruned()
    spent: dict[str, int] = {}
    for key, attempt in _all_rows(paths, "select call_key, attempt from spent"):
        spent[key] = max(spent.get(key, 0), attempt)
    ended = list(
        _all_rows(paths, "select submission from submission_states where state = ? and at_s < ?", ENDED, before_s)
    )
    for path in paths:
        with if_nobody_writes(path) as is_free:
            pruned += _prune_file(path, before_s, stored, spent, ended) if is_free else Pruned(busy_files=1)
    return pruned


def forget(folder: Path, removed: Mapping[str, float]) -> Pruned:
    """Delete the replies that were made for removed rows: until a moment (wall-clock time) for each cell.

    They answer nothing any more in any case (`Call.not_before_s`). What was spent stays in the table `spend`. A file
    that a process writes is left for later.

    Raises:
        PipelineError: a file cannot be opened, read or written.
    """
    pruned = Pruned()
    for path in sorted(folder.glob("calls-*.sqlite")):
        with if_nobody_writes(path) as is_free:
            pruned += _forget_in(path, removed) if is_free else Pruned(busy_files=1)
    return pruned


def _forget_in(path: Path, removed: Mapping[str, float]) -> Pruned:
    before_bytes = path.stat().st_size
    try:
        with contextlib.closing(opened(path)) as connection:
            connection.execute("begin immediate")
            with connection:
                gone = connection.executemany(
                    "delete from calls where cell = ? and finished_at_s <= ?", removed.items()
                ).rowcount
            _give_back(connection)
    except sqlite3.Error as error:
        raise PipelineError(f"{path}: cannot be written ({error}); make room for it and try again") from error
    return Pruned(max(0, gone), before_bytes - path.stat().st_size)


def _prune_file(path: Path, before_s: float, stored: Stored, spent: Mapping[str, int], ended: Rows) -> Pruned:
    before_bytes = path.stat().st_size
    try:
        with contextlib.closing(opened(path)) as connection:
            removed = sum(_removed(connection, before_s, stored, spent))
            with contextlib.suppress(sqlite3.OperationalError):  # no batch was ever handed in by the file's processes
                connection.executemany("delete from submitted_calls where submission = ?", ended)
            _give_back(connection)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: cannot be pruned ({error}); make room for it and try again") from error
    return Pruned(removed, before_bytes - path.stat().st_size)


def _removed(
    connection: sqlite3.Connection, before_s: float, stored: Stored, spent: Mapping[str, int]
) -> Iterator[int]:
    """How many entries each step removes."""
    for entries in _old_entries(connection, before_s):
        rows = stored(sorted({cell for _, _, _, cell in entries}))
        gone = [
            (place,)
            for place, key, attempt, cell in entries
            if cell in rows and (rows[cell] or attempt <= spent.get(key, 0))
        ]
        connection.execute("begin immediate")
        with connection:
            connection.executemany("delete from calls where rowid = ?", gone)
        yield len(gone)


def _old_entries(connection: sqlite3.Connection, before_s: float) -> Iterator[list[tuple[int, str, int, str]]]:
    """(place, call key, attempt, cell) of the entries from before a moment, some thousand at a time."""
    query = """
        select rowid, call_key, attempt, cell from calls where rowid > ? and finished_at_s < ? order by rowid limit ?
    """
    last = 0
    while entries := connection.execute(query, (last, before_s, _AT_ONCE)).fetchall():
        yield entries
        last = entries[-1][0]


def _give_back(connection: sqlite3.Connection) -> None:
    """Let the file shrink: by as much as is free, or as a whole where it is older than the setting for that."""
    if not connection.execute("pragma freelist_count").fetchone()[0]:
        return
    if connection.execute("pragma auto_vacuum").fetchone()[0] == _INCREMENTAL:
        # `execute` would give back one page: it stops at the first step of a statement that has no columns.
        connection.executescript("pragma incremental_vacuum")
    else:
        connection.executescript("pragma auto_vacuum = incremental; vacuum")
    connection.execute("pragma wal_checkpoint(truncate)").fetchall()


def _all_rows(paths: Sequence[Path], query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
    """What a query finds in all files; one that lacks the table has nothing, one that is damaged what can be read."""
    for path in paths:
        with contextlib.closing(reader_of(path)) as connection, contextlib.suppress(*DAMAGE):
            yield from connection.execute(query, values)
