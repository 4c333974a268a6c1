"""The record of a backup: every file of the warehouse, and where its copy lies. Written last, it makes the backup."""

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tasks.dataset.foreign_files import open_inside
from tasks.maintain import file_lists
from tasks.maintain.file_lists import Damaged, hash_of, is_inside
from tasks.stores import Folder, Store, kept_as

NAME = "backup.json"
FORMAT = "prbench-backup"
VERSION = 1
FILES = "files"
"""The folder of all copies; what lies in it and is in no record is removed."""
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Kept:
    """A file of the warehouse: its path there, the path of its copy, and what the copy holds.

    `seen` describes a file that changes as it was when it was copied; None where that says nothing.
    """

    path: str
    stored_as: str
    n_bytes: int
    sha256: str
    seen: str | None = None


@dataclass(frozen=True)
class Record:
    """A backup: when it was begun (UTC), and its files."""

    made_at: str
    files: tuple[Kept, ...]


def write_record(place: Folder | Store, record: Record) -> None:
    """Make this the backup that a folder or store holds."""
    place.write(NAME, file_lists.file_list(FORMAT, VERSION, asdict(record)))


def read_record(place: Folder | Store) -> Record:
    """The backup that a folder or store holds.

    Raises:
        Damaged: it holds none, or one of a newer version, or the record cannot be read.
    """
    path, text = f"{place}/{NAME}", place.read(NAME)
    if text is None:
        raise Damaged(f"{place}: is not a complete backup, {NAME} is missing; `prbench backup` makes one")
    document = file_lists.read_file_list(text, path, FORMAT, VERSION)
    try:
        record = Record(document["made_at"], tuple(Kept(**each) for each in document["files"]))
        is_sound = all(is_inside(kept.path) and is_inside(kept.stored_as) for kept in record.files)
    except (KeyError, TypeError) as error:
        raise Damaged(f"{path}: cannot be read ({type(error).__name__}: {error}); use another copy") from error
    if not is_sound:
        raise Damaged(f"{path}: names files outside of the backup; use another copy")
    return record


def copied(source: Path, target: Path, folder: Path | None = None) -> tuple[int, str]:
    """Copy a file, onto the disk and under its name only when it is whole; its size and SHA-256.

    Of a folder that came from elsewhere no link that leads out of it is followed.

    Raises:
        NotInside: there is one.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    hashed, n_bytes = hashlib.sha256(), 0
    opened = source.open("rb") if folder is None else open_inside(folder, source.relative_to(folder))
    with opened as reading, temporary.open("wb") as writing:
        while chunk := reading.read(_CHUNK_BYTES):
            hashed.update(chunk)
            n_bytes += writing.write(chunk)
        writing.flush()
        os.fsync(writing.fileno())
    temporary.replace(target)
    return n_bytes, hashed.hexdigest()


def linked(source: Path, target: Path) -> tuple[int, str]:
    """Give a file that never changes a second name, under which it stays; its size and SHA-256."""
    kept_as(source, target)
    return target.stat().st_size, hash_of(target)


def is_whole(path: Path, kept: Kept, *, must_read: bool) -> bool:
    """Whether a copy is there, by its size, or by its content."""
    if not path.is_file() or path.stat().st_size != kept.n_bytes:
        return False
    if not must_read:
        return True
    return hash_of(path) == kept.sha256
