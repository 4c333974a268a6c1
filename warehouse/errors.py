"""The errors of a warehouse, each explained in one line."""

from pathlib import Path


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


def nothing_in(path: Path, what: str = "published") -> str:
    """Return the message that nothing is stored, with what to do."""
    return f"{path}: nothing is {what} here yet; run `prbench ingest` or `prbench run`"
