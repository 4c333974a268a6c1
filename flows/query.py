"""SQL on the published database, read-only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tasks.rules.errors import PipelineError


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
    if not database.exists():
        raise PipelineError(f"{database}: nothing is published here yet; run `prbench ingest` or `prbench run`")
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            connection.execute("set autoinstall_known_extensions = false")
            connection.execute("set autoload_known_extensions = false")
            # A query reads this database, and no file or address beside it.
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            cursor = connection.execute(query)
            columns = [column[0] for column in cursor.description or []]
            return Table(columns, cursor.fetchall() if columns else [])
    except duckdb.Error as error:
        raise PipelineError(f"SQL: {' '.join(str(error).split())}") from error
