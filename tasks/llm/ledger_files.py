"""The ledger's files: one for each process that writes, each with a lock that the kernel frees when that ends."""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tasks.llm.entries import COLUMNS
from tasks.llm.ledger_schema import INSERT, SPENT, bring_up, refuse_newer
from tasks.llm.salvage import NOTHING, Saved, set_aside
from tasks.llm.spend import ADD_SPEND, FILL_SPEND, SPEND_COLUMNS
from tasks.progress import say
from tasks.rules.errors import PipelineError
from tasks.rules.text import one_line

_MOST_FILES = 256
_MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is looked through for damage when it is opened; larger ones show it when they are read."""


def opened(path: Path) -> sqlite3.Connection:
    """A ledger file, made where it is missing, and begun anew from what can be read where it is damaged.

    Only who has the file's lock may open it.

    Raises:
        PipelineError: the disk refuses, or the file is of a newer version.
    """
    try:
        if not path.exists():
            _make(path)
        return _connect(path)
    except (sqlite3.OperationalError, OSError) as error:  # a full disk or the like says nothing about the file
        raise PipelineError(f"{path}: cannot be opened ({error}); make room for it and run again") from error
    except sqlite3.DatabaseError as error:
        saved, aside = set_aside(path, COLUMNS, SPEND_COLUMNS)
        _make(path, saved)
        say(
            f"{path}: is damaged ({one_line(str(error))}); {len(saved.calls)} calls were saved, the file is now "
            f"{aside.name}; calls that are neither in it nor in a table are made again"
        )
        return _connect(path)


def _make(path: Path, saved: Saved = NOTHING) -> None:
    """Make a file, under another name until it is whole: other processes may look at it at any time."""
    new = path.with_name(f"new-{path.name}")
    for suffix in ("", "-wal", "-shm"):
        new.with_name(new.name + suffix).unlink(missing_ok=True)
    with contextlib.closing(_connect(new)) as connection:
        connection.execute("begin")
        with connection:
            connection.executemany(INSERT, saved.calls)
            connection.executemany(SPENT, saved.spent)
            connection.executemany(ADD_SPEND, saved.spend)
            if not saved.spend:
                connection.execute(FILL_SPEND)
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # a name that is lost with the power would take all later commits with it
    finally:
        os.close(folder)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
    try:
        # Has an effect on a new file alone: what retention removes can be given back piece by piece.
        connection.execute("pragma auto_vacuum = incremental")
        connection.execute("pragma journal_mode = wal")
        # FULL: a commit is on the disk when it returns, also if the machine loses its power.
        connection.execute("pragma synchronous = full")
        _look_through(connection, path)
        bring_up(connection, path)
    except (sqlite3.DatabaseError, PipelineError):
        connection.close()
        raise
    return connection


def _look_through(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size <= _MOST_CHECKED_BYTES:
        verdict = connection.execute("pragma quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)


def reader_of(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed and nothing else.

    Raises:
        PipelineError: the file is of a newer version.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False, timeout=30)
    try:
        with contextlib.suppress(sqlite3.DatabaseError):  # is told when a call is looked up
            refuse_newer(connection, path)
    except PipelineError:
        connection.close()
        raise
    return connection


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
