"""SQL on the published database, read-only."""

import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import duckdb

from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.records import Table
from warehouse import nothing_in, reporting_damage


def run_sql(database: Path, query: str) -> Table:
    """The result of a query on the published database, which it can neither change nor leave.

    Raises:
        PipelineError: DuckDB refuses the query; the message is its own.
    """
    with _opened(database, query) as connection:
        return _interruptible(connection, lambda: _fetched(connection.execute(query)))


def _fetched(cursor: duckdb.DuckDBPyConnection) -> Table:
    columns = _unique([column[0] for column in cursor.description or []])
    return Table(columns, cursor.fetchall() if columns else [])


def _interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], Table]) -> Table:
    """What `work` returns. DuckDB does not look for Ctrl-C while it computes rows, so it does so in a thread."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            # A second one would come between the thread and its end.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            # Again and again, since an interruption before the query has begun is lost.
            while wait([future], timeout=0.1).not_done:
                connection.interrupt()
            signal.signal(signal.SIGINT, before)
            raise


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
            raise UsageError("--format parquet: the query returns no rows")
        table = relation.to_arrow_table()
        try:
            pq.write_table(table.rename_columns(_unique(table.column_names)), output)
        except (pa.ArrowException, NotImplementedError) as error:
            raise PipelineError(f"--format parquet: {' '.join(str(error).split())}") from error
        except OSError as error:
            raise PipelineError(f"{output}: cannot be written ({error.strerror or error}); check the path") from error


@contextmanager
def _opened(database: Path, query: str) -> Iterator[duckdb.DuckDBPyConnection]:
    if not database.exists():
        raise PipelineError(nothing_in(database))
    try:
        with reporting_damage(database), duckdb.connect(str(database), read_only=True) as connection:
            connection.execute("set autoinstall_known_extensions = false")
            connection.execute("set autoload_known_extensions = false")
            # A query reads this database, and no file or address beside it.
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            if not connection.extract_statements(query):
                raise UsageError("SQL: the query is empty")
            yield connection
    except duckdb.Error as error:
        # DuckDB then shows the line with a caret below the place, which means nothing within one line.
        text = re.split(r"\n+LINE \d+: ", str(error))[0]
        raise PipelineError(f"SQL: {' '.join(text.split())}") from error


def _unique(names: list[str]) -> list[str]:
    """Column names of which none appears twice, so that no column is lost: a, a_1, ..."""
    found: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found
