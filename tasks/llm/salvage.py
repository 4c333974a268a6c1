"""Saving what can be read from a ledger file that is damaged."""

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def set_aside(path: Path, columns: Sequence[str]) -> tuple[list[tuple[Any, ...]], Path]:
    """Read all calls of a damaged file that can still be read, and rename it out of the way.

    The damaged file is kept under another name beside the good ones.
    """
    rows = _readable(path, columns)
    aside = path.with_name(f"damaged-{time.time_ns()}-{path.name}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return rows, aside


def _readable(path: Path, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(path)) as connection:
        # One row at a time, so that those before the damage are kept.
        rows.extend(connection.execute(f"select {', '.join(columns)} from calls order by rowid"))
    return rows
