"""Copying the files of a warehouse, first the ledger and then the parts: whatever was paid is in one of them.

A reply is in the ledger before it is in a part, and leaves the ledger only when its row is in a part. Parts never
change, so a second backup into the same place copies only new ones; a ledger file that was written to is copied again.
The published database is left out: it is built from the parts.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.llm import read_file
from tasks.maintain.backup.record import FILES, Kept, copied
from tasks.maintain.file_lists import Damaged
from tasks.rules.errors import PipelineError
from tasks.run.run_context import LEDGER
from warehouse import TABLES, Warehouse, WarehouseError, file_lock, is_named_after

_LOOKS = 3
_TICK_S = 2.0
"""A file that changed so lately may change again without a trace in its times."""


@dataclass
class Copies:
    """The copies of a backup: those of the last one, and what is copied now, into a folder.

    `is_whole` says whether a copy of the last backup is there still; `copy` makes one of a file that never changes, and
    gives its size and SHA-256.
    """

    folder: Path
    last: Mapping[str, Kept]
    is_whole: Callable[[Kept], bool]
    copy: Callable[[Path, Path], tuple[int, str]] = copied
    n_copied: int = 0
    copied_bytes: int = 0

    def standing(self, path: str, seen: str | None = None) -> Kept | None:
        """The copy that the last backup has of a file, if it is whole."""
        kept = self.last.get(path)
        return kept if kept is not None and kept.seen == seen and self.is_whole(kept) else None

    def made(self, path: str, source: Path, stored_as: str) -> Kept:
        """A new copy of a file."""
        return self._counted(Kept(path, stored_as, *self.copy(source, self.folder / stored_as)))

    def made_by_content(self, path: str, source: Path, seen: str | None = None) -> Kept:
        """A copy of a file that changes, beside earlier ones: the last backup needs those until this one is whole."""
        staged = self.folder / FILES / f"{path}.new"
        n_bytes, sha256 = copied(source, staged)
        kept = Kept(path, f"{FILES}/{path}.{sha256[:16]}", n_bytes, sha256, seen)
        last = self.last.get(path)
        if last and last.sha256 == sha256 and self.is_whole(last):
            staged.unlink()
            return kept
        staged.replace(self.folder / kept.stored_as)
        return self._counted(kept)

    def _counted(self, kept: Kept) -> Kept:
        self.n_copied += 1
        self.copied_bytes += kept.n_bytes
        return kept


def copied_files(warehouse: Warehouse, copies: Copies) -> list[Kept]:
    """The files of a warehouse, each with a copy that is whole.

    Raises:
        PipelineError: one cannot be copied, or is damaged.
        WarehouseError: parts are merged again and again meanwhile.
    """
    ledger = read_file(warehouse.root / LEDGER, lambda source: _ledger_file(copies, source))
    return [*([] if ledger is None else [ledger]), *_parts(warehouse, copies)]


def _ledger_file(copies: Copies, source: Path) -> Kept:
    path = f"{LEDGER}/{source.name}"
    seen = _seen(source)
    standing = None if seen is None else copies.standing(path, seen)
    return standing or _new_ledger_copy(copies, path, source, seen)


def _seen(source: Path) -> str | None:
    """A ledger file with its log as they are now; None where a change might not show."""
    states = []
    for path in (source, source.with_name(f"{source.name}-wal")):
        with contextlib.suppress(FileNotFoundError):
            stat = path.stat()
            if not stat.st_size:
                continue  # an empty log, as a reader leaves it behind, says nothing
            states.append(f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns}")
            if time.time() - stat.st_mtime < _TICK_S:
                return None
    return ", ".join(states)


def _new_ledger_copy(copies: Copies, path: str, source: Path, seen: str | None) -> Kept:
    """A copy of a database that others may write to: SQLite sees to it that it is of one moment."""
    staged = copies.folder / FILES / f"{path}.copy"
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.unlink(missing_ok=True)
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as live,
            contextlib.closing(sqlite3.connect(staged)) as copy,
        ):
            live.backup(copy)
    except sqlite3.Error as error:
        raise PipelineError(f"{source}: cannot be copied ({error}); `prbench run` repairs what it can") from error
    kept = copies.made_by_content(path, staged, seen)
    staged.unlink()
    return kept


def _parts(warehouse: Warehouse, copies: Copies) -> list[Kept]:
    for look in range(_LOOKS):
        with file_lock(warehouse.root / "publish.lock", wait=True):
            listed = _listed(warehouse)
            changing = [copies.made_by_content(path, warehouse.root / path) for path in _changing(warehouse)]
        try:
            return [*changing, *(_part(warehouse, copies, path) for path in listed)]
        except FileNotFoundError as error:
            # Compaction has put others in the place of parts that were listed long ago.
            if look == _LOOKS - 1:
                raise WarehouseError(f"{error.filename}: was merged meanwhile, as others before; try again") from error
    raise AssertionError("the last look returns or raises")


def _listed(warehouse: Warehouse) -> list[str]:
    parts = (part for table in TABLES for part in warehouse.store.standing(table))
    return [part.path.relative_to(warehouse.root).as_posix() for part in parts]


def _changing(warehouse: Warehouse) -> list[str]:
    """The small files that say which parts count, and of which version the warehouse is."""
    names = ("parts/*/manifest.json", "parts/*/manifest-copy.json", "parts/list.json", "damaged/losses.json")
    found = [path for name in (*names, "warehouse.json") for path in warehouse.root.glob(name)]
    return sorted(path.relative_to(warehouse.root).as_posix() for path in found)


def _part(warehouse: Warehouse, copies: Copies, path: str) -> Kept:
    standing = copies.standing(path)
    if standing is not None:
        return standing
    kept = copies.made(path, warehouse.root / path, f"{FILES}/{path}")
    if not is_named_after(path, kept.sha256):
        raise Damaged(
            f"{warehouse.root / path}: is damaged; `prbench aggregate` sets it aside and restores its rows, then back "
            "up again; the last backup is unchanged"
        )
    return kept
