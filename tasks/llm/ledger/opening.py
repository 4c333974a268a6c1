"""Opening of the ledger: the lock that its users share, and the check for damage before it."""

import contextlib
import fcntl
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from tasks.console import notice
from tasks.llm.ledger import files
from tasks.llm.ledger.entries import SEALED, TABLES, is_as_written
from tasks.llm.ledger.repair import finish_repair, repair
from tasks.rules.text.characters import one_line
from tasks.rules.text.numbers import counted

MOST_CHECKED_BYTES = 256 << 20
"""A file up to this size is checked whole for damage when it is opened; of a larger one only the
tables `spend` and `spent`, and the rest after a failed read.
"""
_TABLES_WITH_CHECKSUMS = ("calls", *SEALED)
"""The tables whose rows have checksums."""


def lock_for_use(folder: Path) -> TextIO:
    """Take the ledger's lock, which all its users share, and return it; closing it releases the
    lock.

    A user that is alone first checks the ledger, and repairs damage; others wait for that.

    Raises:
        OSError: the folder cannot be written.
        PipelineError: the disk refuses, or a file is of another version.
    """
    lock = (folder / "calls.lock").open("a+")
    path = files.ledger_path(folder)
    try:
        while True:
            if _try_lock(lock, fcntl.LOCK_EX):
                _prepare(path)
            # After `_prepare`, this turns the exclusive lock into a shared one.
            if not _try_lock(lock, fcntl.LOCK_SH):
                notice(f"{path}: another process is checking it; waiting for that")
                fcntl.flock(lock, fcntl.LOCK_SH)
            if path.exists() and not files.repaired_path(path).exists():
                return lock
            # The process that prepared the file was killed before the end, so this one tries again
            # to be alone.
            fcntl.flock(lock, fcntl.LOCK_UN)
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
            path = files.ledger_path(folder)
            _prepare(path)
            yield path
        else:
            yield None


def _try_lock(lock: TextIO, operation: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, operation | fcntl.LOCK_NB)
        return True
    return False


def repair_if_damaged(folder: Path, *, verifies_calls: bool = False) -> str | None:
    """Repair the ledger if it is damaged, unless it is in use.

    Return a line that it was repaired, with the name of the damaged file; None if it was not. With
    `verifies_calls`, every call is verified, which takes seconds for a million of them.

    Raises:
        PipelineError: the disk refuses, or a file is of another version.
    """
    if not folder.is_dir():
        return None
    path = files.ledger_path(folder)
    earlier_files = files.damaged_files(folder)
    if verifies_calls and path.exists():
        files.suspect(path)
    with alone(folder):  # this checks and repairs it
        pass
    new_names = sorted(file.name for file in files.damaged_files(folder) - earlier_files)
    if not new_names:
        return None
    return (
        f"{path}: was damaged, and is repaired as far as possible; the damaged file is"
        f" {new_names[0]}"
    )


def damage_in(folder: Path) -> str | None:
    """Return a line on damage of the ledger; None if there is none, or if it cannot be read now.

    Every row that has a checksum is verified. Nothing is changed, but the next opening repairs what
    was found.
    """
    path = files.readable_path(folder)
    if path is None:
        return None
    try:
        with files.read_only(path) as connection:
            # A file of another version is not damaged; using it gives an error that says so.
            if files.version_of(connection) not in {files.VERSION, files.UNSEALED}:
                return None
            flaw = flaw_in(connection, _TABLES_WITH_CHECKSUMS)
    except files.DAMAGE as error:
        if not files.is_damage(error, path):
            return None
        flaw = one_line(str(error))
    if flaw is None:
        return None
    files.suspect(path)
    return damage_line(path, flaw)


def damage_line(path: Path, flaw: str) -> str:
    """Return a line on a damaged file, with what to do."""
    return (
        f"{path}: is damaged ({flaw}); `prbench aggregate` repairs what it can, when no other run"
        " has it open"
    )


def flaw_in(connection: sqlite3.Connection, tables: Sequence[str]) -> str | None:
    """Return what is wrong with some tables with checksums: their pages and indexes, or the content
    of a row.

    SQLite's own check notices no change of a value. Rows are not read by an index, which may lack
    some.
    """
    is_unsealed = files.version_of(connection) == files.UNSEALED
    for table in tables:
        flaw = _flaw_by_sqlite(connection, f"integrity_check({table})")
        if flaw is not None:
            return flaw
        if is_unsealed and table in SEALED:
            continue  # its rows have no checksums yet
        rows = connection.execute(f"select * from {table} not indexed")
        n_changed = sum(not is_as_written(row) for row in rows)
        if n_changed:
            return f"table {table}: {counted(n_changed, 'row')} with a wrong checksum"
    return None


def _flaw_by_sqlite(connection: sqlite3.Connection, check: str) -> str | None:
    """Return the first line of one of SQLite's own checks; None if all is well."""
    result: str = connection.execute(f"pragma {check}").fetchone()[0]
    return None if result == "ok" else one_line(result)


def _prepare(path: Path) -> None:
    """Create the ledger's file if it is missing, and repair it if it is damaged."""
    # This gives errors that do not mean damage, such as that of a full disk, their message.
    with files.refusing(path, "opened"):
        finish_repair(path)
        if not path.exists() and not files.beside(path, "-wal").exists():
            with files.new_file(path):
                pass  # an empty ledger
            return
        damage = _damage_at_opening(path)
        if damage is None:
            _seal(path)
        else:
            repair(path, damage)


def _seal(path: Path) -> None:
    """Add the checksums to the rows of a file that has none, in one transaction."""
    with contextlib.closing(files.connected(path, may_lack_checksums=True)) as connection:
        if files.version_of(connection) != files.UNSEALED:
            return
        connection.execute("begin immediate")
        with connection:
            for table, columns in SEALED.items():
                connection.execute(f"alter table {table} add column checksum")
                connection.execute(
                    f"update {table} set checksum = checksum_of({', '.join(columns)})"
                )
            connection.execute(f"pragma user_version = {files.VERSION}")


def _damage_at_opening(path: Path) -> str | None:
    """Return the damage of a file's structure, of its indexes, or of its sealed tables; None if
    there is none.
    """
    # A missing or empty file is a new database for SQLite, so it would delete the log beside it.
    if not path.exists() or path.stat().st_size == 0:
        return "it is empty"
    try:
        with contextlib.closing(files.connected(path, may_lack_checksums=True)) as connection:
            return _flaw_at_opening(connection, path)
    except files.DAMAGE as error:
        if not files.is_damage(error, path):
            raise
        return one_line(str(error))


def _flaw_at_opening(connection: sqlite3.Connection, path: Path) -> str | None:
    """Return what is wrong with a file; None if nothing is.

    Calls are verified when they are used, and here only if damage is suspected. If it is not, only
    the tables `spend` and `spent` of a large file are checked.
    """
    tables = tuple(SEALED)
    if files.suspicion_path(path).exists():
        tables = _TABLES_WITH_CHECKSUMS
    elif path.stat().st_size > MOST_CHECKED_BYTES:
        return flaw_in(connection, ("spend", "spent"))
    flaw = flaw_in(connection, tables) or _flaw_by_sqlite(connection, "integrity_check(1)")
    if flaw is not None:
        return flaw
    for table in TABLES.keys() - _TABLES_WITH_CHECKSUMS:
        # SQLite does not validate texts; an invalid one is an error here.
        connection.execute(f"select * from {table}").fetchall()
    files.suspicion_path(path).unlink(missing_ok=True)
    return None
