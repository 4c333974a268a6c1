"""The ledger's file: its lock, the check for damage, and its repair with all rows that SQLite can
still read.
"""

import contextlib
import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from tasks.console import notice
from tasks.llm.ledger.entries import (
    LOST_SPEND,
    SEALED,
    SPEND_COLUMNS,
    SPEND_KEY,
    SPEND_KEYS,
    TABLES,
    checksum_of,
    is_as_written,
)
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line
from tasks.rules.text.numbers import counted

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
_FILE_PARTS = ("", "-wal", "-shm")
"""Suffixes that SQLite adds to the name of a file for its companions."""
MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is checked for damage when it is opened; a larger one only after a failed
read.
"""
_VERIFIED = ("calls", *SEALED)
"""The tables whose rows have checksums."""
_PAGE_BYTES = 4096
_ENTRY_BYTES = 200
_AT_ONCE = 1_000
"""Bytes of a page, smallest size of a call, and number of rows of a damaged file that are read at
once.
"""


def ledger_path(folder: Path) -> Path:
    """Return the ledger's file in its folder."""
    return folder / "calls.sqlite"


def readable_path(folder: Path) -> Path | None:
    """Return the path of the readable ledger file, even during a repair; None if there is none."""
    ledger = ledger_path(folder)
    return next((path for path in (_repaired(ledger), ledger) if path.exists()), None)


def was_damaged_since(folder: Path, since_s: float) -> bool:
    """Return whether a damaged ledger, which may have lost calls, was set aside after a moment
    (seconds since 1970).
    """
    return any(path.stat().st_ctime >= since_s for path in folder.glob("damaged-*"))


def beside(path: Path, part: str) -> Path:
    """Return a file's companion, such as its log (`-wal`)."""
    return path.with_name(path.name + part)


def in_use(folder: Path) -> TextIO:
    """Take the ledger's lock, which all its users share, and return it; closing it releases the
    lock.

    A user that is alone first checks the ledger, and repairs damage; others wait for that.

    Raises:
        OSError: the folder cannot be written.
        PipelineError: the disk refuses, or a file is of another version.
    """
    lock = (folder / "calls.lock").open("a+")
    path = ledger_path(folder)
    try:
        while True:
            if _try_lock(lock, fcntl.LOCK_EX):
                _prepare(path)
            if not _try_lock(lock, fcntl.LOCK_SH):
                notice(f"{path}: another process is checking it; waiting for that")
                fcntl.flock(lock, fcntl.LOCK_SH)
            if path.exists() and not _repaired(path).exists():
                return lock
            fcntl.flock(lock, fcntl.LOCK_UN)  # that process was killed before the end
            time.sleep(0.05)
    except BaseException:
        lock.close()
        raise


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[Path | None]:
    """Yield the ledger's file, checked and repaired, for this process alone until the block ends;
    None if it is in use.

    Raises:
        PipelineError: the disk refuses, or a file is of another version.
    """
    with (folder / "calls.lock").open("a+") as lock:
        if _try_lock(lock, fcntl.LOCK_EX):
            _prepare(ledger_path(folder))
            yield ledger_path(folder)
        else:
            yield None


def mend(folder: Path, *, verifies_calls: bool = False) -> str | None:
    """Repair the ledger if it is damaged, unless it is in use; return a line on what was damaged,
    None for nothing.

    With `verifies_calls`, every call is read for that, which takes seconds for a million of them.

    Raises:
        PipelineError: the disk refuses, or a file is of another version.
    """
    if not folder.is_dir():
        return None
    before = set(folder.glob("damaged-*"))
    if verifies_calls and ledger_path(folder).exists():
        _suspect(ledger_path(folder))
    with alone(folder):
        pass
    kept = sorted(path.name for path in set(folder.glob("damaged-*")) - before)
    if not kept:
        return None
    return (
        f"{ledger_path(folder)}: was damaged, and is repaired as far as possible; the damaged file"
        f" is {kept[0]}"
    )


def damage_in(folder: Path) -> str | None:
    """Return a line on damage of the ledger; None if there is none, or if it cannot be read now.

    Every row that has a checksum is verified. Nothing is changed, but the next opening repairs what
    was found.
    """
    path = readable_path(folder)
    if path is None:
        return None
    try:
        with read_only(path) as connection:
            if version_of(connection) not in {VERSION, UNSEALED}:  # whatever uses it says so
                return None
            flaw = flaw_in(connection, _VERIFIED)
    except DAMAGE as error:
        if not is_damage(error, path):
            return None
        flaw = one_line(str(error))
    if flaw is None:
        return None
    _suspect(path)
    return damage_line(path, flaw)


def damage_line(path: Path, flaw: str) -> str:
    """Return a line on a damaged file, with what to do."""
    return (
        f"{path}: is damaged ({flaw}); `prbench aggregate` repairs what it can, when no other run"
        " has it open"
    )


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection that changes nothing."""
    # When a read-only connection closes, its part of the log's index stays behind. So this one may
    # write, but does not. On a read-only disk without a log, SQLite treats the file as immutable.
    how = "mode=rw" if os.access(path.parent, os.W_OK) else "mode=ro"
    if how == "mode=ro" and not beside(path, "-wal").exists():
        how += "&immutable=1"
    with contextlib.closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=30)
    ) as connection:
        connection.execute("pragma query_only = on")
        yield connection


def _checked_tables(path: Path) -> Sequence[str]:
    """Return the tables that an opening checks: those of sums and attempts, and large ones if the
    file is small.

    Calls are verified when they are used, and here only after damage was found.
    """
    if _suspected(path).exists():
        return _VERIFIED
    return list(SEALED) if _is_checked_whole(path) else ["spend", "spent"]


def _is_checked_whole(path: Path) -> bool:
    return path.stat().st_size <= MOST_CHECKED_BYTES or _suspected(path).exists()


def flaw_in(connection: sqlite3.Connection, tables: Sequence[str]) -> str | None:
    """Return what is wrong with some tables with checksums: their pages and indexes, or the content
    of a row.

    SQLite's own check notices no change of a value. Rows are not read by an index, which may lack
    some.
    """
    unsealed = SEALED.keys() if version_of(connection) == UNSEALED else ()
    for table in tables:
        verdict: str = connection.execute(f"pragma integrity_check({table})").fetchone()[0]
        if verdict != "ok":
            return one_line(verdict)
        if table in unsealed:
            continue
        rows = connection.execute(f"select * from {table} not indexed")
        n_changed = sum(not is_as_written(row) for row in rows)
        if n_changed:
            return f"table {table}: {counted(n_changed, 'row')} with a wrong checksum"
    return None


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file; 0 for a new one."""
    version: int = connection.execute("pragma user_version").fetchone()[0]
    return version


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
        stack.callback(connection.close)
        # Works only on a new file: it lets the space of removed replies be freed step by step.
        connection.execute("pragma auto_vacuum = incremental")
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.create_function("checksum_of", -1, lambda *values: checksum_of(values))
        if version_of(connection) or connection.execute("select 1 from sqlite_master").fetchone():
            refuse_other_version(connection, path)
        if version_of(connection) == UNSEALED and not may_lack_checksums:
            raise PipelineError(
                f"{path}: an older prbench has it open; wait until that has ended, and run again"
            )
        if version_of(connection):  # files of earlier programs have no such table
            connection.execute(TABLES["attempts"])
        stack.pop_all()
        return connection


def refuse_other_version(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that this program does not read.

    Raises:
        PipelineError: it is older or newer.
    """
    version = version_of(connection)
    if version not in {VERSION, UNSEALED}:
        remedy = (
            "use the prbench that wrote it, or upgrade an older file as CHANGELOG.md says (0.2.0,"
            " Upgrade)"
        )
        raise PipelineError(
            f"{path}: is of version {version}, and this program reads {VERSION}; {remedy}"
        )


@contextlib.contextmanager
def refusing(path: Path, deed: str) -> Iterator[None]:
    """Turn an error of the disk, or of a damaged file, into one line with its cause and a
    remedy.
    """
    try:
        yield
    except (*DAMAGE, OSError) as error:
        raise refused(path, deed, error) from error


def is_damage(error: Exception, path: Path) -> bool:
    """Return whether an error from reading a file means that the file is damaged.

    If so, the next opening checks all of it.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # A damaged header may forbid writing.
    is_so = (
        os.access(path, os.W_OK)
        if code == sqlite3.SQLITE_READONLY
        else code not in _NOT_OF_THE_FILE
    )
    if is_so:
        _suspect(path)
    return is_so


def refused(path: Path, deed: str, error: Exception) -> PipelineError:
    """Return the error with a file's problem, its cause and a remedy."""
    remedy = "check its space, its permissions, and that no other program uses it, and try again"
    if isinstance(error, DAMAGE) and is_damage(error, path):
        remedy = "it is damaged; run again: it is repaired when no other run has it open"
    return PipelineError(f"{path}: cannot be {deed} ({one_line(str(error))}); {remedy}")


def _repaired(path: Path) -> Path:
    """Return the path of a new file that has not replaced the damaged one yet."""
    return path.with_name(f"repaired-{path.name}")


def _suspected(path: Path) -> Path:
    """Return the path of the file that marks a ledger as one of which the next opening checks
    everything.
    """
    return path.with_suffix(".suspect")


def _suspect(path: Path) -> None:
    with contextlib.suppress(
        OSError
    ):  # the folder cannot be written: the next opening reports that
        _suspected(path).touch()


def _try_lock(lock: TextIO, how: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, how | fcntl.LOCK_NB)
        return True
    return False


@contextlib.contextmanager
def _new_file(path: Path, as_: Path) -> Iterator[sqlite3.Connection]:
    """Yield a new file, to be filled in the block.

    It gets its name at the end, so that a file of that name is always complete; after an earlier
    kill there is no such file.
    """
    new = path.with_name(f"new-{path.name}")
    for part in _FILE_PARTS:
        beside(new, part).unlink(missing_ok=True)
    with contextlib.closing(connected(new)) as connection:
        connection.executescript(
            ";".join(["begin", *TABLES.values(), f"pragma user_version = {VERSION}", "commit"])
        )
        yield connection
        # Closing does so too, but reports no error such as a full disk; content that stays in the
        # log would be lost.
        if connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
            raise sqlite3.OperationalError(f"the log of {new.name} is in use")
    new.rename(as_)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder durable: if a name is lost at a power cut, all later commits are
    lost too.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prepare(path: Path) -> None:
    """Create the ledger's file if it is missing, and repair it if it is damaged."""
    with refusing(path, "opened"):  # errors such as a full disk do not mean damage
        _finish_repair(path)
        if not any(beside(path, part).exists() for part in _FILE_PARTS[:2]):
            with _new_file(path, path):
                pass
        elif damage := _damage_in(path):
            _repair(path, damage)
        else:
            _seal(path)


def _seal(path: Path) -> None:
    """Add the checksums to the rows of a file that has none, in one transaction."""
    with contextlib.closing(connected(path, may_lack_checksums=True)) as connection:
        if version_of(connection) != UNSEALED:
            return
        connection.execute("begin immediate")
        with connection:
            for table, columns in SEALED.items():
                connection.execute(f"alter table {table} add column checksum")
                connection.execute(
                    f"update {table} set checksum = checksum_of({', '.join(columns)})"
                )
            connection.execute(f"pragma user_version = {VERSION}")


def _damage_in(path: Path) -> str | None:
    """Return the damage of a file's structure, of its indexes, or of its sealed tables; None if
    there is none.
    """
    if (
        not path.exists() or path.stat().st_size == 0
    ):  # SQLite would create a new file, and remove the log
        return "it is empty"
    n_logged = _n_logged(beside(path, "-wal"))
    try:
        with contextlib.closing(connected(path, may_lack_checksums=True)) as connection:
            n_read = connection.execute("pragma wal_checkpoint(passive)").fetchone()[1]
            if n_read < n_logged:  # SQLite silently stops at the first damaged frame
                aside = beside(_aside(path), "-wal")
                shutil.copy(beside(path, "-wal"), aside)
                lost = "what came later is lost, and its calls are made again"
                damage = f"its log of commits can be read up to {n_read} of {n_logged}"
                notice(
                    f"{path}: is damaged ({damage}); {lost}; the damaged log is kept as"
                    f" {aside.name}"
                )
            flaw = flaw_in(connection, _checked_tables(path))
            if flaw is None and _is_checked_whole(path):
                verdict: str = connection.execute("pragma integrity_check(1)").fetchone()[0]
                if verdict != "ok":
                    return one_line(verdict)
                for name in (
                    TABLES.keys() - SEALED.keys() - {"calls"}
                ):  # SQLite does not validate texts
                    connection.execute(f"select * from {name}").fetchall()
                _suspected(path).unlink(missing_ok=True)
            return flaw
    except DAMAGE as error:
        if not is_damage(error, path):
            raise
        return one_line(str(error))


def _n_logged(log: Path) -> int:
    """Return the number of pages in a log up to its last commit, according to its headers."""
    data = log.read_bytes() if log.exists() else b""
    heads = [
        data[offset : offset + 24]
        for offset in range(32, len(data) - _PAGE_BYTES, 24 + _PAGE_BYTES)
    ]
    # Frames with another salt are from before the log restarted; only a commit frame states the
    # size of the file.
    return max(
        (n for n, head in enumerate(heads, 1) if head[8:16] == data[16:24] and any(head[4:8])),
        default=0,
    )


def _aside(path: Path) -> Path:
    return path.with_name(f"damaged-{time.time_ns()}-{path.name}")


def _finish_repair(path: Path) -> str | None:
    """Replace a damaged file by the repaired one, if there is one; return the damaged file's new
    name.
    """
    if not _repaired(path).exists():
        return None
    aside = _aside(path)
    for part in _FILE_PARTS:
        with contextlib.suppress(FileNotFoundError):
            beside(path, part).rename(beside(aside, part))
    _repaired(path).rename(path)
    _suspected(path).unlink(missing_ok=True)
    _sync(path.parent)
    return aside.name


def _repair(path: Path, damage: str) -> None:
    """Set a damaged file aside, and replace it by one with all rows that SQLite can still read; a
    kill loses nothing.

    The new file is complete before the old one is moved; by its name the next opening can finish
    the repair.
    """
    address = f"{path.absolute().as_uri()}?mode=ro"
    with (
        _new_file(path, _repaired(path)) as new,
        contextlib.closing(sqlite3.connect(address, uri=True)) as damaged,
    ):
        with contextlib.suppress(*DAMAGE):
            damaged.execute("pragma writable_schema = 1")  # also reads a truncated file
        is_sealed = True
        with contextlib.suppress(*DAMAGE):
            is_sealed = version_of(damaged) != UNSEALED
        new.execute("begin")
        with new:
            for name in TABLES:
                for _, *row in _readable_rows(damaged, name, path):
                    if name in SEALED and not is_sealed:
                        row.append(checksum_of(row))
                    if name not in {"calls", *SEALED} or is_as_written(row):
                        new.execute(
                            f"insert or ignore into {name} values ({', '.join('?' * len(row))})",
                            row,
                        )
            n_calls: int = new.execute("select count(*) from calls").fetchone()[0]
            lost = _lost_spend(damaged, new, path)
            new.executemany(LOST_SPEND, lost)
            n_ever: int = new.execute(
                "select max(coalesce(sum(calls), 0), ?) from spend", (n_calls,)
            ).fetchone()[0]
    aside = _finish_repair(path)
    notice(
        f"{path}: is damaged ({damage}); {n_calls} of {n_ever} calls ever recorded were recovered;"
        f" the damaged file is kept as {aside}; calls that are neither recovered nor in a table are"
        " made again"
    )
    for run_id, day, purpose, model in lost:
        notice(
            f"{path}: the cost of run {run_id} on {day} ({purpose}, {model}) is lost, and unknown"
            " if not published"
        )


def _lost_spend(
    damaged: sqlite3.Connection, new: sqlite3.Connection, file: Path
) -> list[tuple[Any, ...]]:
    """Return the keys of the sums that a damaged file holds and a new one lacks; if all keys are
    lost, those of calls.

    The index has a second copy of each key, which counts where the row itself is damaged or
    missing.
    """
    intact: set[int] = set()
    keys: dict[int, tuple[Any, ...]] = {}
    for row_id, *row in _readable_rows(damaged, "spend", file):
        if len(row) == len(SPEND_COLUMNS) or is_as_written(row):
            intact.add(row_id)
        else:
            keys[row_id] = tuple(map(str, row[: len(SPEND_KEY)]))
    with contextlib.suppress(*DAMAGE):
        index = (
            f"select rowid, {', '.join(SPEND_KEY)} from spend indexed by sqlite_autoindex_spend_1"
        )
        for row_id, *key in damaged.execute(index):
            if row_id not in intact:
                keys[row_id] = tuple(map(str, key))
    kept = set(new.execute(f"select {', '.join(SPEND_KEY)} from spend"))
    if not keys and not kept:
        return new.execute(SPEND_KEYS).fetchall()
    return sorted(set(keys.values()) - kept)


def _readable_rows(
    damaged: sqlite3.Connection, table: str, file: Path
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table after their rowids; around unreadable ones, each position is tried
    by itself.

    So is each that a range lacks: a damaged rowid that is too large ends the range there, without
    an error.
    """
    try:
        damaged.execute(f"select 1 from {table} limit 0")
    except DAMAGE:  # the schema, which locates the tables, is damaged
        return
    n_expected = file.stat().st_size // _ENTRY_BYTES
    last = 0
    most = n_expected
    n_at_once = _AT_ONCE
    with contextlib.suppress(*DAMAGE, TypeError):  # after damage this may be any number
        most = min(
            100 * most, int(damaged.execute(f"select max(rowid) from {table}").fetchone()[0] or 0)
        )
    query = f"select rowid, * from {table} where rowid between ? and ?"
    while last < most:
        try:
            rows = damaged.execute(query, (last + 1, last + n_at_once)).fetchall()
        except DAMAGE:
            last, n_at_once = (last + 1, 1) if n_at_once == 1 else (last, 1)
            continue
        yield from rows
        if 1 < n_at_once != len(rows) and (rows or last < n_expected):
            read = {row[0] for row in rows}
            for position in range(last + 1, min(last + n_at_once, most) + 1):
                if position not in read:
                    with contextlib.suppress(*DAMAGE):
                        yield from damaged.execute(query, (position, position)).fetchall()
        last = last + n_at_once
        n_at_once = min(_AT_ONCE, 2 * n_at_once)


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
    (folder / _DELETIONS).touch()
    os.utime(folder / _DELETIONS, ns=(time.time_ns(),) * 2)  # `touch` alone is too coarse
