"""Computing models of `sql/` from rows that are given, without a warehouse: what figures are checked by."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import sql
from warehouse.contracts.tables import TABLES
from warehouse.database.build import compute_models
from warehouse.database.published import stamp
from warehouse.database.reader import Reader
from warehouse.database.schema import attach, put_empty
from warehouse.files.errors import WarehouseError, first_line
from warehouse.parts.engine import engine, memory, quoted

_LIKE_PARQUET = 5
"""JSON Lines are so many times as large as the Parquet files that the engine's memory is reckoned by."""


class Derivation:
    """A database file of its own, with some given rows and the models of `sql/` that the wanted ones rest on."""

    def __init__(self, database: Path, wanted: Collection[str]) -> None:
        self._database, self._wanted = database, set(wanted)
        self._given: set[str] = set()
        self._n_bytes = 0

    def take_in(self, files: Mapping[str, Path], same: Mapping[str, str]) -> None:
        """Take in the rows of JSON Lines files, one a table.

        A file may also stand for a model that is built as a table, which then is not computed. A column that a file
        lacks is NULL. `same` are the values of columns that are the same in all rows and stand in no file.

        Raises:
            WarehouseError: a file holds something else than rows of its table.
        """
        put_empty(self._database, stamp())
        self._given = set(files)
        self._n_bytes = sum(path.stat().st_size for path in files.values())
        with self._opened() as connection:
            for name, path in files.items():
                _take_in(connection, name, path, same)

    def compute(self) -> None:
        """Compute the models from the rows that were taken in.

        Raises:
            WarehouseError: nothing can be computed from them.
        """
        with self._opened() as connection:
            try:
                compute_models(connection, sql.leading_to(self._wanted, self._given))
            except duckdb.Error as error:
                raise WarehouseError(f"nothing can be computed from the rows ({first_line(error)})") from error

    def add(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows to a stored table, and compute the models above it again."""
        table = TABLES[table_name]
        behind = {model.name for model in sql.behind({table_name}) if model.kind != "step"}
        with self._opened() as connection:
            given = pa.Table.from_pylist(list(rows), schema=table.schema)
            connection.register("given", given)
            connection.execute(f"insert into {table_name} by name from given")
            connection.unregister("given")
            compute_models(connection, [each for each in sql.leading_to(self._wanted) if each.name in behind])

    def reader(self) -> Reader:
        """Read what was computed."""
        return Reader(self._database)

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Work on the file in one transaction."""
        with engine(self._database.with_suffix(".spill")) as connection:
            connection.execute(f"set memory_limit = {quoted(memory(self._n_bytes // _LIKE_PARQUET))}")
            attach(connection, self._database)
            connection.execute("begin")
            yield connection
            connection.execute("commit")
            connection.execute("use memory")
            connection.execute("detach building")


def _take_in(connection: duckdb.DuckDBPyConnection, name: str, path: Path, same: Mapping[str, str]) -> None:
    described = connection.execute(f"describe {name}").fetchall()
    types = {column: kind for column, kind, *_ in described}
    constant = ", ".join(f'{quoted(same[column])} as "{column}"' for column in types if column in same)
    listed = ", ".join(f"{quoted(column)}: {quoted(kind)}" for column, kind in types.items() if column not in same)
    rows = f"read_json({quoted(path)}, format = 'newline_delimited', columns = {{{listed}}})"
    try:
        connection.execute(f"insert into {name} by name select {constant}, * from {rows}")
    except duckdb.Error as error:
        raise WarehouseError(f"{path.name}: holds what is no row of {name} ({first_line(error)})") from error
