"""Merging a run of parts into one: the rows that stand, in their order, a little of them in memory at a time."""

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.contracts.tables import Table
from warehouse.files.atomic import sync
from warehouse.files.damage import HASH_HEX
from warehouse.parts.current_rows import BATCH, REPLACED, note_replaced, view_parts
from warehouse.parts.manifest import Part

_GROUP_ROWS = 122_880
"""Rows of a row group, DuckDB's own size; fewer where they are large."""
_GROUP_BYTES = 64 * 2**20
_BATCH_ROWS = 16_384
_LARGE_GROUP_BYTES = 4 * _GROUP_BYTES
"""A row group that is larger than this holds texts that no group of ours would be filled with."""


def merge(connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[Part], folder: Path) -> Part:
    """Write what stands of contiguous parts as one part into a folder; the same parts give the same bytes.

    It has the moment of the last of them, so that it has their place in the order.
    """
    return rewritten(table, parts, folder, _given_way(connection, table, parts))


def rewritten(
    table: Table,
    parts: Sequence[Part],
    folder: Path,
    gone: Mapping[str, pa.Array],
) -> Part:
    """Write the rows of parts as one part, without those at the places `gone` (by the part's name)."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{uuid.uuid4().hex}.tmp"
    n_rows = 0
    try:
        with temporary.open("wb") as file, pq.ParquetWriter(file, table.schema, compression="zstd") as writer:
            for group in _row_groups(_rows(table, parts, gone)):
                writer.write_table(group, row_group_size=group.num_rows)
                n_rows += group.num_rows
        sync(temporary)
        with temporary.open("rb") as written:
            content_hash = hashlib.file_digest(written, "sha256").hexdigest()[:HASH_HEX]
        name = f"{parts[-1].moment}-{content_hash}.parquet"
        temporary.replace(folder / name)
    finally:
        temporary.unlink(missing_ok=True)
    return Part(name, folder / name, n_rows=n_rows)


def _given_way(connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[Part]) -> dict[str, pa.Array]:
    """The places of the rows that another one of the run stands before, by the name of their part."""
    view_parts(connection, table, [part.path for part in parts], "run")
    note_replaced(connection, table, "run", [*table.key, *([BATCH] if BATCH in table.columns else [])])
    by_part = f"select part, list(part_row order by part_row) as places from {REPLACED} group by part"
    places = connection.sql(by_part).to_arrow_table()
    return {name: rows.values for name, rows in zip(places["part"].to_pylist(), places["places"], strict=True)}


def _rows(table: Table, parts: Sequence[Part], given_way: Mapping[str, pa.Array]) -> Iterator[pa.Table]:
    """The rows that stand, in their order, by the contract's schema."""
    for part in parts:
        gone = given_way.get(part.name)
        with pq.ParquetFile(part.path, memory_map=True) as file:
            first = 0
            for batch in file.iter_batches(batch_size=_batch_rows(file)):
                rows = by_contract(table, pa.Table.from_batches([batch]))
                if gone is not None:
                    places = pa.array(range(first, first + batch.num_rows), gone.type)
                    rows = rows.filter(pc.invert(pc.is_in(places, value_set=gone)))
                first += batch.num_rows
                for column in table.key:
                    rows = rows.filter(pc.is_valid(rows[column]))
                yield rows


def _batch_rows(file: pq.ParquetFile) -> int:
    """One row at a time where some are huge, so that no two of those are in memory at once."""
    groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
    return 1 if any(group.total_byte_size > _LARGE_GROUP_BYTES for group in groups) else _BATCH_ROWS


def by_contract(table: Table, rows: pa.Table) -> pa.Table:
    """Rows with the contract's columns, found by name; one that an earlier version did not write is NULL."""
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in table.schema
    ]
    return pa.table(columns, schema=table.schema)


def _row_groups(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Pieces put together until they are a row group."""
    group: list[pa.Table] = []
    n_rows = n_bytes = 0
    for piece in pieces:
        group.append(piece)
        n_rows, n_bytes = n_rows + piece.num_rows, n_bytes + piece.nbytes
        if n_rows >= _GROUP_ROWS or n_bytes >= _GROUP_BYTES:
            yield pa.concat_tables(group)
            group, n_rows, n_bytes = [], 0, 0
    if n_rows:
        yield pa.concat_tables(group)
