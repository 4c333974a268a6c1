"""Saving what can be read from a ledger file that is damaged."""

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Saved:
    """Rows of a damaged file: its calls, its notes of spent ones, its sums of what was spent."""

    calls: Rows = ()
    spent: Rows = ()
    spend: Rows = ()


NOTHING = Saved()


def set_aside(path: Path, columns: Sequence[str], spend_columns: Sequence[str]) -> tuple[Saved, Path]:
    """Read all rows of a damaged file that can still be read, and rename it out of the way.

    The damaged file is kept under another name beside the good ones.
    """
    saved = Saved(
        calls=_readable(path, f"select {', '.join(columns)} from calls"),
        spent=_readable(path, "select call_key, attempt from spent"),
        spend=_readable(path, f"select {', '.join(spend_columns)} from spend"),
    )
    aside = path.with_name(f"damaged-{time.time_ns()}-{path.name}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return saved, aside


def _readable(path: Path, query: str) -> Rows:
    """The rows before the first damaged page and those after the last one."""
    rows: dict[tuple[Any, ...], None] = {}
    for order in ("rowid", "rowid desc"):
        with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(path)) as connection:
            for row in connection.execute(f"{query} order by {order}"):
                rows[row] = None
    return list(rows)
