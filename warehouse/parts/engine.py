"""The DuckDB with which the warehouse works on its parts: bounded memory, a place to spill, no network."""

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

_MEMORY_BYTES = 1_200_000_000
_MEMORY_OF_SIZE = 0.6
_MEMORY_TO_LOAD = 2 / 3
"""The share with which taking a few rows in is as fast; it takes all that it may."""


def memory(n_bytes: int = 0, *, to_load: bool = False) -> str:
    """What work on parts of a size in bytes may take, since it runs beside everything else.

    What is larger goes by way of the disk, but joins of more than 30 million verdicts (2 GB) need more to go there.
    """
    most = max(_MEMORY_BYTES, round(_MEMORY_OF_SIZE * n_bytes))
    return f"{round(most * (_MEMORY_TO_LOAD if to_load else 1) / 1e6)}MB"


@contextmanager
def engine(spill: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that writes to the folder `spill`, and removes it, when the memory does not suffice."""
    try:
        with duckdb.connect() as connection:
            quieten(connection)
            connection.execute(f"set memory_limit = {quoted(memory())}")
            connection.execute(f"set temp_directory = {quoted(spill)}")
            # The order of rows means nothing, and keeping it costs a third of the time.
            connection.execute("set preserve_insertion_order = false")
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def holds(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    """Whether a query has a row."""
    return bool(connection.execute(f"{query} limit 1").fetchall())


def quieten(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep DuckDB from looking for extensions on the network, which costs seconds, and from drawing bars."""
    connection.execute("set autoinstall_known_extensions = false")
    connection.execute("set autoload_known_extensions = false")
    # In a notebook, DuckDB draws the bar with ipywidgets; without them there is none, and the setting is refused.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("set enable_progress_bar = false")


def quoted(text: object) -> str:
    """A SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"
