"""The ledger's file: its names, its connections, its version, and errors that mean damage."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from tasks.llm.ledger.entries import TABLES, checksum_of
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line

VERSION = 4
"""The `user_version` of a file; in version 4 (December 2026), the rows of `SEALED` tables have
checksums.
"""
UNSEALED = 3
"""The version of November 2026; such a file gets its checksums when it is opened."""
DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""Errors of SQLite's module on a damaged file; the second one if SQLite's message is itself damaged
text.
"""
_NOT_OF_THE_FILE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Codes of errors that say nothing about a file's content."""
FILE_PARTS = ("", "-wal", "-shm")
"""Suffixes that SQLite adds to the name of a file for its companions; the empty one is the file."""


def ledger_path(folder: Path) -> Path:
    """Return the ledger's file in its folder."""
    return folder / "calls.sqlite"


def repaired_path(path: Path) -> Path:
    """Return the path of a new file that has not replaced the damaged one yet."""
    return path.with_name(f"repaired-{path.name}")


def readable_path(folder: Path) -> Path | None:
    """Return the path of the readable ledger file, even during a repair; None if there is none."""
    ledger = ledger_path(folder)
    paths = (repaired_path(ledger), ledger)
    return next((path for path in paths if path.exists()), None)


def damaged_files(folder: Path) -> set[Path]:
    """Return the damaged files of a folder that were set aside."""
    return set(folder.glob("damaged-*"))


def was_damaged_since(folder: Path, since_s: float) -> bool:
    """Return whether a damaged ledger, which may have lost calls, was set aside after a moment
    (seconds since 1970).
    """
    return any(path.stat().st_ctime >= since_s for path in damaged_files(folder))


def beside(path: Path, suffix: str) -> Path:
    """Return a file's companion, such as its log (`-wal`)."""
    return path.with_name(path.name + suffix)


def suspicion_path(path: Path) -> Path:
    """Return the path of the mark of a ledger of which the next opening checks everything."""
    return path.with_suffix(".suspect")


def suspect(path: Path) -> None:
    """Have the next opening of a ledger check everything."""
    # If the folder cannot be written, the next opening reports that.
    with contextlib.suppress(OSError):
        suspicion_path(path).touch()


def connected(path: Path, *, may_lack_checksums: bool = False) -> sqlite3.Connection:
    """Return a connection for writing; a commit is on the disk when it returns, even if the machine
    loses power.

    Raises:
        PipelineError: the file is of another version.
    """
    with contextlib.ExitStack() as stack:
        connection = sqlite3.connect(
            path,
            check_same_thread=False,
            isolation_level=None,
            timeout=30,
        )
        stack.callback(connection.close)  # if anything fails
        # Works only on a new file: it lets the space of removed replies be freed step by step.
        connection.execute("pragma auto_vacuum = incremental")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.create_function("checksum_of", -1, lambda *values: checksum_of(values))
        version = version_of(connection)
        # A new file has no version and no tables.
        if version or connection.execute("select 1 from sqlite_master").fetchone():
            refuse_other_version(connection, path)
        if version == UNSEALED and not may_lack_checksums:
            raise PipelineError(
                f"{path}: an older prbench has it open; wait until that has ended, and run again"
            )
        if version:  # files of earlier programs have no such table
            connection.execute(TABLES["attempts"])
        stack.pop_all()
        return connection


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that changes nothing."""
    # When a read-only connection closes, its part of the log's index stays behind. So this one may
    # write, but does not. On a read-only disk without a log, SQLite treats the file as immutable.
    options = "mode=ro"
    if os.access(path.parent, os.W_OK):
        options = "mode=rw"
    elif not beside(path, "-wal").exists():
        options = "mode=ro&immutable=1"
    with contextlib.closing(opened(path, options)) as connection:
        connection.execute("pragma query_only = on")
        yield connection


def opened(path: Path, options: str = "mode=ro") -> sqlite3.Connection:
    """Return a connection to a file that exists, without any check."""
    address = f"{path.absolute().as_uri()}?{options}"
    return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=30)


@contextlib.contextmanager
def opened_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that changes nothing, to a file of a version that this program reads.

    Raises:
        PipelineError: the file cannot be read, or is of another version.
    """
    with refusing(path, "read"), read_only(path) as connection:
        refuse_other_version(connection, path)
        yield connection


@contextlib.contextmanager
def new_file(final_path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a new file, to be filled in the block.

    It gets its name at the end, so that a file of that name is always complete; after an earlier
    kill there is no such file.
    """
    new_path = final_path.with_name(f"new-{final_path.name}")
    for suffix in FILE_PARTS:
        beside(new_path, suffix).unlink(missing_ok=True)
    with contextlib.closing(connected(new_path)) as connection:
        connection.execute("begin")
        with connection:
            for statement in TABLES.values():
                connection.execute(statement)
            connection.execute(f"pragma user_version = {VERSION}")
        yield connection
        # Closing does so too, but reports no error such as a full disk; content that stays in the
        # log would be lost.
        is_busy = connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        if is_busy:
            raise sqlite3.OperationalError(f"the log of {new_path.name} is in use")
    new_path.rename(final_path)
    sync(final_path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable: if a name is lost at a power cut, all later commits are
    lost too.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file; 0 for a new one."""
    return int(connection.execute("pragma user_version").fetchone()[0])


def refuse_other_version(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that this program does not read.

    Raises:
        PipelineError: it is older or newer.
    """
    version = version_of(connection)
    if version not in {VERSION, UNSEALED}:
        raise PipelineError(
            f"{path}: is of version {version}, and this program reads {VERSION}; use the prbench"
            " that wrote it, or upgrade an older file as CHANGELOG.md says (0.2.0, Upgrade)"
        )


@contextlib.contextmanager
def refusing(path: Path, action: str) -> Iterator[None]:
    """Turn an error of the disk, or of a damaged file, into one line with its cause and a
    remedy.
    """
    try:
        yield
    except (*DAMAGE, OSError) as error:
        raise refused(path, action, error) from error


def refused(path: Path, action: str, error: Exception) -> PipelineError:
    """Return the error with a file's problem, its cause and a remedy; `action` is a participle such
    as `read`.
    """
    remedy = "check its space, its permissions, and that no other program uses it, and try again"
    if isinstance(error, DAMAGE) and is_damage(error, path):
        remedy = "it is damaged; run again: it is repaired when no other run has it open"
    return PipelineError(f"{path}: cannot be {action} ({one_line(str(error))}); {remedy}")


def is_damage(error: Exception, path: Path) -> bool:
    """Return whether an error from reading a file means that the file is damaged.

    If so, the next opening checks all of it.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _NOT_OF_THE_FILE:
        return False
    # A damaged header may forbid writing.
    if code == sqlite3.SQLITE_READONLY and not os.access(path, os.W_OK):
        return False
    suspect(path)
    return True


_DELETIONS = "deletions"


def deletion_mark(folder: Path) -> int:
    """Return the mark of deletions of a folder's ledger, which changes whenever replies are
    deleted; 0: never.

    It tells the report, which holds copies of replies, when to read them again, without a look into
    the ledger.
    """
    file = folder / _DELETIONS
    return file.stat().st_mtime_ns if file.exists() else 0


def change_mark(folder: Path) -> None:
    """Change the mark of deletions, before a deletion is committed."""
    file = folder / _DELETIONS
    file.touch()
    now_ns = time.time_ns()
    os.utime(file, ns=(now_ns, now_ns))  # `touch` alone is too coarse
