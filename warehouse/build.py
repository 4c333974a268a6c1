"""Build a database: empty tables with descriptions, the rows of parts, and the models of `sql/`.

The rows of a table are one sequence: parts in the order of their names, rows in the order of their
part. In a table that keeps the `latest`, the first row of the last part is current; in one that
keeps `decided` rows, the first decided row, or else the last failed one. Both choices are
associative, so the current rows of contiguous parts can replace these parts without any change for
readers. In a merged part, rows of different imports do not replace each other, since an import may
be retracted later. Publishing, the restoring of lost rows and compaction share this one definition.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

import sql
from warehouse.columns import COLUMNS
from warehouse.errors import explaining
from warehouse.files import DIGEST_HEX, append_digest
from warehouse.parts import CurrentParts, Kind, PartNames, count_query, names_in, parts_except
from warehouse.reader import PARTS, STAMP, engine, has_row, memory_limit, quoted, stamp
from warehouse.tables import DECIDED_STATUSES, TABLES, StoredTable

REPLACED = "replaced_rows"
"""The table that lists the rows (`part`, `part_row`) that another row with the same key replaces.
"""


def is_removed_with_response(table: StoredTable) -> bool:
    """Return whether a table's rows are removed together with their response."""
    return {"response_id", "created_at"} <= set(table.columns) and table.name != "removals"


def removed_condition(rows: str) -> str:
    """Return the condition that a row was made before its response was removed."""
    return sql.template("warehouse/is_removed", rows=rows)


def decided_condition(prefix: str = "") -> str:
    """Return the condition that a row is decided.

    `prefix` is the table's name in the query, with a dot.
    """
    statuses = ", ".join(map(quoted, DECIDED_STATUSES))
    return f"coalesce({prefix}status in ({statuses}), false)"


def note_replaced(
    connection: duckdb.DuckDBPyConnection,
    table: StoredTable,
    view: str,
    key: Sequence[str],
    condition: str = "true",
) -> bool:
    """List the replaced rows of a view of parts in the table `REPLACED`, and return whether there
    are any.

    Whole rows are not sorted, since they would not fit into memory.
    """
    order = "part desc, part_row"
    if table.keeps == "decided":
        is_decided = decided_condition()
        order = (
            f"{is_decided} desc, if({is_decided}, part, null), part desc,"
            f" if({is_decided}, part_row, -part_row)"
        )
    replaced = sql.template(
        "warehouse/replaced_rows",
        key=", ".join(key),
        view=view,
        condition=condition,
        order=order,
    )
    connection.execute(f"create or replace temp table {REPLACED} as {replaced}")
    return has_row(connection, f"from {REPLACED}")


def view_parts(
    connection: duckdb.DuckDBPyConnection,
    table: StoredTable,
    paths: Sequence[Path],
    name: str,
) -> None:
    """Create a view of the rows of parts: contract columns, `part` (its name) and `part_row`
    (position in it).

    Columns are found by name, so that a part that an earlier version wrote may lack one or have
    others; a row without a key belongs to a former table and is left out. Values of an earlier
    convention are converted.
    """
    connection.register(f"{name}_contract", table.schema.empty_table())
    query = sql.template(
        "warehouse/rows_of_parts",
        view=name,
        columns=table.select_list,
        files=", ".join(map(quoted, paths)),
        has_key=" and ".join(f'"{column}" is not null' for column in table.key),
    )
    connection.execute(query)


NEW_PARTS = "new_parts"
"""The view of the parts that were loaded last."""
_RETRACTED_WITH_RESPONSE = ("verdicts", "evidence")
"""Tables whose rows quote or judge a response."""
RETRACTED = "select import_batch from retractions where is_retracted"
"""The query for the retracted imports."""


def load(
    connection: duckdb.DuckDBPyConnection,
    table: StoredTable,
    paths: Sequence[Path],
    current_parts: CurrentParts,
) -> None:
    """Load new parts into a table that may hold rows; tables must come in the order of `TABLES`."""
    view_parts(connection, table, paths, NEW_PARTS)
    condition = _not_retracted(connection, table, current_parts)
    if is_removed_with_response(table) and has_row(connection, "from removals"):
        condition = f"not {removed_condition(NEW_PARTS)} and {condition}"
    rows = f"select * exclude (part, part_row) from {NEW_PARTS} where {condition}"
    if note_replaced(connection, table, NEW_PARTS, table.key, condition):
        rows += f" and (part, part_row) not in (from {REPLACED})"
    if not has_row(connection, f"select 1 from {table.name}"):
        connection.execute(f"insert into {table.name} by name {rows}")
        return
    has_same_key = " and ".join(f"stored.{column} = incoming.{column}" for column in table.key)
    unless_decided = f"and not {decided_condition('stored.')}" if table.keeps == "decided" else ""
    connection.execute(
        f"merge into {table.name} as stored using ({rows}) as incoming on {has_same_key} "
        f"when matched {unless_decided} then update by name when not matched then insert by name"
    )


def _not_retracted(
    connection: duckdb.DuckDBPyConnection,
    table: StoredTable,
    current_parts: CurrentParts,
) -> str:
    """Return the condition that leaves out retracted imports, and rows about their responses."""
    if not has_row(connection, RETRACTED):
        return "true"
    condition = "true"
    if "import_batch" in table.columns:
        condition = f"coalesce(import_batch not in ({RETRACTED}), true)"
    if table.name in _RETRACTED_WITH_RESPONSE and current_parts["responses"]:
        view_parts(connection, TABLES["responses"], current_parts["responses"], "stored_responses")
        connection.execute(sql.template("warehouse/withdrawn_responses", retracted=RETRACTED))
        condition += " and coalesce(response_id not in (from withdrawn), true)"
    return condition


@contextmanager
def opened(building: Path, n_bytes: int = 0) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database file, new or existing, as `building`, in a transaction on parts of
    `n_bytes` in total.

    If each statement committed by itself, commits would cost more than the work; the caller may
    commit large tables. The file ends with its digest.
    """
    if building.exists():
        os.truncate(building, building.stat().st_size - DIGEST_HEX)
    with engine(building.with_suffix(".tmp.spill")) as connection:
        connection.execute(f"set memory_limit = {quoted(memory_limit(n_bytes))}")
        # The oldest DuckDB that can open the published file.
        connection.execute(f"attach {quoted(building)} as building (storage_version 'v1.2.0')")
        connection.execute("use building")
        connection.execute("begin")
        yield connection
        connection.execute("commit; use memory; detach building")
    append_digest(building)


@lru_cache(maxsize=1)
def _empty_database(code_stamp: str) -> bytes:
    """Return an empty database with all tables and models, marked as built by the code with this
    stamp.

    It is kept, because building it takes as long as publishing thousands of rows.
    """
    with TemporaryDirectory() as folder:
        building = Path(folder) / "empty.duckdb"
        with opened(building) as connection:
            for table in TABLES.values():
                connection.register("contract", table.schema.empty_table())
                connection.execute(f"create table {table.name} as from contract")
            connection.execute(sql.read("warehouse/macros"))
            connection.execute(f"create schema {sql.INTERMEDIATE}")
            for model in sql.models():
                statement = f"create {model.relation} {model.name} as {model.query}"
                if model.relation != "view":
                    statement += "\nwith no data"
                with explaining(f"{model.name}: cannot be built"):
                    connection.execute(statement)
            connection.execute(sql.read("warehouse/counts_as_judge"))
            _describe(connection)
            connection.execute(f"create table {STAMP} as select {quoted(code_stamp)} as stamp")
        return building.read_bytes()


def _describe(connection: duckdb.DuckDBPyConnection) -> None:
    """Store the meaning of every table, view and column in the database itself."""
    models = [model for model in sql.models() if model.kind != "step"]
    descriptions = {model.name: model.columns for model in models}
    statements = [
        f"comment on {model.relation} {model.name} is {quoted(model.meaning)}" for model in models
    ]
    statements += [
        f"comment on table {table.name} is {quoted(table.meaning)}" for table in TABLES.values()
    ]
    for name, column in connection.execute(sql.read("warehouse/built_columns")).fetchall():
        meaning = descriptions.get(name, {}).get(column)
        if meaning is None and column in COLUMNS:
            meaning = COLUMNS[column].meaning
        if meaning is not None:
            statements.append(f'comment on column {name}."{column}" is {quoted(meaning)}')
    connection.execute(";".join(statements))


_SMALL_BYTES = 16_000_000
"""Size of a table's new parts up to which it shares its transaction with the next table, and of all
parts up to which texts are stored without FSST, whose symbols would take longer to learn than
everything else to write.

Above it, added rows stay apart from the last ones: to merge them, a vacuum would compress 100,000
rows or more again. They take at least a block in each table until the next compaction.
"""


def build(current_parts: CurrentParts, building: Path, base: PartNames) -> dict[Kind, int]:
    """Load parts into a database file, compute its models, and return the number of rows of each
    kind.

    The file is new, or a copy of the last database, which has the parts of `base`, and whose
    definitions and descriptions come from the same contracts and models.
    """
    if not building.exists():
        building.write_bytes(_empty_database(stamp()))
    n_bytes = sum(part.stat().st_size for parts in current_parts.values() for part in parts)
    with opened(building, n_bytes) as connection:
        if n_bytes <= _SMALL_BYTES:
            connection.execute("set disabled_compression_methods = 'fsst'")
        else:
            connection.execute("set max_vacuum_tasks = 0")
        changed_tables = _load_parts(connection, current_parts, parts_except(current_parts, base))
        # Merged parts are recorded by their own names.
        names = sorted(names_in(current_parts))
        connection.execute(
            f"create or replace table {PARTS} as"
            " select unnest(?::varchar[]) as table_name, unnest(?::varchar[]) as part",
            [[table for table, _ in names], [part for _, part in names]],
        )
        # Models above tables without new rows are up to date.
        compute_models(connection, sql.models_above(changed_tables))
        counts = connection.execute(count_query()).fetchall()
        return {tuple(kind): n_rows for *kind, n_rows in counts}


def _load_parts(
    connection: duckdb.DuckDBPyConnection,
    current_parts: CurrentParts,
    missing_parts: CurrentParts,
) -> set[str]:
    """Load the missing parts, and return the names of the tables with new rows that models read."""
    changed_tables = set()
    for table in TABLES.values():
        paths = missing_parts[table.name]
        if paths:
            load(connection, table, paths, current_parts)
            if sum(path.stat().st_size for path in paths) > _SMALL_BYTES:
                # Uncommitted rows stay in memory and leave none for the next table.
                connection.execute("commit; begin")
            if has_row(connection, f"select 1 from {NEW_PARTS} where {table.models_read}"):
                changed_tables.add(table.name)
    return changed_tables


def compute_models(connection: duckdb.DuckDBPyConnection, models: list[sql.SqlModel]) -> None:
    """Compute the rows of models; views need no computation, and tables keep their columns with
    descriptions.

    A table with `keeps` keeps the rows for which this condition is true. A model of the kind
    `memory` is filled last, so all others read its last state.

    Tables of 100,000 rows or more are committed at once: uncommitted rows stay in memory, and
    DuckDB plans later queries without knowing their number.
    """
    for model in sorted(models, key=lambda model: model.kind == "memory"):
        if model.kind == "step":
            connection.execute(f"create temp table {model.name} as {model.query}")
        elif model.kind != "view":
            connection.execute(f"delete from {model.name} where not ({model.keeps or 'false'})")
            [(n_deleted,)] = connection.fetchall()
            if model.keeps and n_deleted:
                connection.execute("reset max_vacuum_tasks")  # to use the space of these rows again
            if model.needs and not has_row(connection, f"from {model.needs}"):
                continue  # without planning its query, which takes longer than everything else
            connection.execute(f"insert into {model.name} by name {model.query}")
            [(n_rows,)] = connection.fetchall()
            if n_rows >= 100_000:
                connection.execute("commit; begin")


def load_rows(database: Path, files: Mapping[str, Path], constants: Mapping[str, str]) -> None:
    """Write a database with the rows of JSON Lines files, one file a table; its models are not
    computed yet.

    A file may also be of a model that is built as a table. A column that a file lacks is NULL.
    `constants` maps columns that no file contains to the one value that all rows have.

    Raises:
        WarehouseError: a file contains something other than rows of its table.
    """
    database.write_bytes(_empty_database(stamp()))
    with opened(database) as connection:
        for name, path in files.items():
            selected = ["*"]
            file_columns = []
            for column, kind, *_ in connection.execute(f"describe {name}").fetchall():
                if column in constants:
                    selected.append(f'{quoted(constants[column])} as "{column}"')
                else:
                    file_columns.append(f"{quoted(column)}: {quoted(kind)}")
            rows = (
                f"read_json({quoted(path)}, format = 'newline_delimited',"
                f" columns = {{{', '.join(file_columns)}}})"
            )
            with explaining(f"{path.name}: contains a line that is no row of {name}"):
                connection.execute(
                    f"insert into {name} by name select {', '.join(selected)} from {rows}"
                )


def compute(
    database: Path,
    models: list[sql.SqlModel],
    measures: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Add rows to the table `measures` of a database, and compute models.

    Raises:
        WarehouseError: nothing can be computed from the rows.
    """
    with opened(database) as connection, explaining("nothing can be computed from the rows"):
        connection.register(
            "given", pa.Table.from_pylist(list(measures), schema=TABLES["measures"].schema)
        )
        connection.execute("insert into measures by name from given")
        compute_models(connection, models)
