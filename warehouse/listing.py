"""The list of expected parts with their numbers of rows, the losses, and the version of the warehouse.

`list.json` is written before a new database replaces the old one, so every listed part was whole then. A part that is
not listed was written later; its rows are also in the ledger or still with its writer.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.errors import WarehouseError
from warehouse.files import Unsound, note, read_sealed, write_sealed
from warehouse.tables import TABLES

DATABASE, FILE, LIST = "prbench.duckdb", "warehouse.json", "list.json"
VERSION = 4
"""The version that this code writes; version 4 is that of November 2026. It does not cover the published database."""
Names = set[tuple[str, str]]
"""Pairs of a table and the name of a part."""


class Loss(NamedTuple):
    """Lost rows of one kind; `n_rows` is their number."""

    table: str
    benchmark: str | None
    model: str | None
    judge: str | None
    vintage: str | None
    import_batch: str | None
    n_rows: int

    @property
    def line(self) -> str:
        """The loss in words."""
        named = zip(("benchmark", "model", "judge", "vintage", "import"), self[1:], strict=False)
        of = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"{self.n_rows} rows of {self.table}" + (f" ({of})" if of else "") + " are lost"


Kind = tuple[Any, ...]
"""A table, then benchmark, model, judge, vintage and import batch of its rows (None where it has no such column)."""


class Listing(NamedTuple):
    """The expected parts, and for each kind of row the published and the expected number."""

    parts: frozenset[tuple[str, str]]
    rows: dict[Kind, tuple[int, int]]

    @property
    def losses(self) -> list[Loss]:
        """The kinds with fewer rows than expected."""
        return [Loss(*(*kind, should - n)) for kind, (n, should) in self.rows.items() if n < should]


def count_query() -> str:
    """Return the query for the number of rows of each kind in a database."""
    tables = []
    for name, table in TABLES.items():
        columns = ("benchmark", "model", "judge", "vintage", "import_batch")
        kinds = ", ".join(kind if kind in table.columns else f"null::varchar as {kind}" for kind in columns)
        tables.append(f"select '{name}', {kinds}, count(*) as n from {name} group by all having n > 0")
    return " union all ".join(tables)


def write_list(parts_root: Path, listing: Listing) -> None:
    """Write the list, with a second copy of the version of the warehouse."""
    by_table: dict[str, list[str]] = {}
    for table, part in sorted(listing.parts):
        by_table.setdefault(table, []).append(part)
    parts_root.mkdir(parents=True, exist_ok=True)
    rows = [[*kind, *numbers] for kind, numbers in listing.rows.items()]
    write_sealed(parts_root / LIST, {"parts": by_table, "kinds": rows, "version": VERSION})


def read_list(parts_root: Path) -> Listing | None:
    """Return the list; None if there is none. Early lists of November 2026 have no numbers of rows.

    Tables that no longer exist are left out: their rows are computed again.

    Raises:
        Unsound: it is damaged.
    """
    with suppress(FileNotFoundError):
        document = read_sealed(parts_root / LIST)
        listed = {table: names for table, names in document["parts"].items() if table in TABLES}
        kinds = {tuple(kind): (n, should) for *kind, n, should in document.get("kinds", []) if kind[0] in TABLES}
        return Listing(frozenset((table, part) for table, names in listed.items() for part in names), kinds)
    return None


def version_in(path: Path) -> int | None:
    """Return the version in a file; None if it has none."""
    with suppress(FileNotFoundError, Unsound, KeyError):
        return int(read_sealed(path)["version"])
    return None


def refuse_other_version(root: Path) -> int | None:
    """Return the version of a folder's warehouse if this code reads it; None if there is no warehouse yet.

    Raises:
        WarehouseError: it is newer or older, or cannot be read.
    """
    path, parts = root / FILE, root / "parts"
    version = version_in(path) or version_in(parts / LIST)
    if version != VERSION and (version or path.exists() or any(parts.glob("*"))):
        raise WarehouseError(
            f"{path}: is damaged, or of another prbench (version {version or 'unknown'}, this one reads {VERSION}); "
            "upgrade as CHANGELOG.md says (0.2.0, Upgrade), restore a backup, or choose another --warehouse"
        )
    return version


def begin(root: Path) -> None:
    """Write the version of a warehouse if it is missing: before its first part, or after its file was damaged."""
    version, path = refuse_other_version(root), root / FILE
    if version_in(path) is None:
        if version is not None:
            note(f"{path}: was damaged or missing; it is written again")
        root.mkdir(parents=True, exist_ok=True)
        write_sealed(path, {"version": VERSION})
