"""Call locks: one process of a warehouse makes a call, and the others wait for its reply."""

import asyncio
import contextlib
import fcntl
import hashlib
import struct
import time
from collections.abc import Iterator
from pathlib import Path

_FLOCK = struct.Struct("hhqqi0q")
"""`struct flock` of Linux: type, whence, start, length, process."""


class CallLocks:
    """The call locks of a warehouse.

    A call lock is a lock on one byte of an empty file; the byte's offset is the hash of the name.
    The kernel frees a lock when its holder ends, however it ends. The locks belong to the opened
    file and not to the process (`F_OFD_SETLK`): POSIX locks of a process would not separate two
    runs in one process, and closing any file object on that file would free all of them. Two names
    with the same hash only wait for each other.

    Raises:
        OSError: the file of the locks cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "call-locks.lock").open("a+")
        self._held_offsets: set[int] = set()

    @contextlib.contextmanager
    def holding(self, name: str) -> Iterator[bool]:
        """Lock a name until the block ends, if it is free; yield whether it was locked."""
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        # Below the largest offset of a file, so that the byte fits.
        offset = int.from_bytes(digest, "big") >> 2
        # The kernel would grant a lock again to the process that holds it.
        if offset in self._held_offsets or not self._set(fcntl.F_WRLCK, offset):
            yield False
            return
        self._held_offsets.add(offset)
        try:
            yield True
        finally:
            self._held_offsets.discard(offset)
            if not self._file.closed:
                self._set(fcntl.F_UNLCK, offset)

    def _set(self, lock_type: int, offset: int) -> bool:
        """Lock or free a byte of the file; return False if another process holds it."""
        with contextlib.suppress(BlockingIOError):
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _FLOCK.pack(lock_type, 0, offset, 1, 0))
            return True
        return False

    def is_held(self, name: str) -> bool:
        """Return whether any process, this one included, holds the lock."""
        with self.holding(name) as is_free:
            return not is_free

    async def wait_until_released(self, name: str, until_s: float | None = None) -> None:
        """Wait until no process holds the lock, or until a moment of wall-clock time."""
        pause_s = 0.01
        while self.is_held(name) and (until_s is None or time.time() < until_s):
            await asyncio.sleep(pause_s)
            pause_s = min(0.25, 1.5 * pause_s)

    def close(self) -> None:
        """Free all locks."""
        self._file.close()
