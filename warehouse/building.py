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
    """Take the missing parts into a database file, new or a copy of the last one, and make the models behind them."""
    with engine(building.with_suffix(".tmp.spill")) as connection:
        connection.execute(f"attach {quoted(building)} as building (storage_version {quoted(STORAGE_VERSION)})")
        connection.execute("use building")
        # Few transactions: a statement that commits by itself costs more than the work it does.
        connection.execute("begin")
        for table in in_order():
            connection.execute(f"create table if not exists {table.name} ({definition(table)})")
            paths = [part.path for part in standing[table.name] if (table.name, part.name) in missing]
            if paths:
                load(connection, table, paths, standing)
        _note_parts(connection, standing)
        connection.execute("commit")
        for table in TABLES.values():
            _index(connection, table)
        connection.execute("begin")
        # In a new file all are missing; in a copy of the last one, what stands on tables that took nothing in is right.
        models = sql.behind({name for name, _ in missing}) if is_copy else sql.models()
        _build_models(connection, models)
        _describe(connection, models, is_copy=is_copy)
        connection.execute(f"create or replace table {STAMP} as select {quoted(stamp)} as stamp")
        connection.execute("commit")
        connection.execute("use memory")
        connection.execute("detach building")


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


def _build_models(connection: duckdb.DuckDBPyConnection, models: list[sql.Model]) -> None:
    standing = dict(
        connection.execute(
            "select table_name, if(table_type = 'VIEW', 'view', 'table') from information_schema.tables "
            "where table_catalog = 'building'"
        ).fetchall()
    )
    for model in models:
        kind = {"step": "temp table"}.get(model.kind, model.kind)
        # A model of an earlier version may stand as the other kind, which is not replaced.
        if model.kind != "step" and standing.get(model.name, kind) != kind:
            connection.execute(f"drop {standing[model.name]} {model.name}")
        connection.execute(f"create or replace {kind} {model.name} as {model.query}")


def _describe(connection: duckdb.DuckDBPyConnection, models: list[sql.Model], *, is_copy: bool) -> None:
    """Put the meaning of every table, view and column that was made into the database itself."""
    made = [(model.kind, model.name, model.meaning, model.columns) for model in models if model.kind != "step"]
    if not is_copy:
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
