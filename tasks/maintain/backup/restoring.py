"""Restoring a backup into an empty warehouse: all is copied and verified before anything is put in place."""

import shutil
from pathlib import Path

from tasks.config.job import Job
from tasks.console import notice
from tasks.maintain.backup.record import NAME as RECORD
from tasks.maintain.backup.record import Kept, Record, copied, read_record, write_record
from tasks.maintain.file_lists import Damaged, hash_of
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from tasks.stores import Folder, Store
from warehouse import DAMAGED, Warehouse, content_of, refuse_other_version, sync
from warehouse import FILE as VERSION_FILE

_STAGE = ".restoring"
"""Where the copies are made; a record in it says that they are whole."""
_NAMED = 3


def restore(job: Job, source: Path | Store) -> StageReport:
    """Bring a backup from a folder or a store into a warehouse folder that is empty or not there, and publish it.

    A restore that was cut short is finished, or started over, by the same command.

    Raises:
        Damaged: the source holds no whole backup, or files of it are not what was copied; nothing was restored.
        UsageError: the warehouse is not empty.
        WarehouseBusy: somebody is at work on it.
        WarehouseError: the backup is of a warehouse of another version.
    """
    record = read_record(Folder(source) if isinstance(source, Path) else source)
    warehouse = Warehouse(job.warehouse)
    _refuse_filled(warehouse.root)
    try:
        with warehouse.alone(notice):
            _refuse_filled(warehouse.root)
            stage = warehouse.root / _STAGE
            if not (stage / RECORD).exists():
                _stage(job, source, record, stage)
            elif read_record(Folder(stage)) != record:
                raise UsageError(f"{warehouse.root}: another backup was being restored here; empty the folder first")
            _put_in_place(stage, warehouse.root)
            warehouse.publish()
            (stage / RECORD).unlink()
            shutil.rmtree(stage)
    except OSError as error:
        where = error.filename or warehouse.root
        raise PipelineError(f"{where}: {error.strerror}; make room and restore again") from error
    n_bytes = sum(kept.n_bytes for kept in record.files)
    note = f"{len(record.files)} files ({n_bytes / 1e6:.1f} MB) of {record.made_at[:16]} UTC in {warehouse.root}"
    return StageReport("restore", rows=len(record.files), notes=[note])


def _refuse_filled(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root}: is not a folder; name an empty or new one with --warehouse")
    if (root / _STAGE / RECORD).exists():
        return
    # The version is written with the first lock.
    held = [name for name in content_of(root) if name not in (VERSION_FILE, "living")]
    if held:
        raise UsageError(f"{root}: is not empty ({held[0]}); name an empty or new folder with --warehouse")


def _stage(job: Job, source: Path | Store, record: Record, stage: Path) -> None:
    """Copy all files and see that they are what the record says."""
    if stage.exists():
        shutil.rmtree(stage)
    stage.mkdir(parents=True)
    if isinstance(source, Store):
        damaged = _downloaded(job, source, record, stage)
    else:
        damaged = [kept.stored_as for kept in record.files if not _is_copied(source, kept, stage)]
    if damaged:
        shutil.rmtree(stage)
        more = f" and {len(damaged) - _NAMED} more" if len(damaged) > _NAMED else ""
        raise Damaged(
            f"{source}: {', '.join(damaged[:_NAMED])}{more}: not what was copied (missing, or size or SHA-256 differ); "
            "nothing was restored, use another copy, or renew this one with `prbench backup --verify`"
        )
    refuse_other_version(stage)
    for sub in {(stage / kept.path).parent for kept in record.files}:
        sync(sub)
    write_record(Folder(stage), record)


def _is_copied(folder: Path, kept: Kept, stage: Path) -> bool:
    """Copy a file; False if it is not what the record says."""
    path = folder / kept.stored_as
    return path.is_file() and copied(path, stage / kept.path, folder) == (kept.n_bytes, kept.sha256)


def _downloaded(job: Job, store: Store, record: Record, stage: Path) -> list[str]:
    """Download all files if they are there with the right sizes; the names of those that are not what they were."""
    there = store.files()
    damaged = [kept.stored_as for kept in record.files if there.get(kept.stored_as) != kept.n_bytes]
    if not damaged:
        targets = {kept.stored_as: stage / kept.path for kept in record.files}
        store.get(targets, sum(kept.n_bytes for kept in record.files), is_quiet=job.is_quiet)
        damaged = [kept.stored_as for kept in record.files if hash_of(stage / kept.path) != kept.sha256]
        for kept in record.files:
            sync(stage / kept.path)
    return damaged


def _put_in_place(stage: Path, root: Path) -> None:
    """Move what was verified into the warehouse; the parts last, since they make it one."""
    for name in (VERSION_FILE, DAMAGED, LEDGER, "parts"):
        if (stage / name).exists():
            if name != VERSION_FILE and (root / name).exists():
                raise UsageError(f"{root}: {name} appeared during an interrupted restore; empty the folder first")
            (stage / name).replace(root / name)
    sync(root)
