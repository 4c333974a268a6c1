"""Taking parts into a table of the database, so that one row a key stands and nothing of a retracted import."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

import sql
from warehouse.contracts.tables import TABLES, Table
from warehouse.parts.current_rows import (
    BATCH,
    REMOVALS,
    REPLACED,
    decided,
    is_removed,
    note_replaced,
    rests_on_response,
    view_parts,
)
from warehouse.parts.engine import holds
from warehouse.parts.manifest import Part

Standing = Mapping[str, Sequence[Part]]
"""Table -> the parts that stand, oldest first."""
Names = set[tuple[str, str]]
"""Tables and names of parts."""

ARRIVED = "new_parts"
"""The view of the parts that were taken in last."""
_ON_ANSWERS = ("verdicts", "evidence")
"""Tables whose rows quote or judge a response."""
RETRACTED = "select import_batch from retractions where is_retracted"


def in_order() -> list[Table]:
    """The tables in the order of loading: what was retracted or removed decides what is loaded of all others."""
    return sorted(TABLES.values(), key=lambda table: {"retractions": 0, REMOVALS: 0, "responses": 1}.get(table.name, 2))


def load(connection: duckdb.DuckDBPyConnection, table: Table, paths: Sequence[Path], standing: Standing) -> None:
    """Take new parts into a table that may hold rows; tables come `in_order`."""
    view_parts(connection, table, paths, ARRIVED)
    condition = _excluded(connection, table, standing)
    arriving = f"from {ARRIVED} where {condition}"
    rows = f"select * exclude (part, part_row) {arriving}"
    if note_replaced(connection, table, ARRIVED, table.key, condition):
        rows += f" and (part, part_row) not in (from {REPLACED})"
    if holds(connection, f"select 1 from {table.name}"):
        connection.execute(f"create or replace temp table incoming as {rows}")
        _make_way(connection, table)
        rows = "select * from incoming"
    connection.execute(f"insert into {table.name} by name {rows}")
    connection.execute("drop table if exists temp.incoming")


def _excluded(connection: duckdb.DuckDBPyConnection, table: Table, standing: Standing) -> str:
    """The condition that leaves out what was retracted or removed, and what rests on responses that went with it."""
    condition = _not_retracted(connection, table, standing)
    if not rests_on_response(table) or not holds(connection, f"select 1 from {REMOVALS}"):
        return condition
    return f"not {is_removed(ARRIVED)} and {condition}"


def _not_retracted(connection: duckdb.DuckDBPyConnection, table: Table, standing: Standing) -> str:
    """The condition that leaves out rows of retracted imports, and what rests on responses that went with them."""
    if (BATCH not in table.columns and table.name not in _ON_ANSWERS) or not holds(connection, RETRACTED):
        return "true"
    condition = f"({BATCH} is null or {BATCH} not in ({RETRACTED}))" if BATCH in table.columns else "true"
    if table.name not in _ON_ANSWERS or not standing["responses"]:
        return condition
    view_parts(connection, TABLES["responses"], [part.path for part in standing["responses"]], "answers")
    connection.execute(sql.template("warehouse/withdrawn_answers", batch=BATCH, retracted=RETRACTED))
    return f"{condition} and coalesce(response_id not in (from withdrawn), true)"


def _make_way(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Remove from the stored rows what the incoming ones replace, and from those what does not replace a decision."""
    same = " and ".join(f"stored.{column} = incoming.{column}" for column in table.key)
    if table.keeps == "decided":
        stands = f"select 1 from {table.name} as stored where {same} and {decided('stored.')}"
        connection.execute(f"delete from incoming where exists ({stands})")
    connection.execute(f"delete from {table.name} as stored where exists (select 1 from incoming where {same})")
