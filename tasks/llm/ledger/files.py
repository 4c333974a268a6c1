"""Opening the ledger: its lock, the check for damage, and what is done before anybody uses it."""

import contextlib
import fcntl
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tasks.console import notice
from tasks.llm.ledger.damage import DAMAGE, refused, says_damaged, suspected
from tasks.llm.ledger.paths import beside, ledger_path, repaired
from tasks.llm.ledger.raw_pages import is_log_damaged
from tasks.llm.ledger.repair import finish_repair, repair
from tasks.llm.ledger.schema import connected, new_file, refuse_other_version
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line

_LOCK = "calls.lock"
_POLL_S, _UNNOTICED_S = 0.05, 1.0
_REMEDY = "make room for it and run again"
_MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is checked for damage when it is opened; larger ones after reading them has failed."""


def in_use(folder: Path) -> TextIO:
    """The ledger's lock, shared by all that use it; closing it gives it back.

    Whoever is the only one checks the ledger first, and repairs it where it is damaged; others wait for that.

    Raises:
        OSError: the folder cannot be written.
        PipelineError: the disk refuses, or a file is of another version.
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
        PipelineError: the disk refuses, or a file is of another version.
    """
    with (folder / _LOCK).open("a+") as lock:
        if not _takes(lock, fcntl.LOCK_EX):
            yield None
            return
        _prepare(ledger_path(folder))
        yield ledger_path(folder)


def mend(folder: Path) -> None:
    """Repair the ledger if it is damaged, unless it is in use.

    Raises:
        PipelineError: the disk refuses, or a file is of another version.
    """
    if folder.is_dir():
        with alone(folder):
            pass


def writer_of(path: Path) -> sqlite3.Connection:
    """A connection that writes to a file that was prepared.

    Raises:
        PipelineError: the disk refuses, or the file is of another version.
    """
    try:
        connection = connected(path)
        try:
            refuse_other_version(connection, path)
        except BaseException:
            connection.close()
            raise
    except (*DAMAGE, OSError) as error:
        raise refused(path, "opened", error, _REMEDY) from error
    return connection


def reader_of(path: Path) -> sqlite3.Connection:
    """A connection that sees what is committed and nothing else.

    Raises:
        PipelineError: the file is of another version.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False, timeout=30)
    # A damaged text is found by its row's checksum, and makes no other row unreadable.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    try:
        with contextlib.suppress(*DAMAGE):  # is reported when a call is looked up
            refuse_other_version(connection, path)
    except PipelineError:
        connection.close()
        raise
    return connection


def is_damage(error: Exception, path: Path) -> bool:
    """Whether an error that reading a file raised says that it is damaged; then its next opening checks all of it."""
    if not says_damaged(error, path):
        return False
    with contextlib.suppress(OSError):  # a folder that cannot be written: the next opening reports that
        suspected(path).touch()
    return True


def _is_shared(lock: TextIO, folder: Path) -> bool:
    """Take the lock, shared, on a ledger that is prepared; False if another process was to prepare it and failed."""
    ledger = ledger_path(folder)
    if _takes(lock, fcntl.LOCK_EX):
        _prepare(ledger)
        fcntl.flock(lock, fcntl.LOCK_SH)
    elif not _takes(lock, fcntl.LOCK_SH):
        _wait(lock, ledger)
    if ledger.exists() and not repaired(ledger).exists():
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


def _wait(lock: TextIO, ledger: Path) -> None:
    """Wait until the process that prepares the ledger has done so or was killed."""
    until_s = time.monotonic() + _UNNOTICED_S
    while not _takes(lock, fcntl.LOCK_SH):
        if time.monotonic() > until_s:
            notice(f"{ledger}: another process is checking it; waiting for that")
            fcntl.flock(lock, fcntl.LOCK_SH)
            return
        time.sleep(_POLL_S)


def _takes(lock: TextIO, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _prepare(path: Path) -> None:
    """Make the ledger's file whole; it is made where it is missing."""
    try:
        _make_whole(path)
    except (sqlite3.Error, OSError) as error:  # a full disk or the like says nothing about the file
        raise refused(path, "opened", error, _REMEDY) from error


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
            if path.stat().st_size <= _MOST_CHECKED_BYTES or suspected(path).exists():
                verdict: str = connection.execute("pragma integrity_check(1)").fetchone()[0]
                if verdict != "ok":
                    return one_line(verdict)
                _read_small_tables(connection)
                suspected(path).unlink(missing_ok=True)
            refuse_other_version(connection, path)
    except DAMAGE as error:
        if not says_damaged(error, path):
            raise
        return one_line(str(error))
    return None


def _read_small_tables(connection: sqlite3.Connection) -> None:
    """Read all but the calls: SQLite does not check that a text is one, and calls have checksums of their own."""
    tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    for name in tables - {"calls"}:
        connection.execute(f"select * from {name}").fetchall()
