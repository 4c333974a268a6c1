"""Stores (all file systems that fsspec supports) and local folders, as locations of bundles.

In S3, GCS and Azure, the write of an object is atomic.
"""

import hashlib
import os
import re
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from tasks.dataset.foreign_files import hash_inside, open_inside, read_regular
from tasks.llm.redaction import safe
from tasks.rules.errors import PipelineError, UsageError, install_extra
from warehouse import Warehouse, sync, write_atomically


@contextmanager
def in_one_line(address: str) -> Iterator[None]:
    """Turn any error of a store's library into one line."""
    try:
        yield
    except PipelineError:
        raise
    except ImportError as error:
        advice = f"{error} (s3://: {install_extra('s3')})"
        raise UsageError(
            f"{address}: the library for this store is not installed; {advice}"
        ) from error
    except Exception as error:  # every library has its own errors
        reason = safe(" ".join(str(error).split())) or "no reason given"
        raise PipelineError(
            f"{address}: {type(error).__name__}: {reason}; check address, network and keys"
        ) from error


@dataclass(frozen=True)
class Store:
    """A prefix in a store: the address as the user gave it, fsspec's file system, and the path in
    it.
    """

    address: str
    filesystem: Any
    root: str

    def __str__(self) -> str:
        return self.address

    def below(self, name: str) -> "Store":
        """Return a prefix below this one."""
        return Store(f"{self.address}/{name}", self.filesystem, self._path(name))

    def files(self) -> dict[str, int]:
        """Return the names of all files, and their sizes in bytes."""
        with in_one_line(self.address):
            self.filesystem.invalidate_cache()
            try:
                details_by_path = self.filesystem.find(self.root, detail=True)
            except FileNotFoundError:
                return {}
            prefix = f"{self.root}/"
            sizes = {}
            for path, details in details_by_path.items():
                # Web consoles create names that end with a slash to show an empty folder.
                is_file = details["type"] == "file" and not path.endswith("/")
                if is_file and path.startswith(prefix):
                    # Some stores, such as HTTP servers, list names without sizes.
                    n_bytes = details["size"] or self.filesystem.size(path)
                    sizes[path.removeprefix(prefix)] = int(n_bytes)
            return sizes

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None: there is no such file."""
        with in_one_line(self.address):
            try:
                return bytes(self.filesystem.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, or replace it."""
        with in_one_line(self.address):
            self.filesystem.pipe_file(self._path(name), content)

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy local files to these names."""
        local_paths = list(map(str, files.values()))
        with in_one_line(self.address):
            self.filesystem.put(local_paths, list(map(self._path, files)))

    def get(self, files: Mapping[str, Path]) -> None:
        """Copy the files with these names to local paths; the caller has checked that the paths are
        safe.
        """
        local_paths = list(map(str, files.values()))
        with in_one_line(self.address):
            self.filesystem.get(list(map(self._path, files)), local_paths)

    def hash_of(self, name: str) -> str:
        """Read a file and return its SHA-256."""
        with in_one_line(self.address), self.filesystem.open(self._path(name), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def remove(self, names: Collection[str]) -> None:
        """Remove existing files."""
        if names:
            with in_one_line(self.address):
                self.filesystem.rm(list(map(self._path, names)))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


@dataclass(frozen=True)
class Folder:
    """A folder in which every file is written atomically and synced to disk.

    `title` is its name in messages, if it differs from its path.
    """

    path: Path
    title: str = ""

    def __str__(self) -> str:
        return self.title or str(self.path)

    def below(self, name: str) -> "Folder":
        """Return a folder below this one."""
        return Folder(self.path / name)

    def files(self) -> dict[str, int]:
        """Return the names of all files, and their sizes in bytes."""
        sizes = {}
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = Path(folder, name)
                # Another writer may have renamed or removed the file after it was listed.
                with suppress(FileNotFoundError):
                    sizes[path.relative_to(self.path).as_posix()] = path.stat().st_size
        return sizes

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None: there is no such file."""
        path = self.path / name
        return read_regular(path) if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, or replace it."""
        write_atomically(self.path / name, content)

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy local files to these names; a file that is already at its target stays."""
        folders = set()
        for name, source in files.items():
            target = self.path / name
            if source != target:
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = target.with_name(f".{target.name}.tmp")
                shutil.copyfile(source, temporary)
                sync(temporary)
                temporary.replace(target)
                folders.add(target.parent)
        for folder in folders:
            sync(folder)

    def get(self, files: Mapping[str, Path]) -> None:
        """Copy the files with these names to other local paths; no link that leads out of the
        folder is followed.

        Raises:
            UnsafeFile: a name is such a link.
        """
        for name, target in files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_inside(self.path, name) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 22)

    def hash_of(self, name: str) -> str:
        """Read a file and return its SHA-256."""
        return hash_inside(self.path, name)

    def remove(self, names: Collection[str]) -> None:
        """Remove files, and the folders that become empty."""
        for name in names:
            path = self.path / name
            path.unlink(missing_ok=True)
            folder = path.parent
            with suppress(OSError):  # the folder is not empty, or another writer removed it
                while folder != self.path:
                    folder.rmdir()
                    folder = folder.parent


Location = Folder | Store
"""Where a bundle is."""


def location_of(target: Path | Store) -> Location:
    """Return the folder at a path; a store is returned unchanged."""
    return Folder(target) if isinstance(target, Path) else target


@contextmanager
def work_folder(warehouse: Warehouse, name: str) -> Iterator[Path]:
    """Yield an empty folder on the disk of the warehouse, because other disks may lack room.

    A name is used by one caller on this machine at a time; what a killed caller left behind is
    removed.
    """
    folder = warehouse.root / f".{name}-{socket.gethostname()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def link_or_copy(source: Path, target: Path) -> None:
    """Link to a file that is never changed in place, or copy it if the disk does not allow
    links.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def open_location(address: str) -> Path | Store:
    """Return a path, or the store at an address such as `s3://bucket/prefix`; `file://` is a path.

    Raises:
        UsageError: the address holds keys, or its store is not known or lacks its library.
        PipelineError: the store cannot be reached.
    """
    scheme, slashes, rest = address.partition("://")
    if not slashes:
        scheme, colon, rest = address.partition(":")
        if colon and scheme.lower() in fsspec.available_protocols():
            raise UsageError(
                f"{address}: an address has two slashes: {scheme}://{rest.lstrip('/')}; a folder,"
                f" ./{address}"
            )
        return Path(address)
    scheme = scheme.lower()
    address = f"{scheme}://{rest}"
    if scheme in ("file", "local"):
        return Path(fsspec.filesystem(scheme)._strip_protocol(address))
    # A password (`key:secret@bucket`) or a possible signature (`?sig=...`).
    if re.match(r"[^@]*:[^@]*@|.*\?", rest):
        raise UsageError(
            f"{scheme}://...: an address must hold no keys and no parameters; keys come from"
            " environment, profile or role"
        )
    if scheme not in fsspec.available_protocols():
        raise UsageError(
            f"{address}: {scheme}:// is not known; name a folder, or an address such as"
            " s3://bucket/prefix"
        )
    with in_one_line(address):
        filesystem, root = fsspec.url_to_fs(address)
    if set(root) & set("*[]"):  # fsspec takes these for patterns of names when it removes files
        raise UsageError(
            f"{address}: *, [ and ] have a meaning in addresses; name a prefix without them"
        )
    if not root.strip("/"):
        raise UsageError(
            f"{address}: has no bucket or folder; name one, such as {scheme}://bucket/prefix"
        )
    return Store(address.rstrip("/"), filesystem, root.rstrip("/"))
