"""The database before anything was taken in: its tables and models, and what each of them and of its columns means."""

from pathlib import Path

import duckdb

import sql
from warehouse.contracts.columns import COLUMNS
from warehouse.contracts.tables import TABLES
from warehouse.parts.current_rows import definition
from warehouse.parts.engine import engine, quoted

STORAGE_VERSION = "v1.2.0"
"""The oldest DuckDB that can open the published file."""
STAMP = "published_from"

_MADE: dict[str, bytes] = {}
"""The last one that this process made, by its stamp: making it takes as long as publishing some thousand rows."""


def put_empty(building: Path, stamp: str) -> None:
    """Put an empty database in place, which says that it was made from what `stamp` stands for."""
    if stamp not in _MADE:
        _make(building, stamp)
        _MADE.clear()
        _MADE[stamp] = building.read_bytes()
    else:
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
        connection.execute(f"create schema {sql.STAGING}")
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
    made = [(model.kind, model.name, model.meaning, model.columns) for model in sql.models() if model.kind != "step"]
    made += [("table", table.name, table.meaning, {}) for table in TABLES.values()]
    columns: dict[str, list[str]] = {}
    for table_name, column in connection.execute(sql.read("warehouse/built_columns")).fetchall():
        columns.setdefault(table_name, []).append(column)
    statements = []
    for kind, name, meaning, own in made:
        statements.append(f"comment on {kind} {name} is {quoted(meaning)}")
        for column in columns[name]:
            described = own.get(column) or COLUMNS.get(column, (None, None))[1]
            if described:
                statements.append(f'comment on column {name}."{column}" is {quoted(described)}')
    connection.execute(";".join(statements))
