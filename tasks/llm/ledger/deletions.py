"""The mark of deletions: a number in the ledger's file that changes whenever replies are deleted from it.

Whoever has copies of replies (the report) sees by it that they must be read again, without reading the ledger. It is
SQLite's `application_id`.
"""

import sqlite3
from pathlib import Path

from tasks.llm.ledger.paths import ledger_path

_MARK_AT, _MARK_BYTES, _N_MARKS = 68, 4, 2**31
"""Where SQLite's file format has the `application_id`, and how many positive ones there are."""


def deletion_mark(folder: Path) -> int:
    """The mark of the ledger in a folder; 0: it never deleted replies, or there is none."""
    return mark_in(ledger_path(folder))


def mark_in(path: Path) -> int:
    """The mark in a ledger file, read without SQLite; a damaged file may give any number."""
    try:
        with path.open("rb") as file:
            file.seek(_MARK_AT)
            return int.from_bytes(file.read(_MARK_BYTES), "big") % _N_MARKS
    except OSError:  # there is no such file
        return 0


def mark_deletion(connection: sqlite3.Connection) -> None:
    """Change the mark, in the transaction that deletes."""
    (mark,) = connection.execute("pragma application_id").fetchone()
    set_mark(connection, (mark + 1) % _N_MARKS)


def set_mark(connection: sqlite3.Connection, mark: int) -> None:
    """Give a file a mark: that of the file that it takes the place of."""
    connection.execute(f"pragma application_id = {mark}")
