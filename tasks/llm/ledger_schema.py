"""The tables of a ledger file, their version, and bringing an older file up to it."""

import sqlite3
from pathlib import Path

from tasks.llm.entries import COLUMNS
from tasks.llm.spend import FILL_SPEND, SPEND_TABLE
from tasks.rules.errors import PipelineError

VERSION = 1
"""Stands in a file as `user_version`; files from before there were versions have 0."""
_TABLES = (
    f"create table if not exists calls ({', '.join(COLUMNS)}, primary key (call_key, attempt))",
    "create table if not exists spent (call_key text primary key, attempt integer not null)",
    SPEND_TABLE,
)
INSERT = f"insert or replace into calls values ({', '.join('?' * len(COLUMNS))})"
"""Takes the values of an entry."""
SPENT = "insert into spent values (?, ?) on conflict do update set attempt = max(attempt, excluded.attempt)"
"""Takes a call key and the attempt up to which it is spent."""


def refuse_newer(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a file.

    Raises:
        PipelineError: it is newer than this program.
    """
    version: int = connection.execute("pragma user_version").fetchone()[0]
    if version > VERSION:
        raise PipelineError(
            f"{path}: is of version {version}, and this program knows none above {VERSION}; use the newer program"
        )
    return version


def bring_up(connection: sqlite3.Connection, path: Path) -> None:
    """Give a file all tables; one from before there were versions gets its spend from its calls, once.

    Raises:
        PipelineError: it is newer than this program.
    """
    if refuse_newer(connection, path) == VERSION:
        return
    connection.execute("begin immediate")
    with connection:
        for table in _TABLES:
            connection.execute(table)
        connection.execute(FILL_SPEND)
        connection.execute(f"pragma user_version = {VERSION}")
