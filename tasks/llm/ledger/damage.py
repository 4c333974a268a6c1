"""What SQLite raises when a file is damaged, or only in use or in want of room."""

import os
import sqlite3
from pathlib import Path

from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line

DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite's module raises on a damaged file; the second where what SQLite says of it is damaged text."""
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_FORBIDDEN = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY})
_NOT_OF_THE_FILE = _BUSY | _FORBIDDEN | {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}


def says_damaged(error: Exception, path: Path) -> bool:
    """Whether an error of using a file says that it is damaged."""
    code = _code(error)
    if code == sqlite3.SQLITE_READONLY:
        return os.access(path, os.W_OK)  # a damaged header may forbid to write
    return code not in _NOT_OF_THE_FILE


def refused(path: Path, deed: str, error: Exception, remedy: str) -> PipelineError:
    """What could not be done to a file, why, and what to do about it: to wait, if another program has locked it."""
    cause = one_line(str(error))
    if _code(error) in _BUSY:
        remedy = "another program is using it; try again later"
    elif _code(error) in _FORBIDDEN and not os.access(path.parent, os.W_OK):
        remedy = "this user may not write there; check the permissions"
    elif _code(error) == sqlite3.SQLITE_CANTOPEN:  # SQLite keeps the reason to itself
        try:
            path.open("rb").close()
        except OSError as why:
            cause = f"{cause}: {why.strerror}"
    return PipelineError(f"{path}: cannot be {deed} ({cause}); {remedy}")


def suspected(path: Path) -> Path:
    """Is there when reading the file has failed: its next opening checks all of it."""
    return path.with_suffix(".suspect")


def _code(error: Exception) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
