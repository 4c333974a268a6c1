"""Locks between processes. The kernel gives a lock back when its holder ends, however it ends."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from warehouse.files.errors import WarehouseBusy


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
