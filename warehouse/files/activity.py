"""Life signs: who is at work. A life sign is a lock on a file, so it ends with its process, however that ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote


@contextlib.contextmanager
def life_sign(folder: Path, name: str) -> Iterator[None]:
    """Give a life sign under a name of one's own; the file is removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _path(folder, name)
    while True:
        file = path.open("a+")
        fcntl.flock(file, fcntl.LOCK_SH)
        if _is_at(path, file):
            break
        # Somebody cleared it away between the opening and the lock.
        file.close()
    with file:
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def gives_life_sign(folder: Path, name: str) -> bool:
    """Whether somebody gives a life sign under this name."""
    return _is_held(_path(folder, name))


def names_alive(folder: Path) -> list[str]:
    """The names under which somebody gives a life sign."""
    return [unquote(path.stem) for path in sorted(folder.glob("*.lock")) if _is_held(path)]


def names_left(folder: Path) -> list[str]:
    """The names under which somebody gave a life sign and did not end: it goes on, or was killed."""
    return [unquote(path.stem) for path in sorted(folder.glob("*.lock"))]


def processes_at_work(folder: Path) -> list[int]:
    """The ids of the processes that give a life sign; what dead ones left behind is cleared away."""
    found = set()
    for path in folder.glob("*.lock"):
        if _is_held(path):
            with contextlib.suppress(FileNotFoundError, ValueError):  # it ended, or begins, at this instant
                found.add(int(path.read_text(encoding="utf-8")))
    return sorted(found)


def _is_held(path: Path) -> bool:
    """Whether a lock is held; the file is removed if it is not."""
    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Since it was opened, its holder may have ended and another one begun under the same name.
            if not _is_at(path, file):
                return _is_held(path)
            path.unlink(missing_ok=True)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def _is_at(path: Path, file: IO[str]) -> bool:
    """Whether an open file is the one that the path leads to now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _path(folder: Path, name: str) -> Path:
    return folder / f"{quote(name, safe='')}.lock"
