"""The ledger's files: one for each process that writes, each with a lock that the kernel frees when that ends."""

import contextlib
import fcntl
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tasks.llm.entries import COLUMNS
from tasks.llm.salvage import set_aside
from tasks.progress import say
from tasks.rules.errors import PipelineError
from tasks.rules.text import one_line

_MOST_FILES = 256
_SCHEMA = f"""
    create table if not exists calls ({", ".join(COLUMNS)}, primary key (call_key, attempt));
    create table if not exists spent (call_key text primary key, attempt integer not null);
"""
INSERT = f"insert or replace into calls values ({', '.join('?' * len(COLUMNS))})"
"""Takes the values of an entry."""
SPEND = "insert into spent values (?, ?) on conflict do update set attempt = max(attempt, excluded.attempt)"
"""Takes a call key and the attempt up to which it is spent."""
_MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is looked through for damage when it is opened; larger ones show it when they are read."""


def opened(path: Path) -> sqlite3.Connection:
    """A ledger file, made where it is missing, and begun anew from what can be read where it is damaged.

    Raises:
        PipelineError: the disk refuses.
    """
    try:
        return _connect(path)
    except sqlite3.OperationalError as error:  # a full disk or the like says nothing about the file
        raise PipelineError(f"{path}: cannot be opened ({error}); make room for it and run again") from error
    except sqlite3.DatabaseError as error:
        kept, spent, aside = set_aside(path, COLUMNS)
        connection = _connect(path)
        with connection:
            connection.executemany(INSERT, kept)
            connection.executemany(SPEND, spent)
        say(
            f"{path}: is damaged ({one_line(str(error))}); {len(kept)} calls were saved, the file is now {aside.name}; "
            "calls that are neither in it nor in a table are made again"
        )
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
    try:
        connection.execute("pragma journal_mode = wal")
        # FULL: a commit is on the disk when it returns, also if the machine loses its power.
        connection.execute("pragma synchronous = full")
        connection.executescript(_SCHEMA)
        _look_through(connection, path)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _look_through(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size <= _MOST_CHECKED_BYTES:
        verdict = connection.execute("pragma quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)


def reader_of(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed and nothing else."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False, timeout=30)


@contextlib.contextmanager
def if_nobody_writes(path: Path) -> Iterator[bool]:
    """Hold a file's lock if it is free; tells whether it was."""
    with path.with_suffix(".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def own_file(folder: Path) -> tuple[TextIO, Path]:
    """The first file that no other process writes, with the lock that keeps it so."""
    for number in range(_MOST_FILES):
        lock = (folder / f"calls-{number}.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return lock, folder / f"calls-{number}.sqlite"
    raise PipelineError(f"{folder}: {_MOST_FILES} processes are at work on this warehouse")
