"""What is at a target of `prbench publish`: publications, each under a name of its own, and a pointer to the latest."""

import re
from dataclasses import asdict, dataclass

from tasks.exports.file_list import NAME
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


def published_in(place: Folder | Store) -> Folder | Store:
    """The place of the latest publication at a target; of an export, the place itself."""
    pointer = read_pointer(place)
    return place if pointer is None else place.below(pointer.publication)


def remove_old(place: Folder | Store, n_kept: int) -> int:
    """Remove all but the newest publications, and what killed ones left; how many.

    The one that the pointer names stays.
    """
    shelf, pointer = place.below(FOLDER), read_pointer(place)
    names = shelf.files()
    found = {name.partition("/")[0] for name in names if _NAME.match(name)}
    whole = sorted(each for each in found if f"{each}/{NAME}" in names)
    latest = pointer.publication.partition("/")[2] if pointer else ""
    removed = found - {*whole[-n_kept:], latest}
    shelf.remove([name for name in names if name.partition("/")[0] in removed])
    return len(removed)
