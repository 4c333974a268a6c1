"""The locks of a warehouse (see the README): runs, those who must be alone, publishers, and life signs of runs."""

import os
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from warehouse.files.activity import gives_life_sign, life_sign, names_alive, processes_at_work
from warehouse.files.locks import file_lock

_PROCESS = "process-"
"""What the life sign of a process begins with; others are those of runs."""


class Locks:
    """The locks in a warehouse's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._run_lock = root / "run.lock"
        self._living = root / "living"

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Be one of the runs that are at work on this warehouse.

        Raises:
            WarehouseBusy: somebody is alone on it.
        """
        processes_at_work(self._living)  # clears away what killed ones left
        own = f"{_PROCESS}{os.getpid()}-{uuid.uuid4().hex[:8]}"
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

    def publishing(self) -> AbstractContextManager[None]:
        """Be the only one who publishes or changes which parts stand; others are waited for."""
        return self.only_one("publish", wait=True)

    def living(self, run_id: str) -> AbstractContextManager[None]:
        """Give a sign that a run goes on, until the block or the process ends."""
        return life_sign(self._living, run_id)

    def is_living(self, run_id: str) -> bool:
        """Whether a run goes on; one that `runs` calls running and that does not was killed."""
        return gives_life_sign(self._living, run_id)

    def living_runs(self) -> list[str]:
        """The runs that go on, also those that have published nothing yet."""
        return [name for name in names_alive(self._living) if not name.startswith(_PROCESS)]
