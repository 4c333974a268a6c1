"""The locks of a warehouse (see the README): runs, those who must be alone, publishers, and life signs of runs.

The kernel gives a lock back when its holder ends, however it ends. A life sign is a lock on a file of its own.
"""

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from warehouse.errors import WarehouseBusy
from warehouse.owner import Owner, Tell, only_machine, why_lost


@contextmanager
def file_lock(
    path: Path, *, wait: bool, is_shared: bool = False, sharers: Callable[[], Sequence[int]] = tuple
) -> Iterator[None]:
    """Hold a lock on a file: alone, or with others who share it.

    With `wait` a lock that is held otherwise is waited for. `sharers` are the process ids of those who share it.

    Raises:
        WarehouseBusy: without `wait`, when it is held otherwise; the message names the process ids of the holders.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            file.seek(0)
            holders = [str(process) for process in sharers()] or [file.read().strip() or "unknown"]
            who = f"process {holders[0]} is" if len(holders) == 1 else f"processes {', '.join(holders)} are"
            raise WarehouseBusy(
                f"{path.parent}: {who} at work on this warehouse; wait for it, or use another --warehouse"
            ) from error
        if not is_shared:
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield


@contextmanager
def life_sign(folder: Path, name: str) -> Iterator[None]:
    """Give a life sign under a name that is used once; the file appears locked, and is removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{quote(name, safe='')}.lock"
    with path.with_suffix(".tmp").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        file.write(f"{os.getpid()}\n")
        file.flush()
        Path(file.name).replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def processes_at_work(folder: Path) -> list[int]:
    """The ids of the processes that give a life sign; what dead ones left behind is cleared away."""
    found = set()
    for path in filter(_is_held, folder.glob("*.lock")):
        with suppress(FileNotFoundError):  # it ended at this instant
            found.add(int(path.read_text(encoding="utf-8")))
    return sorted(found)


def _is_held(path: Path) -> bool:
    """Whether a lock is held; the file is removed if it is not."""
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


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

        With somebody to `tell` what is waited for, another machine's counter is watched, and its place taken if that
        has stopped; otherwise one is refused at once.

        Raises:
            WarehouseBusy: another machine writes, or may do so.
        """
        return only_machine(self.root, tell)

    def elsewhere(self) -> str | None:
        """The other machine that writes this warehouse, or did so until it failed; None where there is none."""
        return Owner(self.root).elsewhere()

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
        return run_id in self.living_runs()

    def living_runs(self) -> list[str]:
        """The runs that go on, also those that have published nothing yet."""
        # Where another machine writes, its locks may not be seen from here; looking would remove its life signs.
        is_elsewhere = self.elsewhere() is not None
        signs = [path for path in sorted(self._living.glob("*.lock")) if is_elsewhere or _is_held(path)]
        return [unquote(path.stem) for path in signs if not path.stem.startswith(_PROCESS)]
