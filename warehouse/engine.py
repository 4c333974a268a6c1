"""The DuckDB with which the warehouse works on its parts: bounded memory, a place to spill, no network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from warehouse.reader import quieten, quoted

_MEMORY = "1200MB"
"""What work on the parts may take, since it runs beside everything else; what is larger goes by way of the disk."""


@contextmanager
def engine(spill: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that writes to the folder `spill`, and removes it, when the memory does not suffice."""
    try:
        with duckdb.connect() as connection:
            quieten(connection)
            connection.execute(f"set memory_limit = {quoted(_MEMORY)}")
            connection.execute(f"set temp_directory = {quoted(spill)}")
            # The order of rows tells nothing, and keeping it costs a third of the time.
            connection.execute("set preserve_insertion_order = false")
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def holds(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    """Whether a query has a row."""
    return bool(connection.execute(f"{query} limit 1").fetchall())
