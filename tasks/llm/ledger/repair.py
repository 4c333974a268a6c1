"""Repair of a damaged ledger: it is set aside whole, and what SQLite still reads is copied."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.console import notice
from tasks.llm.ledger import files
from tasks.llm.ledger.entries import (
    ADD_LOST_SPEND,
    SEALED,
    SPEND_KEY,
    SPEND_KEYS_OF_CALLS,
    TABLES,
    checksum_of,
    is_as_written,
)

_SMALLEST_ROW_BYTES = 200
"""No call is smaller; so a file's size bounds its number of rows."""
_RANGE = 1_000
"""The number of rowids that are read together."""
SpendKey = tuple[str, ...]
"""The values of `SPEND_KEY`."""


def repair(path: Path, damage: str) -> None:
    """Set a damaged file aside, and replace it by one with all rows that SQLite can still read.

    The new file is complete before the old one is moved; by its name the next opening can finish
    the repair, so that a kill loses nothing.
    """
    n_possible = path.stat().st_size // _SMALLEST_ROW_BYTES
    with (
        files.new_file(files.repaired_path(path)) as copy,
        contextlib.closing(files.opened(path)) as source,
    ):
        with contextlib.suppress(*files.DAMAGE):
            source.execute("pragma writable_schema = 1")  # also reads a truncated file
        copy.execute("begin")
        with copy:
            for table in TABLES:
                _copy_table(source, copy, table, n_possible)
            n_calls: int = copy.execute("select count(*) from calls").fetchone()[0]
            lost_keys = _lost_spend(source, copy)
            copy.executemany(ADD_LOST_SPEND, lost_keys)
            (n_in_spend,) = copy.execute("select coalesce(sum(calls), 0) from spend").fetchone()
    n_recorded = max(n_calls, n_in_spend)
    damaged_name = finish_repair(path)
    notice(
        f"{path}: is damaged ({damage}); {n_calls} of {n_recorded} calls ever recorded were"
        f" recovered; the damaged file is kept as {damaged_name}; calls that are neither recovered"
        " nor in a table are made again"
    )
    for run_id, day, purpose, model in lost_keys:
        notice(
            f"{path}: the cost of run {run_id} on {day} ({purpose}, {model}) is lost, and unknown"
            " if not published"
        )


def finish_repair(path: Path) -> str | None:
    """Replace a damaged file by the repaired one, if there is one; return the damaged file's new
    name.
    """
    if not files.repaired_path(path).exists():
        return None
    damaged_path = path.with_name(f"damaged-{time.time_ns()}-{path.name}")
    for suffix in files.FILE_PARTS:
        with contextlib.suppress(FileNotFoundError):
            files.beside(path, suffix).rename(files.beside(damaged_path, suffix))
    files.repaired_path(path).rename(path)
    files.suspicion_path(path).unlink(missing_ok=True)
    files.sync(path.parent)
    return damaged_path.name


def _copy_table(
    source: sqlite3.Connection,
    copy: sqlite3.Connection,
    table: str,
    n_possible: int,
) -> None:
    """Copy the readable rows of a table, without those whose checksum is wrong."""
    needs_checksums = table == "calls" or table in SEALED
    lacks_checksums = table in SEALED and _is_unsealed(source)
    for _, *row in _readable_rows(source, table, n_possible):
        if lacks_checksums:
            row.append(checksum_of(row))
        if not needs_checksums or is_as_written(row):
            values = ", ".join("?" * len(row))
            copy.execute(f"insert or ignore into {table} values ({values})", row)


def _is_unsealed(source: sqlite3.Connection) -> bool:
    try:
        return files.version_of(source) == files.UNSEALED
    except files.DAMAGE:
        return False


def _lost_spend(source: sqlite3.Connection, copy: sqlite3.Connection) -> list[SpendKey]:
    """Return the keys of the sums that a damaged file holds and its copy lacks; if all keys are
    lost, those of calls.

    The index has a second copy of each key. If it has no more keys than the copy, no row was lost,
    and a key that differs is damage of the index.
    """
    names = ", ".join(SPEND_KEY)
    copied_keys = set(copy.execute(f"select {names} from spend"))
    indexed_keys = set()
    with contextlib.suppress(*files.DAMAGE):
        index = f"select {names} from spend indexed by sqlite_autoindex_spend_1"
        for values in source.execute(index):
            indexed_keys.add(tuple(str(value) for value in values))
    if not indexed_keys and not copied_keys:
        return copy.execute(SPEND_KEYS_OF_CALLS).fetchall()
    if len(indexed_keys) <= len(copied_keys):
        return []
    return sorted(indexed_keys - copied_keys)


def _readable_rows(
    source: sqlite3.Connection,
    table: str,
    n_possible: int,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table that SQLite can read, each after its rowid.

    They are read by ranges of rowids, and the rowids that a range lacks one by one: the range may
    have failed, or a damaged rowid that is too large may have ended it without an error.
    """
    try:
        last_rowid = _last_rowid(source, table, n_possible)
    except files.DAMAGE:  # the schema, which locates the tables, is damaged
        return
    for first_rowid in range(1, last_rowid + 1, _RANGE):
        rowids = range(first_rowid, first_rowid + _RANGE)
        rows = _rows_between(source, table, rowids[0], rowids[-1])
        # Ranges beyond what the file can hold are empty where calls were deleted.
        if rows == [] and first_rowid > n_possible:
            continue
        read_rowids = set()
        for row in rows or ():
            read_rowids.add(row[0])
            yield row
        for rowid in rowids:
            if rowid not in read_rowids:
                yield from _rows_between(source, table, rowid, rowid) or ()


def _last_rowid(source: sqlite3.Connection, table: str, n_possible: int) -> int:
    """Return the rowid up to which a table is read; `n_possible` is the number of rows that the
    file can hold.

    Raises:
        sqlite3.DatabaseError: the table is not in the schema.
    """
    source.execute(f"select 1 from {table} limit 0")
    row = None
    with contextlib.suppress(*files.DAMAGE):
        row = source.execute(f"select max(rowid) from {table}").fetchone()
    if row is None:
        return n_possible
    # After damage it may be any number. Deletions leave gaps, so it may truly be far above the
    # number of rows.
    return min(100 * n_possible, row[0] or 0)


def _rows_between(
    source: sqlite3.Connection,
    table: str,
    first_rowid: int,
    last_rowid: int,
) -> list[tuple[Any, ...]] | None:
    """Return the rows in a range of rowids; None if SQLite fails on it."""
    query = f"select rowid, * from {table} where rowid between ? and ?"
    try:
        return source.execute(query, (first_rowid, last_rowid)).fetchall()
    except files.DAMAGE:
        return None
