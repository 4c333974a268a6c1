"""Parquet parts: immutable files, named by time and content, that appear whole or not at all."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contracts.tables import TABLES
from warehouse.files.atomic import sync, write_named
from warehouse.files.damage import HASH_HEX, is_whole
from warehouse.files.errors import WarehouseError, cause_of
from warehouse.parts.manifest import Part, place_of, read_manifest, standing_parts, write_manifest

DAMAGED = "damaged"
"""The folder in a warehouse to which damaged files are moved."""
_LEFTOVER_AGE_S = 3600.0


class PartStore:
    """The parts of every stored table below `root`, one folder a table.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing, and the same
    content is not written twice. Compaction puts merged parts in the place of many (see `warehouse.manifest`).
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "parts"

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Write rows as one part and return its name; None when there are no rows.

        The part is on disk, under its final name, when this returns. Where a part of this content stands already,
        its name is returned and nothing is written.

        Raises:
            WarehouseError: a row does not fit the table's contract, or the disk refuses.
        """
        given = list(rows)
        if not given:
            return None
        table = _as_arrow(table_name, given)
        content = _serialise(table)
        content_hash = hashlib.sha256(content).hexdigest()[:HASH_HEX]
        present = self._standing(table_name, content_hash, table)
        if present is not None:
            return present
        folder = self.root / table_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Named when it is on the disk, so that hardly any part appears after one with a later name.
            return write_named(folder, content, lambda: f"{self._next_moment(table_name):015d}-{content_hash}.parquet")
        except OSError as error:
            raise WarehouseError(f"{folder}: a part cannot be written: {cause_of(error, folder)}") from error

    def _next_moment(self, table_name: str) -> int:
        """Milliseconds of the clock, or more: a part comes after those that stand, also when the clock went back."""
        last = max((int(part.partition("-")[0]) for part in self.parts(table_name)), default=0)
        return max(time.time_ns() // 1_000_000, last + 1)

    def _standing(self, table_name: str, content_hash: str, table: pa.Table) -> str | None:
        """The part that already holds this content, unless a later part took the place of one of its rows."""
        parts = self.parts(table_name)
        same = [part for part in parts if part.endswith(f"-{content_hash}.parquet")]
        if not same or not is_whole(self.path(table_name, same[-1])):
            return None
        key = list(TABLES[table_name].key)
        rows = {tuple(row.values()) for row in table.select(key).to_pylist()}
        for later in parts[parts.index(same[-1]) + 1 :]:
            path = self.path(table_name, later)
            # What a damaged part holds is not known; writing once more than needed changes nothing that is read.
            if not is_whole(path):
                return None
            stored = pq.read_table(path, columns=key).to_pylist()
            if any(tuple(row.values()) in rows for row in stored):
                return None
        return same[-1]

    def standing(self, table_name: str) -> list[Part]:
        """A table's parts, oldest first, all as of one instant."""
        return standing_parts(self.root / table_name)

    def parts(self, table_name: str) -> list[str]:
        """The names of a table's parts, oldest first."""
        return [part.name for part in self.standing(table_name)]

    def path(self, table_name: str, part: str) -> Path:
        """Where a part lies."""
        return place_of(self.root / table_name, part)

    def put_back(self, table_name: str, rows: pa.Table, moment: str) -> str:
        """Write rows as a part that has the place in the order that another one had, and return its name."""
        content = _serialise(rows)
        name = f"{moment}-{hashlib.sha256(content).hexdigest()[:HASH_HEX]}.parquet"
        folder = self.root / table_name
        folder.mkdir(parents=True, exist_ok=True)
        # What comes back may be, byte for byte, a part that was merged away; it stands again.
        manifest = read_manifest(folder)
        if manifest.retired.pop(name, None) is not None:
            write_manifest(folder, manifest)
        return write_named(folder, content, lambda: name)

    def set_aside(self, table_name: str, part: Part) -> Path:
        """Move a damaged part out of the way, and return where it lies now. It is never deleted.

        The caller holds the publish lock.
        """
        to = aside(self.root.parent, part.path, table_name)
        sync(part.path.parent)
        self.forget(table_name, part)
        return to

    def forget(self, table_name: str, part: Part) -> None:
        """Take a part that is gone off the manifest, if it is a merged one."""
        folder = self.root / table_name
        manifest = read_manifest(folder)
        if manifest.merged.pop(part.name, None) is not None:
            write_manifest(folder, manifest)

    def remove_leftovers(self) -> None:
        """Remove what writers that were killed left behind: temporary files that have not been touched for long."""
        oldest_s = time.time() - _LEFTOVER_AGE_S
        for leftover in self.root.glob("*/.*.tmp"):
            with suppress(FileNotFoundError):  # its writer renamed it since it was listed
                if leftover.stat().st_mtime < oldest_s:
                    leftover.unlink()


def aside(root: Path, path: Path, sub: str = "") -> Path:
    """Move a damaged file of a warehouse into its folder for these, and return where it lies now."""
    folder = root / DAMAGED / sub
    folder.mkdir(parents=True, exist_ok=True)
    to, number = folder / path.name, 1
    while to.exists():
        number += 1
        to = folder / f"{path.name}.{number}"
    path.replace(to)
    sync(folder)
    return to


def _as_arrow(table_name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table_name].schema
    known = set(schema.names)
    for row in rows:
        if set(row) != known:
            odd = sorted(set(row) ^ known)
            raise WarehouseError(f"{table_name}: a row does not have the contract's columns: {', '.join(odd)}")
    whole = [field.name for field in schema if field.type == pa.int64()]
    for row in rows:
        for name in whole:
            # Arrow would cut off what is behind the point without a word.
            if isinstance(row[name], float):
                raise WarehouseError(f"{table_name}: {name} is {row[name]!r} and has to be a whole number")
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise WarehouseError(f"{table_name}: a row does not fit the contract: {error}") from error


def _serialise(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
