"""Tables as Parquet files in a folder or a store, and their import into another warehouse.

A publication also has the database and the report, all of one state. Its files are written under a
new prefix and never change; the pointer names the publication when it is complete.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import sql
from tasks.bundles import bundle as bundles
from tasks.bundles.stores import (
    Folder,
    Location,
    Store,
    link_or_copy,
    location_of,
    work_folder,
)
from tasks.config.job import Job
from tasks.dataset.source import parquet_batches
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.text.characters import did_you_mean
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import (
    COLUMNS,
    DECIDED_STATUSES,
    TABLES,
    Reader,
    Row,
    Warehouse,
    content_of,
    quoted,
    refuse_other_version,
)
from warehouse.build import is_removed_with_response, removed_condition

NOT_EXPORTED = ("retractions", "removals")
"""Tables that are not exported: each warehouse decides on its own retractions and removals."""
_STORED_TABLES = [name for name in TABLES if name not in NOT_EXPORTED]
ROWS_A_FILE = 500_000
_SELECTIONS = {"split_members": "select * replace (null::varchar as canary)"}
"""Table -> its exported columns, if they are not all.

The canary is not exported: who has the data set can ingest it, and nobody else should get it along
with texts.
"""


def refuse_filled(target: Path | Store) -> None:
    """Refuse a location that is not empty.

    Raises:
        UsageError: it has content.
    """
    if isinstance(target, Store):
        is_filled = bool(target.files())
    else:
        is_filled = target.is_file() or bool(content_of(target))
    if is_filled:
        raise UsageError(f"{target}: is not an empty folder; name a new one")


@dataclass(frozen=True)
class ExportedTable:
    """An exported table: its columns with their types, and its files in order.

    Derived tables are not imported.
    """

    name: str
    is_derived: bool
    columns: dict[str, str]
    n_rows: int
    files: tuple[str, ...]


class TableFiles(NamedTuple):
    """Tables as files; `files` gives each one's local path, `meta` more entries of the manifest."""

    tables: tuple[ExportedTable, ...]
    files: dict[bundles.File, Path]
    meta: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """The number of rows of all tables."""
        return sum(table.n_rows for table in self.tables)

    def n_bytes(self, names: Collection[str] | None = None) -> int:
        """Return the size in bytes of the files with these names, or of all files."""
        return sum(file.n_bytes for file in self.files if names is None or file.name in names)


def chosen_tables(reader: Reader, names: Sequence[str]) -> list[str]:
    """Return the named tables and views, each once, if they exist and may be exported.

    Raises:
        UsageError: one does not exist or may not be exported.
    """
    query = "select table_name as name from information_schema.tables where table_schema = 'main'"
    public = {row["name"] for row in reader.rows(query)} - set(NOT_EXPORTED)
    for name in names:
        if name not in public:
            hint = did_you_mean(name, public)
            raise UsageError(
                f"--table {name}: no such table{hint}; `prbench sql --describe` lists all"
            )
    return list(dict.fromkeys(names))


def query_of(reader: Reader, name: str, key: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the query for the exported rows of a table or view, and its column types.

    `key` is the key of a data set, or only its benchmark; tables with these columns are narrowed to
    it. The query ends with its conditions, so that ` and ...` adds another one.
    """
    query = f"{_SELECTIONS.get(name, 'select *')} from {name} where true"
    description = reader.rows(f"describe {query}")
    columns = {row["column_name"]: row["column_type"] for row in description}
    for column, value in key.items():
        if column in columns:
            query += f" and {column} = {quoted(value)}"
    if name == "runs":
        # Unfinished runs are not exported.
        query += " and outcome <> 'running'"
    return query, columns


def write_tables(
    reader: Reader,
    folder: Path,
    names: Sequence[str],
    key: dict[str, str],
    prefix: str = "",
) -> TableFiles:
    """Write tables and views to a folder: all rows, or those with a `key` (see `query_of`).

    Each table has its own folder, whose path begins with `prefix`, with at least one file, so that
    a pattern can name the files of a table.
    """
    reader.value("set memory_limit = '1GB'")
    tables = []
    files = {}
    for name in names:
        query, columns = query_of(reader, name, key)
        (folder / prefix / name).mkdir(parents=True, exist_ok=True)
        paths = []
        n_rows = 0
        for number, condition in enumerate(_row_ranges(reader, name)):
            path = f"{prefix}{name}/part-{number}.parquet"
            n_rows += reader.value(
                f"copy ({query} and {condition}) to {quoted(folder / path)} (format parquet,"
                " compression zstd, row_group_size 20000)"
            )
            files[bundles.file_at(folder / path, path)] = folder / path
            paths.append(path)
        tables.append(
            ExportedTable(
                name,
                is_derived=name not in TABLES,
                columns=columns,
                n_rows=n_rows,
                files=tuple(paths),
            )
        )
    meta = {"made_at": datetime.now(UTC).isoformat(), "tables": list(map(asdict, tables))}
    return TableFiles(tuple(tables), files, meta)


def _row_ranges(reader: Reader, name: str) -> Iterator[str]:
    """Yield the condition for the rows of each file of a table; a view is one file."""
    if name not in TABLES:
        yield "true"
        return
    end = reader.value(f"select coalesce(max(rowid), 0) + 1 from {name}")
    for start in range(0, end, ROWS_A_FILE):
        yield f"rowid between {start} and {start + ROWS_A_FILE - 1}"


def export_tables(
    job: Job,
    target: Path | Store,
    names: Sequence[str] = (),
    benchmark: str | None = None,
) -> StageReport:
    """Write tables to a folder, or a prefix of a store, that is empty or does not exist.

    Without names, all stored tables are written; with a benchmark, only its rows. Views and
    computed tables can be named too; they are marked as derived, and imports ignore them.

    Raises:
        UsageError: the target is not empty, or a table does not exist.
        PipelineError: a file cannot be written.
    """
    refuse_filled(target)
    with Warehouse(job.warehouse).reader() as reader:
        names = chosen_tables(reader, names or _STORED_TABLES)
        key = {"benchmark": benchmark} if benchmark else {}
        with disk_errors(target), ExitStack() as stack:
            if isinstance(target, Path):
                folder = target
            else:
                folder = Path(stack.enter_context(TemporaryDirectory(prefix="prbench-")))
            export = write_tables(reader, folder, names, key)
            bundles.write_bundle(location_of(target), "export", export.files, export.meta)
    n_filled = sum(table.n_rows > 0 for table in export.tables)
    note = (
        f"{counted(export.n_rows, 'row')} of {counted(n_filled, 'table')} in {target}"
        f" ({export.n_bytes() / 1e6:.1f} MB)"
    )
    return StageReport("export", rows=export.n_rows, notes=[note])


def meaning_of_table(name: str) -> str:
    """Return the meaning of one row of a table or view."""
    mart = sql.schema()["marts"].get(name)
    return str(mart["meaning"]) if mart else TABLES[name].meaning


def meaning_of_column(column: str, marts: Sequence[str]) -> str | None:
    """Return the meaning of a column in the first of these marts that describes it.

    Else return its general meaning, or None.
    """
    described_marts = sql.schema()["marts"]
    for name in marts:
        columns = described_marts.get(name, {}).get("columns", {})
        if column in columns:
            return str(columns[column])
    return COLUMNS[column][1] if column in COLUMNS else None


Export = tuple[Path, Sequence[ExportedTable]]
"""An export: its folder, and those of its tables that warehouses store."""


@contextmanager
def opened_export(source: Path | Store) -> Iterator[Export]:
    """Open and verify the stored tables of an export, or of the latest publication.

    An export in a store is downloaded into a temporary folder.

    Raises:
        Damaged: the source is not a whole export, or is of a newer format.
    """
    location = bundles.published_in(location_of(source))
    bundle = bundles.read_bundle(location, "export", "publication")
    entry = bundle.meta.get("tables")
    exported = bundles.checked(list[ExportedTable], entry, str(location), "tables")
    tables = [table for table in exported if not table.is_derived]
    names = set[str]()
    for table in tables:
        names.update(table.files)
    table_files = tuple(file for file in bundle.files if file.name in names)
    unlisted = names - {file.name for file in table_files}
    if unlisted:
        raise bundles.Damaged(
            f"{location}: {min(unlisted)} is of a table and not among the files; export again"
        )
    with bundles.verified(location, bundle._replace(files=table_files)) as folder:
        yield folder, tables


def import_tables(job: Job, export: Export) -> StageReport:
    """Import the missing rows of an export.

    These are rows with new keys, and decided rows that replace failed ones.

    Existing rows do not change, nor do the checks of a data-set revision that was checked here.
    Retracted rows are left out. Measures are imported too; they are shown if their fingerprint fits
    the data here, and `prbench aggregate` computes the others.
    """
    folder, exported = export
    tables = [table for table in exported if table.name in _STORED_TABLES]
    warehouse = Warehouse(job.warehouse)
    n_imported = Counter[str]()
    warehouse.publish()
    with warehouse.reader() as reader:
        # Checks come last, because a data-set revision counts as checked as soon as its checks are
        # stored.
        for table in sorted(tables, key=lambda table: table.name == "checks"):
            for file in table.files:
                for rows in _new_rows(reader, folder / file, table):
                    warehouse.write(table.name, rows)
                    n_imported[table.name] += len(rows)
    warehouse.publish()
    n_not_imported = sum(table.n_rows for table in exported) - n_imported.total()
    summary = ", ".join(f"{number} {name}" for name, number in n_imported.items()) or "0 rows"
    note = f"{summary} imported, {n_not_imported} rows already present or excluded"
    warnings = [
        f"{table.name}: not imported: unknown table" for table in exported if table not in tables
    ]
    return StageReport("import", rows=n_imported.total(), notes=[note], warnings=warnings)


def _new_rows(reader: Reader, path: Path, exported: ExportedTable) -> Iterator[list[Row]]:
    """Yield the rows of a file of a table that are imported, some thousand at a time.

    A column that the file lacks is NULL.
    """
    positions = reader.arrays(_positions_query(path, exported))["position"]
    start = 0
    missing_values = dict.fromkeys(TABLES[exported.name].columns)
    read_columns = [column for column in missing_values if column in exported.columns]
    for batch in parquet_batches(path, 10_000, read_columns):
        is_in_batch = (positions >= start) & (positions < start + batch.num_rows)
        rows = batch.take(positions[is_in_batch] - start).to_pylist()
        if rows:
            yield [missing_values | row for row in rows]
        start += batch.num_rows


def _positions_query(path: Path, exported: ExportedTable) -> str:
    """Return the query for the positions, in a file, of the rows of a table to import."""
    table = TABLES[exported.name]
    match = " and ".join(f"stored.{column} = given.{column}" for column in table.key)
    if table.keeps == "decided":
        statuses = ", ".join(map(quoted, DECIDED_STATUSES))
        match += f" and (stored.status in ({statuses}) or given.status not in ({statuses}))"
    exclusions = [f"exists (select 1 from {exported.name} as stored where {match})"]
    if "import_batch" in table.columns and "import_batch" in exported.columns:
        exclusions.append(
            "given.import_batch in (select import_batch from retractions where is_retracted)"
        )
    if is_removed_with_response(table) and {"response_id", "created_at"} <= exported.columns.keys():
        exclusions.append(removed_condition("given"))
    if exported.name in {"refusals", "checks"}:
        exclusions.append(
            "(benchmark, dataset_revision) in (select (benchmark, dataset_revision) from checks)"
        )
    has_key = " and ".join(f"given.{column} is not null" for column in table.key)
    return (
        "select file_row_number as position "
        f"from read_parquet({quoted(path)}, file_row_number = true) as given "
        f"where {has_key} and not coalesce({' or '.join(exclusions)}, false) order by position"
    )


def publish(job: Job, target: Path | Store, *, n_kept: int | None = None) -> StageReport:
    """Publish the current state of the database, unless the latest publication has the same state.

    If it is killed at any time, the pointer still names the last publication. With `n_kept`, older
    publications are removed.

    Raises:
        WarehouseError: nothing is stored, or another publication of this warehouse is in progress.
        Damaged: the target has a pointer that prbench did not write.
        PipelineError: a file cannot be read or written.
    """
    warehouse = Warehouse(job.warehouse)
    location = location_of(target)
    with (  # the reader fails before anything is created if nothing is stored
        warehouse.reader(),
        disk_errors(target, "the last publication is unchanged"),
        warehouse.only_one("publication", wait=False),
        work_folder(warehouse, "publication") as stage,
    ):
        report = _publish_from(job, warehouse, stage, location)
        n_removed = remove_old(location, n_kept) if n_kept is not None else 0
    if n_removed:
        report.notes.append(f"{n_removed} older publications removed")
    return report


def _publish_from(job: Job, warehouse: Warehouse, stage: Path, location: Location) -> StageReport:
    """Publish with the help of an empty folder on the warehouse's disk."""
    link_or_copy(warehouse.database, stage / warehouse.database.name)
    _link_report(job.report_folder, stage / "report")
    names = sorted(Folder(stage).files())
    files = {bundles.file_at(stage / name, name): stage / name for name in names}
    hashes = json.dumps({file.name: file.sha256 for file in files})
    content = hashlib.sha256(hashes.encode()).hexdigest()
    latest = bundles.read_pointer(location)
    if (
        latest
        and latest.content == content
        and bundles.is_complete_publication(location.below(latest.publication))
    ):
        note = f"unchanged since {latest.published_at[:16]} UTC; nothing was published"
        return StageReport("publish", notes=[note])
    return _write_publication(warehouse, stage, location, files, content)


def _write_publication(
    warehouse: Warehouse,
    stage: Path,
    location: Location,
    files: dict[bundles.File, Path],
    content: str,
) -> StageReport:
    """Write the files of the stage and all tables, and then the pointer to them."""
    published_at = datetime.now(UTC)
    publication = f"{bundles.PUBLICATIONS_FOLDER}/{published_at:%Y%m%dT%H%M%SZ}-{content[:8]}"
    with Reader(stage / warehouse.database.name) as reader:
        public = [*_STORED_TABLES, *sql.schema()["marts"]]
        tables = write_tables(reader, stage, public, {}, "tables/")
        last_run_at = reader.value("select max(coalesce(ended_at, started_at)) from runs")
    meta = {
        **tables.meta,
        "state_of": last_run_at.isoformat() if last_run_at else None,
        "warehouse_version": refuse_other_version(warehouse.root),
    }
    target = location.below(publication)
    bundle = bundles.write_bundle(target, "publication", files | tables.files, meta)
    # Until the pointer is replaced, readers see the earlier publication.
    pointer = bundles.Pointer(publication, content, published_at.isoformat())
    bundles.write_bundle(location, "publication", {}, asdict(pointer), name=bundles.POINTER)
    note = f"{counted(len(bundle.files), 'file')} ({bundle.n_bytes / 1e6:.1f} MB) in {target}"
    return StageReport("publish", rows=tables.n_rows, notes=[note])


def _link_report(site: Path, target: Path) -> None:
    """Link the files of a report, if there is one.

    Linked files stay as they are, because a report replaces files and never changes them.
    """
    from tasks.report.rendering.site import only_writer, report_files

    if not (site / "index.html").is_file():
        return
    with only_writer(site):
        for name in report_files(site):
            link_or_copy(site / name, target / name)


def remove_old(location: Location, n_kept: int) -> int:
    """Remove killed publications and all but the `n_kept` (1 or more) newest; return the number
    removed.

    The publication that the pointer names stays, as do incomplete ones of the last day, which may
    be in progress.
    """
    folder = location.below(bundles.PUBLICATIONS_FOLDER)
    pointer = bundles.read_pointer(location)
    names = folder.files()
    publications = {name.partition("/")[0] for name in names if bundles.PUBLICATION.match(name)}
    complete_names = sorted(name for name in publications if f"{name}/{bundles.MANIFEST}" in names)
    kept_names = set(complete_names[-n_kept:])
    if pointer:
        kept_names.add(pointer.publication.partition("/")[2])
    a_day_ago = f"{datetime.now(UTC) - timedelta(days=1):%Y%m%dT%H%M%SZ}"
    for name in publications.difference(complete_names):
        if name > a_day_ago:
            kept_names.add(name)
    removed = publications - kept_names
    folder.remove([name for name in names if name.partition("/")[0] in removed])
    return len(removed)
