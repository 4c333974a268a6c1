"""Parquet parts: immutable files, named by time and content, and the manifests that list the current ones.

Merged parts are in the folder of their generation (`g0001/`) beside the original parts. A table's manifest lists the
current merged parts and the replaced files. One rename swaps it in, so readers see either the parts before a compaction
or those after it. A part that the manifest does not name is current: writers need not know the manifest.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import DamagedManifest, WarehouseError, cause_of
from warehouse.files import HASH_HEX, Unsound, is_whole, read_sealed, sync, write_named, write_sealed
from warehouse.listing import DATABASE, Names
from warehouse.tables import TABLES

MANIFEST = "manifest.json"
_IN_FOLDER = re.compile(r"(?:g\d+/)?[^/]+\.parquet")


class Part(NamedTuple):
    """A current part: its name, its path, and the names of the parts that it replaced."""

    name: str
    path: Path
    replaces: frozenset[str] = frozenset()

    @property
    def moment(self) -> str:
        """The milliseconds in the name: parts are ordered by them."""
        return self.name.partition("-")[0]


Standing = Mapping[str, Sequence[Part]]
"""Table -> its current parts, oldest first."""


def names_in(standing: Standing) -> Names:
    """Return the names of all current parts."""
    return {(table_name, part.name) for table_name, parts in standing.items() for part in parts}


@dataclass
class Manifest:
    """The content of a manifest file.

    Attributes:
        generation: number of the last compaction.
        merged: the current merged parts by name, with generation, and replaced parts that `list.json` may still name.
        retired: replaced files that may still exist, by path in the table's folder, with the Unix time of the switch.
    """

    generation: int = 0
    merged: dict[str, dict[str, Any]] = field(default_factory=dict)
    retired: dict[str, float] = field(default_factory=dict)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a table's folder; an empty one if nothing was ever merged.

    Raises:
        DamagedManifest: it is damaged, or names a file outside of the table's folder.
    """
    try:
        manifest = Manifest(**read_sealed(folder / MANIFEST))
        # Files that the manifest names are read, and later deleted, so they must be in this folder.
        if all(map(_IN_FOLDER.fullmatch, [*manifest.merged, *manifest.retired])):
            return manifest
        why = "it names a file that is not a part in this folder"
    except FileNotFoundError:
        return Manifest()
    except (Unsound, TypeError) as error:
        why = str(error)
    raise DamagedManifest(f"{folder / MANIFEST}: is damaged ({why}); `prbench aggregate` rebuilds it")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a manifest, which switches all later readers to its parts, also after a power cut."""
    write_sealed(folder / MANIFEST, vars(manifest))


def generation_folder(folder: Path, generation: int) -> Path:
    """Return the folder of a generation's merged parts."""
    return folder / f"g{generation:04d}"


def replace_parts(folder: Path, runs: Sequence[Sequence[Part]], write: Callable[[Sequence[Part], Path], Part]) -> None:
    """Write one new part for each run of parts, and switch the table to the new parts by one rename of the manifest.

    After a kill either the old or the new parts are current. The old files stay for the grace period, and compaction
    deletes them. The caller holds the publish lock.
    """
    if not runs:
        return
    manifest = read_manifest(folder)
    manifest.generation += 1
    into = generation_folder(folder, manifest.generation)
    written = [(run, write(run, into)) for run in runs]
    sync(into)
    sync(folder)
    for run, part in written:
        for old in run:
            manifest.merged.pop(old.name, None)
            manifest.retired[str(old.path.relative_to(folder))] = time.time()
        replaces = {name for old in run for name in (old.name, *old.replaces)}
        manifest.merged[part.name] = {"generation": manifest.generation, "replaces": sorted(replaces)}
    write_manifest(folder, manifest)


class PartStore:
    """The parts of every stored table in a warehouse, one folder for each table, and the path of its database.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing, and the same
    content is not written twice. Compaction replaces many parts by merged ones.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.database = root / "parts", root / DATABASE

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Write rows as one part and return its name; None when there are no rows.

        The part is on disk, under its final name, when this returns. If a current part has this content already, its
        name is returned and nothing is written.

        Raises:
            WarehouseError: a row does not fit the table's contract, or the disk refuses.
        """
        given = list(rows)
        if not given:
            return None
        table = _as_arrow(table_name, given)
        content, content_hash = _serialised(table)
        parts = self.standing(table_name)
        present = _present(parts, content_hash, table.select(TABLES[table_name].key))
        if present is not None:
            return present

        def name() -> str:
            # At least the clock's milliseconds, and later than every current part, even if the clock went back.
            # The name is chosen after the write, so parts almost always appear in the order of their names.
            last = max((int(part.moment) for part in self.standing(table_name)), default=0)
            return f"{max(time.time_ns() // 1_000_000, last + 1):015d}-{content_hash}.parquet"

        folder = self.root / table_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return write_named(folder, content, name)
        except OSError as error:
            raise WarehouseError(f"{folder}: a part cannot be written: {cause_of(error, folder)}") from error

    def standing(self, table_name: str) -> list[Part]:
        """Return a table's current parts, oldest first, all as of one instant.

        The manifest is read before the folder: the files that it names stay on the disk for the grace period.
        """
        folder = self.root / table_name
        manifest = read_manifest(folder)
        names = {path.name for path in folder.glob("[0-9]*.parquet")} - manifest.retired.keys()
        parts = {name: Part(name, folder / name) for name in names}
        for name, merged in manifest.merged.items():
            path = generation_folder(folder, merged["generation"]) / name
            parts[name] = Part(name, path, frozenset(merged["replaces"]))
        return [parts[name] for name in sorted(parts)]

    def all_standing(self) -> dict[str, list[Part]]:
        """Return the current parts of every table."""
        return {table_name: self.standing(table_name) for table_name in TABLES}

    def parts(self, table_name: str) -> list[str]:
        """Return the names of a table's parts, oldest first."""
        return [part.name for part in self.standing(table_name)]

    def put_back(self, table_name: str, rows: pa.Table, moment: str) -> None:
        """Write rows as a part with the moment, and so the position, of a lost part."""
        content, content_hash = _serialised(rows)
        name = f"{moment}-{content_hash}.parquet"
        (self.root / table_name).mkdir(parents=True, exist_ok=True)
        # The restored part may equal a part that a merged one replaced; it becomes current again.
        self.forget(table_name, name)
        write_named(self.root / table_name, content, lambda: name)

    def forget(self, table_name: str, name: str) -> None:
        """Remove a lost part from the manifest, if it is named there."""
        manifest = read_manifest(self.root / table_name)
        if name in manifest.merged or name in manifest.retired:
            manifest.merged.pop(name, None)
            manifest.retired.pop(name, None)
            write_manifest(self.root / table_name, manifest)


def _present(parts: Sequence[Part], content_hash: str, keys: pa.Table) -> str | None:
    """Return the part that already holds this content, unless a later part replaced one of its rows."""
    same = [part for part in parts if part.name.endswith(f"-{content_hash}.parquet")]
    rows = {tuple(row.values()) for row in keys.to_pylist()}
    for part in reversed(parts if same else []):
        # A damaged part's content is unknown; an unneeded second write changes nothing for readers.
        if not is_whole(part.path):
            return None
        if part is same[-1]:
            return part.name
        stored = pq.read_table(part.path, columns=keys.column_names).to_pylist()
        if any(tuple(row.values()) in rows for row in stored):
            return None
    return None


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


def _serialised(table: pa.Table) -> tuple[bytes, str]:
    """Return the bytes of a part, and the hash in its name."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content = bytes(sink.getvalue())
    return content, hashlib.sha256(content).hexdigest()[:HASH_HEX]
