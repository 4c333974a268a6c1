"""Backup of a warehouse, also during runs, to a folder or a store; and its restoration into an
empty warehouse.

The ledger is copied before the parts, so that no paid reply is lost: a reply is in the ledger
before its row is in a part, and leaves the ledger only after that. Parts never change, so a second
backup to the same location copies only new ones. The published database is left out, because it is
built from the parts.

A restore copies and verifies all files of the bundle before it moves any into place.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from tasks.bundles.bundle import (
    Bundle,
    Damaged,
    File,
    fetch_bundle,
    file_at,
    is_inside,
    manifest_of,
    read_bundle,
    write_bundle,
)
from tasks.bundles.stores import Folder, Location, Store, link_or_copy, location_of, work_folder
from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.files import readable_path
from tasks.rules.errors import PipelineError, UsageError, disk_errors
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import FILE as VERSION_FILE
from warehouse import Warehouse, content_of, refuse_if_lost, refuse_other_version
from warehouse.files import is_named_after, sync
from warehouse.locks import file_lock

_MANIFEST = manifest_of("backup")
_FILES = "files/"
"""The folder of all copies in a backup; files in it that the manifest does not name are removed."""
_LOCK = "backup.lock"
_RESTORE_STAGE = ".restoring"
"""The folder for the copies during a restore; a manifest in it marks them as complete."""


def _path_of(file: File) -> str:
    """Return the path in the warehouse of a copied file, whose copy may have a hash in its name."""
    return file.name.removeprefix(_FILES).removesuffix(_hash_suffix(file.sha256))


def _hash_suffix(sha256: str) -> str:
    """Return what the name of a copy ends with if the file in the warehouse may change."""
    return f".{sha256[:16]}"


def backup(job: Job, target: Path | Store, *, must_verify: bool = False) -> StageReport:
    """Copy the warehouse to a folder, or a prefix of a store, that is empty, does not exist, or has
    an earlier backup.

    Runs may go on meanwhile. If this is killed at any time, the last complete backup stays as it
    was. With `must_verify`, earlier copies are read too, and replaced if they are damaged;
    otherwise only their sizes are checked.

    Raises:
        UsageError: the target has other content or is in the warehouse, or there is nothing to
            copy.
        PipelineError: a file cannot be read or written, or another backup is in progress.
    """
    warehouse = Warehouse(job.warehouse)
    location = location_of(target)
    if not any((warehouse.root / name).is_dir() for name in ("parts", LEDGER)):
        raise UsageError(f"{warehouse.root}: there is nothing to back up here; check --warehouse")
    started_at = datetime.now(UTC).isoformat()
    _refuse_unsuitable(warehouse, location)
    # A store has no locks, so a lock in the warehouse allows only one backup to a store at a time.
    lock = warehouse.root / _LOCK if isinstance(location, Store) else location.path / _LOCK
    with (
        disk_errors(target, "the last backup is unchanged"),
        warehouse.writing(notice),
        file_lock(lock, wait=False),
        work_folder(warehouse, "backup") as stage,
    ):
        stored_sizes = location.files()
        intact_files = _intact_files(location, stored_sizes, must_verify=must_verify)
        files = _stage_files(warehouse, stage, intact_files)
        refuse_if_lost()
        bundle = write_bundle(location, "backup", files, {"made_at": started_at})
        copies = {name for name in stored_sizes if name.startswith(_FILES)}
        location.remove(sorted(copies - {file.name for file in files}))
    new_sizes = [file.n_bytes for file, staged in files.items() if staged]
    note = (
        f"{len(files)} files ({bundle.n_bytes / 1e6:.1f} MB) in {target}, {len(new_sizes)} of them"
        f" copied now ({sum(new_sizes) / 1e6:.1f} MB)"
    )
    return StageReport("backup", rows=len(new_sizes), notes=[note])


def _intact_files(
    location: Location,
    stored_sizes: Mapping[str, int],
    *,
    must_verify: bool,
) -> dict[str, File]:
    """Return the intact copies of the last backup, by path."""
    if _MANIFEST not in stored_sizes:
        return {}
    intact_files = {}
    for file in read_bundle(location, "backup").files:
        has_right_size = stored_sizes.get(file.name) == file.n_bytes
        if has_right_size and (not must_verify or location.hash_of(file.name) == file.sha256):
            intact_files[_path_of(file)] = file
    return intact_files


def _refuse_unsuitable(warehouse: Warehouse, location: Location) -> None:
    """Refuse a target within the warehouse, or with content that is not a backup."""
    root = warehouse.root.resolve()
    if isinstance(location, Folder) and location.path.resolve().is_relative_to(root):
        raise UsageError(
            f"{location}: is inside the warehouse; name a folder elsewhere, best on another disk"
        )
    paths = location.files() if isinstance(location, Store) else content_of(location.path)
    names = {name.partition("/")[0] for name in paths}
    # An upload that was killed before it wrote a manifest leaves only copies.
    if _MANIFEST not in names and names - {_FILES.rstrip("/")}:
        raise UsageError(
            f"{location}: has files that are not a backup; name an empty folder or prefix"
        )


def _stage_files(
    warehouse: Warehouse,
    stage: Path,
    intact: Mapping[str, File],
) -> dict[File, Path | None]:
    """Stage the files of a backup, except parts with an intact copy in the last one.

    Return the files, each with its staged copy, or None if the last backup has an intact one;
    `intact` has these by their path in the warehouse.

    Raises:
        PipelineError: one cannot be copied, or is damaged.
    """
    source = readable_path(warehouse.root / LEDGER)
    if source:
        copy_ledger(source, stage / LEDGER / source.name)
    with warehouse.publishing():  # parts that are copied must not be replaced meanwhile
        current_paths = chain.from_iterable(warehouse.store.all_current_parts().values())
        parts = {path.relative_to(warehouse.root).as_posix(): path for path in current_paths}
        # The list of the expected parts, and the version of the warehouse.
        small_files = {name: warehouse.root / name for name in ("parts/list.json", VERSION_FILE)}
        for name, path in (small_files | parts).items():
            is_intact_part = name in parts and name in intact
            if not is_intact_part and path.exists():
                link_or_copy(path, stage / name)
    files: dict[File, Path | None] = {intact[name]: None for name in parts if name in intact}
    for name in Folder(stage).files():
        copy = file_at(stage / name, f"{_FILES}{name}")
        if name not in parts:
            # The last backup needs its copy of a file that may change until this backup is
            # complete.
            copy = replace(copy, name=copy.name + _hash_suffix(copy.sha256))
        elif not is_named_after(name, copy.sha256):
            raise Damaged(f"{parts[name]}: is damaged; run `prbench aggregate`, then back up again")
        files[copy] = None if intact.get(name) == copy else stage / name
    return files


def copy_ledger(source: Path, target: Path) -> None:
    """Copy a database to which other processes may write; the copy that SQLite makes is
    consistent.
    """
    target.parent.mkdir(parents=True)
    try:
        with (
            contextlib.closing(
                sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
            ) as live,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy)
    except sqlite3.Error as error:
        raise PipelineError(
            f"{source}: cannot be copied ({error}); `prbench run` repairs what it can"
        ) from error


def restore(job: Job, source: Path | Store) -> StageReport:
    """Restore a backup from a folder or a store into an empty or missing warehouse, and publish it.

    A restore that was interrupted is continued or started over by the same command.

    Raises:
        Damaged: the source is not a complete backup, or its files have changed; nothing was
            restored.
        UsageError: the warehouse is not empty.
        WarehouseBusy: a run is in progress on it.
        WarehouseError: the backup is of a warehouse of another version.
    """
    location = location_of(source)
    bundle = read_bundle(location, "backup")
    warehouse = Warehouse(job.warehouse)
    if not all(is_inside(_path_of(file)) for file in bundle.files):
        raise Damaged(
            f"{location}/{_MANIFEST}: names files outside of the warehouse; use another copy"
        )
    _refuse_filled(warehouse.root)
    with disk_errors(warehouse.root, "make room and restore again"), warehouse.alone(notice):
        _refuse_filled(warehouse.root)
        stage = warehouse.root / _RESTORE_STAGE
        if not (stage / _MANIFEST).exists():
            _fetch(location, bundle, stage)
        elif read_bundle(Folder(stage), "backup") != bundle:
            raise UsageError(
                f"{warehouse.root}: another backup was being restored here; empty the folder first"
            )
        _install(stage, warehouse.root)
        warehouse.publish()
        (stage / _MANIFEST).unlink()
        shutil.rmtree(stage)
    when = str(bundle.meta.get("made_at"))[:16]
    note = (
        f"{len(bundle.files)} files ({bundle.n_bytes / 1e6:.1f} MB) of {when} UTC in"
        f" {warehouse.root}"
    )
    return StageReport("restore", rows=len(bundle.files), notes=[note])


def _refuse_filled(root: Path) -> None:
    """Refuse a warehouse that is not empty, unless a restore into it was interrupted."""
    # The file with the version is written with the first lock, so it does not count.
    names = [name for name in content_of(root) if name not in (VERSION_FILE, "living")]
    if names and not (root / _RESTORE_STAGE / _MANIFEST).exists():
        raise UsageError(
            f"{root}: is not empty ({names[0]}); name an empty or new folder with --warehouse"
        )


def _fetch(location: Location, bundle: Bundle, stage: Path) -> None:
    """Copy all files of a backup to the stage, and write the manifest when they are verified."""
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    paths = {file.name: stage / _path_of(file) for file in bundle.files}
    try:
        fetch_bundle(location, bundle, paths)
    except PipelineError:
        shutil.rmtree(stage)
        raise
    refuse_other_version(stage)
    copies = set(paths.values())
    for path in copies | {copy.parent for copy in copies}:
        sync(path)
    write_bundle(Folder(stage), "backup", dict.fromkeys(bundle.files), bundle.meta)


def _install(stage: Path, root: Path) -> None:
    """Move the verified files into the warehouse; the parts come last, because they make it a
    warehouse.
    """
    for name in (VERSION_FILE, LEDGER, "parts"):
        if (stage / name).exists():
            (stage / name).replace(root / name)
    sync(root)
