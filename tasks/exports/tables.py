"""Tables as Parquet files: the rows that stand, in files of bounded size."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tasks.exports.file_list import Exported, File, FileList
from tasks.maintain import hash_of
from tasks.rules.errors import UsageError
from warehouse import TABLES, Reader, quoted

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
        files = _in_folder(f"{root}{name}", pieces or [query]) if has_folders else _beside_others(name, pieces)
        written = tuple(_written(reader, folder, path, piece) for path, piece in files)
        tables.append(Exported(name, name not in TABLES, columns, sum(file.n_rows for file in written), written))
    found = reader.rows("select distinct benchmark from task_rows order by benchmark")
    benchmarks = tuple(row["benchmark"] for row in found if benchmark in {None, row["benchmark"]})
    return FileList(made_at, benchmarks, tuple(tables))


def _pieces(reader: Reader, name: str, query: str, rows_a_file: int) -> list[str]:
    """Stored tables go in pieces, by the places of their rows; a view is written as one file."""
    if name not in TABLES:
        return [query]
    last = reader.value(f"select max(rowid) from {name}")
    starts = [] if last is None else range(0, last + 1, rows_a_file)
    return [f"{query} {_and(query)} rowid between {start} and {start + rows_a_file - 1}" for start in starts]


def _and(query: str) -> str:
    """The word that goes on with a query's conditions."""
    return "and" if " where " in query else "where"


def _in_folder(folder: str, pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, piece in enumerate(pieces):
        yield f"{folder}/part-{number}.parquet", piece


def _beside_others(name: str, pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, piece in enumerate(pieces):
        yield f"{name}-{number}.parquet" if len(pieces) > 1 else f"{name}.parquet", piece


def _written(reader: Reader, folder: Path, name: str, query: str) -> File:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    n_rows = reader.value(
        f"copy ({query}) to {quoted(path)} (format parquet, compression zstd, row_group_size {_ROWS_A_GROUP})"
    )
    return File(name, n_rows, path.stat().st_size, hash_of(path))
