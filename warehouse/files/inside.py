"""Files of a folder that came from elsewhere: no name and no link in it leads out of it."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path, PurePath

from warehouse.files.errors import WarehouseError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe would wait for somebody at its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotInside(WarehouseError):
    """A name leads out of its folder, or to something that is no regular file."""


def open_inside(folder: Path, name: PurePath | str) -> BufferedReader:
    """Open a regular file within a folder for reading; a link may stand for it if it stays within the folder.

    The way from the folder to the file is gone step by step without following links, so that what is opened is what
    was looked at, whatever is put in its place meanwhile.

    Raises:
        NotInside: it lies elsewhere, or is a pipe, a device or a folder.
        OSError: it is not there, or cannot be read.
    """
    shown = folder / name
    *way, last = _way(folder, shown)
    with ExitStack() as stack:
        try:
            at = _opened(stack, folder.resolve(), None)
            for part in way:
                at = _opened(stack, part, at)
            if not stat.S_ISREG(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode):
                raise NotInside(f"{shown}: not a regular file; put one there")
            file = os.fdopen(os.open(last, _FILE, dir_fd=at), "rb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(shown)) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotInside(f"{shown}: no longer a regular file; import again")
    return file


def files_inside(folder: Path) -> list[Path]:
    """All files of a folder and of those in it, in the order of their names.

    Raises:
        NotInside: one of them is a link that leads out of it or to a folder, or no regular file.
        OSError: a folder cannot be read.
    """
    return sorted(_files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder, onerror=_raise):
        for each in (Path(root, name) for name in folders):
            if each.is_symlink():
                raise NotInside(f"{each}: is a link to a folder; put the folder itself there, or remove the link")
        for each in (Path(root, name) for name in names):
            open_inside(folder, each.relative_to(folder)).close()
            yield each


def _way(folder: Path, path: Path) -> tuple[str, ...]:
    """The names from a folder to the file that a path stands for, links resolved."""
    try:
        way = path.resolve().relative_to(folder.resolve()).parts
    except (ValueError, OSError, RuntimeError) as error:  # of the last two a circle of links
        raise NotInside(f"{path}: leads out of {folder}; put the file itself there") from error
    if not way:
        raise NotInside(f"{path}: is a folder; name a file in it")
    return way


def _opened(stack: ExitStack, name: Path | str, at: int | None) -> int:
    opened = os.open(name, _FOLDER, dir_fd=at)
    stack.callback(os.close, opened)
    return opened


def _raise(error: OSError) -> None:
    raise error
