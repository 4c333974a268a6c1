"""Tables as Parquet files in a folder or a store, and their import into another warehouse.

A publication also has the database and the report, all of one state. Its files are written under a
new prefix and never change; the pointer names the publication when it is complete.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import sql
from tasks.bundles import bundle as bundles
from tasks.bundles.stores import Folder, Store, kept_as, work_folder
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
    Warehouse,
    content_of,
    quoted,
    refuse_other_version,
)
from warehouse.build import is_removed, rests_on_response

NOT_EXPORTED = ("retractions", "removals")
"""Tables that are not exported: each warehouse decides on its own retractions and removals."""
ROWS_A_FILE = 500_000
# The canary is not exported: who has the data set can ingest it, and nobody else should get it
# along with texts.
_OWN = {"split_members": "select * replace (null::varchar as canary)"}


def refuse_filled(target: Path | Store) -> None:
    """Refuse a location that is not empty.

    Raises:
        UsageError: it has content.
    """
    if target.files() if isinstance(target, Store) else target.is_file() or content_of(target):
        raise UsageError(f"{target}: is not an empty folder; name a new one")


@dataclass(frozen=True)
class Exported:
    """An exported table: its columns with their types, and its files in order; derived tables are
    not imported.
    """

    name: str
    is_derived: bool
    columns: dict[str, str]
    n_rows: int
    files: tuple[str, ...]


class TableFiles(NamedTuple):
    """Tables as files: the tables, each file with its local path, and further entries for the
    manifest.
    """

    tables: tuple[Exported, ...]
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
    """Return the named tables and views, each once, after checking that they exist and may be
    exported.

    Raises:
        UsageError: one does not exist or may not be exported.
    """
    query = "select table_name as name from information_schema.tables where table_schema = 'main'"
    known = {row["name"] for row in reader.rows(query)} - set(NOT_EXPORTED)
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise UsageError(
            f"--table {unknown[0]}: no such table{hint}; `prbench sql --describe` lists all"
        )
    return list(dict.fromkeys(names))


def query_of(reader: Reader, name: str, key: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the query for the exported rows of a table or view, to be completed by a condition,
    and its column types.

    `key` is the key of a data set, or only its benchmark; tables with these columns are narrowed to
    it.
    """
    query = f"{_OWN.get(name, 'select *')} from {name} where "
    columns = {
        row["column_name"]: row["column_type"] for row in reader.rows(f"describe {query} true")
    }
    query += "".join(
        f"{column} = {quoted(wanted)} and " for column, wanted in key.items() if column in columns
    )
    # Unfinished runs are not exported.
    return query + ("outcome <> 'running' and " if name == "runs" else ""), columns


def write_tables(
    reader: Reader, folder: Path, names: Sequence[str], key: dict[str, str], root: str = ""
) -> TableFiles:
    """Write tables and views to a folder: all rows, or those with the `key` of a data set, or with
    its benchmark.

    Each table has its own folder below `root`, with at least one file, so that a pattern can name
    the files of a table.
    """
    reader.value("set memory_limit = '1GB'")
    tables = list[Exported]()
    files = dict[bundles.File, Path]()
    for name in names:
        query, columns = query_of(reader, name, key)
        pieces = [f"{query} true"]
        # Stored tables are written in pieces, by row numbers; a view is written as one file.
        if name in TABLES:
            starts = range(
                0, reader.value(f"select coalesce(max(rowid), 0) + 1 from {name}"), ROWS_A_FILE
            )
            pieces = [
                f"{query} rowid between {start} and {start + ROWS_A_FILE - 1}" for start in starts
            ]
        (folder / root / name).mkdir(parents=True, exist_ok=True)
        paths = [f"{root}{name}/part-{number}.parquet" for number in range(len(pieces))]
        n_rows = 0
        for path, piece in zip(paths, pieces, strict=True):
            copied = (
                f"copy ({piece}) to {quoted(folder / path)} (format parquet, compression zstd,"
                " row_group_size 20000)"
            )
            n_rows += reader.value(copied)
            files[bundles.file_at(folder / path, path)] = folder / path
        tables.append(Exported(name, name not in TABLES, columns, n_rows, tuple(paths)))
    meta = {"made_at": datetime.now(UTC).isoformat(), "tables": [asdict(table) for table in tables]}
    return TableFiles(tuple(tables), files, meta)


def export_tables(
    job: Job, target: Path | Store, names: Sequence[str] = (), benchmark: str | None = None
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
        chosen = chosen_tables(
            reader, names or [name for name in TABLES if name not in NOT_EXPORTED]
        )
        location = Folder(target) if isinstance(target, Path) else target
        here = (
            nullcontext(target)
            if isinstance(target, Path)
            else TemporaryDirectory(prefix="prbench-")
        )
        with disk_errors(target), here as folder:
            written = write_tables(
                reader, Path(folder), chosen, {"benchmark": benchmark} if benchmark else {}
            )
            bundles.write_bundle(location, "export", written.files, written.meta)
    filled = counted(sum(table.n_rows > 0 for table in written.tables), "table")
    note = (
        f"{counted(written.n_rows, 'row')} of {filled} in {target}"
        f" ({written.n_bytes() / 1e6:.1f} MB)"
    )
    return StageReport("export", rows=written.n_rows, notes=[note])


def meaning_of_table(name: str) -> str:
    """Return the meaning of one row of a table or view."""
    mart = sql.schema()["marts"].get(name)
    return str(mart["meaning"]) if mart else TABLES[name].meaning


def meaning_of_column(column: str, marts: Sequence[str]) -> str | None:
    """Return the meaning of a column in the first of these marts that describes it, else its
    general one, or None.
    """
    described = [sql.schema()["marts"].get(name, {}).get("columns", {}) for name in marts]
    return next(
        (str(of[column]) for of in described if column in of), COLUMNS.get(column, (None, None))[1]
    )


Export = tuple[Path, Sequence[Exported]]
"""An export: its folder, and those of its tables that warehouses store."""


@contextmanager
def opened_export(source: Path | Store) -> Iterator[Export]:
    """Open the stored tables of an export, or of the latest publication at a target, and verify
    each of their files.

    An export in a store is downloaded into a temporary folder.

    Raises:
        Damaged: the source is not a whole export, or is of a newer format.
    """
    location = bundles.published_in(Folder(source) if isinstance(source, Path) else source)
    bundle = bundles.read_bundle(location, "export", "publication")
    listed = bundles.checked(list[Exported], bundle.meta.get("tables"), str(location))
    tables = [each for each in listed if not each.is_derived]
    names = {name for table in tables for name in table.files}
    unlisted = names - {file.name for file in bundle.files}
    if unlisted:
        raise bundles.Damaged(
            f"{location}: {min(unlisted)} is of a table and not among the files; export again"
        )
    of_tables = bundle._replace(files=tuple(file for file in bundle.files if file.name in names))
    with bundles.verified(location, of_tables) as folder:
        yield folder, tables


def import_tables(job: Job, export: Export) -> StageReport:
    """Import the missing rows of an export: rows with new keys, and decided rows that replace
    failed ones.

    Existing rows do not change, nor do the checks of a data-set revision that was checked here.
    Retracted rows are left out. Measures are imported too; they are shown if their fingerprint fits
    the data here, and `prbench aggregate` computes the others.
    """
    folder, given = export
    known = [table for table in given if table.name in TABLES and table.name not in NOT_EXPORTED]
    warehouse = Warehouse(job.warehouse)
    n_imported = Counter[str]()
    warehouse.publish()
    with warehouse.reader() as reader:
        # Checks come last, because a data-set revision counts as checked as soon as its checks are
        # stored.
        for table in sorted(known, key=lambda table: table.name == "checks"):
            for file in table.files:
                for rows in _new_rows(reader, folder / file, table.name, set(table.columns)):
                    warehouse.write(table.name, rows)
                    n_imported[table.name] += len(rows)
    warehouse.publish()
    n_here = sum(table.n_rows for table in given) - n_imported.total()
    summary = ", ".join(f"{number} {name}" for name, number in n_imported.items()) or "0 rows"
    note = f"{summary} imported, {n_here} rows already present or excluded"
    unknown = [
        f"{table.name}: not imported: unknown table" for table in given if table not in known
    ]
    return StageReport(
        "import",
        rows=n_imported.total(),
        notes=[note],
        warnings=unknown,
    )


def _new_rows(
    reader: Reader, path: Path, name: str, given: set[str]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of a file that are imported, some thousand at a time; a column that the file
    lacks is NULL.
    """
    positions = reader.arrays(_positions(path, name, given))["position"]
    start = 0
    columns = TABLES[name].columns
    for batch in parquet_batches(path, 10_000, [column for column in columns if column in given]):
        here = positions[(positions >= start) & (positions < start + batch.num_rows)] - start
        if len(here):
            yield [
                {column: row.get(column) for column in columns}
                for row in batch.take(here).to_pylist()
            ]
        start += batch.num_rows


def _positions(path: Path, name: str, given: set[str]) -> str:
    """Return the query for the positions, in a file, of the rows of a table to import."""
    table = TABLES[name]
    same = " and ".join(f"stored.{column} = given.{column}" for column in table.key)
    if table.keeps == "decided":
        decided = ", ".join(map(quoted, DECIDED_STATUSES))
        same += f" and (stored.status in ({decided}) or given.status not in ({decided}))"
    stays_away = [f"exists (select 1 from {name} as stored where {same})"]
    if "import_batch" in table.columns and "import_batch" in given:
        stays_away.append(
            "given.import_batch in (select import_batch from retractions where is_retracted)"
        )
    if rests_on_response(table) and {"response_id", "created_at"} <= given:
        stays_away.append(is_removed("given"))
    if name in {"refusals", "checks"}:
        stays_away.append(
            "(benchmark, dataset_revision) in (select (benchmark, dataset_revision) from checks)"
        )
    has_key = " and ".join(f"given.{column} is not null" for column in table.key)
    return (
        "select file_row_number as position "
        f"from read_parquet({quoted(path)}, file_row_number = true) as given "
        f"where {has_key} and not coalesce({' or '.join(stays_away)}, false) order by position"
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
    location = Folder(target) if isinstance(target, Path) else target
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


def _publish_from(
    job: Job, warehouse: Warehouse, stage: Path, location: Folder | Store
) -> StageReport:
    """Publish with the help of an empty folder on the warehouse's disk."""
    from tasks.report.rendering.site import only_writer, report_files

    database = stage / warehouse.database.name
    kept_as(warehouse.database, database)
    if ((site := job.report_folder) / "index.html").is_file():
        with only_writer(
            site
        ):  # linked files stay as they are, because a report replaces files and never changes them
            for each in report_files(site):
                kept_as(site / each, stage / "report" / each)
    files = {
        bundles.file_at(stage / name, name): stage / name for name in sorted(Folder(stage).files())
    }
    content = hashlib.sha256(
        json.dumps({file.name: file.sha256 for file in files}).encode()
    ).hexdigest()
    latest = bundles.read_pointer(location)
    if (
        latest
        and latest.content == content
        and bundles.is_complete(location.below(latest.publication))
    ):
        note = f"unchanged since {latest.published_at[:16]} UTC; nothing was published"
        return StageReport("publish", notes=[note])
    published_at = datetime.now(UTC)
    name = f"{bundles.FOLDER}/{published_at:%Y%m%dT%H%M%SZ}-{content[:8]}"
    with Reader(database) as reader:
        public = [*(name for name in TABLES if name not in NOT_EXPORTED), *sql.schema()["marts"]]
        tables = write_tables(reader, stage, public, {}, "tables/")
        state_of = reader.value("select max(coalesce(ended_at, started_at)) from runs")
    meta = {
        "state_of": state_of and state_of.isoformat(),
        "warehouse_version": refuse_other_version(warehouse.root),
    }
    target = location.below(name)
    meta = tables.meta | meta
    bundle = bundles.write_bundle(target, "publication", files | tables.files, meta)
    # Until the pointer is replaced, readers see the earlier publication.
    pointer = {
        "publication": name,
        "content": content,
        "published_at": published_at.isoformat(),
    }
    bundles.write_bundle(location, "publication", {}, pointer, name=bundles.POINTER)
    note = f"{counted(len(bundle.files), 'file')} ({bundle.n_bytes / 1e6:.1f} MB) in {target}"
    return StageReport("publish", rows=tables.n_rows, notes=[note])


def remove_old(location: Folder | Store, n_kept: int) -> int:
    """Remove all but the newest publications, and those that were killed halfway; return the number
    removed.

    The publication that the pointer names stays, as do incomplete ones of the last day, which may
    be in progress.
    """
    shelf = location.below(bundles.FOLDER)
    pointer = bundles.read_pointer(location)
    names = shelf.files()
    publications = {name.partition("/")[0] for name in names if bundles.PUBLICATION.match(name)}
    whole = sorted(each for each in publications if f"{each}/{bundles.MANIFEST}" in names)
    latest = pointer.publication.partition("/")[2] if pointer else ""
    a_day_ago = f"{datetime.now(UTC) - timedelta(days=1):%Y%m%dT%H%M%SZ}"
    unfinished = {each for each in publications - set(whole) if each > a_day_ago}
    removed = publications - {*whole[-n_kept:], latest} - unfinished
    shelf.remove([name for name in names if name.partition("/")[0] in removed])
    return len(removed)
