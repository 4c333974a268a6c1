"""Building a database: its empty tables and their meanings, taking rows in, and the models of `sql/` on them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import sql
from warehouse.columns import COLUMNS
from warehouse.errors import WarehouseError, first_line
from warehouse.listing import Kind, Names, count_query
from warehouse.parts import Standing, names_in
from warehouse.reader import PARTS, STAMP, Reader, stamp
from warehouse.rows import ARRIVED, definition, engine, holds, in_order, load, memory, quoted
from warehouse.tables import TABLES

STORAGE_VERSION = "v1.2.0"
"""The oldest DuckDB that can open the published file."""

_MADE: dict[str, bytes] = {}
"""The last one that this process made, by its stamp: making it takes as long as publishing some thousand rows."""


def put_empty(building: Path, stamp: str) -> None:
    """Put an empty database in place, which says that it was made from what `stamp` stands for."""
    if stamp not in _MADE:
        _make(building, stamp)
        _MADE.clear()
        _MADE[stamp] = building.read_bytes()
    building.write_bytes(_MADE[stamp])


def attach(connection: duckdb.DuckDBPyConnection, building: Path) -> None:
    """Work on a database file, new or not, under the name `building`."""
    connection.execute(f"attach {quoted(building)} as building (storage_version {quoted(STORAGE_VERSION)})")
    connection.execute("use building")


def _make(building: Path, stamp: str) -> None:
    with engine(building.with_suffix(".tmp.spill")) as connection:
        attach(connection, building)
        # One transaction: a statement that commits by itself costs more than the work it does.
        connection.execute("begin")
        for table in TABLES.values():
            connection.execute(f"create table {table.name} ({definition(table)})")
        connection.execute(sql.read("warehouse/macros"))
        connection.execute(f"create schema {sql.INTERMEDIATE}")
        for model in sql.models():
            kind = {"step": "temp table"}.get(model.kind, model.kind)
            connection.execute(f"create {kind} {model.name} as {model.query}")
        connection.execute(sql.read("warehouse/counts_as_judge"))
        _describe(connection)
        connection.execute(f"create table {STAMP} as select {quoted(stamp)} as stamp")
        connection.execute("commit")
        connection.execute("use memory")
        connection.execute("detach building")


def _describe(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the meaning of every table, view and column into the database itself."""
    models = [model for model in sql.models() if model.kind != "step"]
    own = {model.name: model.columns for model in models}
    statements = [f"comment on {model.kind} {model.name} is {quoted(model.meaning)}" for model in models]
    statements += [f"comment on table {table.name} is {quoted(table.meaning)}" for table in TABLES.values()]
    for name, column in connection.execute(sql.read("warehouse/built_columns")).fetchall():
        if described := own.get(name, {}).get(column) or COLUMNS.get(column, (None, None))[1]:
            statements.append(f'comment on column {name}."{column}" is {quoted(described)}')
    connection.execute(";".join(statements))


_MOST_INDEXED = 6_000_000
"""Rows up to which a table is indexed: an index has to fit into that memory while it is built, rows do not."""
_SMALL_BYTES = 16_000_000
"""Size up to which rows are taken in with others in one transaction, and all texts are stored without FSST: learning
its symbols would take longer than writing all else.
"""
_LARGE_BYTES = 200_000_000
"""Size of the parts from which taking rows in gets all the memory: ten million verdicts do not fit into less."""
_LARGE_ROWS = 100_000
"""Rows from which on a model is committed before the next one is computed."""


def build(standing: Standing, building: Path, missing: Names, stamp: str, *, is_copy: bool) -> dict[Kind, int]:
    """Take the missing parts into a database file, a copy of the last one or else a new one, and compute its models.

    Returns how many rows of each kind it holds.

    What is defined and described in a copy is right: it was made by the same contracts and models.
    """
    if not is_copy:
        put_empty(building, stamp)
    with engine(building.with_suffix(".tmp.spill")) as connection:
        attach(connection, building)
        n_bytes = sum(part.path.stat().st_size for parts in standing.values() for part in parts)
        if n_bytes <= _SMALL_BYTES:
            connection.execute("set disabled_compression_methods = 'fsst'")
        # Few transactions: a statement that commits by itself costs more than the work it does.
        connection.execute(f"set memory_limit = {quoted(memory(n_bytes, to_load=n_bytes < _LARGE_BYTES))}")
        connection.execute("begin")
        taken_in = _take_in(connection, standing, missing)
        # Merged parts are noted by their own name.
        names = sorted(names_in(standing))
        held = "select unnest(?::varchar[]) as table_name, unnest(?::varchar[]) as part"
        given = [[table for table, _ in names], [part for _, part in names]]
        connection.execute(f"create or replace table {PARTS} as {held}", given)
        connection.execute("commit")
        connection.execute(f"set memory_limit = {quoted(memory(n_bytes))}")
        # Rows have to be committed: on others an index takes twice as long to build.
        for table in (TABLES[name] for name in taken_in):
            (n_rows,) = connection.execute(f"select count(*) from {table.name}").fetchone() or (0,)
            for column in table.indexes:
                name, is_small = f"{table.name}_{column}", n_rows <= _MOST_INDEXED
                create = f"create index if not exists {name} on {table.name} ({column})"
                connection.execute(create if is_small else f"drop index if exists {name}")
        connection.execute("begin")
        # What stands on tables that took nothing in is right.
        compute_models(connection, sql.behind({name for name, is_read in taken_in.items() if is_read}))
        connection.execute("commit")
        of_kinds = {tuple(kind): n for *kind, n in connection.execute(count_query()).fetchall()}
        connection.execute("use memory")
        connection.execute("detach building")
    return of_kinds


def _take_in(connection: duckdb.DuckDBPyConnection, standing: Standing, missing: Names) -> dict[str, bool]:
    """Take the missing parts in; the tables that have any, with whether models read something of them."""
    taken_in = {}
    for table in in_order():
        paths = [part.path for part in standing[table.name] if (table.name, part.name) in missing]
        if paths:
            load(connection, table, paths, standing)
            if sum(path.stat().st_size for path in paths) > _SMALL_BYTES:
                # What is not committed stays in memory, and the next table finds none.
                connection.execute("commit")
                connection.execute("begin")
            condition = table.models_read
            taken_in[table.name] = not condition or holds(connection, f"select 1 from {ARRIVED} where {condition}")
    return taken_in


def compute_models(connection: duckdb.DuckDBPyConnection, models: list[sql.SqlModel]) -> None:
    """Compute the rows of models. A view needs nothing, and a table keeps its columns and what is said of them.

    Large tables are committed at once: what is not committed stays in memory, and DuckDB plans later queries without
    knowing how large it is.
    """
    for model in models:
        if model.kind == "step":
            connection.execute(f"create temp table {model.name} as {model.query}")
        elif model.kind == "table":
            connection.execute(f"truncate {model.name}")
            connection.execute(f"insert into {model.name} by name {model.query}")
            (n_rows,) = connection.fetchone() or (0,)
            if n_rows >= _LARGE_ROWS:
                connection.execute("commit")
                connection.execute("begin")


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
                types = {column: kind for column, kind, *_ in connection.execute(f"describe {name}").fetchall()}
                constant = ", ".join(f'{quoted(same[column])} as "{column}"' for column in types if column in same)
                of_file = {column: kind for column, kind in types.items() if column not in same}
                listed = ", ".join(f"{quoted(column)}: {quoted(kind)}" for column, kind in of_file.items())
                rows = f"read_json({quoted(path)}, format = 'newline_delimited', columns = {{{listed}}})"
                try:
                    connection.execute(f"insert into {name} by name select {constant}, * from {rows}")
                except duckdb.Error as error:
                    said = first_line(error)
                    raise WarehouseError(f"{path.name}: holds what is no row of {name} ({said})") from error

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
