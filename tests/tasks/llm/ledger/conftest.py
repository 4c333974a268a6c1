"""Entries of a ledger, its file, and damage to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tasks.llm.ledger.entries import Entry
from tasks.llm.replies import Logprobs, Reply

PAGE_BYTES = 4096
"""The default of SQLite."""
LOGPROBS: Logprobs = (("{", -0.25), ("true", -1.5))


def entry(number: int, reply: Reply | None = None, **values: Any) -> Entry:
    """Return the call `key-N` for the row `cell-N`; its usual reply cost N dollars."""
    if reply is None:
        reply = Reply(
            "ok",
            f"reply {number}",
            prompt_tokens=number,
            cost_usd=float(number),
        )
    usual_values = {
        "attempt": 1,
        "cell": f"cell-{number}",
        "run_id": "a-run",
        "model": "m",
        "endpoint": "",
        "parameters": "{}",
        "is_final": True,
        "finished_at_s": 1.7e9,
    }
    return Entry(call_key=f"key-{number}", reply=reply, **usual_values | values)


@contextmanager
def database(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of a ledger with SQLite, and commit at the end."""
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection, connection:
        yield connection


def offset_of(folder: Path, name: str) -> int:
    """Return the offset of the root page of a table or an index in a ledger's file."""
    query = "select (rootpage - 1) * ? from sqlite_master where name = ?"
    with database(folder) as connection:
        [offset] = connection.execute(query, (PAGE_BYTES, name)).fetchone()
    return int(offset)


def destroy_page(path: Path, offset: int):
    """Overwrite a page of a file with meaningless bytes."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * PAGE_BYTES)
