"""Making a backup, in a folder or in a store: the files first, and last the record that makes them a backup."""

from datetime import UTC, datetime
from pathlib import Path

from tasks.config.job import Job
from tasks.console import notice
from tasks.maintain.backup.copies import Copies, copied_files
from tasks.maintain.backup.record import FILES, NAME, Kept, Record, is_whole, linked, read_record, write_record
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from tasks.stores import Folder, Store, work_folder
from warehouse import Warehouse, content_of, file_lock, refuse_if_lost, sync

_LOCK = "backup.lock"


def backup(job: Job, target: Path | Store, *, must_verify: bool = False) -> StageReport:
    """Copy the warehouse to a folder, or a prefix of a store, that is empty, not there, or holds an earlier backup.

    Runs go on meanwhile. A kill at any time leaves the last whole backup as it was. With `must_verify` earlier copies
    are read as well, and renewed where they are damaged; without, they are looked at by their size.

    Raises:
        UsageError: the target holds something else, or lies in the warehouse, or there is nothing to copy.
        PipelineError: a file cannot be read or written, or another backup is at work.
    """
    warehouse = Warehouse(job.warehouse)
    if not any((warehouse.root / name).is_dir() for name in ("parts", LEDGER)):
        raise UsageError(f"{warehouse.root}: there is nothing to back up here; check --warehouse")
    made_at = datetime.now(UTC).isoformat()
    try:
        if isinstance(target, Store):
            files, copies = _in_store(job, warehouse, target, made_at, must_verify)
        else:
            files, copies = _in_folder(warehouse, target, made_at, must_verify)
    except OSError as error:
        where = error.filename or target
        raise PipelineError(f"{where}: {error.strerror}; the last backup is unchanged") from error
    n_bytes = sum(kept.n_bytes for kept in files)
    note = f"{len(files)} files ({n_bytes / 1e6:.1f} MB) in {target}, {copies.n_copied} of them copied now"
    return StageReport("backup", rows=copies.n_copied, notes=[f"{note} ({copies.copied_bytes / 1e6:.1f} MB)"])


def _in_folder(warehouse: Warehouse, folder: Path, made_at: str, must_verify: bool) -> tuple[list[Kept], Copies]:
    _refuse_folder(warehouse, folder)
    with warehouse.writing(notice), file_lock(folder / _LOCK, wait=False):
        last = _last(Folder(folder))
        copies = Copies(folder, last, lambda kept: is_whole(folder / kept.stored_as, kept, must_read=must_verify))
        files = copied_files(warehouse, copies)
        for sub in {(folder / kept.stored_as).parent for kept in files}:
            sync(sub)
        refuse_if_lost(warehouse.root)
        write_record(Folder(folder), Record(made_at, tuple(files)))
        _remove_others(folder, files)
    return files, copies


def _in_store(
    job: Job, warehouse: Warehouse, store: Store, made_at: str, must_verify: bool
) -> tuple[list[Kept], Copies]:
    """A store has no locks, so the warehouse's own lets one backup at a time into stores."""
    with (
        warehouse.writing(notice),
        warehouse.only_one("backup", wait=False),
        work_folder(warehouse, "backup") as stage,
    ):
        there = store.files()
        _refuse_others(store, there)
        last = _last(store)

        def is_there(kept: Kept) -> bool:
            is_complete = there.get(kept.stored_as) == kept.n_bytes
            return is_complete and (not must_verify or store.hash_of(kept.stored_as) == kept.sha256)

        copies = Copies(stage, last, is_there, linked)
        files = copied_files(warehouse, copies)
        needed = {kept.stored_as: stage / kept.stored_as for kept in files}
        new = {name: path for name, path in needed.items() if path.exists()}
        store.put(new, is_quiet=job.is_quiet)
        refuse_if_lost(warehouse.root)
        write_record(store, Record(made_at, tuple(files)))
        store.remove([name for name in there if name.startswith(f"{FILES}/") and name not in needed])
    return files, copies


def _last(place: Folder | Store) -> dict[str, Kept]:
    """The copies that the last backup has, by the paths of their files."""
    return {} if place.read(NAME) is None else {kept.path: kept for kept in read_record(place).files}


def _refuse_folder(warehouse: Warehouse, folder: Path) -> None:
    if folder.resolve().is_relative_to(warehouse.root.resolve()):
        raise UsageError(f"{folder}: is inside the warehouse; name a folder elsewhere, best on another disk")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is not a folder; name another one")
    is_ours = any((folder / name).exists() for name in (NAME, _LOCK))
    if not is_ours and content_of(folder):
        raise UsageError(f"{folder}: holds files that are not a backup; name an empty folder")


def _refuse_others(store: Store, there: dict[str, int]) -> None:
    # An upload that was killed before its record was written has left copies alone.
    if NAME not in there and not all(name.startswith(f"{FILES}/") for name in there):
        raise UsageError(f"{store}: holds files that are not a backup; name an empty prefix")


def _remove_others(folder: Path, files: list[Kept]) -> None:
    """Remove copies that this backup does not need, and what killed ones left behind."""
    needed = {folder / kept.stored_as for kept in files}
    for path in (folder / FILES).rglob("*"):
        if path.is_file() and path not in needed:
            path.unlink()
