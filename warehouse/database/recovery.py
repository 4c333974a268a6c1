"""What to do about damaged and missing parts: set them aside, and restore their rows from the last database.

The published database is a second copy of all rows that stood in the parts that it was built from, and DuckDB keeps a
checksum of each of its blocks. So the rows that it has, and that the parts left of those no longer come to, are what
the lost ones held of what is read. They are put back as a part with the lost part's place in the order.
"""

from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.contracts.tables import TABLES, Table
from warehouse.database.losses import add_unknown
from warehouse.database.reader import Reader
from warehouse.files.atomic import Unsound
from warehouse.files.damage import is_database_whole, is_whole, note
from warehouse.files.errors import WarehouseError
from warehouse.parts.current_rows import decided, standing_rows, view_parts
from warehouse.parts.engine import engine, quoted
from warehouse.parts.loading import Names, Standing
from warehouse.parts.manifest import (
    Part,
    counted_as_published,
)
from warehouse.parts.part_list import LIST, Listing, count_query, counted, read_list
from warehouse.parts.store import PartStore, aside

PARTS = "published_parts"
"""The table of a database that names the parts that it holds."""
_ROWS_A_PART = 50_000
_MOST_NAMED = 3


def listing_of(store: PartStore, database: Path) -> Listing | None:
    """Which parts should be there: by their list, or by the last database where that is missing or damaged."""
    try:
        listing = read_list(store.root)
    except Unsound as error:
        path = store.root / LIST
        to = aside(store.root.parent, path)
        note(store.root.parent, f"{path}: was damaged ({error}), is now {to.name}; it is written again", is_mended=True)
        listing = None
    return listing or listed_by(database)


def listed_by(database: Path) -> Listing | None:
    """The parts that a database holds, with how many rows of each kind; None where it cannot say."""
    if not database.exists():
        return None
    try:
        with Reader(database) as reader:
            parts = frozenset((row["table_name"], row["part"]) for row in reader.rows(f"from {PARTS}"))
            columns: dict[str, set[str]] = defaultdict(set)
            for row in reader.rows("select table_name, column_name from duckdb_columns() where not internal"):
                columns[row["table_name"]].add(row["column_name"])
            return Listing(parts, counted(reader.table(count_query(columns))[1]))
    except (duckdb.Error, OSError, ValueError, WarehouseError):
        return None


def set_aside_damaged(store: PartStore, standing: Standing, reading: Names, listing: Listing | None) -> Names:
    """Set those of some parts aside whose content is not what their names say; these, and merged ones that are gone.

    The caller holds the publish lock.
    """
    damaged: Names = set()
    for table_name, parts in standing.items():
        for part in parts:
            name = table_name, part.name
            if part.is_merged and not part.path.exists():
                store.forget(table_name, part)
            elif name in reading and not is_whole(part.path):
                _set_aside(store, table_name, part, listing)
            else:
                continue
            damaged.add(name)
    return damaged


def _set_aside(store: PartStore, table_name: str, part: Part, listing: Listing | None) -> None:
    root, n_rows = store.root.parent, rows_said(part.path)
    to = store.set_aside(table_name, part).relative_to(root)
    line = f"{part.path}: is damaged, since its content is not what its name says; it is now {to}"
    if listing is None:
        add_unknown(root, table_name, part.name, n_rows)
    elif (table_name, part.name) not in listing.parts:
        line += "; it was not published yet: the next `prbench run` brings back what the ledger holds of it"
    note(root, line)


def rows_said(path: Path) -> int | None:
    """How many rows a damaged part says that it has."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException, ValueError):
        return None


def note_missing_parts(store: PartStore, gone: Names, set_aside: Names) -> None:
    """Note parts that should be there and are not."""
    missing = Counter(table for table, _ in gone - set_aside)
    for table_name, number in sorted(missing.items()):
        names = sorted(part for table, part in gone - set_aside if table == table_name)[:_MOST_NAMED]
        more = f" and {number - len(names)} more" if number > len(names) else ""
        note(store.root.parent, f"{store.root / table_name}: {', '.join(names)}{more}: missing")


def restore_rows(store: PartStore, database: Path, standing: Standing, gone: Names) -> Names:
    """Write the rows that parts held which are gone as new parts, as far as the last database has them.

    It is used only if every block of it is whole.
    """
    if not database.exists() or not is_database_whole(database):
        return set()
    written: Names = set()
    with engine(database.with_name(f".{database.name}.restoring.tmp.spill")) as connection:
        connection.execute(f"attach {quoted(database)} as last (read_only)")
        parts = connection.execute(f"select table_name, part from last.{PARTS}").fetchall()
        held: Names = {(table, part) for table, part in parts}
        for table_name in sorted({table for table, _ in gone & held}):
            names = sorted(part for table, part in gone & held if table == table_name)
            left = counted_as_published(standing[table_name], {part for table, part in held if table == table_name})
            paths = [part.path for part in standing[table_name] if part.name in left]
            written |= _restore_table(connection, store, TABLES[table_name], paths, names)
    return written


def _restore_table(
    connection: duckdb.DuckDBPyConnection, store: PartStore, table: Table, left: list[Path], names: list[str]
) -> Names:
    # Other code may have built the database, before a column was added.
    known = _columns(connection, table.name)
    columns = ", ".join(f'"{column}"' if column in known else f'null as "{column}"' for column in table.columns)
    key = ", ".join(table.key)
    lost = f"select {columns} from last.{table.name}"
    if left:
        view_parts(connection, table, left, "left_parts")
        own = ", ".join(f'"{column}"' for column in table.columns)
        lost += f" except {standing_rows(table, 'left_parts', own)}"
    # A decided row stood before those of later parts, and any other one behind those of earlier parts.
    first, last = names[0].partition("-")[0], names[-1].partition("-")[0]
    places = {first: decided(), last: f"not {decided()}"} if table.keeps == "decided" else {last: "true"}
    if first == last:
        places = {last: "true"}
    written: Names = set()
    n_rows = 0
    for moment, condition in places.items():
        found = connection.sql(f"select * from ({lost}) where {condition} order by {key}")
        for batch in found.to_arrow_reader(_ROWS_A_PART):
            rows = pa.Table.from_batches([batch]).select(list(table.columns)).cast(table.schema)
            written.add((table.name, store.put_back(table.name, rows, moment)))
            n_rows += rows.num_rows
    note(
        store.root.parent,
        f"{store.root / table.name}: {n_rows} rows were restored from the last published database",
    )
    return written


def _columns(connection: duckdb.DuckDBPyConnection, table_name: str) -> set[str]:
    rows = connection.execute(
        "select column_name from duckdb_columns() where database_name = 'last' and table_name = ?", [table_name]
    ).fetchall()
    return {column for (column,) in rows}
