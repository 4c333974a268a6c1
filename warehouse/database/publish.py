"""Publishing: the parts become one consistent DuckDB file, built beside the old one and swapped in by rename.

The new file starts as a copy of the last one and takes in the parts that it lacks; the models of `sql/` that stand on
them are built again. Nobody ever holds the published file open for writing, so readers are never locked out, and one
that opened the old file goes on reading it.
"""

import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from warehouse.contracts.tables import TABLES
from warehouse.database.build import build
from warehouse.database.increments import comes_to_the_same, gone_from, missing_in
from warehouse.database.losses import add_losses, settle
from warehouse.database.published import Published, remember, stamp, what_is_published
from warehouse.database.recovery import listing_of, note_missing_parts, restore_rows, set_aside_damaged
from warehouse.files.atomic import sync
from warehouse.files.damage import is_database_whole, note
from warehouse.files.errors import WarehouseError, cause_of
from warehouse.files.one_machine import refuse_if_lost
from warehouse.parts.loading import Names
from warehouse.parts.manifest import Part
from warehouse.parts.part_list import LIST, Kind, Listing, write_list
from warehouse.parts.store import PartStore
from warehouse.parts.version import VERSION


class _DamagedCopy(Exception):
    """The database that was to be added to is damaged."""


@dataclass(frozen=True)
class _Look:
    """What publishing finds: the parts that stand, what the database lacks of them, and listed parts that are gone.

    `missing` is None where the database has to be built from all parts.
    """

    standing: dict[str, list[Part]]
    published: Published | None
    missing: Names | None
    gone: Names

    @property
    def everything(self) -> Names:
        """All parts that stand."""
        return {(table, part.name) for table, parts in self.standing.items() for part in parts}

    @property
    def read(self) -> Names:
        """The parts that publishing reads: whether an answer is retracted is looked up in all of them."""
        if self.missing is None:
            return self.everything
        if self.missing and self.published and self.published.retracted:
            return self.missing | {("responses", part.name) for part in self.standing["responses"]}
        return self.missing


def publish(store: PartStore, database: Path, *, must_rebuild: bool = False, must_verify: bool = False) -> bool:
    """Bring `database` up to the parts of `store`; True if it was renewed, False if it was up to date.

    With `must_rebuild` it is built from the parts alone also where adding to it would do. Every part is verified before
    it is read, with `must_verify` all that stand. Damaged ones are set aside, and what they held is restored as far as
    the last database has it; `warehouse.damage.take_notices` reports it. The caller holds the publish lock.

    Raises:
        WarehouseError: the database cannot be built; the published one stays as it is.
    """
    listing = listing_of(store, database)
    spill = database.with_name(f".{database.name}.looking.tmp.spill")
    try:
        look = _sound(store, database, listing, must_rebuild=must_rebuild, must_verify=must_verify)
        if look.missing == set():
            _keep_listed(store, look.everything, listing)
            return False
        published = look.published
        is_copy = bool(look.missing and published) and comes_to_the_same(
            look.standing, look.missing or set(), published.retracted if published else (), spill
        )
        if look.missing is not None and not is_copy:
            look = _sound(store, database, listing, must_rebuild=True)
        if look.gone:
            restore_rows(store, database, look.standing, look.gone)
            look = replace(look, standing={table: store.standing(table) for table in TABLES})
        _remove_leftovers(database)
        store.remove_leftovers()
        _put_in_place(store, database, look, listing, is_copy=is_copy)
    except _DamagedCopy:
        note(store.root.parent, f"{database}: was damaged; it is rebuilt from the parts", is_mended=True)
        return publish(store, database, must_rebuild=True)
    except (duckdb.Error, OSError) as error:
        raise WarehouseError(f"{database}: cannot be published: {cause_of(error, database)}") from error
    finally:
        _remove_leftovers(database)
    # A new retraction asks for a build from the parts alone, so a copy knows none that the last state did not.
    if is_copy or not look.standing["retractions"]:
        remember(database, Published(look.everything, published.retracted if is_copy and published else ()))
    return True


def _sound(
    store: PartStore, database: Path, listing: Listing | None, *, must_rebuild: bool, must_verify: bool = False
) -> _Look:
    """What is there, when everything that is damaged has been set aside."""
    set_aside: Names = set()
    while True:
        standing = {table: store.standing(table) for table in TABLES}
        gone = gone_from(standing, set(listing.parts)) if listing else set()
        # Contracts or models that changed, and parts that went away, ask for a build from the parts alone.
        published = None if must_rebuild or gone else what_is_published(database)
        missing = None if published is None else missing_in(standing, published.parts)
        look = _Look(standing, published, missing, gone)
        damaged = set_aside_damaged(store, standing, look.everything if must_verify else look.read, listing)
        if not damaged:
            note_missing_parts(store, gone, set_aside)
            return look
        set_aside |= damaged


def _put_in_place(store: PartStore, database: Path, look: _Look, listing: Listing | None, *, is_copy: bool) -> None:
    """Build the database beside the old one, note what it was built from, and swap it in."""
    from warehouse.files.blocks import fill_up

    building = database.with_name(f".{database.name}.{uuid.uuid4().hex}.tmp")
    try:
        if is_copy:
            shutil.copyfile(database, building)
        missing = look.missing if is_copy and look.missing else look.everything
        n_rows = build(look.standing, building, missing, stamp(), is_copy=is_copy)
    except duckdb.Error as error:
        if not is_copy or is_database_whole(database):
            raise
        raise _DamagedCopy from error
    fill_up(building)
    sync(building)
    if listing and look.gone:
        add_losses(store.root.parent, listing.rows, n_rows, {table for table, _ in look.gone})
    settle(store.root.parent, n_rows)
    _list(store, look.everything, n_rows)
    refuse_if_lost(database)
    building.replace(database)
    sync(database.parent)


def _keep_listed(store: PartStore, parts: Names, listing: Listing | None) -> None:
    """Write the list of parts where there is none, since it was damaged or deleted."""
    if listing and not (store.root / LIST).exists():
        _list(store, parts, listing.rows)


def _list(store: PartStore, parts: Names, n_rows: dict[Kind, int]) -> None:
    if parts:
        write_list(store.root, parts, n_rows, VERSION)


def _remove_leftovers(database: Path) -> None:
    """Remove what unfinished publishing left behind: under the lock, nobody else is building."""
    for leftover in database.parent.glob(f".{database.name}.*.tmp*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
