"""The errors of a warehouse, each explained in one line."""

import errno
import os
import re
import shutil
from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT}
_PROTECTED = {errno.EROFS, errno.EACCES, errno.EPERM}
# DuckDB and SQLite repeat the system's message.
_SAYS_FULL = re.compile(r"no space left on device|disk is full|quota exceeded", re.IGNORECASE)
_SAYS_PROTECTED = re.compile(r"read-?only (file system|database)|permission denied|unable to open", re.IGNORECASE)
_OF_THE_FILE = {errno.ENOENT, errno.EIO}


class WarehouseError(Exception):
    """The warehouse cannot do its work; the message says what failed, where, and what to do."""


class WarehouseBusy(WarehouseError):
    """Another process holds a lock on the same warehouse that excludes this process."""


class WarehouseOutdated(WarehouseError):
    """The database was published by another version of the code; publish again to renew it."""


def cause_of(error: Exception, path: Path) -> str:
    """Return the reason why a file could not be read or written, in one line."""
    return refusal_of_disk(error, path) or getattr(error, "strerror", None) or first_line(error)


def refusal_of_disk(error: Exception, path: Path) -> str | None:
    """Return a message that the disk is full or not writable, with what to do; None if neither is the cause."""
    code, text, existing = getattr(error, "errno", None), str(error), _existing(path)
    if code in _FULL or _SAYS_FULL.search(text):
        return f"{_full(existing)}; make room there and run it again"
    if code in _PROTECTED or (_SAYS_PROTECTED.search(text) and not os.access(existing, os.W_OK)):
        return f"this user may not write to {existing} ({os.strerror(code) if code else first_line(error)})"
    return None


def nothing_in(path: Path, what: str = "published") -> str:
    """Return the message that nothing is stored, with what to do."""
    return f"{path}: nothing is {what} here yet; run `prbench ingest` or `prbench run`"


def _full(existing: Path) -> str:
    mount = next(each for each in (existing, *existing.parents) if each.is_mount())
    return f"the disk at {mount} is full ({shutil.disk_usage(existing).free / 1e6:.1f} MB free)"


def _existing(path: Path) -> Path:
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def first_line(error: Exception) -> str:
    """Return the first line of a message."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def refuse_unreadable(path: Path, error: OSError) -> None:
    """Refuse a file that could not be read for another reason than that it is missing or the disk is damaged.

    Raises:
        WarehouseError: always, for such a reason.
    """
    if error.errno not in _OF_THE_FILE:
        raise WarehouseError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
