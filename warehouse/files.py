"""Files that appear whole or not at all."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees all of it or nothing: temporary name, fsync, rename."""
    write_named(path.parent, content, lambda: path.name)


def write_named(folder: Path, content: bytes, name: Callable[[], str]) -> str:
    """Write a file whole or not at all under a name that is chosen at the last moment, and return the name."""
    temporary = folder / f".{uuid.uuid4().hex}.tmp"
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        chosen = name()
        temporary.replace(folder / chosen)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(folder)
    return chosen


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    sync(folder)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
