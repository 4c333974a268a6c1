"""The errors of a warehouse, each explained in one line."""

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
def explaining(what: str) -> Iterator[None]:
    """Turn errors of files, DuckDB and Arrow into one line: what failed, and the reason.

    Raises:
        WarehouseError: there was such an error.
    """
    try:
        yield
    except (OSError, duckdb.Error, pa.ArrowException) as error:
        raise WarehouseError(f"{what}: {cause_of(error)}") from error


def nothing_in(path: Path, what: str = "published") -> str:
    """Return the message that nothing is stored, with what to do."""
    return f"{path}: nothing is {what} here yet; run `prbench ingest` or `prbench run`"
