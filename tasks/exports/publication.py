"""What is at a target of `prbench publish`: publications, each under a name of its own, and a pointer to the latest."""

import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from tasks.exports.file_list import FORMAT as EXPORT
from tasks.exports.file_list import NAME
from tasks.exports.file_list import VERSION as EXPORT_VERSION
from tasks.maintain import Damaged, file_list, read_file_list
from tasks.stores import Folder, Store

POINTER = "current.json"
FORMAT = "prbench-publication"
VERSION = 1
FOLDER = "publications"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


@dataclass(frozen=True)
class Pointer:
    """The latest publication: its place below the target, a hash of what it was made from, and when that was (UTC)."""

    publication: str
    content: str
    published_at: str


def read_pointer(place: Folder | Store) -> Pointer | None:
    """The pointer at a target; None: nothing was published there.

    Raises:
        Damaged: the file is none, or names something else than a publication at this target.
    """
    text, path = place.read(POINTER), f"{place}/{POINTER}"
    if text is None:
        return None
    document = read_file_list(text, path, FORMAT, VERSION)
    given = [document.get(name) for name in Pointer.__dataclass_fields__]
    if not all(isinstance(each, str) for each in given):
        raise Damaged(f"{path}: cannot be read; publish to another target")
    pointer = Pointer(*map(str, given))
    folder, _, name = pointer.publication.partition("/")
    if folder != FOLDER or not _NAME.fullmatch(name):
        raise Damaged(f"{path}: names {pointer.publication!r}, which is not a publication; publish to another target")
    return pointer


def write_pointer(place: Folder | Store, pointer: Pointer) -> None:
    """Make a publication the latest; readers see the one before or this one."""
    place.write(POINTER, file_list(FORMAT, VERSION, asdict(pointer)))


def is_whole(place: Folder | Store, publication: str) -> bool:
    """Whether all files that a publication lists are there, in their sizes."""
    shelf = place.below(publication)
    if (text := shelf.read(NAME)) is None:
        return False
    document = read_file_list(text, f"{shelf}/{NAME}", EXPORT, EXPORT_VERSION)
    listed = [*document["others"], *(file for table in document["tables"] for file in table["files"])]
    there = shelf.files()
    return all(there.get(file["name"]) == file["n_bytes"] for file in listed)


def published_in(place: Folder | Store) -> Folder | Store:
    """The place of the latest publication at a target; of an export, the place itself."""
    pointer = read_pointer(place)
    return place if pointer is None else place.below(pointer.publication)


def remove_old(place: Folder | Store, n_kept: int) -> int:
    """Remove all but the newest publications, and what killed ones left; how many.

    The one that the pointer names stays, and so do unfinished ones of the last day, which others may be at work on.
    """
    shelf, pointer = place.below(FOLDER), read_pointer(place)
    names = shelf.files()
    found = {name.partition("/")[0] for name in names if _NAME.match(name)}
    whole = sorted(each for each in found if f"{each}/{NAME}" in names)
    latest = pointer.publication.partition("/")[2] if pointer else ""
    a_day_ago = f"{datetime.now(UTC) - timedelta(days=1):%Y%m%dT%H%M%SZ}"
    unfinished = {each for each in found - set(whole) if each > a_day_ago}
    removed = found - {*whole[-n_kept:], latest} - unfinished
    shelf.remove([name for name in names if name.partition("/")[0] in removed])
    return len(removed)
