"""Building the database: taking parts in, and computing the models of `sql/` that stand on them."""

from pathlib import Path

import duckdb

import sql
from warehouse.contracts.tables import TABLES, Table
from warehouse.database.recovery import PARTS
from warehouse.database.schema import attach, put_empty
from warehouse.parts.engine import engine, holds, memory, quoted
from warehouse.parts.loading import ARRIVED, Names, Standing, in_order, load
from warehouse.parts.part_list import Kind, count_query, counted

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
        _note_parts(connection, standing)
        connection.execute("commit")
        connection.execute(f"set memory_limit = {quoted(memory(n_bytes))}")
        for name in taken_in:
            _index(connection, TABLES[name])
        connection.execute("begin")
        # What stands on tables that took nothing in is right.
        compute_models(connection, sql.behind({name for name, is_read in taken_in.items() if is_read}))
        connection.execute("commit")
        n_rows = counted(connection.execute(count_query()).fetchall())
        connection.execute("use memory")
        connection.execute("detach building")
    return n_rows


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


def _note_parts(connection: duckdb.DuckDBPyConnection, standing: Standing) -> None:
    """Note which parts the database holds; merged ones by their own name."""
    names = [(table, part.name) for table, parts in standing.items() for part in parts]
    columns = {"table_names": [table for table, _ in names], "parts": [part for _, part in names]}
    connection.execute(sql.template("warehouse/parts_held", parts=PARTS), columns)


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


def compute_models(connection: duckdb.DuckDBPyConnection, models: list[sql.Model]) -> None:
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
