"""A folder in the warehouse for files that are to be uploaded."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warehouse import Warehouse


@contextmanager
def work_folder(warehouse: Warehouse, name: str) -> Iterator[Path]:
    """An empty folder on the disk of the warehouse, which may have no room elsewhere.

    The caller is the only one on this machine who uses this name; what a killed one left in it is removed.
    """
    folder = warehouse.root / f".{name}-{socket.gethostname()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kept_as(source: Path, target: Path) -> None:
    """Give a file that is replaced, never changed, a second name; where the disk does not allow that, copy it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
