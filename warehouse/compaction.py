"""Compaction: rewrite many small parts as few large ones, without removed responses; rewriting of
ids; and queries of stored rows, published or not.

A merged part has the current rows of those that it replaces, and their position in the order. So
the rows that count are the same before, while and after both are there, and after a kill at any
moment.

A row in `removals` excludes the response and all rows that depend on it, if they were made before
the removal; rows made later stay. A removed text may be too large to read, so its parts are
rewritten at once.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import sql
from warehouse.build import REPLACED, note_replaced, removed_condition, view_parts
from warehouse.errors import WarehouseError, explaining
from warehouse.files import is_whole, write_part
from warehouse.parts import PartStore, moment_of, names_in, write_list
from warehouse.publish import listing_of
from warehouse.reader import engine, has_row, memory_limit, quoted
from warehouse.tables import TABLES, StoredTable

LARGE_ROWS = 500_000
"""Number of rows from which a part is not rewritten."""


def compact_parts(store: PartStore, *, large_rows: int = LARGE_ROWS) -> None:
    """Merge the small parts of every table.

    The caller holds the publish lock and has published; parts may be written meanwhile.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
    """
    with engine(store.root / ".compaction.spill") as connection:
        for table in TABLES.values():
            folder = store.root / table.name
            with explaining(f"{folder}: cannot be compacted"):
                new_parts = set()
                old_parts: list[Path] = []
                for group in _groups(store.current_parts(table.name), large_rows):
                    new_parts.add(merge(connection, table, folder, group))
                    old_parts += group
                _replace(store, table, new_parts, old_parts)


def _groups(parts: Sequence[Path], large_rows: int) -> Iterator[list[Path]]:
    """Yield the groups of contiguous small parts that are worth merging; a group ends when it is
    large.

    Parts of one moment stay in one group: a merged part could not keep its position between them.
    """
    group: list[Path] = []
    n_rows = 0
    for _, same_moment in itertools.groupby(parts, key=moment_of):
        parts_of_moment = list(same_moment)
        sizes = [int(pq.read_metadata(part).num_rows) for part in parts_of_moment]
        if n_rows >= large_rows or max(sizes) >= large_rows:
            if len(group) > 1:
                yield group
            group = []
            n_rows = 0
        if max(sizes) < large_rows:
            group += parts_of_moment
            n_rows += sum(sizes)
    if len(group) > 1:
        yield group


def _replace(
    store: PartStore,
    table: StoredTable,
    new_parts: set[Path],
    old_parts: Iterable[Path],
) -> None:
    """Delete the parts that new ones replace.

    The list of expected parts names the new ones before the old ones are deleted, so that neither
    are missed after a kill. The caller holds the publish lock.
    """
    replaced_parts = set(old_parts) - new_parts
    if new_parts:
        listing = listing_of(store)
        if listing.parts:
            parts = listing.parts - names_in({table.name: replaced_parts})
            parts |= names_in({table.name: new_parts})
            write_list(store.root, listing._replace(parts=parts))
    for part in replaced_parts:
        part.unlink()


def merge(
    connection: duckdb.DuckDBPyConnection,
    table: StoredTable,
    folder: Path,
    parts: Sequence[Path],
) -> Path:
    """Write the current rows of contiguous parts as one part into a folder; the same parts give the
    same bytes.

    The new part gets the moment of the last one, so it keeps their position in the order.
    """
    view_parts(connection, table, parts, "old_rows")
    key = table.key
    if "import_batch" in table.columns:
        key = (*key, "import_batch")
    note_replaced(connection, table, "old_rows", key)
    return _rewritten(connection, folder, parts[-1])


def _rewritten(connection: duckdb.DuckDBPyConnection, folder: Path, last_part: Path) -> Path:
    """Write the rows in the view `old_rows`, in their order, as one part into a folder, without
    those in the table `REPLACED`.

    The new part gets the moment of `last_part`, the last one that it replaces.
    """
    rows = (
        "select * exclude (part, part_row) from old_rows where (part, part_row) not in"
        f" (from {REPLACED})"
    )
    return _written(connection, folder, rows, last_part)


def _written(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    rows: str,
    last_part: Path,
) -> Path:
    """Write the rows of a query as one part into a folder, with the moment of the last part that it
    replaces.
    """
    # Several threads would cut the row groups differently each time. Huge texts may need more
    # memory than the limit.
    connection.execute("set threads = 1; set preserve_insertion_order = true; reset memory_limit")
    # A row group is in memory while it is written.
    format_options = "(format parquet, compression zstd, row_group_size 16384)"
    try:
        return write_part(
            folder,
            lambda temporary: connection.execute(
                f"copy ({rows}) to {quoted(temporary)} {format_options}"
            ),
            lambda _: moment_of(last_part),
        )
    finally:
        connection.execute(
            "reset threads; set preserve_insertion_order = false;"
            f" set memory_limit = '{memory_limit()}'"
        )


@contextmanager
def _stored_responses(store: PartStore) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with a view `stored_responses` of all stored responses and one of removals
    (see `_view_stored`).

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses.
    """
    with (
        engine(store.root / ".removal.spill") as connection,
        explaining(f"{store.root}: cannot be read or rewritten"),
    ):
        _view_stored(connection, store, "responses", "stored_responses")
        _view_stored(connection, store, "removals", "removals")
        yield connection


def _view_stored(
    connection: duckdb.DuckDBPyConnection,
    store: PartStore,
    table_name: str,
    view: str,
) -> None:
    """Create a view of all rows of a table; if there are none, it is empty, without `part` and
    `part_row`.
    """
    table = TABLES[table_name]
    parts = store.current_parts(table_name)
    if parts:
        view_parts(connection, table, parts, view)
    else:
        connection.register(view, table.schema.empty_table())


def responses_where(
    store: PartStore,
    condition: str,
    values: Sequence[Any],
) -> list[dict[str, Any]]:
    """Return the stored, not removed responses that meet a condition, the largest first, without
    reading texts.

    Raises:
        WarehouseError: a part cannot be read.
    """
    query = sql.template(
        "warehouse/matching_responses",
        condition=condition,
        is_removed=removed_condition("stored_responses"),
    )
    with _stored_responses(store) as connection:
        return list(connection.sql(query, params=values).to_arrow_table().to_pylist())


def imported_batches(store: PartStore) -> list[dict[str, Any]]:
    """Return the imported batches, retracted ones too, the latest first: their stored rows, time
    and run.

    Raises:
        WarehouseError: a part cannot be read.
    """
    with (
        engine(store.root / ".imports.spill") as connection,
        explaining(f"{store.root}: cannot be read"),
    ):
        for name in ("responses", "verdicts", "expert_reviews"):
            _view_stored(connection, store, name, f"stored_{name}")
        query = sql.read("warehouse/imported_batches")
        return list(connection.sql(query).to_arrow_table().to_pylist())


def clean_parts(store: PartStore) -> None:
    """Rewrite the parts that hold removed responses. The caller holds the publish lock.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
    """
    if not store.current_parts("removals") or not store.current_parts("responses"):
        return
    table = TABLES["responses"]
    with _stored_responses(store) as connection:
        connection.execute(
            f"create or replace temp table {REPLACED} as select part, part_row from"
            f" stored_responses where {removed_condition('stored_responses')}"
        )
        rows = connection.execute(f"select distinct part from {REPLACED}").fetchall()
        names = {name for (name,) in rows}
        affected_parts = [part for part in store.current_parts(table.name) if part.name in names]
        for part in affected_parts:
            # A rewritten damaged part would carry the damage under a valid hash.
            if not is_whole(part):
                raise WarehouseError(
                    f"{part}: is damaged; `prbench aggregate` sets it aside and restores what it"
                    " can"
                )
        folder = store.root / table.name
        new_parts = set()
        for part in affected_parts:
            view_parts(connection, table, [part], "old_rows")
            new_parts.add(_rewritten(connection, folder, part))
        _replace(store, table, new_parts, affected_parts)


_NEW_IDS = "new_ids"
"""The table of the ids to replace (`old_id`) with those in their place (`new_id`)."""
_ID_COLUMNS = ("response_id", "verdict_id", "model_config_hash", "judge_config_hash")
_ID_LIST = "covered_responses"
"""The column with a list of response ids."""
_KEEPS_IDS = "neighbour_verdicts"
"""The table whose rows depend on an order of the old response ids, so they keep them."""


def rename_ids(store: PartStore, new_ids: Mapping[str, str]) -> None:
    """Rewrite the parts of responses, and of rows about responses, with new ids instead of old
    ones.

    A row whose id stays keeps its configuration hash too. Rows that refer to others come first, and
    responses last: after a kill, what is left still has old ids, and the same call does the rest.
    The caller holds the publish lock.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses; what is rewritten already stays.
    """
    ids = pa.table({"old_id": list(new_ids), "new_id": list(new_ids.values())})
    with (
        engine(store.root / ".rename.spill") as connection,
        explaining(f"{store.root}: cannot be rewritten"),
    ):
        connection.register(_NEW_IDS, ids)
        for table in sorted(TABLES.values(), key=lambda table: table.name == "responses"):
            columns = [column for column in _ID_COLUMNS if column in table.columns]
            is_about_responses = "response_id" in columns or _ID_LIST in table.columns
            # Coverage rules name no response, but are joined to responses by configuration hash.
            if table.name == "coverage_rules" or (is_about_responses and table.name != _KEEPS_IDS):
                _rename_in(connection, store, table, columns)


def _renamed(name: str, renamed_condition: str) -> str:
    """Return the SQL of a column's value with new ids; `renamed_condition` is true in SQL for a row
    that gets a new configuration hash.
    """
    value = f'old_rows."{name}"'
    if name == _ID_LIST:
        return (
            f"coalesce((select list(coalesce(new_id, id)) from (select unnest({value}) as id)"
            f" left join {_NEW_IDS} on old_id = id), {value})"
        )
    if name not in _ID_COLUMNS:
        return value
    new_value = f"coalesce(of_{name}.new_id, {value})"
    if name.endswith("_config_hash"):
        return f"if({renamed_condition}, {new_value}, {value})"
    return new_value


def _rename_in(
    connection: duckdb.DuckDBPyConnection,
    store: PartStore,
    table: StoredTable,
    columns: Sequence[str],
) -> None:
    """Rewrite the parts of a table that have an old id in one of the columns."""
    conditions = [f"{column} in (select old_id from {_NEW_IDS})" for column in columns]
    if _ID_LIST in table.columns:
        conditions.append(f"list_has_any({_ID_LIST}, (select list(old_id) from {_NEW_IDS}))")
    has_old_id = " or ".join(conditions)
    joins = " ".join(
        f"left join {_NEW_IDS} as of_{name} on of_{name}.old_id = old_rows.{name}"
        for name in columns
    )
    renamed_condition = "true"
    if "response_id" in columns:
        own_id = "verdict_id" if "verdict_id" in columns else "response_id"
        # A row whose own id stays keeps its configuration hash.
        renamed_condition = f"(of_{own_id}.new_id is not null or old_rows.{own_id} is null)"
    values = [f'{_renamed(name, renamed_condition)} as "{name}"' for name in table.columns]
    folder = store.root / table.name
    for part in store.current_parts(table.name):
        view_parts(connection, table, [part], "old_rows")
        if has_row(connection, f"from old_rows where {has_old_id}"):
            rows = f"select {', '.join(values)} from old_rows {joins} order by old_rows.part_row"
            _replace(store, table, {_written(connection, folder, rows, part)}, [part])
