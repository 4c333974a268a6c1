"""Tables as Parquet files, with a list of them that is written last: to a folder or a store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter, ValidationError

import sql
from tasks.config.job import Job
from tasks.maintain import Damaged, file_list, hash_of, is_inside, read_file_list
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from tasks.stores import Folder, Store
from warehouse import COLUMNS, TABLES, Reader, Warehouse, content_of, quoted

NAME = "manifest.json"
FORMAT = "prbench-export"
VERSION = 1
NOT_EXPORTED = ("retractions", "removals")
"""Retractions and removals are not exported: each warehouse decides on its own."""
ROWS_A_FILE = 500_000
_MEMORY = "1GB"
_ROWS_A_GROUP = 20_000
_OWN = {
    # The canary stays with the data set: whoever has that can ingest it, and nobody else is to hold it beside texts.
    "split_members": "select * replace (null::varchar as canary) from split_members",
    # A run that is not finished is no result.
    "runs": "select * from runs where outcome <> 'running'",
}


def refuse_filled(target: Path | Store) -> None:
    """Refuse a place that holds something.

    Raises:
        UsageError: it does.
    """
    if isinstance(target, Store):
        if target.files():
            raise UsageError(f"{target}: is not empty; name a new prefix")
    elif target.exists() and (not target.is_dir() or content_of(target)):
        raise UsageError(f"{target}: is not an empty folder; name a new one")


@dataclass(frozen=True)
class File:
    """One Parquet file of a table."""

    name: str
    n_rows: int
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Exported:
    """One table: its columns with their types, its files in order; a derived one is computed and not imported."""

    name: str
    is_derived: bool
    columns: dict[str, str]
    n_rows: int
    files: tuple[File, ...]


@dataclass(frozen=True)
class FileList:
    """What an export holds, and when it was made (UTC)."""

    made_at: str
    benchmarks: tuple[str, ...]
    tables: tuple[Exported, ...]


def write_export_list(place: Folder | Store, files: FileList, **more: Any) -> None:
    """Write the list, which makes the export whole; with what else a publication holds."""
    place.write(NAME, file_list(FORMAT, VERSION, {"canaries": "left out", **asdict(files), **more}))


def read_export_list(place: Folder | Store) -> FileList:
    """The file list of an export.

    Raises:
        Damaged: there is none, or it is of a newer version or cannot be read, or names files elsewhere.
    """
    path, text = f"{place}/{NAME}", place.read(NAME)
    if text is None:
        raise Damaged(f"{place}: not a complete export, {NAME} is missing; export again")
    document = read_file_list(text, path, FORMAT, VERSION)
    try:
        files = TypeAdapter(FileList).validate_python(document)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise Damaged(f"{path}: cannot be read ({where}: {error.errors()[0]['msg']}); export again") from error
    for file in (file for table in files.tables for file in table.files):
        if not is_inside(file.name):
            raise Damaged(f"{path}: names {file.name!r}, which is not a file of the export")
    return files


def verify(folder: Path, tables: Sequence[Exported], shown: str | None = None) -> None:
    """See that every file is what the list says; `shown` is where they are from, if not from the folder.

    Raises:
        Damaged: one is missing or has other content.
        NotInside: one is a link that leads out of the folder.
    """
    for file in (file for table in tables for file in table.files):
        path, name = folder / file.name, f"{shown or folder}/{file.name}"
        if not path.is_file():
            raise Damaged(f"{name}: is missing; copy or export again")
        if path.stat().st_size != file.n_bytes or hash_of(path, folder) != file.sha256:
            raise Damaged(f"{name}: differs from what was exported (size or SHA-256); copy or export again")


def chosen_tables(reader: Reader, names: Sequence[str]) -> list[str]:
    """The tables and views that are named, each once; they are known and may be exported.

    Raises:
        UsageError: one is not.
    """
    query = "select table_name as name from information_schema.tables where table_schema = 'main'"
    known = {row["name"] for row in reader.rows(query)} - set(NOT_EXPORTED)
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"--table {unknown}: no such table; `prbench sql --describe` lists all")
    return list(dict.fromkeys(names))


def write_tables(
    reader: Reader, folder: Path, names: Sequence[str], benchmark: str | None = None,
    *, revision: str | None = None, rows_a_file: int = ROWS_A_FILE, has_folders: bool = False, root: str = "tables/",
) -> FileList:  # fmt: skip
    """Write tables and views to a folder, whole or of one benchmark, or of one revision of its data set.

    With `has_folders` each has a folder of its own below `root`, with at least one file, so that readers can name all
    its files by one pattern.
    """
    made_at = datetime.now(UTC).isoformat()
    reader.value(f"set memory_limit = {quoted(_MEMORY)}")
    tables = []
    for name in names:
        query = _OWN.get(name, f"select * from {name}")
        columns = {row["column_name"]: row["column_type"] for row in reader.rows(f"describe {query}")}
        for column, wanted in (("benchmark", benchmark), ("dataset_revision", revision)):
            if wanted is not None and column in columns:
                query += f" {_and(query)} {column} = {quoted(wanted)}"
        pieces = _pieces(reader, name, query, rows_a_file)
        if has_folders:
            pieces = pieces or [query]
            paths = [f"{root}{name}/part-{number}.parquet" for number in range(len(pieces))]
        else:
            paths = [f"{name}{f'-{number}' if len(pieces) > 1 else ''}.parquet" for number in range(len(pieces))]
        written = tuple(_written(reader, folder, *each) for each in zip(paths, pieces, strict=True))
        tables.append(Exported(name, name not in TABLES, columns, sum(file.n_rows for file in written), written))
    found = reader.rows("select distinct benchmark from task_rows order by benchmark")
    benchmarks = tuple(row["benchmark"] for row in found if benchmark in {None, row["benchmark"]})
    return FileList(made_at, benchmarks, tuple(tables))


def _pieces(reader: Reader, name: str, query: str, rows_a_file: int) -> list[str]:
    """Stored tables go in pieces, by the places of their rows; a view is written as one file."""
    if name not in TABLES:
        return [query]
    n_places = reader.value(f"select coalesce(max(rowid) + 1, 0) from {name}")
    starts = range(0, n_places, rows_a_file)
    return [f"{query} {_and(query)} rowid between {start} and {start + rows_a_file - 1}" for start in starts]


def _and(query: str) -> str:
    """The word that goes on with a query's conditions."""
    return "and" if " where " in query else "where"


def _written(reader: Reader, folder: Path, name: str, query: str) -> File:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    n_rows = reader.value(
        f"copy ({query}) to {quoted(path)} (format parquet, compression zstd, row_group_size {_ROWS_A_GROUP})"
    )
    return File(name, n_rows, path.stat().st_size, hash_of(path))


def export_tables(
    job: Job, target: Path | Store, names: Sequence[str] = (), benchmark: str | None = None,
    *, rows_a_file: int = ROWS_A_FILE,
) -> StageReport:  # fmt: skip
    """Write tables to a folder, or a prefix of a store, that is empty or not there.

    Without names all stored ones, whole or of one benchmark. Views and computed tables may be named too; they are
    marked as derived, and not imported again.

    Raises:
        UsageError: the target holds something, or there is no such table.
        PipelineError: a file cannot be written.
    """
    refuse_filled(target)
    with Warehouse(job.warehouse).reader() as reader:
        chosen = chosen_tables(reader, names or [name for name in TABLES if name not in NOT_EXPORTED])
        try:
            with _folder_for(target) as folder:
                files = write_tables(reader, folder, chosen, benchmark, rows_a_file=rows_a_file)
                if isinstance(target, Store):
                    names_of = [file.name for table in files.tables for file in table.files]
                    target.put({name: folder / name for name in names_of}, is_quiet=job.is_quiet)
                write_export_list(Folder(folder) if isinstance(target, Path) else target, files)
        except OSError as error:
            raise PipelineError(f"{target}: cannot be written ({error.strerror}); free some space") from error
    tables = files.tables
    n_rows, n_bytes = sum(table.n_rows for table in tables), sum(f.n_bytes for table in tables for f in table.files)
    filled = sum(1 for table in tables if table.n_rows)
    note = f"{counted(n_rows, 'row')} of {counted(filled, 'table')} in {target} ({n_bytes / 1e6:.1f} MB)"
    return StageReport("export", rows=n_rows, notes=[note])


@contextmanager
def _folder_for(target: Path | Store) -> Iterator[Path]:
    """The folder to write to: the target itself, or one for what is to be uploaded."""
    if isinstance(target, Path):
        target.mkdir(parents=True, exist_ok=True)
        yield target
    else:
        with TemporaryDirectory(prefix="prbench-") as temporary:
            yield Path(temporary)


def meaning_of_table(name: str) -> str:
    """What one row of a table or view is."""
    mart = sql.schema()["marts"].get(name)
    return str(mart["meaning"]) if mart else TABLES[name].meaning


def meaning_of_column(column: str, marts: Sequence[str]) -> str | None:
    """What a column means in the first of some tables that describes it, else everywhere; None if nothing is said."""
    described = (sql.schema()["marts"].get(name) or {} for name in marts)
    everywhere = COLUMNS[column][1] if column in COLUMNS else None
    return next((str(mart["columns"][column]) for mart in described if column in mart.get("columns", {})), everywhere)
