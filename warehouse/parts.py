"""Parquet parts: immutable files, named by time and content.

Compaction writes merged parts beside those that they replace, and then deletes these. Both together have the same
current rows as either, so neither readers nor writers need to know which parts were replaced.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import WarehouseError, cause_of
from warehouse.files import HASH_HEX, is_named_after, is_whole, write_named
from warehouse.listing import DATABASE, Names
from warehouse.tables import TABLES

Standing = Mapping[str, Sequence[Path]]
"""Table -> its current parts, oldest first."""


def names_in(standing: Standing) -> Names:
    """Return the names of all current parts."""
    return {(table_name, part.name) for table_name, parts in standing.items() for part in parts}


def moment_of(part: Path) -> str:
    """Return the milliseconds in the name of a part: parts are ordered by them."""
    return part.name.partition("-")[0]


class PartStore:
    """The parts of every stored table in a warehouse, one folder for each table, and the path of its database.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing, and the same
    content is not written twice. Compaction replaces many parts by merged ones.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.database = root / "parts", root / DATABASE

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Write rows as one part and return its name; None when there are no rows.

        The part is on disk, under its final name, when this returns. If the last part has this content already, its
        name is returned and nothing is written.

        Raises:
            WarehouseError: a row does not fit the table's contract, or the disk refuses.
        """
        given = list(rows)
        return self.write_table(table_name, _as_arrow(table_name, given)) if given else None

    def standing(self, table_name: str) -> list[Path]:
        """Return a table's current parts, oldest first."""
        # Until 0.2.0, merged parts were written to a subfolder, and the parts that they replaced stayed for an hour.
        parts = {path.name: path for path in (self.root / table_name).glob("**/[0-9]*.parquet")}
        return [parts[name] for name in sorted(parts)]

    def all_standing(self) -> dict[str, list[Path]]:
        """Return the current parts of every table."""
        return {table_name: self.standing(table_name) for table_name in TABLES}

    def write_table(self, table_name: str, rows: pa.Table, moment: str = "") -> str:
        """Write rows as one part (see `write`); with `moment`, at the position of a lost part that had this moment."""
        folder, sink = self.root / table_name, pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        content = bytes(sink.getvalue())
        content_hash = hashlib.sha256(content).hexdigest()[:HASH_HEX]
        parts = [] if moment else self.standing(table_name)
        if parts and is_named_after(parts[-1].name, content_hash) and is_whole(parts[-1]):
            return parts[-1].name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return write_named(
                folder, content, lambda: f"{moment or self._next_moment(table_name)}-{content_hash}.parquet"
            )
        except OSError as error:
            raise WarehouseError(f"{folder}: a part cannot be written: {cause_of(error)}") from error

    def _next_moment(self, table_name: str) -> str:
        # At least the clock's milliseconds, and later than every current part, even if the clock went back.
        # The name is chosen after the write, so parts almost always appear in the order of their names.
        last = max((int(moment_of(part)) for part in self.standing(table_name)), default=0)
        return f"{max(time.time_ns() // 1_000_000, last + 1):015d}"


def _as_arrow(table_name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table_name].schema
    known, whole = set(schema.names), [field.name for field in schema if field.type == pa.int64()]
    for row in rows:
        if odd := sorted(set(row) ^ known):
            raise WarehouseError(f"{table_name}: a row does not have the contract's columns: {', '.join(odd)}")
        # Arrow would drop the fraction silently.
        if wrong := [name for name in whole if isinstance(row[name], float)]:
            raise WarehouseError(f"{table_name}: {wrong[0]} is {row[wrong[0]]!r} but must be a whole number")
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise WarehouseError(f"{table_name}: a row does not fit the contract: {error}") from error
