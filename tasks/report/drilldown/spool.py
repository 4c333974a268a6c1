"""A place on disk for what is made in another order than it is written in."""

import os
from threading import Lock
from typing import BinaryIO


class Spool:
    """Pieces that threads put down by a name and take up again; all of them would not fit in memory."""

    def __init__(self, file: BinaryIO) -> None:
        """Take an empty file, which is closed by whoever opened it."""
        self._file = file
        self._places: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = Lock()

    def add(self, name: tuple[str, str], piece: bytes) -> None:
        """Put a piece down."""
        with self._lock:
            self._places[name] = self._file.seek(0, os.SEEK_END), len(piece)
            self._file.write(piece)

    def get(self, name: tuple[str, str]) -> bytes | None:
        """A piece; None where there is none of this name."""
        if name not in self._places:
            return None
        with self._lock:
            place, size = self._places[name]
            self._file.seek(place)
            return self._file.read(size)
