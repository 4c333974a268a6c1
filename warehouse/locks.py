"""The locks of a warehouse (`locks.md`): shared ones of runs, exclusive ones, and life signs.

The kernel releases a lock when its process ends, in whatever way. A life sign is a lock on a file of its own.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from warehouse.errors import WarehouseBusy

_LOCKS = Path("/proc/locks")
"""The locks of this machine; only Linux has this file."""


@contextmanager
def file_lock(path: Path, *, wait: bool, is_shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, exclusive or shared; with `wait`, wait for a conflicting holder.

    Raises:
        WarehouseBusy: without `wait`, if a conflicting lock is held; the message names the holders' process ids.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            ids = _holders(os.fstat(file.fileno()).st_ino)
            named = f"process {ids[0]} is" if ids else "another process is"
            who = f"processes {', '.join(ids)} are" if len(ids) > 1 else named
            raise WarehouseBusy(
                f"{path.parent}: {who} at work on this warehouse; wait for it, or use another --warehouse"
            ) from error
        yield


def _holders(inode: int) -> list[str]:
    """Return the ids of the processes that hold a lock on a file; empty where the system does not say."""
    locks = map(str.split, _LOCKS.read_text(encoding="utf-8").splitlines() if _LOCKS.exists() else ())
    return sorted({lock[4] for lock in locks if lock[1] == "FLOCK" and lock[5].endswith(f":{inode}")}, key=int)


@contextmanager
def life_sign(folder: Path, name: str) -> Iterator[None]:
    """Hold a life sign under a unique name; its file appears locked, and is removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{quote(name, safe='')}.lock"
    with path.with_suffix(".tmp").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        Path(file.name).replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


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
