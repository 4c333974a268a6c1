"""The errors of a warehouse, each explained in one line."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa


class WarehouseError(Exception):
    """The warehouse cannot do its work; the message says what failed, where, and what to do."""


class WarehouseBusy(WarehouseError):
    """Another process holds a lock on the same warehouse that excludes this process."""


class WarehouseOutdated(WarehouseError):
    """The database was published by another version of the code; publish again to renew it."""


def cause_of(error: Exception) -> str:
    """Return the reason why a file could not be read or written, in one line."""
    text = getattr(error, "strerror", None) or str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


@contextmanager
def explaining(failure: str) -> Iterator[None]:
    """Turn errors of files, DuckDB and Arrow into one line: what failed, and the reason.

    Raises:
        WarehouseError: there was such an error.
    """
    try:
        yield
    except (OSError, duckdb.Error, pa.ArrowException) as error:
        raise WarehouseError(f"{failure}: {cause_of(error)}") from error


_LEAST_BYTES = 4 << 20
"""About the size of the smallest published database: less space does not help."""


def remedy_of(error: OSError) -> str:
    """Return what to do about an error of the system on writing."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "free some space there, or choose another --warehouse"
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return "allow more open files, as with `ulimit -n 4096`"
    return "make it writable, or choose another --warehouse"


def existing_folder(folder: Path) -> Path:
    """Return a folder, or if it does not exist, the nearest path above it that does."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def advice_if_writable(folder: Path, advice: str) -> str:
    """Return advice to run a command that writes to a folder; if nothing can be written there, the
    reason instead.

    A temporary file of 4 MiB is written to find out: there, or, if the folder does not exist, in
    the nearest one above it that does.
    """
    try:
        with tempfile.TemporaryFile(dir=existing_folder(folder)) as file:
            file.write(bytes(_LEAST_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"nothing can be written to {folder} ({cause_of(error)}); {remedy_of(error)}"
    return advice


def nothing_in(path: Path, state: str = "published") -> str:
    """Return the message that nothing is stored, with what to do."""
    folder = path if path.is_dir() else path.parent
    advice = advice_if_writable(folder, "run `prbench ingest` or `prbench run`")
    return f"{path}: nothing is {state} here yet; {advice}"
