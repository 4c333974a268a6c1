"""Ledgers with many calls, and what another connection reads of them."""

import sqlite3
from pathlib import Path
from typing import Any

from tests.faults.server import FaultServer
from tests.tasks.llm.conftest import Calling, call_to


def stored(folder: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """Return the rows that another connection reads."""
    rows: list[tuple[Any, ...]] = []
    for path in sorted(folder.glob("calls.sqlite")):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows += connection.execute(f"select {columns} from calls order by call_key, attempt")
        connection.close()
    return rows


def filled(calling: Calling, server: FaultServer, number: int = 120) -> Path:
    """A ledger with many calls, closed, all of it in one file."""
    calling.concurrency = 16
    calling.at_once(*(call_to(server, f"question {n} " + "word " * 100) for n in range(number)))
    path = calling.folder / "calls.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    assert path.stat().st_size > 40_000
    return path
