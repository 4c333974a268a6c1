"""The warehouse as the stages see it: write rows, publish, read; and its upkeep."""

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse.contracts.tables import TABLES
from warehouse.database.damage_report import damage_of, mend_manifests
from warehouse.database.free_space import WASTEFUL, times_larger_than_needed
from warehouse.database.increments import missing_in
from warehouse.database.losses import Loss, mend_losses, read_losses, write_losses
from warehouse.database.publish import publish
from warehouse.database.published import is_damaged, stamp, stamp_of, what_is_published
from warehouse.database.reader import DATABASE, Reader
from warehouse.database.recovery import listing_of
from warehouse.files.activity import gives_life_sign, life_sign, processes_at_work
from warehouse.files.damage import has_damage, note
from warehouse.files.errors import WarehouseOutdated
from warehouse.files.locks import file_lock
from warehouse.parts.compaction import GRACE_S, LARGE_ROWS, Compacted, compact
from warehouse.parts.migrations import (
    Migration,
    begin,
    is_old,
    mend_version,
    migrate,
    note_parser,
    parser_of,
    refuse_newer,
)
from warehouse.parts.removal import clean, responses_where
from warehouse.parts.rewriting import Changes, StoredRows, rewrite, stored_rows
from warehouse.parts.store import PartStore


@dataclass(frozen=True)
class Compaction:
    """What compacting a warehouse came to: its tables, and the database file, rebuilt if it was too wasteful."""

    tables: tuple[Compacted, ...]
    is_rebuilt: bool
    database_bytes_before: int
    database_bytes_after: int

    @property
    def parts_before(self) -> int:
        """Parts of all tables before."""
        return sum(table.parts_before for table in self.tables)

    @property
    def parts_after(self) -> int:
        """Parts of all tables that stand now."""
        return sum(table.parts_after for table in self.tables)


class Warehouse:
    """A folder with Parquet parts and the published database made of them."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.store = PartStore(self.root)
        self._published_at_s = time.monotonic()
        self._is_begun = False

    @property
    def database(self) -> Path:
        """Where the published DuckDB file lies."""
        return self.root / DATABASE

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Write rows as one immutable part (see `PartStore.write`); they are read after the next `publish`.

        Raises:
            WarehouseError: a row does not fit, the disk refuses, or newer code wrote this warehouse.
        """
        if not self._is_begun:
            begin(self.root)
            self._is_begun = True
        return self.store.write(table_name, rows)

    def publish(self, *, must_rebuild: bool = False) -> bool:
        """Bring the published database up to the stored parts; True if there was something to publish.

        With `must_rebuild` it is built from the parts alone, which gives the same rows and takes longer.
        """
        refuse_newer(self.root)
        self._published_at_s = time.monotonic()
        with self._publishing():
            return publish(self.store, self.database, must_rebuild=must_rebuild)

    def verify(self) -> bool:
        """Verify all that is stored, mend what can be mended, and publish; True if there was something to publish.

        Damaged parts are set aside (`damaged/`), and their rows restored as far as the last database has them. A
        damaged database is rebuilt. What was found is reported by `take_notices`, what stays lost by `losses`.
        """
        if refuse_newer(self.root) is None:
            return False  # nothing was ever stored
        self._published_at_s = time.monotonic()
        with self._publishing():
            mend_version(self.root)
            mend_losses(self.root)
            mend_manifests(self.store, listing_of(self.store, self.database))
            return publish(self.store, self.database, must_rebuild=self._must_renew(), must_verify=True)

    def renew_if_damaged(self) -> None:
        """Rebuild a damaged database, for what has to read it before anything is verified."""
        if is_damaged(self.database):
            with self._publishing():
                if self._must_renew():
                    publish(self.store, self.database, must_rebuild=True)

    def _must_renew(self) -> bool:
        must_renew = is_damaged(self.database)
        if must_renew:
            note(self.root, f"{self.database}: was damaged; it is rebuilt from the parts", is_mended=True)
        return must_renew

    def damage(self) -> list[str]:
        """What is damaged or missing, in words; nothing is changed."""
        found = damage_of(self.store, self.database)
        return [*found, f"{self.database}: is damaged"] if is_damaged(self.database) else found

    def losses(self) -> list[Loss]:
        """The rows that damage took and that are not there again."""
        return read_losses(self.root)

    def is_damaged(self) -> bool:
        """Whether damage was found that is not repaired yet, as far as this process knows."""
        return bool(self.losses()) or has_damage(self.root)

    def accept_losses(self) -> list[Loss]:
        """Forget what is lost, so that it can be requested again; returns what it was."""
        with self._publishing():
            losses = read_losses(self.root)
            write_losses(self.root, [])
            return losses

    def publish_if_older_than(self, age_s: float) -> bool:
        """Publish when this object was made, or last did so, more than `age_s` seconds ago."""
        return time.monotonic() - self._published_at_s > age_s and self.publish()

    def reader(self) -> Reader:
        """Open the published state.

        Raises:
            WarehouseOutdated: another version of the code published it.
            WarehouseError: nothing is published, or newer code wrote this warehouse.
        """
        refuse_newer(self.root)
        reader = Reader(self.database)
        if stamp_of(reader) != stamp():
            reader.close()
            raise WarehouseOutdated(
                f"{self.database}: was published by another version of prbench; `prbench aggregate` renews it without "
                "a model call"
            )
        return reader

    def n_parts(self) -> int:
        """How many parts there are, in all tables: many make rebuilding and direct reading slow."""
        return sum(len(self.store.parts(table)) for table in TABLES)

    def n_unpublished(self) -> int:
        """How many parts the next publishing takes in: all of them where it has to rebuild."""
        published = what_is_published(self.database)
        standing = {table: self.store.standing(table) for table in TABLES}
        missing = None if published is None else missing_in(standing, published.parts)
        return sum(map(len, standing.values())) if missing is None else len(missing)

    def compact(self, *, large_rows: int = LARGE_ROWS, grace_s: float = GRACE_S) -> Compaction:
        """Publish, merge the small parts of every table, and rebuild a wasteful database (`warehouse.space`).

        Parts of `large_rows` and more stay as they are; replaced files are deleted by a compaction that comes more
        than `grace_s` seconds after theirs. What is read stays the same, and parts may be written meanwhile.

        Raises:
            WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
        """
        self.migrate()
        self.clean()  # what a removal that was killed left
        with self._publishing():
            # What is merged would carry damage on under a hash of its own.
            mend_manifests(self.store, listing_of(self.store, self.database))
            publish(self.store, self.database, must_verify=True)
            before = self.database.stat().st_size
            published = what_is_published(self.database)
            known = published.parts if published else set()
            tables = compact(self.store, known, large_rows=large_rows, grace_s=grace_s)
            is_rebuilt = times_larger_than_needed(self.database) > WASTEFUL
            if is_rebuilt:
                publish(self.store, self.database, must_rebuild=True)
            return Compaction(tuple(tables), is_rebuilt, before, self.database.stat().st_size)

    def responses_where(self, condition: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The stored responses that fit a condition on their columns and are not removed; no text is read.

        Raises:
            WarehouseError: a part cannot be read.
        """
        return responses_where(self.store, condition, values)

    def clean(self) -> int:
        """Rewrite the parts that hold removed responses, so that nothing reads them any more; how many.

        Raises:
            WarehouseError: a part cannot be read, or the disk refuses; what is read stays the same.
        """
        with self._publishing():
            published = what_is_published(self.database)
            held = published.parts if published else set()
            return clean(self.store, {part for table, part in held if table == "responses"})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be one of the runs that are at work on this warehouse, which is brought up to this code's version first.

        Raises:
            WarehouseBusy: somebody is alone on it.
            WarehouseError: newer code wrote this warehouse.
        """
        self.migrate()
        processes_at_work(self._living)  # clears away what killed ones left
        own = f"process-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        with file_lock(self._run_lock, wait=False, is_shared=True), life_sign(self._living, own):
            yield

    def alone(self) -> AbstractContextManager[None]:
        """Be alone on this warehouse; refused in one line while a run is at work on it."""
        return file_lock(self._run_lock, wait=False, sharers=lambda: processes_at_work(self._living))

    def only_one(self, name: str, *, wait: bool) -> AbstractContextManager[None]:
        """Be the only one under this name (such as `night`), beside whom runs go on.

        Raises:
            WarehouseBusy: without `wait`, when somebody else is; the message names the process id.
        """
        return file_lock(self.root / f"{name}.lock", wait=wait)

    def living(self, run_id: str) -> AbstractContextManager[None]:
        """Give a sign that a run goes on, until the block or the process ends."""
        return life_sign(self._living, run_id)

    def is_living(self, run_id: str) -> bool:
        """Whether a run goes on; one that `runs` calls running and that does not was killed."""
        return gives_life_sign(self._living, run_id)

    @property
    def parser(self) -> int:
        """By which version of the parser of replies the stored verdicts and answers were read."""
        return parser_of(self.root)

    def stored_rows(self, *table_names: str) -> AbstractContextManager[StoredRows]:
        """The rows of the parts, one a key, whether they are published or not; those of retracted imports included."""
        return stored_rows(self.store, table_names)

    def rewrite(self, table_name: str, changes: Changes) -> None:
        """Put other rows in the place of all rows with these keys; they are read after the next `publish`.

        Raises:
            WarehouseError: a part cannot be read, or the disk refuses; the table stays as it is.
        """
        with self._publishing():
            rewrite(self.store, table_name, changes)

    def note_parser(self, parser: int) -> None:
        """Note by which version of the parser all that is stored was read."""
        note_parser(self.root, parser)

    def _publishing(self) -> AbstractContextManager[None]:
        return file_lock(self.root / "publish.lock", wait=True)

    def migrate(self) -> list[Migration]:
        """Bring an older warehouse up to this code's version, alone on it."""
        if not is_old(self.root):
            return []
        with self.alone():
            return migrate(self.root)

    @property
    def _run_lock(self) -> Path:
        return self.root / "run.lock"

    @property
    def _living(self) -> Path:
        return self.root / "living"
