"""The locks of a warehouse (see the README): runs, those who must be alone, publishers, and life signs of runs."""

import os
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from warehouse.files.activity import gives_life_sign, life_sign, names_alive, names_left, processes_at_work
from warehouse.files.heartbeat import Heartbeat, Tell
from warehouse.files.locks import file_lock
from warehouse.files.one_machine import only_machine, why_lost

_PROCESS = "process-"
"""What the life sign of a process begins with; others are those of runs."""


class Locks:
    """The locks in a warehouse's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._run_lock = root / "run.lock"
        self._living = root / "living"

    def only_machine(self, tell: Tell | None = None) -> AbstractContextManager[None]:
        """Be of the only machine that writes this warehouse.

        With somebody to `tell` what is waited for, another machine's heartbeat is watched, and its place taken if that
        has stopped; otherwise one is refused at once.

        Raises:
            WarehouseBusy: another machine writes, or may do so.
        """
        return only_machine(self.root, tell)

    def elsewhere(self) -> str | None:
        """The other machine that writes this warehouse, or did so until it failed; None where there is none."""
        return Heartbeat(self.root).elsewhere()

    def why_lost(self) -> str | None:
        """Why this process may not write any more, in one line: another machine has taken over; None where it may."""
        return why_lost(self.root)

    @contextmanager
    def at_work(self, tell: Tell | None = None) -> Iterator[None]:
        """Be one of the runs that are at work on this warehouse (see `only_machine`).

        Raises:
            WarehouseBusy: somebody is alone on it, or another machine writes.
        """
        with self.only_machine(tell):
            processes_at_work(self._living)  # clears away what killed ones left
            own = f"{_PROCESS}{os.getpid()}-{uuid.uuid4().hex[:8]}"
            with file_lock(self._run_lock, wait=False, is_shared=True), life_sign(self._living, own):
                yield

    @contextmanager
    def alone(self, tell: Tell | None = None) -> Iterator[None]:
        """Be alone on this warehouse (see `only_machine`); refused in one line while a run is at work on it."""
        with (
            self.only_machine(tell),
            file_lock(self._run_lock, wait=False, sharers=lambda: processes_at_work(self._living)),
        ):
            yield

    def only_one(self, name: str, *, wait: bool) -> AbstractContextManager[None]:
        """Be the only one under this name (such as `night`), beside whom runs go on.

        Raises:
            WarehouseBusy: without `wait`, when somebody else is; the message names the process id.
        """
        return file_lock(self.root / f"{name}.lock", wait=wait)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Be the only one who publishes or changes which parts stand; others on this machine are waited for."""
        with self.only_machine(), self.only_one("publish", wait=True):
            yield

    def living(self, run_id: str) -> AbstractContextManager[None]:
        """Give a sign that a run goes on, until the block or the process ends."""
        return life_sign(self._living, run_id)

    def is_living(self, run_id: str) -> bool:
        """Whether a run goes on; one that `runs` calls running and that does not was killed."""
        # Where another machine writes, its locks may not be seen from here; looking would remove its life signs.
        return run_id in names_left(self._living) if self.elsewhere() else gives_life_sign(self._living, run_id)

    def living_runs(self) -> list[str]:
        """The runs that go on, also those that have published nothing yet."""
        names = names_left(self._living) if self.elsewhere() else names_alive(self._living)
        return [name for name in names if not name.startswith(_PROCESS)]
