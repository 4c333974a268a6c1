"""The ledger's files: one for each process that writes, each with a lock that the kernel frees when that ends."""

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tasks.console.progress import notice
from tasks.llm.ledger.raw_pages import is_log_damaged
from tasks.llm.ledger.repair import NOTHING, Saved, salvaged
from tasks.llm.ledger.schema import INSERT, bring_up, refuse_newer, with_checksum
from tasks.llm.ledger.spend import FILL_SPEND
from tasks.rules.errors import PipelineError
from tasks.rules.text import one_line

_MOST_FILES = 256
_MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is looked through for damage when it is opened; larger ones when reading them has failed."""
_PARTS = ("", "-wal", "-shm")
DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite's module raises on a damaged file; the second where what SQLite says of it is damaged text."""
_NOT_OF_THE_FILE = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
})  # fmt: skip


def opened(path: Path) -> sqlite3.Connection:
    """A ledger file, made where it is missing, and begun anew from what can be read where it is damaged.

    Only who has the file's lock may open it.

    Raises:
        PipelineError: the disk refuses, or the file is of a newer version.
    """
    try:
        _finish_repair(path)
        log = _beside(path, "-wal")
        if not path.exists() and not log.exists():
            _make(path)
        damage = _damage_before_opening(path, log)
        if damage is None:
            try:
                return _connect(path)
            except DAMAGE as error:
                if not _says_that_it_is_damaged(error, path):
                    raise
                damage = one_line(str(error))
        _repair(path, damage)
        return _connect(path)
    except (sqlite3.Error, OSError) as error:  # a full disk or the like says nothing about the file
        raise PipelineError(f"{path}: cannot be opened ({error}); make room for it and run again") from error


def mend(folder: Path) -> None:
    """Begin anew the damaged files of a ledger that nobody writes.

    Raises:
        PipelineError: the disk refuses, or a file is of a newer version.
    """
    for path in sorted(folder.glob("calls-*.sqlite")):
        with if_nobody_writes(path) as is_free:
            if is_free:
                opened(path).close()


def is_damage(error: Exception, path: Path) -> bool:
    """Whether an error that reading a file raised says that it is damaged; then its next opening looks through it."""
    if not _says_that_it_is_damaged(error, path):
        return False
    with contextlib.suppress(OSError):  # a folder that cannot be written: the next opening tells of that
        _suspected(path).touch()
    return True


def _says_that_it_is_damaged(error: Exception, path: Path) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_READONLY:
        return os.access(path, os.W_OK)  # a damaged header may forbid to write
    return code is None or code & 0xFF not in _NOT_OF_THE_FILE


def _damage_before_opening(path: Path, log: Path) -> str | None:
    """What SQLite would pass over in silence: an empty file, and a log whose commits it can't reach all."""
    if log.exists() and is_log_damaged(log.read_bytes()):
        return "its log of commits is damaged"
    if not path.exists():
        return "the file is missing beside its log"
    return "it is empty" if path.stat().st_size == 0 else None


def _repair(path: Path, damage: str) -> None:
    """Set a damaged file aside and put in its place one with all that could be saved; a kill on the way loses nothing.

    The new file is whole before the old one is touched, and has a name by which the next opening goes on with this.
    """
    with salvaged(path) as saved:
        _make(path, saved, as_=_repaired(path))
    aside = _finish_repair(path)
    lost = f"{saved.n_lost} could not" if saved.n_lost else "none is known to be lost"
    notice(
        f"{path}: is damaged ({damage}); {saved.n_calls} calls were recovered, {lost}; "
        f"the damaged file is kept as {aside}; calls that are neither recovered nor in a table are made again"
    )


def _finish_repair(path: Path) -> str | None:
    """Swap a damaged file for the repaired one, if there is one; the name that the damaged one has now."""
    repaired = _repaired(path)
    if not repaired.exists():
        return None
    aside = path.with_name(f"damaged-{time.time_ns()}-{path.name}")
    for part in _PARTS:
        with contextlib.suppress(FileNotFoundError):
            _beside(path, part).rename(_beside(aside, part))
    repaired.rename(path)
    _suspected(path).unlink(missing_ok=True)
    _sync(path.parent)
    return aside.name


def _make(path: Path, saved: Saved = NOTHING, as_: Path | None = None) -> None:
    """Make a file, under another name until it is whole: other processes may look at it at any time."""
    new = path.with_name(f"new-{path.name}")
    for part in _PARTS:
        _beside(new, part).unlink(missing_ok=True)
    with contextlib.closing(_connect(new)) as connection:
        connection.execute("begin")
        with connection:
            connection.executemany(INSERT, map(with_checksum, saved.calls()))
            for name, rows in saved.others.items():
                for row in rows:
                    connection.execute(f"insert or replace into {name} values ({', '.join('?' * len(row))})", row)
            if not saved.others.get("spend"):
                connection.execute(FILL_SPEND)
    new.rename(as_ or path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)  # a name that is lost with the power would take all later commits with it
    finally:
        os.close(folder)


def _beside(path: Path, part: str) -> Path:
    return path.with_name(path.name + part)


def _repaired(path: Path) -> Path:
    return path.with_name(f"repaired-{path.name}")


def _suspected(path: Path) -> Path:
    """Is there when reading the file has failed."""
    return path.with_suffix(".suspect")


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
    except (*DAMAGE, PipelineError):
        connection.close()
        raise
    return connection


def _look_through(connection: sqlite3.Connection, path: Path) -> None:
    """Check a file's structure, and that its index finds every call."""
    if path.stat().st_size <= _MOST_CHECKED_BYTES or _suspected(path).exists():
        verdict = connection.execute("pragma integrity_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
        for name in tables - {"calls"}:  # a text that is none is no damage for SQLite; each call tells of its own
            connection.execute(f"select * from {name}").fetchall()
        _suspected(path).unlink(missing_ok=True)


def reader_of(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed and nothing else.

    Raises:
        PipelineError: the file is of a newer version.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False, timeout=30)
    # A damaged text is found by its row's checksum, and makes no other row unreadable.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        with contextlib.suppress(*DAMAGE):  # is told when a call is looked up
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
