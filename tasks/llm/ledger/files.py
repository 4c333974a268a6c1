"""Opening the ledger: its lock, the check for damage, and what is done before anybody uses it."""

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tasks.llm.ledger.merge import merge_old_files
from tasks.llm.ledger.paths import beside, ledger_path, merged, old_files, repaired
from tasks.llm.ledger.raw_pages import is_log_damaged
from tasks.llm.ledger.repair import finish_repair, repair
from tasks.llm.ledger.schema import DAMAGE, bring_up, connected, new_file, refuse_newer
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line

_LOCK = "calls.lock"
_POLL_S = 0.05
_MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is checked for damage when it is opened; larger ones after reading them has failed."""
_NOT_OF_THE_FILE = frozenset({
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
})  # fmt: skip


def in_use(folder: Path) -> TextIO:
    """The ledger's lock, shared by all that use it; closing it gives it back.

    Whoever is the only one checks the ledger first, repairs it where it is damaged, and merges the files of version 1;
    others wait for that.

    Raises:
        OSError: the folder cannot be written.
        PipelineError: the disk refuses, or a file is of a newer version.
    """
    lock = (folder / _LOCK).open("a+")
    try:
        while not _is_shared(lock, folder):
            time.sleep(_POLL_S)
    except BaseException:
        lock.close()
        raise
    return lock


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[Path | None]:
    """The ledger's file, checked and repaired, for this process alone while the block lasts; None if it is in use.

    Raises:
        PipelineError: the disk refuses, or a file is of a newer version.
    """
    with (folder / _LOCK).open("a+") as lock:
        if not _is_alone(lock):
            yield None
            return
        _prepare(ledger_path(folder))
        yield ledger_path(folder)


def mend(folder: Path) -> None:
    """Repair the ledger if it is damaged, and merge the files of version 1, unless it is in use.

    Raises:
        PipelineError: the disk refuses, or a file is of a newer version.
    """
    if folder.is_dir():
        with alone(folder):
            pass


def writer_of(path: Path) -> sqlite3.Connection:
    """A connection that writes to a file that was prepared.

    Raises:
        PipelineError: the disk refuses, or the file is of a newer version.
    """
    try:
        connection = connected(path)
        try:
            bring_up(connection, path)
        except BaseException:
            connection.close()
            raise
    except (*DAMAGE, OSError) as error:
        raise _cannot_be_opened(path, error) from error
    return connection


def reader_of(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed and nothing else.

    Raises:
        PipelineError: the file is of a newer version.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False, timeout=30)
    # A damaged text is found by its row's checksum, and makes no other row unreadable.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        with contextlib.suppress(*DAMAGE):  # is reported when a call is looked up
            refuse_newer(connection, path)
    except PipelineError:
        connection.close()
        raise
    return connection


def is_damage(error: Exception, path: Path) -> bool:
    """Whether an error that reading a file raised says that it is damaged; then its next opening checks all of it."""
    if not _says_that_it_is_damaged(error, path):
        return False
    with contextlib.suppress(OSError):  # a folder that cannot be written: the next opening reports that
        _suspected(path).touch()
    return True


def _is_shared(lock: TextIO, folder: Path) -> bool:
    """Take the lock, shared, on a ledger that is prepared; False if another process was to prepare it and failed."""
    ledger, had_to_wait = ledger_path(folder), False
    if _is_alone(lock):
        _prepare(ledger)
    else:
        had_to_wait = not _takes(lock, fcntl.LOCK_SH)
    fcntl.flock(lock, fcntl.LOCK_SH)
    is_whole = ledger.exists() and not merged(ledger).exists() and not repaired(ledger).exists()
    if is_whole and not (had_to_wait and old_files(folder)):
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


def _is_alone(lock: TextIO) -> bool:
    return _takes(lock, fcntl.LOCK_EX)


def _takes(lock: TextIO, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _prepare(path: Path) -> None:
    """Make the ledger's file whole and the only one; it is made where it is missing."""
    try:
        merge_old_files(path, _checked_whole)
        _make_whole(path)
    except (sqlite3.Error, OSError) as error:  # a full disk or the like says nothing about the file
        raise _cannot_be_opened(path, error) from error


def _checked_whole(path: Path) -> None:
    """Make a file whole after a check of all of it, however large it is."""
    _suspected(path).touch()
    _make_whole(path)


def _make_whole(path: Path) -> None:
    finish_repair(path)
    log = beside(path, "-wal")
    if not path.exists() and not log.exists():
        with new_file(path):
            return
    damage = _damage_before_opening(path, log) or _damage_inside(path)
    if damage is not None:
        repair(path, damage)


def _damage_before_opening(path: Path, log: Path) -> str | None:
    """What SQLite would ignore in silence: an empty file, and a log whose commits it cannot all reach."""
    if log.exists() and is_log_damaged(log.read_bytes()):
        return "its log of commits is damaged"
    if not path.exists():
        return "the file is missing beside its log"
    return "it is empty" if path.stat().st_size == 0 else None


def _damage_inside(path: Path) -> str | None:
    """What is wrong with a file's structure or with the index of its calls; None where all is well."""
    try:
        with contextlib.closing(connected(path)) as connection:
            if path.stat().st_size <= _MOST_CHECKED_BYTES or _suspected(path).exists():
                verdict: str = connection.execute("pragma integrity_check(1)").fetchone()[0]
                if verdict != "ok":
                    return one_line(verdict)
                _read_small_tables(connection)
                _suspected(path).unlink(missing_ok=True)
            bring_up(connection, path)
    except DAMAGE as error:
        if not _says_that_it_is_damaged(error, path):
            raise
        return one_line(str(error))
    return None


def _read_small_tables(connection: sqlite3.Connection) -> None:
    """Read all but the calls: SQLite does not check that a text is one, and calls have checksums of their own."""
    tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    for name in tables - {"calls"}:
        connection.execute(f"select * from {name}").fetchall()


def _says_that_it_is_damaged(error: Exception, path: Path) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_READONLY:
        return os.access(path, os.W_OK)  # a damaged header may forbid to write
    return code is None or code & 0xFF not in _NOT_OF_THE_FILE


def _suspected(path: Path) -> Path:
    """Is there when reading the file has failed."""
    return path.with_suffix(".suspect")


def _cannot_be_opened(path: Path, error: Exception) -> PipelineError:
    return PipelineError(f"{path}: cannot be opened ({one_line(str(error))}); make room for it and run again")
