"""Removing single responses: what is on their rows is left out from then on, and their parts are rewritten.

A row in `removals` leaves out the response and all that rests on it, as far as it was made until that moment; what is
made of the cell later stands. A text may be too large to be read, so the parts that hold it are rewritten at once.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

import sql
from warehouse.contracts.tables import TABLES, Table
from warehouse.files.damage import refuse_damaged
from warehouse.files.errors import WarehouseError, cause_of
from warehouse.parts.current_rows import BY_MOMENT, REMOVALS, is_removed, view_parts
from warehouse.parts.engine import engine
from warehouse.parts.manifest import replace_parts
from warehouse.parts.merging import rewritten
from warehouse.parts.store import PartStore

_SHOWN = ("response_id", "benchmark", "model", "task_id", "trial", "vintage", "source", "status", "chars_alnum")


def responses_where(store: PartStore, condition: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """The stored responses that fit a condition and are not removed, the largest first; no text is read.

    Raises:
        WarehouseError: a part cannot be read.
    """
    table = TABLES["responses"]
    with engine(store.root / ".removal.spill") as connection:
        try:
            if not _view(connection, store, table, "answers"):
                return []
            _load_removals(connection, store)
            query = sql.template(
                "warehouse/answers_that_fit",
                columns=", ".join(_SHOWN), condition=condition, is_removed=is_removed("answers"),
            )  # fmt: skip
            rows = connection.execute(query, list(values)).fetchall()
        except duckdb.Error as error:
            raise WarehouseError(f"{store.root}: cannot be searched: {cause_of(error, store.root)}") from error
    return [dict(zip(_SHOWN, row, strict=True)) for row in rows]


def clean(store: PartStore, published: set[str]) -> int:
    """Rewrite the parts that hold removed responses; how many. The caller holds the publish lock.

    The parts before stay for the time of grace and are deleted by compaction.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
    """
    table, folder = TABLES["responses"], store.root / "responses"
    if not store.standing(REMOVALS) or not folder.is_dir():
        return 0
    with engine(store.root / ".removal.spill") as connection:
        try:
            gone = _places(connection, store, table)
            dirty = [part for part in store.standing(table.name) if part.name in gone]
            refuse_damaged(part.path for part in dirty)
            replace_parts(
                folder, [[part] for part in dirty], lambda run, into: rewritten(table, run, into, gone), published
            )
        except (OSError, pa.ArrowException, duckdb.Error) as error:
            raise WarehouseError(f"{folder}: cannot be rewritten: {cause_of(error, folder)}") from error
    return len(dirty)


def _places(connection: duckdb.DuckDBPyConnection, store: PartStore, table: Table) -> dict[str, pa.Array]:
    """Where removed rows stand, by the name of their part."""
    if not _view(connection, store, table, "stored_answers"):
        return {}
    _load_removals(connection, store)
    removed = sql.template(
        "warehouse/removed_rows", view="stored_answers", moment=BY_MOMENT, is_removed=is_removed("answers")
    )
    found = connection.sql(removed).to_arrow_table()
    return {name: rows.values for name, rows in zip(found["part"].to_pylist(), found["places"], strict=True)}


def _view(connection: duckdb.DuckDBPyConnection, store: PartStore, table: Table, name: str) -> bool:
    """Make a view of all parts of a table; False where there are none."""
    paths = [part.path for part in store.standing(table.name)]
    if paths:
        view_parts(connection, table, paths, name)
    return bool(paths)


def _load_removals(connection: duckdb.DuckDBPyConnection, store: PartStore) -> None:
    if _view(connection, store, TABLES[REMOVALS], "noted"):
        connection.execute(sql.template("warehouse/latest_removals", removals=REMOVALS, moment=BY_MOMENT))
    else:
        connection.execute(f"create or replace temp table {REMOVALS} (response_id varchar, {BY_MOMENT} timestamptz)")
