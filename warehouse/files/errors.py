"""What can go wrong with a warehouse, each in one line."""

import errno
from pathlib import Path

_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
_NOT_OF_THE_FILE = _FORBIDDEN | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


class WarehouseError(Exception):
    """The warehouse cannot do what was requested; the message says what, where, and what to do."""


class WarehouseBusy(WarehouseError):
    """Another process is at work on the same warehouse in a way that excludes this one."""


class WarehouseOutdated(WarehouseError):
    """The database was published by another version of the code; publishing renews it."""


def refuse_if_unopened(path: Path, error: OSError) -> None:
    """Refuse a file whose reading failed for a reason that says nothing about its content.

    Raises:
        WarehouseError: it did.
    """
    if error.errno in _NOT_OF_THE_FILE:
        remedy = "; check its permissions" if error.errno in _FORBIDDEN else ""
        raise WarehouseError(f"{path}: cannot be read ({error.strerror}){remedy}") from error
