"""Building the database: taking parts in, making the models of `sql/`, and describing all of it."""

from pathlib import Path

import duckdb

import sql
from warehouse.contracts import COLUMNS, TABLES, Table
from warehouse.engine import engine
from warehouse.loading import Names, Standing, in_order, load
from warehouse.reader import quoted
from warehouse.standing import definition

STORAGE_VERSION = "v1.2.0"
"""The oldest DuckDB that can open the published file."""
PARTS = "published_parts"
STAMP = "published_from"
_MOST_INDEXED = 6_000_000
"""Rows up to which a table is indexed: an index has to fit into that memory while it is built, rows do not."""


def build(standing: Standing, building: Path, missing: Names, stamp: str, *, is_copy: bool) -> None:
    """Take the missing parts into a database file, new or a copy of the last one, and make the models behind them.

    A copy was made by the same contracts and models, so what is defined and described in it stays.
    """
    with engine(building.with_suffix(".tmp.spill")) as connection:
        connection.execute(f"attach {quoted(building)} as building (storage_version {quoted(STORAGE_VERSION)})")
        connection.execute("use building")
        # Few transactions: a statement that commits by itself costs more than the work it does.
        connection.execute("begin")
        if not is_copy:
            _make_tables(connection)
        taken_in = _take_in(connection, standing, missing)
        _note_parts(connection, standing)
        connection.execute("commit")
        for table in TABLES.values():
            if not is_copy or table.name in taken_in:
                _index(connection, table)
        connection.execute("begin")
        if is_copy:
            # What stands on tables that took nothing in is right.
            _renew_models(connection, sql.behind(taken_in))
        else:
            _make_models(connection)
            _describe(connection)
            connection.execute(f"create table {STAMP} as select {quoted(stamp)} as stamp")
        connection.execute("commit")
        connection.execute("use memory")
        connection.execute("detach building")


def _make_tables(connection: duckdb.DuckDBPyConnection) -> None:
    for table in TABLES.values():
        connection.execute(f"create table {table.name} ({definition(table)})")


def _take_in(connection: duckdb.DuckDBPyConnection, standing: Standing, missing: Names) -> set[str]:
    """Take the missing parts in; the tables that have any."""
    taken_in = set()
    for table in in_order():
        paths = [part.path for part in standing[table.name] if (table.name, part.name) in missing]
        if paths:
            load(connection, table, paths, standing)
            taken_in.add(table.name)
    return taken_in


def _note_parts(connection: duckdb.DuckDBPyConnection, standing: Standing) -> None:
    """Note which parts the database holds; merged ones by their own name."""
    names = [(table, part.name) for table, parts in standing.items() for part in parts]
    columns = [[table for table, _ in names], [part for _, part in names]]
    connection.execute(
        f"create or replace table {PARTS} as "
        "select unnest($1::varchar[]) as table_name, unnest($2::varchar[]) as part", columns
    )  # fmt: skip


def _index(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Index the columns of a table by which single rows are looked up, or take the indexes away from a large one.

    Rows have to be committed: on others an index takes twice as long to build.
    """
    if not table.indexes:
        return
    (n_rows,) = connection.execute(f"select count(*) from {table.name}").fetchone() or (0,)
    for column in table.indexes:
        name = f"{table.name}_{column}"
        if n_rows <= _MOST_INDEXED:
            connection.execute(f"create index if not exists {name} on {table.name} ({column})")
        else:
            connection.execute(f"drop index if exists {name}")


def _make_models(connection: duckdb.DuckDBPyConnection) -> None:
    for model in sql.models():
        kind = {"step": "temp table"}.get(model.kind, model.kind)
        connection.execute(f"create {kind} {model.name} as {model.query}")


def _renew_models(connection: duckdb.DuckDBPyConnection, models: list[sql.Model]) -> None:
    """Compute the rows of models anew. A view needs nothing, and a table keeps its columns and what is said of them."""
    for model in models:
        if model.kind == "step":
            connection.execute(f"create temp table {model.name} as {model.query}")
        elif model.kind == "table":
            connection.execute(f"truncate {model.name}")
            connection.execute(f"insert into {model.name} by name {model.query}")


def _describe(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the meaning of every table, view and column into the database itself."""
    made = [(model.kind, model.name, model.meaning, model.columns) for model in sql.models() if model.kind != "step"]
    made += [("table", table.name, table.meaning, {}) for table in TABLES.values()]
    columns: dict[str, list[str]] = {}
    for table_name, column in connection.execute(
        "select table_name, column_name from duckdb_columns() where database_name = 'building' and not internal"
    ).fetchall():
        columns.setdefault(table_name, []).append(column)
    statements = []
    for kind, name, meaning, own in made:
        statements.append(f"comment on {kind} {name} is {quoted(meaning)}")
        for column in columns[name]:
            described = own.get(column) or COLUMNS.get(column, (None, None))[1]
            if described:
                statements.append(f'comment on column {name}."{column}" is {quoted(described)}')
    if statements:
        connection.execute(";".join(statements))
