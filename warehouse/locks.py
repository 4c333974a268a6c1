"""Locks between processes. The kernel gives a lock back when its holder ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse.errors import WarehouseBusy


@contextmanager
def file_lock(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold an exclusive lock on a file.

    With `wait` a held lock is waited for.

    Raises:
        WarehouseBusy: without `wait`, when another process holds it; the message names its process id.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise WarehouseBusy(
                f"{path.parent}: process {holder} is at work on this warehouse; wait for it, or use another --warehouse"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
