"""The names of the ledger's files: one database now, one for each process in version 1."""

import re
from pathlib import Path

FILE_PARTS = ("", "-wal", "-shm")
"""What SQLite appends to the names of a file and its companions."""
_OLD = re.compile(r"(?:repaired-)?(calls-\d+\.sqlite)(?:-wal)?")
"""A file of version 1, or what a kill in the middle of its repair has left of it."""


def ledger_path(folder: Path) -> Path:
    """The ledger's file in its folder."""
    return folder / "calls.sqlite"


def old_files(folder: Path) -> list[Path]:
    """The files of version 1 that are not merged into the ledger yet."""
    found = (_OLD.fullmatch(path.name) for path in folder.iterdir())
    return [folder / name for name in sorted({match[1] for match in found if match})]


def merged(path: Path) -> Path:
    """A merged file that has not taken the ledger's place yet."""
    return path.with_name(f"merged-{path.name}")


def repaired(path: Path) -> Path:
    """A repaired file that has not taken the damaged one's place yet."""
    return path.with_name(f"repaired-{path.name}")


def files_to_read(folder: Path) -> list[Path]:
    """The files that hold all calls at this moment, also while those of version 1 are not or half merged."""
    if not folder.is_dir():
        return []
    ledger = ledger_path(folder)
    old = [path for path in old_files(folder) if path.exists()]
    if merged(ledger).exists():
        return [merged(ledger)]
    return [ledger, *old] if ledger.exists() else old


def beside(path: Path, part: str) -> Path:
    """A file's companion, such as its log (`-wal`)."""
    return path.with_name(path.name + part)
