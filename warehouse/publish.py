"""Publishing: the parts become one consistent DuckDB file, built beside the old one and swapped in by rename.

The new file starts as a copy of the last one and takes in the parts that it lacks; the models of `sql/` that stand on
them are built again. Nobody ever holds the published file open for writing, so readers are never locked out, and one
that opened the old file goes on reading it.
"""

import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from warehouse.build import build
from warehouse.errors import WarehouseError, cause_of
from warehouse.files import is_database_whole, note, sync
from warehouse.listing import LIST, Listing, Names, write_list
from warehouse.owner import refuse_if_lost
from warehouse.parts import PartStore, Standing, names_in
from warehouse.reader import Published, stamp, what_is_published
from warehouse.repair import gone_from, listing_of, mend_manifests, restore_rows, set_aside_damaged
from warehouse.rows import BATCH, REMOVALS, engine, holds, quoted, view_parts
from warehouse.tables import TABLES


class _DamagedCopy(Exception):
    """The database that was to be added to is damaged."""


@dataclass(frozen=True)
class _Look:
    """What publishing finds: the parts that stand, what the database lacks of them, and listed parts that are gone.

    `missing` is None where the database has to be built from all parts.
    """

    standing: Standing
    published: Published | None
    missing: Names | None
    gone: Names

    @property
    def read(self) -> Names:
        """The parts that publishing reads: whether an answer is retracted is looked up in all of them."""
        if self.missing is None:
            return names_in(self.standing)
        if self.missing and self.published and self.published.retracted:
            return self.missing | {("responses", part.name) for part in self.standing["responses"]}
        return self.missing


def publish(store: PartStore, database: Path, *, must_rebuild: bool = False, must_verify: bool = False) -> bool:
    """Bring `database` up to the parts of `store`; True if it was renewed, False if it was up to date.

    With `must_rebuild` it is built from the parts alone also where adding to it would do. Every part is verified before
    it is read, with `must_verify` all that stand, and manifests. What is damaged is set aside, and what it held is
    restored as far as the last database has it; `take_notices` reports it. The caller holds the publish lock.

    Raises:
        WarehouseError: the database cannot be built; the published one stays as it is.
    """
    listing = listing_of(store, database)
    try:
        if must_verify:
            mend_manifests(store, listing)
        return _publish(store, database, listing, must_rebuild=must_rebuild, must_verify=must_verify)
    except _DamagedCopy:
        note(store.root.parent, f"{database}: was damaged; it is rebuilt from the parts", is_mended=True)
        return publish(store, database, must_rebuild=True)
    except (duckdb.Error, OSError) as error:
        raise WarehouseError(f"{database}: cannot be published: {cause_of(error, database)}") from error
    finally:
        _remove_leftovers(database)


def _publish(
    store: PartStore, database: Path, listing: Listing | None, *, must_rebuild: bool, must_verify: bool
) -> bool:
    look = _sound(store, database, listing, must_rebuild=must_rebuild, must_verify=must_verify)
    if look.missing == set():
        everything = names_in(look.standing)
        # It was damaged or deleted.
        if listing and (listing.parts != everything or not (store.root / LIST).exists()):
            write_list(store.root, Listing(frozenset(everything), listing.rows))
        return False
    is_copy = bool(look.missing and look.published) and comes_to_the_same(
        look.standing, look.missing or set(), look.published.retracted if look.published else (),
        database.with_name(f".{database.name}.looking.tmp.spill"),
    )  # fmt: skip
    if look.missing is not None and not is_copy:
        look = _sound(store, database, listing, must_rebuild=True)
    if look.gone:
        restore_rows(store, database, look.standing, look.gone)
        look = replace(look, standing=store.all_standing())
    _remove_leftovers(database)
    store.remove_leftovers()
    _put_in_place(store, database, look, listing, is_copy=is_copy)
    return True


def _sound(
    store: PartStore, database: Path, listing: Listing | None, *, must_rebuild: bool, must_verify: bool = False
) -> _Look:
    """What is there, when everything that is damaged has been set aside."""
    while True:
        standing = store.all_standing()
        gone = gone_from(standing, listing)
        # Contracts or models that changed, and parts that went away, ask for a build from the parts alone.
        published = None if must_rebuild or gone else what_is_published(database)
        everything = names_in(standing)
        missing = everything - published.parts if published and published.parts <= everything else None
        look = _Look(standing, published, missing, gone)
        if not set_aside_damaged(store, standing, everything if must_verify else look.read, listing):
            return look


def comes_to_the_same(standing: Standing, missing: Names, retracted: Sequence[str], spill: Path) -> bool:
    """Whether adding the missing parts to what is published gives the rows that a build from all parts gives.

    It does when no missing part comes before a published one of its table, and when nothing changes in what is removed
    or retracted (`retracted`: the batches whose retraction is published).
    """
    tables = {table for table, _ in missing}
    if tables & {"retractions", REMOVALS}:
        return False
    for name in tables:
        is_new = [(name, part.name) in missing for part in standing[name]]
        if is_new != sorted(is_new):
            return False
    if not retracted or "responses" not in tables:
        return True
    # Of a missing response that is retracted, or takes the place of one: verdicts that stand or fell with it turn.
    table, parts = TABLES["responses"], standing["responses"]
    with engine(spill) as connection:
        view_parts(connection, table, [p.path for p in parts if (table.name, p.name) in missing], "new_answers")
        view_parts(connection, table, [part.path for part in parts], "answers")
        batches = ", ".join(map(quoted, retracted))
        taken_back = f"select response_id from answers where {BATCH} in ({batches})"
        return not holds(connection, f"select 1 from new_answers where response_id in ({taken_back})")


def _put_in_place(store: PartStore, database: Path, look: _Look, listing: Listing | None, *, is_copy: bool) -> None:
    """Build the database beside the old one, note what it was built from, and swap it in."""
    from warehouse.blocks import fill_up  # NumPy takes long to import for commands that only read

    building = database.with_name(f".{database.name}.{uuid.uuid4().hex}.tmp")
    everything = names_in(look.standing)
    missing = look.missing if is_copy and look.missing else everything
    try:
        if is_copy:
            shutil.copyfile(database, building)
        n_rows = build(look.standing, building, missing, stamp(), is_copy=is_copy)
    except duckdb.Error as error:
        if not is_copy or is_database_whole(database):
            raise
        raise _DamagedCopy from error
    fill_up(building)
    sync(building)
    # Of tables whose parts are gone, and of kinds that were lost before, there should be as many rows as there were.
    tables, rows = {table for table, _ in look.gone}, {kind: (n, n) for kind, n in n_rows.items()}
    for kind, (n, should) in listing.rows.items() if listing else ():
        if kind[0] in tables or n < should:
            rows[kind] = n_rows.get(kind, 0), max(should, n_rows.get(kind, 0))
    if everything:
        write_list(store.root, Listing(frozenset(everything), rows))
    refuse_if_lost(database)
    building.replace(database)
    sync(database.parent)


def _remove_leftovers(database: Path) -> None:
    """Remove what unfinished publishing left behind: under the lock, nobody else is building."""
    for leftover in database.parent.glob(f".{database.name}.*.tmp*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
