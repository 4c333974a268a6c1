"""Files that appear whole or not at all, and small JSON files that show when they have been damaged."""

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from warehouse.files.errors import refuse_if_unopened
from warehouse.files.one_machine import refuse_if_lost

_SEAL = "sha256"


class Unsound(ValueError):
    """The content of a sealed file is not what was written."""


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document with its own hash, so that `read_sealed` finds any change."""
    sealed = {**document, _SEAL: _hash(document)}
    write_atomically(path, json.dumps(sealed, indent=0, sort_keys=True).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """A document that `write_sealed` wrote.

    Raises:
        FileNotFoundError: there is none.
        Unsound: it was changed since, or is none.
        WarehouseError: it may not be read, which says nothing about its content.
    """
    try:
        document = json.loads(path.read_bytes())
        seal = document.pop(_SEAL, None)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        if isinstance(error, OSError):
            refuse_if_unopened(path, error)
        raise Unsound(f"{type(error).__name__}: {error}") from error
    if seal != _hash(document):
        raise Unsound("its content is not what was written")
    return dict(document)


def _hash(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


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
        refuse_if_lost(folder)
        temporary.replace(folder / chosen)
    except OSError as error:
        error.filename = error.filename or str(folder)  # a file that is open does not say its name
        raise
    finally:
        temporary.unlink(missing_ok=True)
    sync(folder)
    return chosen


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
