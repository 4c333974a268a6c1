"""SQL on the published database, read-only."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from tasks.rules.errors import PipelineError, UsageError


@dataclass(frozen=True)
class Table:
    """A result: its columns and its rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def run_sql(database: Path, query: str) -> Table:
    """The result of a query on the published database, which it can neither change nor leave.

    Raises:
        PipelineError: DuckDB refuses the query; the message is its own.
    """
    with _opened(database, query) as connection:
        cursor = connection.execute(query)
        columns = _unique([column[0] for column in cursor.description or []])
        return Table(columns, cursor.fetchall() if columns else [])


def write_parquet(database: Path, query: str, output: Path | BinaryIO) -> None:
    """Write the result of a query as Parquet, with the types that DuckDB gives its columns.

    Raises:
        PipelineError: DuckDB refuses the query, or Parquet cannot hold the result.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _opened(database, query) as connection:
        relation = connection.sql(query)
        if relation is None:
            raise UsageError("--format parquet: the query has no rows to write")
        table = relation.to_arrow_table()
        try:
            pq.write_table(table.rename_columns(_unique(table.column_names)), output)
        except (pa.ArrowException, NotImplementedError) as error:
            raise PipelineError(f"--format parquet: {' '.join(str(error).split())}") from error


@contextmanager
def _opened(database: Path, query: str) -> Iterator[duckdb.DuckDBPyConnection]:
    if not database.exists():
        raise PipelineError(f"{database}: nothing is published here yet; run `prbench ingest` or `prbench run`")
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            connection.execute("set autoinstall_known_extensions = false")
            connection.execute("set autoload_known_extensions = false")
            # A query reads this database, and no file or address beside it.
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            if not connection.extract_statements(query):
                raise UsageError("SQL: the query is empty")
            yield connection
    except duckdb.Error as error:
        raise PipelineError(f"SQL: {' '.join(str(error).split())}") from error


def _unique(names: list[str]) -> list[str]:
    """Column names of which none stands twice, so that no column is lost: a, a_1, ..."""
    found: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found
