"""Exporting: the rows that stand, as Parquet files, with a list of them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tasks.config import Job
from tasks.exports.file_list import Exported, File, FileList, write_export_list
from tasks.maintain import hash_of
from tasks.rules.errors import PipelineError, UsageError
from tasks.run import StageReport
from warehouse import TABLES, Reader, Warehouse, quoted

_MEMORY = "1GB"
_ROWS_A_FILE = 500_000
_ROWS_A_GROUP = 20_000
NOT_EXPORTED = ("retractions", "removals")
"""Retractions and removals are not exported: each warehouse decides on its own."""
_OWN = {
    # The canary stays with the data set: whoever has that can ingest it, and nobody else is to hold it beside texts.
    "split_members": "select * replace (null::varchar as canary) from split_members",
    # A run that is not finished is no result.
    "runs": "select * from runs where outcome <> 'running'",
}


def export_tables(
    job: Job, folder: Path, names: Sequence[str] = (), benchmark: str | None = None, *, rows_a_file: int = _ROWS_A_FILE
) -> StageReport:
    """Write tables to a folder that is empty or not there; without names all stored ones, whole or of one benchmark.

    Views and computed tables may be named too; they are marked as derived, and not imported again.

    Raises:
        UsageError: the folder holds something, or there is no such table.
        PipelineError: a file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is not an empty folder; name a new one")
    made_at = datetime.now(UTC)
    with Warehouse(job.warehouse).reader() as reader:
        chosen = _chosen(reader, names)
        reader.value(f"set memory_limit = {quoted(_MEMORY)}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tables = tuple(_exported(reader, folder, name, benchmark, rows_a_file) for name in chosen)
            found = reader.rows("select distinct benchmark from task_rows order by benchmark")
            benchmarks = tuple(row["benchmark"] for row in found if benchmark in {None, row["benchmark"]})
            write_export_list(folder, FileList(made_at.isoformat(), benchmarks, tables))
        except OSError as error:
            raise PipelineError(f"{folder}: cannot be written ({error.strerror}); free some space") from error
    n_rows, n_bytes = sum(table.n_rows for table in tables), sum(f.n_bytes for table in tables for f in table.files)
    filled = sum(1 for table in tables if table.n_rows)
    note = f"{n_rows} rows of {filled} tables in {folder} ({n_bytes / 1e6:.1f} MB)"
    return StageReport("export", rows=n_rows, notes=[note])


def _chosen(reader: Reader, names: Sequence[str]) -> list[str]:
    if not names:
        return [name for name in TABLES if name not in NOT_EXPORTED]
    known = {
        row["name"]
        for row in reader.rows("select table_name as name from information_schema.tables where table_schema = 'main'")
    }
    unknown = [name for name in names if name not in known or name in NOT_EXPORTED]
    if unknown:
        raise UsageError(f"--table {unknown[0]}: no such table; `prbench sql --describe` lists all")
    return list(dict.fromkeys(names))


def _exported(reader: Reader, folder: Path, name: str, benchmark: str | None, rows_a_file: int) -> Exported:
    query = _OWN.get(name, f"select * from {name}")
    columns = {row["column_name"]: row["column_type"] for row in reader.rows(f"describe {query}")}
    if benchmark is not None and "benchmark" in columns:
        query += f" {_and(query)} benchmark = {quoted(benchmark)}"
    files = tuple(_written(reader, folder, name, query, rows_a_file))
    return Exported(name, name not in TABLES, columns, sum(file.n_rows for file in files), files)


def _and(query: str) -> str:
    """The word that goes on with a query's conditions."""
    return "and" if " where " in query else "where"


def _written(reader: Reader, folder: Path, name: str, query: str, rows_a_file: int) -> Iterator[File]:
    """Stored tables go in pieces, by the places of their rows; a view is written as one file."""
    if name not in TABLES:
        pieces = [query]
    else:
        last = reader.value(f"select max(rowid) from {name}")
        starts = [] if last is None else range(0, last + 1, rows_a_file)
        pieces = [f"{query} {_and(query)} rowid between {start} and {start + rows_a_file - 1}" for start in starts]
    for number, piece in enumerate(pieces):
        path = folder / (f"{name}-{number}.parquet" if len(pieces) > 1 else f"{name}.parquet")
        n_rows = reader.value(
            f"copy ({piece}) to {quoted(path)} (format parquet, compression zstd, row_group_size {_ROWS_A_GROUP})"
        )
        yield File(path.name, n_rows, path.stat().st_size, hash_of(path))
