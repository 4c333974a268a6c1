"""Publishing what is stored for readers elsewhere: the database, the report, and every table as Parquet files.

All of it is of one state, is put under a prefix that nothing is ever written to again, and is there before the pointer
names it.
"""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import sql
from tasks.config import Job
from tasks.exports.file_list import write_export_list
from tasks.exports.publication import FOLDER, Pointer, is_whole, read_pointer, remove_old, write_pointer
from tasks.exports.tables import NOT_EXPORTED, write_tables
from tasks.maintain import hash_of
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import counted
from tasks.run import StageReport
from tasks.stores import Folder, Store, kept_as, work_folder
from warehouse import TABLES, Reader, Warehouse, refuse_other_version

_REPORT = "report"


def publish(job: Job, target: Path | Store, *, n_kept: int | None = None) -> StageReport:
    """Publish the state that the database holds now, unless the latest publication is of the same.

    A kill at any time leaves the last publication as the latest. With `n_kept` only so many publications stay.

    Raises:
        WarehouseError: nothing is stored, or another publication of this warehouse is at work.
        Damaged: the target has a pointer that is none of ours.
        PipelineError: a file cannot be read or written.
    """
    warehouse, place = Warehouse(job.warehouse), Folder(target) if isinstance(target, Path) else target
    with warehouse.reader():
        pass  # where nothing can be read, nothing is made
    report = StageReport("publish")
    try:
        with warehouse.only_one("publication", wait=False), work_folder(warehouse, "publication") as stage:
            _publish_from(job, warehouse, stage, place, report)
            n_removed = remove_old(place, n_kept) if n_kept is not None else 0
    except OSError as error:
        where = error.filename or target
        raise PipelineError(f"{where}: {error.strerror}; the last publication is unchanged") from error
    if n_removed:
        report.notes.append(f"{n_removed} older publications removed")
    return report


def _publish_from(job: Job, warehouse: Warehouse, stage: Path, place: Folder | Store, report: StageReport) -> None:
    """Publish by way of an empty folder on the warehouse's disk."""
    database = stage / warehouse.database.name
    kept_as(warehouse.database, database)
    files = {database.name: database, **_report_files(job, stage)}
    hashes = {name: hash_of(path) for name, path in sorted(files.items())}
    content = hashlib.sha256(json.dumps(hashes).encode()).hexdigest()
    latest = read_pointer(place)
    if latest and latest.content == content and is_whole(place, latest.publication):
        report.notes.append(f"unchanged since {latest.published_at[:16]} UTC; nothing was published")
        return
    made_at = datetime.now(UTC)
    name = f"{FOLDER}/{made_at:%Y%m%dT%H%M%SZ}-{content[:8]}"
    with Reader(database) as reader:
        public = [*(name for name in TABLES if name not in NOT_EXPORTED), *sql.schema()["marts"]]
        tables = write_tables(reader, stage, public, has_folders=True)
        state_of = reader.value("select max(coalesce(ended_at, started_at)) from runs")
    files |= {file.name: stage / file.name for table in tables.tables for file in table.files}
    place.below(name).put(files, is_quiet=job.is_quiet)
    write_export_list(
        place.below(name), tables, canaries="in the database only", content=content,
        warehouse_version=refuse_other_version(warehouse.root), state_of=state_of and state_of.isoformat(),
        others=[{"name": name, "n_bytes": (stage / name).stat().st_size, "sha256": hashes[name]} for name in hashes],
    )  # fmt: skip
    if not is_whole(place, name):
        raise PipelineError(f"{place.below(name)}: files are missing; somebody else removed them, so publish again")
    write_pointer(place, Pointer(name, content, made_at.isoformat()))
    n_bytes = sum(path.stat().st_size for path in files.values())
    report.rows = sum(table.n_rows for table in tables.tables)
    report.notes.append(f"{counted(len(files), 'file')} ({n_bytes / 1e6:.1f} MB) in {place.below(name)}")
    if len(hashes) == 1:
        report.notes.append("without a report: there is none")


def _report_files(job: Job, stage: Path) -> dict[str, Path]:
    """The files of the report, as they are now, under names at which they stay; none if there is no report."""
    from tasks.report.rendering.site import only_writer, report_files

    folder = job.report_folder
    if not (folder / "index.html").is_file():
        return {}
    with only_writer(folder):
        names = report_files(folder)
        for name in names:
            kept_as(folder / name, stage / _REPORT / name)
    return {f"{_REPORT}/{name}": stage / _REPORT / name for name in names}
