"""Parquet parts: immutable files, named by time and content; and the list of expected ones, with
losses and version.

Compaction writes merged parts beside those that they replace, and then deletes these. Both together
have the same current rows as either, so neither readers nor writers need to know which parts were
replaced.

`list.json` is written before a new database replaces the old one, so every listed part was whole
then. A part that is not listed was written later; its rows are also in the ledger or still with its
writer.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import WarehouseError, explaining
from warehouse.files import Unsound, is_named_after, note, read_sealed, write_part, write_sealed
from warehouse.tables import TABLES

DATABASE = "prbench.duckdb"
"""The published database, in the folder of a warehouse."""
FILE = "warehouse.json"
"""The file that marks a folder as a warehouse and has its version."""
LIST = "list.json"
"""The list of the expected parts, in the folder of the parts."""
VERSION = 4
"""The version that this code writes; version 4 is that of November 2026. It does not cover the
published database.
"""
PartNames = set[tuple[str, str]]
"""Pairs of a table and the name of a part."""


class Loss(NamedTuple):
    """Lost rows of one kind (see `Kind`); `n_rows` is their number."""

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
        names = ("benchmark", "model", "judge", "vintage", "import")
        values = zip(names, self[1:-1], strict=True)
        kind = ", ".join(f"{name} {value}" for name, value in values if value is not None)
        rows = f"{self.n_rows} rows of {self.table}"
        return f"{rows} ({kind}) are lost" if kind else f"{rows} are lost"


_WHAT_TO_DO = (
    "the next `prbench run` restores lost rows whose replies are in the ledger; import lost"
    " imported rows again; no call is repeated unless you ask: `prbench run --replace-lost` repeats"
    " the calls for rows still missing, and ends this message; `prbench doctor` lists all lost rows"
)


def lines_on(losses: Sequence[Loss]) -> list[str]:
    """Return lines on the losses, and on what to do; none without losses."""
    if not losses:
        return []
    return [*(loss.line for loss in losses[:10]), _WHAT_TO_DO]


Kind = tuple[Any, ...]
"""A table, then benchmark, model, judge, vintage and import batch of its rows (None where it has no
such column).
"""


class Listing(NamedTuple):
    """The expected parts, and for each kind of row the published and the expected number."""

    parts: PartNames
    rows: dict[Kind, tuple[int, int]]

    @property
    def losses(self) -> list[Loss]:
        """The kinds with fewer rows than expected."""
        losses = []
        for kind, (n_rows, n_expected) in self.rows.items():
            if n_rows < n_expected:
                losses.append(Loss._make([*kind, n_expected - n_rows]))
        return losses


def count_query() -> str:
    """Return the query for the number of rows of each kind in a database."""
    queries = []
    for name, table in TABLES.items():
        kind = [f"'{name}'"]
        for column in Loss._fields[1:-1]:
            kind.append(column if column in table.columns else f"null::varchar as {column}")
        queries.append(
            f"select {', '.join(kind)}, count(*) as n from {name} group by all having n > 0"
        )
    return " union all ".join(queries)


def write_list(parts_root: Path, listing: Listing) -> None:
    """Write the list, with a second copy of the version of the warehouse."""
    parts_by_table = defaultdict(list)
    for table, part in sorted(listing.parts):
        parts_by_table[table].append(part)
    rows = [[*kind, *numbers] for kind, numbers in listing.rows.items()]
    document = {"parts": parts_by_table, "kinds": rows, "version": VERSION}
    write_sealed(parts_root / LIST, document)


def read_list(parts_root: Path) -> Listing | None:
    """Return the list; None if there is none.

    Early lists of November 2026 have no numbers of rows; the next build of the database counts
    them. Numbers of tables that no longer exist are left out.

    Raises:
        Unsound: it is damaged.
    """
    try:
        document = read_sealed(parts_root / LIST)
    except FileNotFoundError:
        return None
    rows = {}
    for *kind, n_rows, n_expected in document.get("kinds", []):
        if kind[0] in TABLES:
            rows[tuple(kind)] = (n_rows, n_expected)
    parts = {(table, part) for table, names in document["parts"].items() for part in names}
    return Listing(parts, rows)


def version_in(path: Path) -> int | None:
    """Return the version in a file; None if it has none."""
    with suppress(FileNotFoundError, Unsound, KeyError):
        return int(read_sealed(path)["version"])
    return None


def refuse_other_version(root: Path) -> int | None:
    """Return the version of a folder's warehouse if this code reads it; None if there is no
    warehouse yet.

    Raises:
        WarehouseError: it is newer or older, or cannot be read.
    """
    path = root / FILE
    parts = root / "parts"
    version = version_in(path) or version_in(parts / LIST)
    is_warehouse = bool(version) or path.exists() or any(parts.glob("*"))
    if is_warehouse and version != VERSION:
        raise WarehouseError(
            f"{path}: is damaged, or of another prbench (version {version or 'unknown'}, this one"
            f" reads {VERSION}); upgrade as CHANGELOG.md says (0.2.0, Upgrade), restore a backup,"
            " or choose another --warehouse"
        )
    return version


def begin(root: Path) -> None:
    """Write the version of a warehouse if it is missing: before its first part, or after its file
    was damaged.
    """
    version = refuse_other_version(root)
    path = root / FILE
    if version_in(path) is None:
        if version is not None:
            note(f"{path}: was damaged or missing; it is written again")
        write_sealed(path, {"version": VERSION})


CurrentParts = Mapping[str, Sequence[Path]]
"""Table -> its current parts, oldest first."""


def names_in(parts_by_table: Mapping[str, Iterable[Path]]) -> PartNames:
    """Return the names of parts."""
    return {(table, part.name) for table, parts in parts_by_table.items() for part in parts}


def parts_except(current_parts: CurrentParts, excluded: PartNames) -> CurrentParts:
    """Return the current parts with other names than the excluded ones."""
    other_parts = {}
    for table, parts in current_parts.items():
        other_parts[table] = [part for part in parts if (table, part.name) not in excluded]
    return other_parts


def moment_of(part: Path) -> str:
    """Return the milliseconds in the name of a part: parts are ordered by them."""
    return part.name.partition("-")[0]


class PartStore:
    """The parts of every stored table in a warehouse, one folder for each table, and the path of
    its database.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing,
    and the same content is not stored twice in a row. Compaction replaces many parts by merged
    ones.
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "parts"
        self.database = root / DATABASE

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows, if there are any, as one part.

        The part is on disk, under its final name, when this returns. If the last part has this
        content already, nothing changes.

        Raises:
            WarehouseError: a row does not fit the table's contract, or the disk refuses.
        """
        row_list = list(rows)
        if row_list:
            self.write_table(table_name, _as_arrow(table_name, row_list))

    def current_parts(self, table_name: str) -> list[Path]:
        """Return a table's current parts, oldest first."""
        # Until 0.2.0, merged parts were written to a subfolder, and the parts that they replaced
        # stayed for an hour.
        parts = {path.name: path for path in (self.root / table_name).glob("**/[0-9]*.parquet")}
        return [parts[name] for name in sorted(parts)]

    def all_current_parts(self) -> dict[str, list[Path]]:
        """Return the current parts of every table."""
        return {table_name: self.current_parts(table_name) for table_name in TABLES}

    def write_table(self, table_name: str, rows: pa.Table, moment: str = "") -> None:
        """Write rows as one part (see `write`); with `moment`, at the position of a lost part that
        had this moment.
        """
        folder = self.root / table_name
        with explaining(f"{folder}: a part cannot be written"):
            write_part(
                folder,
                lambda temporary: pq.write_table(rows, temporary, compression="zstd"),
                lambda content_hash: moment or self._moment_for(table_name, content_hash),
            )

    def _moment_for(self, table_name: str, content_hash: str) -> str:
        parts = self.current_parts(table_name)
        if parts and is_named_after(parts[-1].name, content_hash):
            # The same content replaces the last part, so nothing changes.
            return moment_of(parts[-1])
        # At least the clock's milliseconds, and later than every current part, even if the clock
        # went back. The name is chosen after the write, so parts almost always appear in the order
        # of their names.
        last_moment = max((int(moment_of(part)) for part in parts), default=0)
        return f"{max(time.time_ns() // 1_000_000, last_moment + 1):015d}"


def _as_arrow(table_name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table_name].schema
    columns = set(schema.names)
    integer_columns = [field.name for field in schema if field.type == pa.int64()]
    for row in rows:
        differing = sorted(row.keys() ^ columns)
        if differing:
            raise WarehouseError(
                f"{table_name}: a row does not have the contract's columns: {', '.join(differing)}"
            )
        # Arrow would drop the fraction silently.
        for name in integer_columns:
            if isinstance(row[name], float):
                raise WarehouseError(
                    f"{table_name}: {name} is {row[name]!r} but must be a whole number"
                )
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise WarehouseError(f"{table_name}: a row does not fit the contract: {error}") from error
