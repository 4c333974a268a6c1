"""Building the database: taking parts in, making the models of `sql/`, and describing all of it."""

from pathlib import Path

import duckdb

import sql
from warehouse.contracts import COLUMNS, DECIDED_STATUSES, TABLES, Table
from warehouse.reader import quieten, quoted
from warehouse.store import PartStore

STORAGE_VERSION = "v1.2.0"
"""The oldest DuckDB that can open the published file."""
PARTS = "published_parts"
STAMP = "published_from"
_MEMORY = "1200MB"
"""What publishing may take, since it runs beside everything else; what is larger goes by way of the disk."""
_MOST_INDEXED = 6_000_000
"""Rows up to which a table is indexed: an index has to fit into that memory while it is built, rows do not."""
_DECIDED = f"status in ({', '.join(map(quoted, DECIDED_STATUSES))})"


def build(store: PartStore, building: Path, missing: set[tuple[str, str]], stamp: str, *, is_copy: bool) -> None:
    """Take the missing parts into a database file, new or a copy of the last one, and make the models behind them."""
    with duckdb.connect() as connection:
        quieten(connection)
        connection.execute(f"set memory_limit = {quoted(_MEMORY)}")
        connection.execute(f"set temp_directory = {quoted(building.with_suffix('.tmp.spill'))}")
        # The order of rows tells nothing, and keeping it costs a third of the time.
        connection.execute("set preserve_insertion_order = false")
        connection.execute(f"attach {quoted(building)} as building (storage_version {quoted(STORAGE_VERSION)})")
        connection.execute("use building")
        # Few transactions: a statement that commits by itself costs more than the work it does.
        connection.execute("begin")
        connection.execute(f"create table if not exists {PARTS} (table_name varchar, part varchar)")
        for table in TABLES.values():
            connection.execute(f"create table if not exists {table.name} ({_definition(table)})")
            parts = sorted(part for name, part in missing if name == table.name)
            if parts:
                _load(connection, table, [str(store.path(table.name, part)) for part in parts])
                connection.executemany(f"insert into {PARTS} values (?, ?)", [[table.name, p] for p in parts])
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


def _definition(table: Table) -> str:
    types = {
        "string": "varchar", "int64": "bigint", "double": "double", "bool": "boolean",
        "timestamp[us, tz=UTC]": "timestamptz",
    }  # fmt: skip
    return ", ".join(f'"{column}" {types.get(str(COLUMNS[column][0]), "varchar[]")}' for column in table.columns)


def _load(connection: duckdb.DuckDBPyConnection, table: Table, paths: list[str]) -> None:
    """Take in new parts so that one row a key stands (see `Table.keeps`)."""
    key = ", ".join(table.key)
    files = ", ".join(map(quoted, paths))
    # By name, so that a part that an earlier version wrote may lack a column or have others; without a key a row is of
    # a table that is no more.
    columns = ", ".join(f'"{column}"' for column in table.columns)
    connection.execute(f"""
        create or replace temp view arriving as
        select {columns}, filename as part, file_row_number as part_row
        from (
            select * from {table.name} where false
            union all by name
            select * from read_parquet([{files}], union_by_name = true, filename = true, file_row_number = true)
        )
        where {" and ".join(f'"{column}" is not null' for column in table.key)}
    """)
    rows = "select * exclude (part, part_row) from arriving"
    # Looking at the keys alone is cheap, sorting whole rows is not, and twice is rare.
    if _holds(connection, f"select 1 from arriving group by {key} having count(*) > 1"):
        rows += f" qualify row_number() over (partition by {key} order by {_standing_order(table)}) = 1"
    if _holds(connection, f"select 1 from {table.name}"):
        connection.execute(f"create or replace temp table incoming as {rows}")
        _make_way(connection, table)
        rows = "select * from incoming"
    connection.execute(f"insert into {table.name} by name {rows}")
    connection.execute("drop table if exists temp.incoming")
    connection.execute("drop view temp.arriving")


def _holds(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    """Whether a query has a row."""
    return connection.execute(f"{query} limit 1").fetchone() is not None


def _standing_order(table: Table) -> str:
    """The order of rows with one key, the one that stands first: of decided rows the first, of failed ones the last."""
    if table.keeps == "latest":
        return "part desc, part_row"
    return f"{_DECIDED} desc, if({_DECIDED}, part, null), part desc, part_row"


def _make_way(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Remove from the stored rows what the incoming ones replace, and from those what does not replace a decision."""
    same = " and ".join(f"stored.{column} = incoming.{column}" for column in table.key)
    if table.keeps == "decided":
        stands = f"select 1 from {table.name} as stored where {same} and stored.{_DECIDED}"
        connection.execute(f"delete from incoming where exists ({stands})")
    connection.execute(f"delete from {table.name} as stored where exists (select 1 from incoming where {same})")


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
