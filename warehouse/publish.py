"""Publishing: build one consistent DuckDB file from the parts next to the old one, and rename it
into place.

The new file starts as a copy of the last one and loads the parts that it lacks; the models of
`sql/` above them are computed again. The published file is never open for writing, so readers are
not locked out, and a reader of the old file goes on reading it.

Damaged and missing files are set aside, and their rows are restored from the last database: it is a
second copy of all current rows, and ends with its digest. Rows of the database that no intact part
has are those of the lost parts. They are written as a part with the lost part's position in the
order. Rows that were not published yet are restored from the ledger; rows that are in neither are
counted as lost in the list of parts.
"""

import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.build import REPLACED, build, decided_condition, note_replaced, view_parts
from warehouse.errors import WarehouseError, explaining
from warehouse.files import Unsound, copy_file, is_whole, note, sync
from warehouse.locks import refuse_if_lost
from warehouse.parts import (
    FILE,
    LIST,
    CurrentParts,
    Listing,
    PartNames,
    PartStore,
    moment_of,
    names_in,
    parts_except,
    read_list,
    version_in,
    write_list,
)
from warehouse.reader import Reader, engine, is_damaged, parts_of, published_parts, quoted
from warehouse.tables import TABLES, StoredTable

DAMAGED = "damaged"
"""The folder in a warehouse to which damaged files are moved."""


def set_aside(root: Path, path: Path, sub: str = "") -> str:
    """Move a damaged file into the warehouse's folder for such files, or its subfolder `sub`, and
    return its new path in the warehouse.

    It is never deleted. The caller holds the publish lock.
    """
    folder = root / DAMAGED / sub
    folder.mkdir(parents=True, exist_ok=True)
    new_path = folder / path.name
    while new_path.exists():
        new_path = new_path.with_name(f"{new_path.name}.later")
    path.replace(new_path)
    sync(folder)
    sync(path.parent)
    return str(new_path.relative_to(root))


def listing_of(store: PartStore) -> Listing:
    """Return the expected parts, from their list, or from the last database if the list is missing
    or damaged.
    """
    try:
        listing = read_list(store.root)
    except Unsound as error:
        path = store.root / LIST
        new_path = set_aside(store.root.parent, path)
        note(
            f"{path}: was damaged ({error}), is now {new_path}; it is written again",
            is_repaired=True,
        )
        listing = None
    return listing or _listed_by(store.database)


def _listed_by(database: Path) -> Listing:
    """Return the parts of a database; none if it does not name them."""
    with suppress(duckdb.Error, OSError, WarehouseError), Reader(database) as reader:
        return Listing(parts_of(reader), {})
    return Listing(set(), {})


def lost_parts_of(current_parts: CurrentParts, listing: Listing) -> PartNames:
    """Return the listed parts that are missing."""
    listed_parts = {(table, name) for table, name in listing.parts if table in current_parts}
    return listed_parts - names_in(current_parts)


def _damaged_of(current_parts: CurrentParts) -> list[tuple[str, Path]]:
    """Return the parts whose content does not have the hash in their names, each with its table."""
    damaged_parts = []
    for table_name, parts in current_parts.items():
        for part in parts:
            # A compaction may have deleted a part since it was listed.
            if not is_whole(part) and part.exists():
                damaged_parts.append((table_name, part))
    return damaged_parts


def set_aside_damaged(store: PartStore, current_parts: CurrentParts, listing: Listing) -> bool:
    """Set aside the damaged parts, and return whether there were any.

    The caller holds the publish lock.
    """
    damaged_parts = _damaged_of(current_parts)
    for table_name, part in damaged_parts:
        line = f"{part}: is damaged; it is now {set_aside(store.root.parent, part, table_name)}"
        if (table_name, part.name) not in listing.parts:
            line += (
                "; what it held is not known: the next `prbench run` restores what the ledger has"
                " of it"
            )
        note(line)
    return bool(damaged_parts)


def restore_rows(store: PartStore, current_parts: CurrentParts, lost_parts: PartNames) -> None:
    """Write the rows of lost parts as new parts, as far as the last database has them, if it is not
    damaged itself.
    """
    database = store.database
    last_parts = set() if is_damaged(database) else _listed_by(database).parts
    with engine(database.with_name(f".{database.name}.restoring.tmp.spill")) as connection:
        if last_parts:
            connection.execute(f"attach {quoted(database)} as last (read_only)")
        for table_name in sorted({table for table, _ in lost_parts}):
            lost_names = sorted(part for table, part in lost_parts if table == table_name)
            n_rows = 0
            # A merged part has the moment of one of its parts, so it is found too.
            moments = {moment_of(Path(part)) for table, part in last_parts if table == table_name}
            if moments:
                parts_left = [
                    part for part in current_parts[table_name] if moment_of(part) in moments
                ]
                for rows, is_decided in _lost_rows(connection, TABLES[table_name], parts_left):
                    # A decided row must precede those of later parts; any other row must follow
                    # those of earlier parts.
                    lost_name = lost_names[0] if is_decided else lost_names[-1]
                    store.write_table(table_name, rows, moment_of(Path(lost_name)))
                    n_rows += rows.num_rows
            names = f"{', '.join(lost_names[:10])} ({len(lost_names)} in all)"
            note(
                f"{store.root / table_name}: damaged or missing: {names}; {n_rows} rows were"
                " restored from the last published database"
            )


def _lost_rows(
    connection: duckdb.DuckDBPyConnection,
    table: StoredTable,
    parts_left: list[Path],
) -> Iterator[tuple[pa.Table, bool]]:
    """Yield the rows of the last database's table that `parts_left` do not have, and whether they
    are decided.
    """
    # Other code may have built the database, before a column was added.
    connection.register("contract", table.schema.empty_table())
    lost = (
        f"select {table.select_list} from (from contract union all by name from last.{table.name})"
    )
    if parts_left:
        view_parts(connection, table, parts_left, "left_parts")
        note_replaced(connection, table, "left_parts", table.key)
        lost += (
            " except select * exclude (part, part_row) from left_parts where (part, part_row) not"
            f" in (from {REPLACED})"
        )
    condition = decided_condition() if table.keeps == "decided" else "false"
    for is_decided in (True, False):
        lost_rows = connection.sql(
            f"select * from ({lost}) where {condition} = {is_decided}"
            f" order by {', '.join(table.key)}"
        )
        for batch in lost_rows.to_arrow_reader(50_000):
            yield pa.Table.from_batches([batch]).cast(table.schema), is_decided


def damage_of(store: PartStore) -> list[str]:
    """Return the damage and the missing files, in words; nothing is changed."""
    damage = []
    current_parts = store.all_current_parts()
    version = store.root.parent / FILE
    if store.root.is_dir() and version_in(version) is None:
        damage.append(f"{version}: is damaged or missing")
    try:
        listing = read_list(store.root)
    except Unsound as error:
        listing = None
        damage.append(f"{store.root / LIST}: is damaged ({error})")
    listing = listing or _listed_by(store.database)
    damage += [f"{part}: is damaged" for _, part in _damaged_of(current_parts)]
    if is_damaged(store.database):
        damage.append(f"{store.database}: is damaged")
    for table, name in sorted(lost_parts_of(current_parts, listing)):
        path = store.root / table / name
        if not path.exists():  # else it was written meanwhile
            damage.append(f"{path}: is missing")
    return damage


def publish_parts(
    store: PartStore, *, must_rebuild: bool = False, must_verify: bool = False
) -> None:
    """Bring the database up to date with the parts.

    With `must_rebuild` it is built from the parts even if adding to it would do. The parts that it
    lacks are verified before they are read; with `must_verify`, all are. Damaged files
    are set aside, and their rows restored as far as the last database has them (`pop_notices` has
    the report). The caller holds the publish lock.

    Raises:
        WarehouseError: the database cannot be built; the published one stays as it is.
    """
    listing = listing_of(store)
    database = store.database
    if must_verify and is_damaged(database):
        note(f"{database}: was damaged; it is rebuilt from the parts", is_repaired=True)
        must_rebuild = True
    try:
        with explaining(f"{database}: cannot be published"):
            _publish(store, listing, must_rebuild=must_rebuild, must_verify=must_verify)
    except WarehouseError:
        # The database may have been damaged since it was verified.
        if must_verify or not is_damaged(database):
            raise
        publish_parts(store, must_verify=True)
    finally:
        _remove_leftovers(store)


def _publish(
    store: PartStore,
    listing: Listing,
    *,
    must_rebuild: bool,
    must_verify: bool,
) -> None:
    while True:
        current_parts = store.all_current_parts()
        lost_parts = lost_parts_of(current_parts, listing)
        part_names = names_in(current_parts)
        # None: built from the parts alone, as after a change of contracts or models.
        published = None if must_rebuild or lost_parts else published_parts(store.database)
        base = published if published and _can_extend(published, current_parts) else set()
        # Published parts were verified before. After a retraction, a build reads all responses
        # again (see `load`).
        reads_all = published != part_names and current_parts["retractions"]
        verified_parts = set() if must_verify or reads_all else base
        if not set_aside_damaged(store, parts_except(current_parts, verified_parts), listing):
            break
        # The parts that were set aside are missing in the next round.
    if published == part_names:
        # The list was damaged or deleted.
        if listing.parts != part_names or not (store.root / LIST).exists():
            write_list(store.root, Listing(part_names, listing.rows))
        return
    if lost_parts:
        restore_rows(store, current_parts, lost_parts)
        current_parts = store.all_current_parts()
    _swap_in(store, current_parts, base, lost_parts, listing)


def _can_extend(published: PartNames, current_parts: CurrentParts) -> bool:
    """Return whether adding the missing parts gives the same rows as a build from all parts.

    No published part may be missing, no new part may precede a published one of its table, and no
    removal or retraction may change. After a retraction, a new response may replace a retracted
    one, which changes the verdicts that count.
    """
    if not published <= names_in(current_parts):
        return False
    changing = {"retractions", "removals"}
    if any(table == "retractions" for table, _ in published):
        changing.add("responses")
    for table, parts in current_parts.items():
        are_new = [(table, part.name) not in published for part in parts]
        # False sorts before True: in a sorted list, no new part comes before a published one.
        if any(are_new) and (table in changing or are_new != sorted(are_new)):
            return False
    return True


def _swap_in(
    store: PartStore,
    current_parts: CurrentParts,
    base: PartNames,
    lost_parts: PartNames,
    listing: Listing,
) -> None:
    """Build the database beside the old one, note what it was built from, and swap it in.

    With `base`, the parts in the old one, it begins as a copy of that; if `base` is empty, it
    begins empty.
    """
    database = store.database
    building = database.with_name(f".{database.name}.{uuid.uuid4().hex}.tmp")
    part_names = names_in(current_parts)
    if base:
        copy_file(database, building)
    n_rows = build(current_parts, building, base)
    sync(building)
    # In tables with lost parts, and for kinds of rows with earlier losses, as many rows as before
    # are expected.
    tables_with_losses = {table for table, _ in lost_parts}
    rows = {kind: (n, n) for kind, n in n_rows.items()}
    for kind, (n_before, n_expected) in listing.rows.items():
        if kind[0] in tables_with_losses or n_before < n_expected:
            n = n_rows.get(kind, 0)
            rows[kind] = (n, max(n_expected, n))
    if part_names:
        write_list(store.root, Listing(part_names, rows))
    refuse_if_lost()
    building.replace(database)
    sync(database.parent)


def _remove_leftovers(store: PartStore) -> None:
    """Remove leftovers of unfinished publishing (the lock excludes other builders), and of writes
    that are older than an hour.
    """
    for leftover in store.database.parent.glob(f".{store.database.name}.*.tmp*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    for leftover in store.root.glob("*/.*.tmp"):
        with suppress(FileNotFoundError):  # its writer renamed it since it was listed
            if leftover.stat().st_mtime < time.time() - 3600:
                leftover.unlink()
