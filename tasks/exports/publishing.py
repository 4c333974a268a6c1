"""Publishing what is stored for readers elsewhere: the database, the report, and every table as Parquet files.

All of it is of one state, is put under a prefix that nothing is ever written to again, and is there before the pointer
names it.
"""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sql
from tasks.bundles import bundle as bundles
from tasks.bundles.stores import Folder, Store, kept_as, work_folder
from tasks.config.job import Job
from tasks.exports.tables import NOT_EXPORTED, write_tables
from tasks.rules.errors import PipelineError, disk_errors
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import TABLES, Reader, Warehouse, refuse_other_version

_REPORT = "report"
_KINDS: tuple[bundles.Kind, ...] = ("publication", "export")
"""What manifests of publications say that they are; of November it is an export."""


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
    with (
        disk_errors(target, "the last publication is unchanged"), warehouse.only_one("publication", wait=False),
        work_folder(warehouse, "publication") as stage,
    ):  # fmt: skip
        _publish_from(job, warehouse, stage, place, report)
        n_removed = remove_old(place, n_kept) if n_kept is not None else 0
    if n_removed:
        report.notes.append(f"{n_removed} older publications removed")
    return report


def _publish_from(job: Job, warehouse: Warehouse, stage: Path, place: Folder | Store, report: StageReport) -> None:
    """Publish by way of an empty folder on the warehouse's disk."""
    database = stage / warehouse.database.name
    kept_as(warehouse.database, database)
    found = {database.name: database, **_report_files(job, stage)}
    files = {bundles.file_at(path, name): path for name, path in sorted(found.items())}
    content = hashlib.sha256(json.dumps({file.name: file.sha256 for file in files}).encode()).hexdigest()
    latest = bundles.read_pointer(place)
    if latest and latest.content == content and bundles.is_complete(place.below(latest.publication), *_KINDS):
        report.notes.append(f"unchanged since {latest.published_at[:16]} UTC; nothing was published")
        return
    made_at = datetime.now(UTC)
    name = f"{bundles.FOLDER}/{made_at:%Y%m%dT%H%M%SZ}-{content[:8]}"
    with Reader(database) as reader:
        public = [*(name for name in TABLES if name not in NOT_EXPORTED), *sql.schema()["marts"]]
        tables = write_tables(reader, stage, public, root="tables/")
        state_of = reader.value("select max(coalesce(ended_at, started_at)) from runs")
    meta = {
        "canaries": "in the database only", "content": content, "state_of": state_of and state_of.isoformat(),
        "warehouse_version": refuse_other_version(warehouse.root), **tables.meta,
    }  # fmt: skip
    made = bundles.write_bundle(place.below(name), "publication", files | tables.files, meta, is_quiet=job.is_quiet)
    if not bundles.is_complete(place.below(name), *_KINDS):
        raise PipelineError(f"{place.below(name)}: files are missing; somebody else removed them, so publish again")
    # Readers see the one before or this one.
    pointer = {"publication": name, "content": content, "published_at": made_at.isoformat()}
    bundles.write_bundle(place, "publication", {}, pointer, name=bundles.POINTER)
    report.rows = tables.n_rows
    report.notes.append(f"{counted(len(made.files), 'file')} ({made.n_bytes / 1e6:.1f} MB) in {place.below(name)}")
    if len(files) == 1:
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


def remove_old(place: Folder | Store, n_kept: int) -> int:
    """Remove all but the newest publications, and what killed ones left; how many.

    The one that the pointer names stays, and so do unfinished ones of the last day, which others may be at work on.
    """
    shelf, pointer = place.below(bundles.FOLDER), bundles.read_pointer(place)
    names = shelf.files()
    found = {name.partition("/")[0] for name in names if bundles.PUBLICATION.match(name)}
    whole = sorted(each for each in found if f"{each}/{bundles.MANIFEST}" in names)
    latest = pointer.publication.partition("/")[2] if pointer else ""
    a_day_ago = f"{datetime.now(UTC) - timedelta(days=1):%Y%m%dT%H%M%SZ}"
    unfinished = {each for each in found - set(whole) if each > a_day_ago}
    removed = found - {*whole[-n_kept:], latest} - unfinished
    shelf.remove([name for name in names if name.partition("/")[0] in removed])
    return len(removed)
