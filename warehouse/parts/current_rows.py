"""Which of the rows with one key stands: the one definition that publishing, late parts and compaction share.

The rows of a table are one sequence: parts in the order of their names, rows in the order of their part. Of a table
that keeps the `latest`, the last part's row stands; of one that keeps `decided` rows, the first decided row, and
without any the last failed one. Both choices are associative, so what stands of a contiguous run of parts can take the
run's place and nothing that is read changes. Rows of different imports do not give way to each other in a merged
part, since one of the imports may be retracted later.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb

import sql
from warehouse.contracts.columns import COLUMNS
from warehouse.contracts.tables import DECIDED_STATUSES, Table
from warehouse.parts.engine import holds, quoted

BATCH = "import_batch"
REMOVALS, BY_MOMENT = "removals", "created_at"
REPLACED = "replaced_rows"
"""The table of the rows of parts (`part`, `part_row`) that another row with the same key comes before."""


def rests_on_response(table: Table) -> bool:
    """Whether a table's rows go with a response that is removed."""
    return {"response_id", BY_MOMENT} <= set(table.columns) and table.name != REMOVALS


def is_removed(rows: str) -> str:
    """The condition that a row of a response, or one that rests on it, was made until the response was removed."""
    return sql.template("warehouse/is_removed", removals=REMOVALS, rows=rows, moment=BY_MOMENT)


def definition(table: Table) -> str:
    """The columns of a table with their types in SQL."""
    types = {
        "string": "varchar", "int64": "bigint", "double": "double", "bool": "boolean",
        "timestamp[us, tz=UTC]": "timestamptz",
    }  # fmt: skip
    return ", ".join(f'"{column}" {types.get(str(COLUMNS[column][0]), "varchar[]")}' for column in table.columns)


def decided(of: str = "") -> str:
    """The condition that a row is decided; `of` is the name that the query gives to its table, with a point."""
    return f"coalesce({of}status in ({', '.join(map(quoted, DECIDED_STATUSES))}), false)"


def standing_order(table: Table) -> str:
    """The order of rows with one key, the one that stands first (over the columns of `view_parts`)."""
    if table.keeps == "latest":
        return "part desc, part_row"
    return f"{decided()} desc, if({decided()}, part, null), part desc, if({decided()}, part_row, -part_row)"


def standing_rows(table: Table, view: str, columns: str) -> str:
    """The query for the rows of a view of parts that stand, one a key."""
    key = ", ".join(table.key)
    return sql.template("warehouse/standing_rows", columns=columns, view=view, key=key, order=standing_order(table))


def note_replaced(
    connection: duckdb.DuckDBPyConnection, table: Table, view: str, key: Sequence[str], condition: str = "true"
) -> bool:
    """Note in the table `REPLACED` which rows of a view of parts do not stand; whether there are any.

    Whole rows are not sorted, since they would not fit into memory.
    """
    replaced = sql.template(
        "warehouse/replaced_rows", key=", ".join(key), view=view, condition=condition, order=standing_order(table)
    )
    connection.execute(f"create or replace temp table {REPLACED} as {replaced}")
    return holds(connection, f"from {REPLACED}")


def view_parts(connection: duckdb.DuckDBPyConnection, table: Table, paths: Sequence[Path], name: str) -> None:
    """Make a view of the rows of parts: the contract's columns, the part's name `part` and the place in it `part_row`.

    Columns are found by name, so that a part that an earlier version wrote may lack one or have others; a row without
    a key is of a table that is no more, and left out.
    """
    files = ", ".join(quoted(path) for path in paths)
    columns = ", ".join(f'"{column}"' for column in table.columns)
    connection.execute(f"create or replace temp table {name}_contract ({definition(table)})")
    has_key = " and ".join(f'"{column}" is not null' for column in table.key)
    connection.execute(
        sql.template("warehouse/rows_of_parts", view=name, columns=columns, files=files, has_key=has_key)
    )
