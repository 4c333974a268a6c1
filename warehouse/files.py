"""Atomic writes, and files whose damage can be detected: small JSON files, parts and databases."""

import errno
import hashlib
import json
import os
import shutil
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warehouse.locks import refuse_if_lost

_SEAL = "sha256"
"""The key of the hash in a sealed document."""


class Unsound(ValueError):
    """The content of a sealed file has changed since it was written."""


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document with its own hash, so that `read_sealed` finds any change."""
    sealed = {**document, _SEAL: hash_of_document(document)}
    write_atomically(path, json.dumps(sealed, indent=0, sort_keys=True).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Return a document that `write_sealed` wrote.

    Raises:
        FileNotFoundError: there is none.
        Unsound: it has changed since, or is not such a document.
        OSError: it cannot be read, so its content is unknown.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        seal = document.pop(_SEAL, None)
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise Unsound(f"{type(error).__name__}: {error}") from error
    if seal != hash_of_document(document):
        raise Unsound("its content is not what was written")
    return document


def hash_of_document(document: object) -> str:
    """Return the SHA-256 of a JSON document; the order of its keys does not matter."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write content as a file (see `write_file`)."""
    write_file(path.parent, lambda temporary: temporary.write_bytes(content), lambda _: path.name)


def write_file(
    folder: Path,
    write: Callable[[Path], object],
    choose_name: Callable[[Path], str],
) -> Path:
    """Write a file atomically (temporary name, fsync, rename): readers see all of it or nothing,
    also after a crash.

    `write` gets the temporary path, and so does `choose_name`, which returns the name of the
    written file. Return the path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{uuid.uuid4().hex}.tmp"
    try:
        write(temporary)
        sync(temporary)
        path = folder / choose_name(temporary)
        # Nothing may be written any more if this process has lost its write lock.
        refuse_if_lost()
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(folder)
    return path


def copy_file(source: Path, copy: Path) -> None:
    """Copy a file: at once where the file system lets files share their blocks (Btrfs, XFS)."""
    if sys.platform == "linux":
        # Some systems refuse the call; of any other problem, the plain copy says which file has it.
        with suppress(OSError), source.open("rb") as reading, copy.open("wb") as writing:
            while os.copy_file_range(reading.fileno(), writing.fileno(), source.stat().st_size):
                pass
            return
    shutil.copyfile(source, copy)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_HASH_HEX = 24
"""Length of the content hash in the name of a part."""


def write_part(
    folder: Path,
    write: Callable[[Path], object],
    moment_for: Callable[[str], str],
) -> Path:
    """Write a part (see `write_file`), named `<moment>-<content hash>.parquet`.

    `moment_for` returns the moment, in milliseconds and without a hyphen, for a content hash: a
    part with the same content as an earlier one may keep its moment.
    """

    def choose_name(temporary: Path) -> str:
        content_hash = hash_of(temporary)[:_HASH_HEX]
        return f"{moment_for(content_hash)}-{content_hash}.parquet"

    return write_file(folder, write, choose_name)


def is_whole(path: Path) -> bool:
    """Return whether a part exists and its content has the hash in its name; False if its disk is
    damaged.

    Raises:
        OSError: it cannot be read for another reason, so its content is unknown.
    """
    return _is_sound(path, lambda path: is_named_after(path.name, hash_of(path)))


def _is_sound(path: Path, check: Callable[[Path], bool]) -> bool:
    """Return the result of a check of a file's content; False if the file is missing, empty, or on
    a damaged disk.
    """
    try:
        return path.stat().st_size > 0 and check(path)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EIO}:
            raise
        return False


def is_named_after(name: str, content_hash: str) -> bool:
    """Return whether a part's name, or path, says that its content has this SHA-256."""
    return Path(name).stem.partition("-")[2] == content_hash[:_HASH_HEX]


DIGEST_HEX = 64
"""Length of the digest at the end of a database or a certificate: the SHA-256 of all bytes before
it.
"""
_CHUNK_BYTES = 1_000_000
"""Bytes of a file that are in memory together while it is hashed."""


def append_digest(path: Path) -> str:
    """Append the digest of its content to a file, and return it.

    DuckDB ignores what follows its blocks.
    """
    digest = hash_of(path)
    with path.open("ab") as file:
        file.write(digest.encode())
    return digest


def verified_digest(path: Path) -> str | None:
    """Return the digest at the end of a file; None if the bytes before it have another one.

    Raises:
        OSError: the file cannot be read.
    """
    n_bytes = max(path.stat().st_size - DIGEST_HEX, 0)
    content_hash = hashlib.sha256()
    with path.open("rb") as file:
        for start in range(0, n_bytes, _CHUNK_BYTES):
            content_hash.update(file.read(min(_CHUNK_BYTES, n_bytes - start)))
        digest = content_hash.hexdigest()
        return digest if file.read() == digest.encode() else None


def is_database_whole(path: Path) -> bool:
    """Return whether a published database has the content that was written; False if its disk is
    damaged.

    Raises:
        OSError: it cannot be read for another reason, so its content is unknown.
    """
    return _is_sound(path, lambda path: verified_digest(path) is not None)


@dataclass(frozen=True)
class DamageNotice:
    """A line for users about damage and its repair; `is_repaired`: no row was lost."""

    line: str
    is_repaired: bool


_NOTICES: list[DamageNotice] = []
"""The notices of this process that are not reported yet."""


def note(line: str, *, is_repaired: bool = False) -> None:
    """Keep a line about damage until it is reported."""
    _NOTICES.append(DamageNotice(line, is_repaired))


def has_damage() -> bool:
    """Return whether an unreported notice is about damage that is not repaired."""
    return any(not notice.is_repaired for notice in _NOTICES)


def pop_notices() -> list[DamageNotice]:
    """Return and forget the notices; the caller reports them."""
    notices = _NOTICES.copy()
    _NOTICES.clear()
    return notices
