"""The names of the ledger's files: one database now, one for each process in version 1."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tasks.rules.errors import PipelineError

FILE_PARTS = ("", "-wal", "-shm")
"""What SQLite appends to the names of a file and its companions."""
_OLD, _TAKEN = (
    re.compile(rf"(?:repaired-)?({name})(?:-wal)?") for name in (r"calls-\d+\.sqlite", r"merging-\d+-calls-\d+\.sqlite")
)
"""A file of version 1, or what a kill in the middle of its repair has left of it; and one that is being merged."""
_LOOKS, _BETWEEN_LOOKS_S = 20, 0.1
Found = TypeVar("Found")


def ledger_path(folder: Path) -> Path:
    """The ledger's file in its folder."""
    return folder / "calls.sqlite"


def old_files(folder: Path) -> list[Path]:
    """The files of version 1 that no merge has taken yet."""
    return _named(_OLD, folder)


def taken_files(folder: Path) -> list[Path]:
    """The files of version 1 that are being merged; all of them are in the merged file if there is one."""
    return _named(_TAKEN, folder)


def taken(path: Path) -> Path:
    """The name of a file of version 1 from when it is merged on: no program of that version writes to it."""
    return path.with_name(f"merging-{time.time_ns()}-{path.name}")


def merged(path: Path) -> Path:
    """A merged file that has not taken the ledger's place yet."""
    return path.with_name(f"merged-{path.name}")


def repaired(path: Path) -> Path:
    """A repaired file that has not taken the damaged one's place yet."""
    return path.with_name(f"repaired-{path.name}")


def read_all_files(folder: Path, read: Callable[[Path], Found]) -> list[Found]:
    """What a function reads from each of the files that together hold all calls.

    It is called again for all of them if another process merged or repaired files meanwhile.

    Raises:
        PipelineError: a file cannot be read, or files were replaced again and again.
    """
    for _ in range(_LOOKS):
        files = _files_to_read(folder)
        try:
            found = [read(path) for path, _ in files]
        except PipelineError:
            if files == _files_to_read(folder):
                raise
        else:
            if files == _files_to_read(folder):
                return found
        time.sleep(_BETWEEN_LOOKS_S)
    raise PipelineError(f"{folder}: its files are being merged; try again later")


def _files_to_read(folder: Path) -> list[tuple[Path, int]]:
    """The files that hold all calls at this moment, also in the middle of a merge or a repair, with their inodes."""
    if not folder.is_dir():
        return []
    inodes = {folder / entry.name: entry.inode() for entry in os.scandir(folder)}
    ledger = ledger_path(folder)
    sources = [merged(ledger)] if merged(ledger) in inodes else [ledger, *taken_files(folder)]
    paths = [*sources, *old_files(folder)]
    whole = [repaired(path) if repaired(path) in inodes else path for path in paths]
    return [(path, inodes[path]) for path in whole if path in inodes]


def beside(path: Path, part: str) -> Path:
    """A file's companion, such as its log (`-wal`)."""
    return path.with_name(path.name + part)


def _named(pattern: re.Pattern[str], folder: Path) -> list[Path]:
    found = (pattern.fullmatch(path.name) for path in folder.iterdir())
    return [folder / name for name in sorted({match[1] for match in found if match})]
