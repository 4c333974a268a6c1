"""What a published database says of itself: the parts that it holds, and the code that it was published by."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import sql
from warehouse.contracts.tables import TABLES
from warehouse.database.reader import Reader
from warehouse.database.recovery import PARTS
from warehouse.database.schema import STAMP
from warehouse.files.damage import is_database_whole
from warehouse.files.errors import WarehouseError
from warehouse.parts.loading import RETRACTED, Names


@dataclass(frozen=True)
class Published:
    """What a database says of itself: the parts that it took in, and the imports whose retraction it knows."""

    parts: Names
    retracted: tuple[str, ...]


_KNOWN: dict[Path, tuple[tuple[Any, ...], Published]] = {}
"""What published files held when this process last saw them, and what identifies each: a file is replaced, never
changed. Publishing where there is nothing to publish then costs next to nothing."""


def remember(database: Path, published: Published) -> None:
    """Keep what a file that was just put in place holds."""
    _KNOWN[database] = _which(database), published


def what_is_published(database: Path) -> Published | None:
    """What a database holds; None where it must be rebuilt."""
    if not database.exists():
        return None
    which = _which(database)
    known = _KNOWN.get(database)
    if known is not None and known[0] == which:
        return known[1]
    try:
        with Reader(database) as reader:
            if stamp_of(reader) != stamp():
                return None
            published = Published(
                {(row["table_name"], row["part"]) for row in reader.rows(f"from {PARTS}")},
                tuple(row["import_batch"] for row in reader.rows(RETRACTED)),
            )
    except (WarehouseError, duckdb.Error):
        # A damaged or foreign file is no source; the parts are.
        return None
    _KNOWN[database] = which, published
    return published


def is_damaged(database: Path) -> bool:
    """Whether a published database is damaged; one that other code published is merely to be rebuilt."""
    if not database.exists() or is_database_whole(database):
        return False
    try:
        with Reader(database) as reader:
            return stamp_of(reader) == stamp()
    except (WarehouseError, duckdb.Error):
        return True


def _which(database: Path) -> tuple[Any, ...]:
    """What distinguishes one published file, for the code that runs, from another."""
    status = database.stat()
    return stamp(), status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def stamp() -> str:
    """Changes when a contract, a model or DuckDB (whose hashes are keys) does."""
    tables = sorted(TABLES.values(), key=lambda table: table.name)
    macros = [sql.read(f"warehouse/{name}") for name in ("macros", "counts_as_judge")]
    texts = [duckdb.__version__, *macros, *(table.text for table in tables)]
    texts += [model.text for model in sql.models()]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def stamp_of(reader: Reader) -> str | None:
    """The stamp that a database was published with; None where it carries none."""
    try:
        found = reader.value(f"select stamp from {STAMP}")
    except duckdb.CatalogException:
        return None
    return str(found)
