"""Parquet parts: immutable files, named by time and content, that appear whole or not at all."""

import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contracts import TABLES
from warehouse.errors import WarehouseError

_HASH_HEX = 24


class PartStore:
    """The parts of every stored table below `root`, one folder a table.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing, and the same
    content is never written twice.
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
        table = _as_arrow(table_name, list(rows))
        if table.num_rows == 0:
            return None
        content = _serialise(table)
        content_hash = hashlib.sha256(content).hexdigest()[:_HASH_HEX]
        folder = self.root / table_name
        folder.mkdir(parents=True, exist_ok=True)
        for present in folder.glob(f"*-{content_hash}.parquet"):
            return present.name
        name = f"{time.time_ns() // 1_000_000:015d}-{content_hash}.parquet"
        try:
            write_atomically(folder / name, content)
        except OSError as error:
            raise WarehouseError(f"{folder / name}: cannot be written ({error.strerror}); free the disk") from error
        return name

    def parts(self, table_name: str) -> list[str]:
        """The names of a table's parts, oldest first."""
        return sorted(path.name for path in (self.root / table_name).glob("[0-9]*.parquet"))

    def path(self, table_name: str, part: str) -> Path:
        """Where a part lies."""
        return self.root / table_name / part


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees all of it or nothing: temporary name, fsync, rename."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _as_arrow(table_name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table_name].schema
    known = set(schema.names)
    for row in rows:
        if set(row) != known:
            odd = sorted(set(row) ^ known)
            raise WarehouseError(f"{table_name}: a row does not have the contract's columns: {', '.join(odd)}")
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise WarehouseError(f"{table_name}: a row does not fit the contract: {error}") from error


def _serialise(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())
