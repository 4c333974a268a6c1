"""Publishing: the parts become one consistent DuckDB file, built beside the old one and swapped in by rename.

The new file starts as a copy of the last one and takes in the parts that it lacks; the models of `sql/` are built
again. Nobody ever holds the published file open for writing, so readers are never locked out, and one that opened
the old file goes on reading it.
"""

import hashlib
import os
import shutil
import uuid
from pathlib import Path

import duckdb

import sql
from warehouse.contracts import COLUMNS, DECIDED_STATUSES, TABLES, Table
from warehouse.errors import WarehouseError
from warehouse.reader import Reader, first_line, quieten, quoted
from warehouse.store import PartStore, sync_folder

STORAGE_VERSION = "v1.2.0"
"""The oldest DuckDB that can open the published file."""
_LEDGER = "published_parts"
_STAMP = "published_from"
_MEMORY = "1200MB"
"""What publishing may take, since it runs beside everything else; what is larger goes by way of the disk."""
_DECIDED = f"status in ({', '.join(map(quoted, DECIDED_STATUSES))})"


def publish(store: PartStore, database: Path) -> bool:
    """Bring `database` up to the parts of `store`; True if it was renewed, False if it was up to date.

    The caller holds the publish lock.

    Raises:
        WarehouseError: the database cannot be built; the published one stays as it is.
    """
    known = _published(database)
    present = {(table, part) for table in TABLES for part in store.parts(table)}
    if known is not None and known == present:
        return False
    _remove_leftovers(database)
    store.remove_leftovers()
    building = database.with_name(f".{database.name}.{uuid.uuid4().hex}.tmp")
    try:
        # Contracts or models that changed, parts that went away or turned up late ask for a build from the parts alone.
        if known is not None and _continues(known, present):
            shutil.copyfile(database, building)
            _build(store, building, present - known, is_copy=True)
        else:
            _build(store, building, present, is_copy=False)
        _sync(building)
        building.replace(database)
    except (duckdb.Error, OSError) as error:
        raise WarehouseError(f"{database}: cannot be published: {first_line(error)}") from error
    finally:
        _remove_leftovers(database)
    sync_folder(database.parent)
    return True


def _continues(known: set[tuple[str, str]], present: set[tuple[str, str]]) -> bool:
    """Whether the new parts come after all published ones, so that adding them comes to the same as a rebuild."""
    last: dict[str, str] = {}
    for table, part in known:
        last[table] = max(part, last.get(table, ""))
    return known <= present and all(part > last.get(table, "") for table, part in present - known)


def _remove_leftovers(database: Path) -> None:
    """Remove what unfinished publishing left behind: under the lock, nobody else is building."""
    for leftover in database.parent.glob(f".{database.name}.*.tmp*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _published(database: Path) -> set[tuple[str, str]] | None:
    """The parts that the published file holds; None where it must be built anew."""
    if not database.exists():
        return None
    try:
        with Reader(database) as reader:
            if reader.value(f"select stamp from {_STAMP}") != _stamp():
                return None
            return {(row["table_name"], row["part"]) for row in reader.rows(f"from {_LEDGER}")}
    except (WarehouseError, duckdb.Error):
        # A damaged or foreign file is no source; the parts are.
        return None


def _stamp() -> str:
    """Changes when a contract, a model or DuckDB (whose hashes are keys) does."""
    described = repr([(t, [(c, str(COLUMNS[c])) for c in t.columns]) for t in TABLES.values()])
    return hashlib.sha256((duckdb.__version__ + described + repr(sql.models())).encode()).hexdigest()


def _build(store: PartStore, building: Path, missing: set[tuple[str, str]], *, is_copy: bool) -> None:
    with duckdb.connect() as connection:
        quieten(connection)
        connection.execute(f"set memory_limit = {quoted(_MEMORY)}")
        connection.execute(f"set temp_directory = {quoted(building.with_suffix('.tmp.spill'))}")
        connection.execute(f"attach {quoted(building)} as building (storage_version {quoted(STORAGE_VERSION)})")
        connection.execute("use building")
        # One transaction: a statement that commits by itself costs more than the work it does.
        connection.execute("begin")
        connection.execute(f"create table if not exists {_LEDGER} (table_name varchar, part varchar)")
        for table in TABLES.values():
            connection.execute(f"create table if not exists {table.name} ({_definition(table)})")
            parts = sorted(part for name, part in missing if name == table.name)
            if parts:
                _load(connection, table, [str(store.path(table.name, part)) for part in parts])
                connection.executemany(f"insert into {_LEDGER} values (?, ?)", [[table.name, p] for p in parts])
            for column in table.indexes:
                connection.execute(f"create index if not exists {table.name}_{column} on {table.name} ({column})")
        # In a new file all are missing; in a copy of the last one, what stands on tables that took nothing in is right.
        _build_models(connection, sql.behind({name for name, _ in missing}) if is_copy else sql.models())
        _describe(connection)
        connection.execute(f"create or replace table {_STAMP} as select {quoted(_stamp())} as stamp")
        connection.execute("commit")
        connection.execute("use memory")
        connection.execute("detach building")


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
    for model in models:
        if model.kind == "step":
            connection.execute(f"create or replace temp table {model.name} as {model.query}")
            continue
        other = "table" if model.kind == "view" else "view"
        stands = connection.execute(
            "select 1 from information_schema.tables where table_catalog = 'building' and table_name = ? "
            "and (table_type = 'VIEW') = ?", [model.name, other == "view"],
        ).fetchone()  # fmt: skip
        if stands:
            connection.execute(f"drop {other} {model.name}")
        connection.execute(f"create or replace {model.kind} {model.name} as {model.query}")


def _describe(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the meaning of every table, view and column into the database itself."""
    for table in TABLES.values():
        connection.execute(f"comment on table {table.name} is {quoted(table.meaning)}")
    for model in sql.models():
        if model.kind == "step":
            continue
        connection.execute(f"comment on {model.kind} {model.name} is {quoted(model.meaning)}")
    described = {name: meaning for name, (_, meaning) in COLUMNS.items()}
    own = {model.name: model.columns for model in sql.models()}
    columns = connection.execute(
        "select table_name, column_name from duckdb_columns() where database_name = 'building' and not internal"
    ).fetchall()
    for table_name, column in columns:
        meaning = own.get(table_name, {}).get(column) or described.get(column)
        if meaning:
            connection.execute(f'comment on column {table_name}."{column}" is {quoted(meaning)}')


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
