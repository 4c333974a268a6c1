"""The list of the parts that should be there, with how many rows of each kind they came to.

It is written before the database that was built from them is put in place, so a part that it names was whole then. A
part that is not in it was written since, and what such a part holds is in the ledger or with whoever writes it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warehouse.contracts.tables import TABLES
from warehouse.files.atomic import Unsound, read_sealed, write_sealed
from warehouse.parts.loading import Names

LIST = "list.json"
_KINDS = ("benchmark", "model", "judge", "import_batch")
Kind = tuple[str, str | None, str | None, str | None, str | None]
"""A table and what distinguishes kinds of its rows, where the table has it: benchmark, model, judge, import batch."""


@dataclass(frozen=True)
class Listing:
    """The parts that should be there, and how many rows that stand were published of them, by their kind."""

    parts: frozenset[tuple[str, str]]
    rows: dict[Kind, int]


def count_query(columns: Mapping[str, Collection[str]] | None = None) -> str:
    """The query for how many rows of each kind a database holds.

    `columns` are those of its tables, where an earlier version built it; what it lacks has no rows.
    """
    known = {name: table.columns for name, table in TABLES.items()} if columns is None else columns
    tables = []
    for name in TABLES.keys() & known.keys():
        kinds = ", ".join(kind if kind in known[name] else f"null::varchar as {kind}" for kind in _KINDS)
        tables.append(f"select '{name}' as table_name, {kinds}, count(*) as n from {name} group by all")
    return f"select * from ({' union all '.join(tables)}) where n > 0"


def counted(rows: Iterable[tuple[str, str | None, str | None, str | None, str | None, int]]) -> dict[Kind, int]:
    """What `count_query` finds, by kind."""
    return {(table, benchmark, model, judge, batch): n for table, benchmark, model, judge, batch, n in rows}


def write_list(parts_root: Path, parts: Names, rows: dict[Kind, int], version: int) -> None:
    """Put the list in place, with the version of the warehouse, whose own file may be damaged one day."""
    by_table: dict[str, list[str]] = {}
    for table, part in sorted(parts):
        by_table.setdefault(table, []).append(part)
    parts_root.mkdir(parents=True, exist_ok=True)
    document = {"parts": by_table, "rows": [[*kind, n] for kind, n in rows.items()], "version": version}
    write_sealed(parts_root / LIST, document)


def read_list(parts_root: Path) -> Listing | None:
    """The list; None where there is none.

    Raises:
        Unsound: it is damaged.
    """
    try:
        document = read_sealed(parts_root / LIST)
    except FileNotFoundError:
        return None
    try:
        parts = frozenset((table, part) for table, names in document["parts"].items() for part in names)
        return Listing(parts, counted((table, *kind) for table, *kind in document["rows"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unsound(f"{type(error).__name__}: {error}") from error


def noted_version(parts_root: Path) -> int | None:
    """The version of the warehouse by its list of parts; None where it is unknown."""
    try:
        return int(read_sealed(parts_root / LIST)["version"])
    except (FileNotFoundError, Unsound, KeyError, TypeError, ValueError):
        return None
