"""The interface of the warehouse for stages: write rows, publish, read, maintain."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from warehouse.compaction import clean_parts, compact_parts, rename_ids
from warehouse.errors import WarehouseOutdated
from warehouse.files import Unsound, has_damage
from warehouse.locks import Owner, Tell, file_lock, life_sign, only_machine, remove_unless_held
from warehouse.parts import (
    DATABASE,
    FILE,
    Listing,
    Loss,
    PartStore,
    begin,
    names_in,
    read_list,
    refuse_other_version,
    write_list,
)
from warehouse.publish import damage_of, listing_of, publish_parts
from warehouse.reader import Reader, published_parts, stamp, stamp_of

_ABOUT_RUNS = frozenset({"runs", "checks", "spend", "attempt_rows", "alerts", "alert_deliveries"})
"""The tables whose new rows change no result, except checks of ingested data, which `check`
publishes.
"""


def content_of(folder: Path) -> list[str]:
    """Return the names in a folder, if it exists, except those that an empty folder may contain.

    The latter are hidden files, locks and `lost+found`.
    """
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return [
        name
        for name in names
        if not name.startswith(".") and not name.endswith(".lock") and name != "lost+found"
    ]


def other_content(folder: Path) -> str | None:
    """Return a name in a folder that is neither empty nor a warehouse; None for an empty folder or
    a warehouse.
    """
    # A copied database alone is enough.
    if (folder / FILE).exists() or (folder / DATABASE).exists():
        return None
    # A new warehouse may have these if its process was killed before it wrote a mark.
    unmarked = {"parts", "living", "prefect"}
    return min(set(content_of(folder)) - unmarked, default=None)


class Warehouse:
    """A folder with Parquet parts and the published database made of them."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.store = PartStore(self.root)
        self.database = self.store.database
        self._living = self.root / "living"
        self._publishing_began_at_s = time.monotonic()
        self._publishing_took_s = 0.0

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows as one immutable part (see `PartStore.write`); they can be read after the next
        `publish`.

        Raises:
            WarehouseBusy: another machine writes this warehouse.
            WarehouseError: a row does not fit, the disk refuses, or other code wrote this
                warehouse.
        """
        refuse_other_version(self.root)
        with self.only_machine():
            begin(self.root)
            self.store.write(table_name, rows)

    def publish_results(self) -> None:
        """Publish if a new row changes a result.

        Rows about runs, checks and costs wait for the next publication.
        """
        published = published_parts(self.database)
        if published is not None:
            changed_parts = names_in(self.store.all_current_parts()) ^ published
            if all(table in _ABOUT_RUNS for table, _ in changed_parts):
                return
        self.publish()

    def publish(self) -> None:
        """Bring the published database up to date with the stored parts."""
        refuse_other_version(self.root)
        self._publishing_began_at_s = time.monotonic()
        with self.publishing():
            publish_parts(self.store)
        self._publishing_took_s = time.monotonic() - self._publishing_began_at_s

    def verify(self) -> None:
        """Verify all stored files, repair them as far as possible, and publish.

        Damaged parts are set aside (`damaged/`), and their rows restored as far as the last
        database has them. A damaged database is rebuilt. `pop_notices` returns the findings,
        `losses` the rows that stay lost.
        """
        version = refuse_other_version(self.root)
        if version is None:
            return  # nothing was ever stored
        with self.publishing():
            begin(self.root)
            publish_parts(self.store, must_verify=True)

    def damage(self) -> list[str]:
        """Return the damage and the missing files, in words; nothing is changed."""
        return damage_of(self.store)

    def losses(self) -> list[Loss]:
        """Return the counted rows that were lost by damage and are not restored."""
        try:
            listing = read_list(self.store.root)
        except Unsound:
            return []
        return listing.losses if listing else []

    def is_damaged(self) -> bool:
        """Return whether damage was found that is not repaired yet, as far as this process
        knows.
        """
        return bool(self.losses()) or has_damage()

    def accept_losses(self) -> None:
        """Accept the losses, so that calls for the missing rows can be repeated."""
        with self.publishing():
            listing = listing_of(self.store)
            if listing.losses:
                # From now on, as many rows are expected as are published.
                rows = {kind: (n_rows, n_rows) for kind, (n_rows, _) in listing.rows.items()}
                write_list(self.store.root, Listing(listing.parts, rows))

    def publish_if_due(self, least_s: float, most_s: float) -> None:
        """Publish if the last publishing of this object is long enough ago.

        Long enough is 20 times its duration, within the bounds: where publishing is fast, readers
        see new rows soon.
        """
        due_s = min(most_s, max(least_s, 20 * self._publishing_took_s))
        if time.monotonic() - self._publishing_began_at_s > due_s:
            self.publish()

    def reader(self, spill: Path | None = None) -> Reader:
        """Open the published state; with a folder `spill`, in bounded memory.

        Raises:
            WarehouseOutdated: another version of the code published it.
            WarehouseError: nothing is published, or other code wrote this warehouse.
        """
        refuse_other_version(self.root)
        reader = Reader(self.database, spill)
        if stamp_of(reader) != stamp():
            reader.close()
            raise WarehouseOutdated(
                f"{self.database}: was published by another version of prbench; `prbench aggregate`"
                " renews it without a model call"
            )
        return reader

    def published_state(self, excluded_tables: Collection[str] = ()) -> list[str]:
        """Return what the published database was built from: the stamp of the code, and the parts
        of all tables but the excluded ones.
        """
        parts = published_parts(self.database) or ()
        names = [f"{table}/{part}" for table, part in parts if table not in excluded_tables]
        return [stamp(), *sorted(names)]

    def part_sizes(self) -> list[int]:
        """Return the bytes of each part of all tables: many parts make rebuilding and direct
        reading slow.
        """
        return [
            part.stat().st_size
            for parts in self.store.all_current_parts().values()
            for part in parts
        ]

    def compact(self) -> None:
        """Publish, merge the small parts of every table, and build the database again from the
        merged ones.

        What is read stays the same, and parts may be written meanwhile.

        Raises:
            WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
        """
        refuse_other_version(self.root)
        self.clean()  # finishes a removal that was killed
        with self.publishing():
            # A merged damaged part would carry the damage under a valid hash.
            publish_parts(self.store, must_verify=True)
            compact_parts(self.store)
            publish_parts(self.store, must_rebuild=True)

    def rename(self, new_ids: Mapping[str, str]) -> None:
        """Give responses, and rows about them, new ids (old id or configuration hash -> new one),
        and publish.

        Raises:
            WarehouseError: a part cannot be read, or the disk refuses; the same call then does the
                rest.
        """
        with self.publishing():
            # A rewritten damaged part would carry the damage under a valid hash.
            publish_parts(self.store, must_verify=True)
            rename_ids(self.store, new_ids)
            publish_parts(self.store, must_rebuild=True)

    def clean(self) -> None:
        """Rewrite the parts that hold removed responses, so that nothing reads them any more.

        Raises:
            WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
        """
        with self.publishing():
            clean_parts(self.store)

    def only_machine(self, tell: Tell | None = None) -> AbstractContextManager[None]:
        """Write as a process of the only machine that writes this warehouse.

        With `tell`, which gets lines about the wait, another machine's file is watched, and taken
        over if it does not change; otherwise the call is refused at once.

        Raises:
            WarehouseBusy: another machine writes, or may do so.
        """
        return only_machine(self.root, tell)

    def other_host(self) -> str | None:
        """Return the name of the other machine that writes this warehouse, or did so until it
        failed; None if there is none.
        """
        return Owner(self.root).other_host()

    @contextmanager
    def writing(self, tell: Tell | None = None) -> Iterator[None]:
        """Work on this warehouse, possibly at the same time as other runs.

        Raises:
            WarehouseBusy: a process holds it alone, or another machine writes (see `only_machine`
                for `tell`).
            WarehouseError: other code wrote this warehouse.
        """
        refuse_other_version(self.root)
        with self.only_machine(tell), file_lock(self.root / "run.lock", wait=False, is_shared=True):
            yield

    @contextmanager
    def alone(self, tell: Tell | None = None) -> Iterator[None]:
        """Work alone on this warehouse (see `only_machine`); refused while a run is in progress."""
        with self.only_machine(tell), self.only_one("run", wait=False):
            yield

    def only_one(self, name: str, *, wait: bool) -> AbstractContextManager[None]:
        """Hold the lock of this name (such as `night`); it does not block runs.

        Raises:
            WarehouseBusy: without `wait`, if another process holds it; the message names the
                process id.
        """
        return file_lock(self.root / f"{name}.lock", wait=wait)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the lock for publishing and for changing the current parts; wait for other processes
        of this machine.
        """
        with self.only_machine(), self.only_one("publish", wait=True):
            yield

    def living(self, run_id: str) -> AbstractContextManager[None]:
        """Hold the life sign of a run until the block or the process ends."""
        return life_sign(self._living, run_id)

    def living_runs(self) -> list[str]:
        """Return the ids of the runs in progress, and remove the life signs of others.

        A run that is not in progress, but `running` in the table `runs`, was killed.
        """
        # Where another machine writes, its locks may not be seen from here; looking would remove
        # its life signs.
        is_elsewhere = self.other_host() is not None
        run_ids = []
        for path in sorted(self._living.glob("*.lock")):
            if is_elsewhere or not remove_unless_held(path):
                run_ids.append(unquote(path.stem))
        return run_ids
