"""The rule for the current one of several rows with one key, and the loading of parts into tables.

The rows of a table are one sequence: parts in the order of their names, rows in the order of their part. In a table
that keeps the `latest`, the row of the last part is current; in one that keeps `decided` rows, the first decided row,
or else the last failed one. Both choices are associative, so the current rows of contiguous parts can replace these
parts without any change for readers. In a merged part, rows of different imports do not replace each other, since an
import may be retracted later. Publishing, late parts and compaction share this one definition.
"""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

import sql
from warehouse.parts import Standing
from warehouse.tables import DECIDED_STATUSES, TABLES, StoredTable


def memory(n_bytes: int = 0) -> str:
    """Return the memory limit for work on parts of `n_bytes` in total; other work runs beside it.

    Larger data spills to disk, but joins of more than 30 million verdicts (2 GB) need more memory even for that.
    """
    return f"{round(max(1200, 0.6 * n_bytes / 1e6))}MB"


@contextmanager
def engine(spill: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory database that spills to the folder `spill`, which is removed at the end."""
    try:
        # The order of rows has no meaning, and preserving it takes a third of the time.
        with connect(memory_limit=memory(), temp_directory=str(spill), preserve_insertion_order=False) as connection:
            yield connection
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def holds(connection: duckdb.DuckDBPyConnection, query: str) -> bool:
    """Return whether a query has a row."""
    return bool(connection.execute(f"{query} limit 1").fetchall())


def connect(**settings: str | bool) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database.

    It does not look for extensions on the network, which takes seconds, and draws no progress bars.
    """
    quiet = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(config={**quiet, **settings})
    # In a notebook, DuckDB needs ipywidgets for the bar; without them it refuses this setting.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("set enable_progress_bar = false")
    return connection


def quoted(text: object) -> str:
    """Return a SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"


REMOVALS, BY_MOMENT = "removals", "created_at"
REPLACED = "replaced_rows"
"""The table that lists the rows (`part`, `part_row`) that another row with the same key replaces."""


def rests_on_response(table: StoredTable) -> bool:
    """Return whether a table's rows are removed together with their response."""
    return {"response_id", BY_MOMENT} <= set(table.columns) and table.name != REMOVALS


def is_removed(rows: str) -> str:
    """Return the condition that a row was made before its response was removed."""
    return sql.template("warehouse/is_removed", removals=REMOVALS, rows=rows, moment=BY_MOMENT)


def decided(of: str = "") -> str:
    """Return the condition that a row is decided; `of` is the table's name in the query, with a dot."""
    return f"coalesce({of}status in ({', '.join(map(quoted, DECIDED_STATUSES))}), false)"


def standing_order(table: StoredTable) -> str:
    """Return the order of rows with one key, the current one first (over the columns of `view_parts`)."""
    if table.keeps == "latest":
        return "part desc, part_row"
    return f"{decided()} desc, if({decided()}, part, null), part desc, if({decided()}, part_row, -part_row)"


def standing_rows(table: StoredTable, view: str, columns: str) -> str:
    """Return the query for the current rows of a view of parts, one for each key."""
    rank = f"row_number() over (partition by {', '.join(table.key)} order by {standing_order(table)})"
    return f"select {columns} from {view} qualify {rank} = 1"


def note_replaced(
    connection: duckdb.DuckDBPyConnection, table: StoredTable, view: str, key: Sequence[str], condition: str = "true"
) -> bool:
    """List the replaced rows of a view of parts in the table `REPLACED`, and return whether there are any.

    Whole rows are not sorted, since they would not fit into memory.
    """
    order = standing_order(table)
    replaced = sql.template("warehouse/replaced_rows", key=", ".join(key), view=view, condition=condition, order=order)
    connection.execute(f"create or replace temp table {REPLACED} as {replaced}")
    return holds(connection, f"from {REPLACED}")


def view_parts(connection: duckdb.DuckDBPyConnection, table: StoredTable, paths: Sequence[Path], name: str) -> None:
    """Create a view of the rows of parts: contract columns, `part` (its name) and `part_row` (position in it).

    Columns are found by name, so that a part that an earlier version wrote may lack one or have others; a row without a
    key belongs to a former table and is left out.
    """
    files = ", ".join(quoted(path) for path in paths)
    columns = ", ".join(f'"{column}"' for column in table.columns)
    connection.register(f"{name}_contract", table.schema.empty_table())
    has_key = " and ".join(f'"{column}" is not null' for column in table.key)
    query = sql.template("warehouse/rows_of_parts", view=name, columns=columns, files=files, has_key=has_key)
    connection.execute(query)


ARRIVED = "new_parts"
"""The view of the parts that were loaded last."""
_ON_RESPONSES = ("verdicts", "evidence")
"""Tables whose rows quote or judge a response."""
RETRACTED = "select import_batch from retractions where is_retracted"


def in_order() -> list[StoredTable]:
    """Return the tables in the order of loading: retractions and removals come first, since they affect all others."""
    return sorted(TABLES.values(), key=lambda table: {"retractions": 0, REMOVALS: 0, "responses": 1}.get(table.name, 2))


def load(connection: duckdb.DuckDBPyConnection, table: StoredTable, paths: Sequence[Path], standing: Standing) -> None:
    """Load new parts into a table that may hold rows; tables must come `in_order`."""
    view_parts(connection, table, paths, ARRIVED)
    condition = _not_retracted(connection, table, standing)
    if rests_on_response(table) and holds(connection, f"select 1 from {REMOVALS}"):
        condition = f"not {is_removed(ARRIVED)} and {condition}"
    rows = f"select * exclude (part, part_row) from {ARRIVED} where {condition}"
    if note_replaced(connection, table, ARRIVED, table.key, condition):
        rows += f" and (part, part_row) not in (from {REPLACED})"
    if not holds(connection, f"select 1 from {table.name}"):
        connection.execute(f"insert into {table.name} by name {rows}")
        return
    same = " and ".join(f"stored.{column} = incoming.{column}" for column in table.key)
    is_replaced = f"and not {decided('stored.')}" if table.keeps == "decided" else ""
    connection.execute(
        f"merge into {table.name} as stored using ({rows}) as incoming on {same} "
        f"when matched {is_replaced} then update by name when not matched then insert by name"
    )


def _not_retracted(connection: duckdb.DuckDBPyConnection, table: StoredTable, standing: Standing) -> str:
    """Return the condition that leaves out retracted imports, and rows about their responses."""
    if ("import_batch" not in table.columns and table.name not in _ON_RESPONSES) or not holds(connection, RETRACTED):
        return "true"
    kept = f"(import_batch is null or import_batch not in ({RETRACTED}))"
    condition = kept if "import_batch" in table.columns else "true"
    if table.name not in _ON_RESPONSES or not standing["responses"]:
        return condition
    view_parts(connection, TABLES["responses"], standing["responses"], "stored_responses")
    connection.execute(sql.template("warehouse/withdrawn_responses", retracted=RETRACTED))
    return f"{condition} and coalesce(response_id not in (from withdrawn), true)"
