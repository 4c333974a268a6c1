"""The tables of a ledger file, their version, and bringing an older file up to it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.llm.ledger.entries import COLUMNS, checksum_of
from tasks.llm.ledger.spend import FILL_SPEND, SPEND_TABLE
from tasks.rules.errors import PipelineError

VERSION = 2
"""Stands in a file as `user_version`; files from before there were versions have 0, from before checksums 1."""
_MOST_VERSIONS = 255
_CHECKSUM = "checksum"
_TABLES = (
    f"create table if not exists calls ({', '.join(COLUMNS)}, {_CHECKSUM}, primary key (call_key, attempt))",
    "create table if not exists spent (call_key text primary key, attempt integer not null)",
    SPEND_TABLE,
    "create table if not exists submissions (submission text primary key, lane text)",
    """create table if not exists submitted_calls (
        submission text, call_key text, cell text, parameters text, primary key (submission, call_key)
    )""",
    "create table if not exists submission_states (submission text, state text, batch_id text, at_s real)",
)
_INSERTED = (*COLUMNS, _CHECKSUM)
INSERT = f"insert or replace into calls ({', '.join(_INSERTED)}) values ({', '.join('?' * len(_INSERTED))})"
"""Takes what `with_checksum` gives."""
SPENT = "insert into spent values (?, ?) on conflict do update set attempt = max(attempt, excluded.attempt)"
"""Takes a call key and the attempt up to which it is spent."""


def with_checksum(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of an entry as they are inserted."""
    return (*values, checksum_of(values))


def refuse_newer(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a file.

    Raises:
        PipelineError: it is newer than this program.
        DatabaseError: the number is none that a program gave it.
    """
    version: int = connection.execute("pragma user_version").fetchone()[0]
    if not 0 <= version <= _MOST_VERSIONS:
        raise sqlite3.DatabaseError(f"it says that its version is {version}")
    if version > VERSION:
        raise PipelineError(
            f"{path}: is of version {version}, newer than this program knows ({VERSION}); upgrade prbench"
        )
    return version


def bring_up(connection: sqlite3.Connection, path: Path) -> None:
    """Give a file all tables; one from before there were versions gets its spend from its calls, once.

    Raises:
        PipelineError: it is newer than this program.
    """
    version = refuse_newer(connection, path)
    if version == VERSION:
        return
    connection.execute("begin immediate")
    with connection:
        for table in _TABLES:
            connection.execute(table)
        if _CHECKSUM not in {name for _, name, *_ in connection.execute("pragma table_info(calls)")}:
            connection.execute(f"alter table calls add column {_CHECKSUM}")
        if version == 0:
            connection.execute(FILL_SPEND)
        connection.execute(f"pragma user_version = {VERSION}")
