"""Compaction: many small parts become few large ones, and nobody who reads meanwhile sees a row twice or not at all.

The merged parts are written into a folder of their own, the switch is the rename of the manifest, and the files that
they replace are deleted when nobody can be reading them any more. A kill at any instant leaves the parts as they were
or as they are to be; what it left behind is removed by the next compaction.
"""

import itertools
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contracts.tables import TABLES, Table
from warehouse.files.atomic import sync
from warehouse.files.errors import WarehouseError, cause_of
from warehouse.parts.engine import engine
from warehouse.parts.manifest import (
    Manifest,
    Part,
    generation_folder,
    read_manifest,
    replace_parts,
    standing_parts,
    write_manifest,
)
from warehouse.parts.merging import merge
from warehouse.parts.store import PartStore

LARGE_ROWS = 500_000
"""Rows from which on a part is left as it is."""
GRACE_S = 3600.0
"""How long a replaced file stays for those who have looked up where it is and are still reading."""


@dataclass(frozen=True)
class Compacted:
    """What compaction made of one table."""

    table_name: str
    parts_before: int
    parts_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class Compaction:
    """What compacting a warehouse came to: its tables, and the database file, rebuilt if it was too wasteful."""

    tables: tuple[Compacted, ...]
    is_rebuilt: bool
    database_bytes_before: int
    database_bytes_after: int

    @property
    def parts_before(self) -> int:
        """Parts of all tables before."""
        return sum(table.parts_before for table in self.tables)

    @property
    def parts_after(self) -> int:
        """Parts of all tables that stand now."""
        return sum(table.parts_after for table in self.tables)


def compact(
    store: PartStore, published: set[tuple[str, str]], *, large_rows: int = LARGE_ROWS, grace_s: float = GRACE_S
) -> list[Compacted]:
    """Merge the small parts of every table, and delete the files that were replaced more than `grace_s` seconds ago.

    `published` are the parts that the database holds, so that it need not take in the merged ones. The caller holds
    the publish lock; parts may be written meanwhile.

    Raises:
        WarehouseError: a part cannot be read, or the disk refuses; all stays as it is.
    """
    compacted = []
    with engine(store.root / ".compaction.spill") as connection:
        for table in TABLES.values():
            folder = store.root / table.name
            held = {part for name, part in published if name == table.name}
            try:
                if folder.is_dir():
                    compacted.append(_compact(connection, table, folder, held, large_rows, grace_s))
            except (OSError, pa.ArrowException, duckdb.Error) as error:
                raise WarehouseError(f"{folder}: cannot be compacted: {cause_of(error, folder)}") from error
    return compacted


def _compact(
    connection: duckdb.DuckDBPyConnection, table: Table, folder: Path, published: set[str], large_rows: int,
    grace_s: float,
) -> Compacted:  # fmt: skip
    manifest = read_manifest(folder)
    _delete_replaced(folder, manifest, published, grace_s)
    _remove_leftovers(folder, manifest)
    before = standing_parts(folder)
    runs = list(_runs(before, large_rows))
    merged = replace_parts(folder, runs, partial(merge, connection, table), published)
    replaced = {part.name for run in runs for part in run}
    after = [*(part for part in before if part.name not in replaced), *merged]
    return Compacted(table.name, len(before), len(after), _bytes(before), _bytes(after))


def _runs(parts: Sequence[Part], large_rows: int) -> Iterator[list[Part]]:
    """The runs of contiguous small parts that are worth merging, each closed when it is large.

    Parts of one moment stay together: between them the merged part would not keep its place in the order.
    """
    run: list[Part] = []
    n_rows = 0
    for _, same_moment in itertools.groupby(parts, key=lambda part: part.moment):
        together = list(same_moment)
        sizes = [_rows(part) for part in together]
        if n_rows >= large_rows or max(sizes) >= large_rows:
            yield from [run] if len(run) > 1 else []
            run, n_rows = [], 0
        if max(sizes) < large_rows:
            run += together
            n_rows += sum(sizes)
    yield from [run] if len(run) > 1 else []


def _rows(part: Part) -> int:
    if part.n_rows is not None:
        return part.n_rows
    try:
        return int(pq.read_metadata(part.path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise WarehouseError(
            f"{part.path}: cannot be read ({cause_of(error, part.path)}); restore it from a backup"
        ) from error


def _delete_replaced(folder: Path, manifest: Manifest, published: set[str], grace_s: float) -> None:
    """Delete what was replaced long ago, and forget names that nobody will ask for again. Changes the manifest."""
    due = [path for path, moment_s in manifest.retired.items() if moment_s + grace_s <= time.time()]
    for path in due:
        (folder / path).unlink(missing_ok=True)
    # A replaced file that the manifest has forgotten would stand again, so it is gone for sure before that.
    for parent in {(folder / path).parent for path in due}:
        if parent.is_dir():
            sync(parent)
    for path in due:
        del manifest.retired[path]
    known = [part for name, part in manifest.merged.items() if name in published and part["replaces"]]
    for part in known:
        part["replaces"] = []
    if due or known:
        write_manifest(folder, manifest)


def _remove_leftovers(folder: Path, manifest: Manifest) -> None:
    """Remove what a compaction that was killed left behind: nobody else is compacting, so it is nobody's work."""
    named = {generation_folder(folder, part["generation"]) / name for name, part in manifest.merged.items()}
    named |= {folder / path for path in manifest.retired}
    for generation in folder.glob("g[0-9]*"):
        for path in set(generation.iterdir()) - named:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not any(generation.iterdir()):
            generation.rmdir()


def _bytes(parts: Iterable[Part]) -> int:
    return sum(part.path.stat().st_size for part in parts)
