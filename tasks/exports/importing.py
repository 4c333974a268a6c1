"""Importing an export: the rows of stored tables that are not here yet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tasks.bundles.bundle import Bundle, Damaged, checked, fetch_bundle, read_bundle, verify_bundle
from tasks.bundles.stores import Folder, Store
from tasks.config.job import Job
from tasks.dataset.rows import parquet_batches
from tasks.exports.publishing import published_in
from tasks.exports.tables import NOT_EXPORTED, Exported
from tasks.run.writing import StageReport
from warehouse import DECIDED_STATUSES, TABLES, Reader, Table, Warehouse, is_removed, quoted, rests_on_response

_ROWS_AT_ONCE = 10_000
_LATE = ("checks",)
"""Taken last: a data-set revision counts as checked as soon as its checks are here."""
_REPLACED = {
    "intervals", "agreement_measures", "reliability_measures", "condition_tests", "prediction_measures",
    "debiased_measures",
}  # fmt: skip
"""Tables in exports of November that `measures` replaced: `prbench aggregate` computes what they hold."""
_OF_CHECKS = ("refusals", "checks")


class Export(NamedTuple):
    """A whole export: its folder, and the tables in it that are stored elsewhere too."""

    folder: Path
    tables: Sequence[Exported]


@contextmanager
def opened_export(source: Path | Store, *, is_quiet: bool) -> Iterator[Export]:
    """What an export, or the latest publication at a target, holds; every file is verified.

    That of a store is downloaded into a temporary folder.

    Raises:
        Damaged: the source is no whole export, or of a newer format.
    """
    place = published_in(Folder(source) if isinstance(source, Path) else source)
    if isinstance(place, Folder):
        yield read_export(place.path)
        return
    with TemporaryDirectory(prefix="prbench-") as temporary:
        bundle, tables = _importable(place)
        paths = {file.name: Path(temporary, file.name) for file in bundle.files}
        fetch_bundle(place, bundle, paths, is_quiet=is_quiet)
        yield Export(Path(temporary), tables)


def read_export(folder: Path) -> Export:
    """What an export in a folder holds; every file is verified.

    Raises:
        Damaged: the folder is no whole export, or of a newer format.
    """
    bundle, tables = _importable(Folder(folder))
    verify_bundle(Folder(folder), bundle)
    return Export(folder, tables)


def _importable(place: Folder | Store) -> tuple[Bundle, list[Exported]]:
    """Return what is imported of an export or publication: stored tables, and their files."""
    bundle = read_bundle(place, "export", "publication")
    listed = checked(list[Exported], bundle.meta.get("tables"), str(place))
    tables = [each for each in listed if not each.is_derived and each.name not in _REPLACED]
    names = {name for table in tables for name in table.files}
    if unlisted := names - {file.name for file in bundle.files}:
        raise Damaged(f"{place}: {min(unlisted)} is of a table and not among the files; export again")
    return replace(bundle, files=tuple(file for file in bundle.files if file.name in names)), tables


def import_tables(job: Job, export: Export) -> StageReport:
    """Take in what an export holds and is not here yet: rows with another key, decided rows in place of failed ones.

    Rows that are here stay as they are. So do the checks of a data-set revision that was checked here, and what was
    retracted here stays away. Computed rows with a fingerprint (measures) come along: they
    show where they fit, and `prbench aggregate` computes what has none.

    Raises:
        Damaged: a table lacks its key.
    """
    folder, given = export
    report = StageReport("import")
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    taken: dict[str, int] = {}
    with warehouse.reader() as reader:
        for exported in sorted(given, key=lambda table: table.name in _LATE):
            if exported.name not in TABLES or exported.name in NOT_EXPORTED:
                report.warnings.append(f"{exported.name}: not imported: unknown table")
                continue
            taken[exported.name] = _take_in(warehouse, reader, folder, exported)
        was_checked = reader.value("select count(*) from checks") > 0
    warehouse.publish()
    report.rows = sum(taken.values())
    n_here = sum(table.n_rows for table in given) - report.rows
    said = ", ".join(f"{number} {name}" for name, number in taken.items() if number) or "0 rows"
    report.notes.append(f"{said} imported, {n_here} rows already present or excluded")
    if was_checked and taken.get("task_rows"):
        report.warnings.append("the imported tasks are not checked yet: run `prbench check`")
    return report


def _take_in(warehouse: Warehouse, reader: Reader, folder: Path, exported: Exported) -> int:
    table = TABLES[exported.name]
    lacking = [column for column in table.key if column not in exported.columns]
    if lacking:
        raise Damaged(f"{folder}: {table.name} lacks its key {lacking[0]}; export again")
    taken = 0
    for name in exported.files:
        for rows in _new_rows(reader, folder / name, table, set(exported.columns)):
            warehouse.write(table.name, rows)
            taken += len(rows)
    return taken


def _new_rows(reader: Reader, path: Path, table: Table, given: set[str]) -> Iterator[list[dict[str, Any]]]:
    """The rows of a file that are to be taken in, some thousand at a time; a column that it lacks is NULL."""
    import numpy as np

    places = reader.arrays(_places(path, table, given))["place"]
    start = 0
    columns = [column for column in table.columns if column in given]
    for batch in parquet_batches(path, _ROWS_AT_ONCE, columns):
        first, last = np.searchsorted(places, [start, start + batch.num_rows])
        if last > first:
            rows = batch.take(places[first:last] - start).to_pylist()
            yield [{column: row.get(column) for column in table.columns} for row in rows]
        start += batch.num_rows


def _places(path: Path, table: Table, given: set[str]) -> str:
    """Where in the file the rows stand that are to be taken in."""
    same = " and ".join(f"stored.{column} = given.{column}" for column in table.key)
    if table.keeps == "decided":
        decided = ", ".join(map(quoted, DECIDED_STATUSES))
        same += f" and (stored.status in ({decided}) or given.status not in ({decided}))"
    stays_away = [f"exists (select 1 from {table.name} as stored where {same})"]
    if "import_batch" in table.columns and "import_batch" in given:
        stays_away.append("given.import_batch in (select import_batch from retractions where is_retracted)")
    if rests_on_response(table) and {"response_id", "created_at"} <= given:
        stays_away.append(is_removed("given"))
    if table.name in _OF_CHECKS:
        revision = "(benchmark, dataset_revision)"
        stays_away.append(f"(given.benchmark, given.dataset_revision) in (select {revision} from checks)")
    has_key = " and ".join(f"given.{column} is not null" for column in table.key)
    return (
        "select file_row_number as place "
        f"from read_parquet({quoted(path)}, file_row_number = true) as given "
        f"where {has_key} and not coalesce({' or '.join(stays_away)}, false) order by place"
    )
