"""The tables of the ledger's file, their version, making a file, and refusing one of another version."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasks.llm.ledger.damage import DAMAGE
from tasks.llm.ledger.entries import COLUMNS, checksum_of
from tasks.llm.ledger.paths import FILE_PARTS, beside
from tasks.llm.ledger.spend import SPEND_TABLE
from tasks.rules.errors import PipelineError

VERSION = 3
"""Stands in a file as `user_version`; version 3 is of November 2026."""
_MOST_VERSIONS = 255
_INSERTED = (*COLUMNS, "checksum")
_TABLES = (
    f"create table calls ({', '.join(_INSERTED)}, primary key (call_key, attempt))",
    "create table spent (call_key text primary key, attempt integer not null)",
    """create table logprobs (
        call_key text, attempt integer, tokens text, primary key (call_key, attempt)
    )""",
    SPEND_TABLE,
    "create table submissions (submission text primary key, lane text)",
    """create table submitted_calls (
        submission text, call_key text, cell text, parameters text, primary key (submission, call_key)
    )""",
    "create table submission_states (submission text, state text, batch_id text, at_s real)",
)
SUBMITTING, SUBMITTED, ENDED = "handing in", "handed in", "ended"
"""The states of a batch as they are stored."""
INSERT = f"insert or replace into calls ({', '.join(_INSERTED)}) values ({', '.join('?' * len(_INSERTED))})"
"""Takes what `with_checksum` gives."""
KEEP_LOGPROBS = "insert or replace into logprobs values (?, ?, ?)"
"""Takes a call key, an attempt, and the tokens of its reply as `logprobs_as_text` gives them."""
SPENT = "insert into spent values (?, ?) on conflict do update set attempt = max(attempt, excluded.attempt)"
"""Takes a call key and the attempt up to which it is spent."""


def with_checksum(values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of an entry as they are inserted."""
    return (*values, checksum_of(values))


def refuse_other_version(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that this program does not read.

    Raises:
        PipelineError: it is newer or older than this program.
        DatabaseError: the number is none that a program gave it.
    """
    version: int = connection.execute("pragma user_version").fetchone()[0]
    if not 0 <= version <= _MOST_VERSIONS:
        raise sqlite3.DatabaseError(f"it says that its version is {version}")
    if version > VERSION:
        raise PipelineError(
            f"{path}: is of version {version}, newer than this program knows ({VERSION}); upgrade prbench"
        )
    if version < VERSION:
        raise PipelineError(
            f"{path}: is of version {version}, older than this program reads ({VERSION}); run the prbench of November "
            "2026 on it once"
        )


def connected(path: Path) -> sqlite3.Connection:
    """A connection that writes; a commit is on the disk when it returns, also if the machine loses its power."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
    try:
        # Has an effect on a new file alone: the space of removed replies can be given back piece by piece.
        connection.execute("pragma auto_vacuum = incremental")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
    except DAMAGE:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def new_file(path: Path, as_: Path | None = None) -> Iterator[sqlite3.Connection]:
    """A new file, to be filled while the block lasts.

    It gets its name at the end, so that a file of that name is always whole; a kill before leaves none.
    """
    new = path.with_name(f"new-{path.name}")
    for part in FILE_PARTS:
        beside(new, part).unlink(missing_ok=True)
    with contextlib.closing(connected(new)) as connection:
        connection.execute("begin immediate")
        with connection:
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"pragma user_version = {VERSION}")
        yield connection
        # Closing does so too, but reports no error of it, such as a full disk; what stays in the log would be lost.
        if connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
            raise sqlite3.OperationalError(f"the log of {new.name} is in use")
    new.rename(as_ or path)
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable: one that is lost with the power would take all later commits with it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
