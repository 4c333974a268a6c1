"""The locks of a warehouse (`locks.md`): shared ones of runs, exclusive ones, and life signs.

The kernel releases a lock when its process ends, in whatever way. A life sign is a lock on a file of its own.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from warehouse.errors import WarehouseBusy


@contextmanager
def file_lock(
    path: Path, *, wait: bool, is_shared: bool = False, sharers: Callable[[], Sequence[int]] = tuple
) -> Iterator[None]:
    """Hold a lock on a file, exclusive or shared.

    With `wait`, wait for a conflicting holder. `sharers` returns the process ids of shared holders.

    Raises:
        WarehouseBusy: without `wait`, if a conflicting lock is held; the message names the holders' process ids.
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
    """Hold a life sign under a unique name; its file appears locked, and is removed at the end."""
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
    """Return the ids of the processes with a life sign; the files of dead ones are removed."""
    ids = set()
    for path in filter(is_held, folder.glob("*.lock")):
        with suppress(FileNotFoundError):  # it ended at this instant
            ids.add(int(path.read_text(encoding="utf-8")))
    return sorted(ids)


def is_held(path: Path) -> bool:
    """Return whether a lock is held; the file is removed if it is not."""
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
