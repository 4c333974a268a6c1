"""Backup of a warehouse while runs go on, in a folder or in a store; and restoring it into an empty one.

The ledger is copied first and then the parts: whatever was paid is in one of them. A reply is in the ledger before it
is in a part, and leaves the ledger only when its row is in a part. Parts never change, so a second backup into the same
place copies only new ones. The published database is left out: it is built from the parts.

The record (`backup.json`) is every file of the warehouse, and where its copy lies. Written last, it makes the backup; a
restore copies and verifies all files before anything is put in place.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.files import read_file
from tasks.maintain.file_lists import Damaged, file_list, hash_of, is_inside, read_file_list
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from tasks.stores import Folder, Store, kept_as, work_folder
from warehouse import DAMAGED, TABLES, Warehouse, WarehouseError, content_of, refuse_if_lost, refuse_other_version
from warehouse import FILE as VERSION_FILE
from warehouse.files import is_named_after, sync
from warehouse.locks import file_lock

NAME, FORMAT, VERSION = "backup.json", "prbench-backup", 1
FILES = "files"
"""The folder of all copies; what lies in it and is in no record is removed."""
_LOCK = "backup.lock"
_LOOKS = 3
_STAGE = ".restoring"
"""Where the copies are made by a restore; a record in it says that they are whole."""
_NAMED = 3


@dataclass(frozen=True)
class Kept:
    """A file of the warehouse: its path there, the path of its copy, and what the copy holds."""

    path: str
    stored_as: str
    n_bytes: int
    sha256: str


class Record(NamedTuple):
    """A backup: when it was begun (UTC), and its files."""

    made_at: str
    files: tuple[Kept, ...]

    @property
    def n_bytes(self) -> int:
        """The bytes of all copies."""
        return sum(kept.n_bytes for kept in self.files)


def _write_record(place: Folder | Store, record: Record) -> None:
    content = {"made_at": record.made_at, "files": [asdict(kept) for kept in record.files]}
    place.write(NAME, file_list(FORMAT, VERSION, content))


def read_record(place: Folder | Store) -> Record:
    """The backup that a folder or store holds.

    Raises:
        Damaged: it holds none, or one of a newer version, or the record cannot be read.
    """
    path, text = f"{place}/{NAME}", place.read(NAME)
    if text is None:
        raise Damaged(f"{place}: is not a complete backup, {NAME} is missing; `prbench backup` makes one")
    document = read_file_list(text, path, FORMAT, VERSION)
    try:
        files = [Kept(*(each[name] for name in Kept.__annotations__)) for each in document["files"]]
        is_sound = all(is_inside(kept.path) and is_inside(kept.stored_as) for kept in files)
        record = Record(document["made_at"], tuple(files))
    except (KeyError, TypeError) as error:
        raise Damaged(f"{path}: cannot be read ({type(error).__name__}: {error}); use another copy") from error
    if not is_sound:
        raise Damaged(f"{path}: names files outside of the backup; use another copy")
    return record


@dataclass
class _Copies:
    """The copies of a backup: those that the last one has, and new ones, which are staged to be put there.

    `is_whole` says whether a copy of the last backup is there still.
    """

    stage: Path
    last: Mapping[str, Kept]
    is_whole: Callable[[Kept], bool]
    new: dict[str, Path] = field(default_factory=dict)

    def keep(self, path: str, source: Path, *, may_change: bool = False) -> Kept:
        """Keep a file. Of one that may change, earlier copies stay: the last backup needs them until this is whole."""
        last = self.last.get(path)
        has_copy = last is not None and self.is_whole(last)
        if last is not None and has_copy and not may_change:
            return last
        staged = self.stage / path
        staged.unlink(missing_ok=True)
        kept_as(source, staged)
        sha256 = hash_of(staged)
        if last is not None and has_copy and last.sha256 == sha256:
            return last
        stored_as = f"{FILES}/{path}" + (f".{sha256[:16]}" if may_change else "")
        self.new[stored_as] = staged
        return Kept(path, stored_as, staged.stat().st_size, sha256)


def backup(job: Job, target: Path | Store, *, must_verify: bool = False) -> StageReport:
    """Copy the warehouse to a folder, or a prefix of a store, that is empty, not there, or holds an earlier backup.

    Runs go on meanwhile. A kill at any time leaves the last whole backup as it was. With `must_verify` earlier copies
    are read as well, and renewed where they are damaged; without, they are looked at by their size.

    Raises:
        UsageError: the target holds something else, or lies in the warehouse, or there is nothing to copy.
        PipelineError: a file cannot be read or written, or another backup is at work.
    """
    warehouse, place = Warehouse(job.warehouse), Folder(target) if isinstance(target, Path) else target
    if not any((warehouse.root / name).is_dir() for name in ("parts", LEDGER)):
        raise UsageError(f"{warehouse.root}: there is nothing to back up here; check --warehouse")
    made_at = datetime.now(UTC).isoformat()
    _refuse_others(warehouse, place)
    # A store has no locks, so the warehouse's own lets one backup at a time into stores.
    lock = warehouse.root / _LOCK if isinstance(place, Store) else place.path / _LOCK
    try:
        with warehouse.writing(notice), file_lock(lock, wait=False), work_folder(warehouse, "backup") as stage:
            there = place.files()
            last = {kept.path: kept for kept in read_record(place).files} if NAME in there else {}

            def is_whole(kept: Kept) -> bool:
                is_complete = there.get(kept.stored_as) == kept.n_bytes
                return is_complete and (not must_verify or place.hash_of(kept.stored_as) == kept.sha256)

            copies = _Copies(stage, last, is_whole)
            record = Record(made_at, tuple(_files(warehouse, copies)))
            n_new_bytes = sum(path.stat().st_size for path in copies.new.values())
            place.put(copies.new, is_quiet=job.is_quiet)
            refuse_if_lost(warehouse.root)
            _write_record(place, record)
            needed = {kept.stored_as for kept in record.files}
            place.remove([name for name in there if name.startswith(f"{FILES}/") and name not in needed])
    except OSError as error:
        where = error.filename or target
        raise PipelineError(f"{where}: {error.strerror}; the last backup is unchanged") from error
    note = (
        f"{len(record.files)} files ({record.n_bytes / 1e6:.1f} MB) in {target}, {len(copies.new)} of them copied now"
    )
    return StageReport("backup", rows=len(copies.new), notes=[f"{note} ({n_new_bytes / 1e6:.1f} MB)"])


def _refuse_others(warehouse: Warehouse, place: Folder | Store) -> None:
    if isinstance(place, Store):
        names = place.files()
        # An upload that was killed before its record was written has left copies alone.
        if NAME not in names and not all(name.startswith(f"{FILES}/") for name in names):
            raise UsageError(f"{place}: holds files that are not a backup; name an empty prefix")
        return
    folder = place.path
    if folder.resolve().is_relative_to(warehouse.root.resolve()):
        raise UsageError(f"{folder}: is inside the warehouse; name a folder elsewhere, best on another disk")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is not a folder; name another one")
    if content_of(folder) and not any((folder / name).exists() for name in (NAME, _LOCK)):
        raise UsageError(f"{folder}: holds files that are not a backup; name an empty folder")


def _files(warehouse: Warehouse, copies: _Copies) -> list[Kept]:
    """The files of a warehouse, each with a copy that is whole.

    Raises:
        PipelineError: one cannot be copied, or is damaged.
        WarehouseError: parts are merged again and again meanwhile.
    """
    ledger = read_file(warehouse.root / LEDGER, lambda source: _ledger_copy(copies, source))
    return [*([] if ledger is None else [ledger]), *_parts(warehouse, copies)]


def _ledger_copy(copies: _Copies, source: Path) -> Kept:
    """A copy of a database that others may write to: SQLite sees to it that it is of one moment."""
    copied = copies.stage / "ledger.copy"
    copied.unlink(missing_ok=True)
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as live,
            contextlib.closing(sqlite3.connect(copied)) as copy,
        ):
            live.backup(copy)
    except sqlite3.Error as error:
        raise PipelineError(f"{source}: cannot be copied ({error}); `prbench run` repairs what it can") from error
    return copies.keep(f"{LEDGER}/{source.name}", copied, may_change=True)


def _parts(warehouse: Warehouse, copies: _Copies) -> list[Kept]:
    for look in range(_LOOKS):
        with file_lock(warehouse.root / "publish.lock", wait=True):
            listed = [part.path for table in TABLES for part in warehouse.store.standing(table)]
            # The small files that say which parts count, and of which version the warehouse is.
            names = ("parts/*/manifest.json", "parts/list.json", VERSION_FILE)
            small = sorted(path for name in names for path in warehouse.root.glob(name))
            kept = [copies.keep(_path(warehouse, path), path, may_change=True) for path in small]
        try:
            return [*kept, *(_part(warehouse, copies, path) for path in listed)]
        except FileNotFoundError as error:
            # Compaction has put others in the place of parts that were listed long ago.
            if look == _LOOKS - 1:
                raise WarehouseError(f"{error.filename}: was merged meanwhile, as others before; try again") from error
    raise AssertionError("the last look returns or raises")


def _path(warehouse: Warehouse, path: Path) -> str:
    return path.relative_to(warehouse.root).as_posix()


def _part(warehouse: Warehouse, copies: _Copies, path: Path) -> Kept:
    kept = copies.keep(_path(warehouse, path), path)
    if not is_named_after(path.name, kept.sha256):
        raise Damaged(
            f"{path}: is damaged; `prbench aggregate` sets it aside and restores its rows, then back up again; "
            "the last backup is unchanged"
        )
    return kept


def restore(job: Job, source: Path | Store) -> StageReport:
    """Bring a backup from a folder or a store into a warehouse folder that is empty or not there, and publish it.

    A restore that was cut short is finished, or started over, by the same command.

    Raises:
        Damaged: the source holds no whole backup, or files of it are not what was copied; nothing was restored.
        UsageError: the warehouse is not empty.
        WarehouseBusy: somebody is at work on it.
        WarehouseError: the backup is of a warehouse of another version.
    """
    place = Folder(source) if isinstance(source, Path) else source
    record, warehouse = read_record(place), Warehouse(job.warehouse)
    _refuse_filled(warehouse.root)
    try:
        with warehouse.alone(notice):
            _refuse_filled(warehouse.root)
            stage = warehouse.root / _STAGE
            if not (stage / NAME).exists():
                _stage(job, place, record, stage)
            elif read_record(Folder(stage)) != record:
                raise UsageError(f"{warehouse.root}: another backup was being restored here; empty the folder first")
            _put_in_place(stage, warehouse.root)
            warehouse.publish()
            (stage / NAME).unlink()
            shutil.rmtree(stage)
    except OSError as error:
        where = error.filename or warehouse.root
        raise PipelineError(f"{where}: {error.strerror}; make room and restore again") from error
    note = f"{len(record.files)} files ({record.n_bytes / 1e6:.1f} MB) of {record.made_at[:16]} UTC in {warehouse.root}"
    return StageReport("restore", rows=len(record.files), notes=[note])


def _refuse_filled(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root}: is not a folder; name an empty or new one with --warehouse")
    # The version is written with the first lock.
    held = [name for name in content_of(root) if name not in (VERSION_FILE, "living")]
    if held and not (root / _STAGE / NAME).exists():
        raise UsageError(f"{root}: is not empty ({held[0]}); name an empty or new folder with --warehouse")


def _stage(job: Job, place: Folder | Store, record: Record, stage: Path) -> None:
    """Copy all files, if they are there with the right sizes, and see that they are what the record says."""
    if stage.exists():
        shutil.rmtree(stage)
    stage.mkdir(parents=True)
    there = place.files()
    damaged = [kept.stored_as for kept in record.files if there.get(kept.stored_as) != kept.n_bytes]
    if not damaged:
        targets = {kept.stored_as: stage / kept.path for kept in record.files}
        place.get(targets, record.n_bytes, is_quiet=job.is_quiet)
        damaged = [kept.stored_as for kept in record.files if hash_of(stage / kept.path) != kept.sha256]
    if damaged:
        shutil.rmtree(stage)
        more = f" and {len(damaged) - _NAMED} more" if len(damaged) > _NAMED else ""
        raise Damaged(
            f"{place}: {', '.join(damaged[:_NAMED])}{more}: not what was copied (missing, or size or SHA-256 differ); "
            "nothing was restored, use another copy, or renew this one with `prbench backup --verify`"
        )
    refuse_other_version(stage)
    for path in {each for kept in record.files for each in (stage / kept.path, (stage / kept.path).parent)}:
        sync(path)
    _write_record(Folder(stage), record)


def _put_in_place(stage: Path, root: Path) -> None:
    """Move what was verified into the warehouse; the parts last, since they make it one."""
    for name in (VERSION_FILE, DAMAGED, LEDGER, "parts"):
        if (stage / name).exists():
            if name != VERSION_FILE and (root / name).exists():
                raise UsageError(f"{root}: {name} appeared during an interrupted restore; empty the folder first")
            (stage / name).replace(root / name)
    sync(root)
