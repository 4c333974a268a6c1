"""Files in a store. Putting a single object in place is whole or not at all in S3, GCS and Azure."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.llm import safe
from tasks.rules.errors import PipelineError
from tasks.stores.transfer import transfer

_CHUNK_BYTES = 1 << 22


@contextmanager
def in_one_line(address: str) -> Iterator[None]:
    """Turn whatever a store's library raises into one line."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:  # every library has errors of its own
        what = safe(" ".join(str(error).split())) or "no reason given"
        raise PipelineError(
            f"{address}: {type(error).__name__}: {what}; check the address, the network and the keys"
        ) from error


@dataclass(frozen=True)
class Store:
    """A prefix in a store: its address as it was given, the file system of fsspec, and its path there."""

    address: str
    filesystem: Any
    root: str

    def __str__(self) -> str:
        return self.address

    def below(self, name: str) -> "Store":
        """A prefix within this one."""
        return Store(f"{self.address}/{name}", self.filesystem, self._path(name))

    def files(self) -> dict[str, int]:
        """The names of all files, and their sizes in bytes."""
        with in_one_line(self.address):
            self.filesystem.invalidate_cache()
            try:
                found = self.filesystem.find(self.root, detail=True)
            except FileNotFoundError:
                return {}
        above = f"{self.root}/"
        return {
            path.removeprefix(above): int(details["size"])
            for path, details in found.items()
            # What ends with a slash is made by consoles to show an empty folder.
            if path.startswith(above) and not path.endswith("/") and details["type"] == "file"
        }

    def read(self, name: str) -> bytes | None:
        """What a small file holds; None: it is not there."""
        with in_one_line(self.address):
            try:
                return bytes(self.filesystem.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Put a small file in place, or another one in its place."""
        with in_one_line(self.address):
            self.filesystem.pipe_file(self._path(name), content)

    def put(self, files: Mapping[str, Path], *, is_quiet: bool) -> None:
        """Copy files of this machine to these names."""
        if not files:
            return
        n_bytes = sum(path.stat().st_size for path in files.values())
        with in_one_line(self.address), transfer("upload", self.address, n_bytes, is_quiet=is_quiet) as callback:
            names = [self._path(name) for name in files]
            self.filesystem.put([str(path) for path in files.values()], names, callback=callback)

    def get(self, files: Mapping[str, Path], n_bytes: int, *, is_quiet: bool) -> None:
        """Copy the files of these names to this machine; the caller has seen that they stay where they should."""
        if not files:
            return
        with in_one_line(self.address), transfer("download", self.address, n_bytes, is_quiet=is_quiet) as callback:
            names = [self._path(name) for name in files]
            self.filesystem.get(names, [str(path) for path in files.values()], callback=callback)

    def hash_of(self, name: str) -> str:
        """The SHA-256 of a file, which is read for it."""
        hashed = hashlib.sha256()
        with in_one_line(self.address), self.filesystem.open(self._path(name), "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                hashed.update(chunk)
        return hashed.hexdigest()

    def remove(self, names: Collection[str]) -> None:
        """Remove files that are there."""
        if names:
            with in_one_line(self.address):
                self.filesystem.rm([self._path(name) for name in names])

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"
