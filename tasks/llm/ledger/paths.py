"""The names of the ledger's file and of what lies beside it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tasks.rules.errors import PipelineError

FILE_PARTS = ("", "-wal", "-shm")
"""What SQLite appends to the names of a file and its companions."""
_LOOKS, _BETWEEN_LOOKS_S = 20, 0.1
Found = TypeVar("Found")


def ledger_path(folder: Path) -> Path:
    """The ledger's file in its folder."""
    return folder / "calls.sqlite"


def repaired(path: Path) -> Path:
    """A repaired file that has not taken the damaged one's place yet."""
    return path.with_name(f"repaired-{path.name}")


def read_file(folder: Path, read: Callable[[Path], Found]) -> Found | None:
    """What a function reads from the ledger's file; None where there is none.

    It is called again if another process repaired the file meanwhile.

    Raises:
        PipelineError: the file cannot be read, or was replaced again and again.
    """
    for _ in range(_LOOKS):
        file = _file_to_read(folder)
        if file is None:
            return None
        try:
            found = read(file[0])
        except PipelineError:
            if file == _file_to_read(folder):
                raise
        else:
            if file == _file_to_read(folder):
                return found
        time.sleep(_BETWEEN_LOOKS_S)
    raise PipelineError(f"{folder}: its file is being repaired; try again later")


def _file_to_read(folder: Path) -> tuple[Path, int] | None:
    """The file that holds all calls at this moment, also in the middle of a repair, with its inode."""
    ledger = ledger_path(folder)
    for path in (repaired(ledger), ledger):
        if path.exists():
            return path, path.stat().st_ino
    return None


def beside(path: Path, part: str) -> Path:
    """A file's companion, such as its log (`-wal`)."""
    return path.with_name(path.name + part)
