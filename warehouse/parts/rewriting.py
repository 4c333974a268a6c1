"""Changing rows that stand: parts that hold one are rewritten without it or with another, and take their place.

Parts are immutable, and a decided row gives way to no later one; so a row that turns out to be wrong is replaced where
it is. New parts are written beside the old ones and one rename of the manifest switches a table (as in compaction); a
kill leaves all of it as it was or as it is to be. What is published does not know the new parts, so the next publishing
rebuilds.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contracts.tables import TABLES, Table
from warehouse.files.damage import refuse_damaged
from warehouse.files.errors import WarehouseError, cause_of
from warehouse.parts.current_rows import definition, standing_rows, view_parts
from warehouse.parts.engine import engine
from warehouse.parts.manifest import Part, replace_parts
from warehouse.parts.merging import rewritten
from warehouse.parts.store import PartStore

Row = dict[str, Any]
Changes = Mapping[tuple[Any, ...], Row | None]
"""Key of a row -> what takes its place, None for nothing."""


@dataclass(frozen=True)
class StoredRows:
    """The rows of the parts that stand, one a key, those of retracted imports included; each table is a view."""

    connection: duckdb.DuckDBPyConnection

    def rows(self, query: str) -> list[Row]:
        """The rows of a query, as dictionaries."""
        found = self.connection.execute(query)
        columns = [column[0] for column in found.description or []]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]

    def lend(self, name: str, rows: pa.Table) -> None:
        """Have rows as a table beside the others."""
        self.connection.register(f"given_{name}", rows)
        self.connection.execute(f"create or replace temp table {name} as from given_{name}")
        self.connection.unregister(f"given_{name}")


@contextmanager
def stored_rows(store: PartStore, table_names: Sequence[str]) -> Iterator[StoredRows]:
    """The stored rows of some tables, to be asked about while the block lasts."""
    with engine(store.root / ".rewriting.spill") as connection:
        for name in table_names:
            table = TABLES[name]
            paths = [part.path for part in store.standing(name)]
            if not paths:
                connection.execute(f"create temp table {name} ({definition(table)})")
                continue
            view_parts(connection, table, paths, f"{name}_parts")
            stand = standing_rows(table, f"{name}_parts", "* exclude (part, part_row)")
            connection.execute(f"create temp view {name} as {stand}")
        yield StoredRows(connection)


def rewrite(store: PartStore, table_name: str, changes: Changes) -> None:
    """Put other rows in the place of all rows with these keys. The caller holds the publish lock.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses; all stays as it is.
    """
    table, folder = TABLES[table_name], store.root / table_name
    try:
        found = {part: keys for part in store.standing(table_name) if (keys := _changed_keys(table, part, changes))}
        refuse_damaged(part.path for part in found)

        def write(run: Sequence[Part], into: Path) -> Part:
            keys = found[run[0]]
            others = [row for key in keys.values() if (row := changes[key]) is not None]
            return rewritten(table, run, into, {run[0].name: pa.array(keys)}, others)

        replace_parts(folder, [[part] for part in found], write, changes_rows=True)
    except (OSError, pa.ArrowException) as error:
        raise WarehouseError(f"{folder}: cannot be rewritten: {cause_of(error, folder)}") from error


def _changed_keys(table: Table, part: Part, changes: Changes) -> dict[int, tuple[Any, ...]]:
    """The keys in a part whose rows change, by their place in it."""
    with pq.ParquetFile(part.path) as file:
        batches = file.iter_batches(columns=list(table.key)) if changes else ()
        keys = (key for batch in batches for key in zip(*(batch[name].to_pylist() for name in table.key), strict=True))
        return {place: key for place, key in enumerate(keys) if key in changes}
