"""The warehouse as the stages see it: write rows, publish, read."""

import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from warehouse.locks import file_lock
from warehouse.publish import publish
from warehouse.reader import DATABASE, Reader
from warehouse.store import PartStore


class Warehouse:
    """A folder with Parquet parts and the published database made of them."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.store = PartStore(self.root)
        self._published_at_s = 0.0

    @property
    def database(self) -> Path:
        """Where the published DuckDB file lies."""
        return self.root / DATABASE

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Write rows as one immutable part (see `PartStore.write`); they are read after the next `publish`."""
        return self.store.write(table_name, rows)

    def publish(self) -> bool:
        """Bring the published database up to the stored parts; True if there was something to publish."""
        self._published_at_s = time.monotonic()
        with file_lock(self.root / "publish.lock", wait=True):
            return publish(self.store, self.database)

    def publish_if_older_than(self, age_s: float) -> bool:
        """Publish when this process last did so more than `age_s` seconds ago."""
        return time.monotonic() - self._published_at_s > age_s and self.publish()

    def reader(self) -> Reader:
        """Open the published state."""
        return Reader(self.database)

    def writing(self) -> AbstractContextManager[None]:
        """Be the one run that makes calls into this warehouse; a second one is refused with one line."""
        return file_lock(self.root / "run.lock", wait=False)
