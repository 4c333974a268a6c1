"""Publishing: the parts become one consistent DuckDB file, built beside the old one and swapped in by rename.

The new file starts as a copy of the last one and takes in the parts that it lacks; the models of `sql/` are built
again. Nobody ever holds the published file open for writing, so readers are never locked out, and one that opened
the old file goes on reading it.
"""

import hashlib
import os
import shutil
import uuid
from pathlib import Path

import duckdb

import sql
from warehouse.building import PARTS, STAMP, build
from warehouse.contracts import COLUMNS, TABLES
from warehouse.errors import WarehouseError
from warehouse.reader import Reader, first_line
from warehouse.store import PartStore, sync_folder


def publish(store: PartStore, database: Path) -> bool:
    """Bring `database` up to the parts of `store`; True if it was renewed, False if it was up to date.

    The caller holds the publish lock.

    Raises:
        WarehouseError: the database cannot be built; the published one stays as it is.
    """
    known = _published(database)
    present = {(table, part) for table in TABLES for part in store.parts(table)}
    if known is not None and known == present:
        return False
    _remove_leftovers(database)
    store.remove_leftovers()
    building = database.with_name(f".{database.name}.{uuid.uuid4().hex}.tmp")
    try:
        # Contracts or models that changed, parts that went away or turned up late ask for a build from the parts alone.
        if known is not None and _continues(known, present):
            shutil.copyfile(database, building)
            build(store, building, present - known, _stamp(), is_copy=True)
        else:
            build(store, building, present, _stamp(), is_copy=False)
        _sync(building)
        building.replace(database)
    except (duckdb.Error, OSError) as error:
        raise WarehouseError(f"{database}: cannot be published: {first_line(error)}") from error
    finally:
        _remove_leftovers(database)
    sync_folder(database.parent)
    return True


def _continues(known: set[tuple[str, str]], present: set[tuple[str, str]]) -> bool:
    """Whether the new parts come after all published ones, so that adding them comes to the same as a rebuild."""
    last: dict[str, str] = {}
    for table, part in known:
        last[table] = max(part, last.get(table, ""))
    return known <= present and all(part > last.get(table, "") for table, part in present - known)


def _remove_leftovers(database: Path) -> None:
    """Remove what unfinished publishing left behind: under the lock, nobody else is building."""
    for leftover in database.parent.glob(f".{database.name}.*.tmp*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _published(database: Path) -> set[tuple[str, str]] | None:
    """The parts that the published file holds; None where it must be built anew."""
    if not database.exists():
        return None
    try:
        with Reader(database) as reader:
            if reader.value(f"select stamp from {STAMP}") != _stamp():
                return None
            return {(row["table_name"], row["part"]) for row in reader.rows(f"from {PARTS}")}
    except (WarehouseError, duckdb.Error):
        # A damaged or foreign file is no source; the parts are.
        return None


def _stamp() -> str:
    """Changes when a contract, a model or DuckDB (whose hashes are keys) does."""
    described = repr([(t, [(c, str(COLUMNS[c])) for c in t.columns]) for t in TABLES.values()])
    return hashlib.sha256((duckdb.__version__ + described + repr(sql.models())).encode()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
