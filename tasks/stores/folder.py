"""A folder of this machine, used as a store is."""

import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tasks.dataset.foreign_files import open_regular
from warehouse import sync, write_atomically


@dataclass(frozen=True)
class Folder:
    """A folder in which every file appears whole or not at all, and is on the disk when it is there."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def below(self, name: str) -> "Folder":
        """A folder within this one."""
        return Folder(self.path / name)

    def files(self) -> dict[str, int]:
        """The names of all files, and their sizes in bytes."""
        found = {}
        for path in (Path(folder, name) for folder, _, names in os.walk(self.path) for name in names):
            with suppress(FileNotFoundError):  # another writer renamed or removed it since it was listed
                found[path.relative_to(self.path).as_posix()] = path.stat().st_size
        return found

    def read(self, name: str) -> bytes | None:
        """What a small file holds; None: it is not there."""
        path = self.path / name
        if not path.exists():
            return None
        with open_regular(path) as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Put a small file in place, or another one in its place."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)

    def put(self, files: Mapping[str, Path], *, is_quiet: bool) -> None:
        """Copy files of this machine to these names."""
        for name, source in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.tmp")
            shutil.copyfile(source, temporary)
            sync(temporary)
            temporary.replace(target)
        for folder in {(self.path / name).parent for name in files}:
            sync(folder)

    def remove(self, names: Collection[str]) -> None:
        """Remove files that are there, and the folders that are empty then."""
        for name in names:
            path = self.path / name
            path.unlink(missing_ok=True)
            with suppress(OSError):  # it is not empty, or another writer removed it
                while (path := path.parent) != self.path:
                    path.rmdir()
