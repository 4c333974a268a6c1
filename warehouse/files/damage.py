"""Finding damage: parts whose content is not what their name says, and a database with changed or missing blocks."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from warehouse.files.errors import WarehouseError, refuse_if_unopened

HASH_HEX = 24
"""Length of the content hash in the name of a part."""


def is_whole(path: Path) -> bool:
    """Whether a part is there and its content is what its name says.

    Raises:
        WarehouseError: it may not be read, which says nothing about its content.
    """
    try:
        with path.open("rb") as file:
            content_hash = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        refuse_if_unopened(path, error)
        return False
    return is_named_after(path.name, content_hash)


def refuse_damaged(paths: Iterable[Path]) -> None:
    """Refuse parts that are damaged: what is made of one would carry the damage on under a hash of its own.

    Raises:
        WarehouseError: one is.
    """
    damaged = next((path for path in paths if not is_whole(path)), None)
    if damaged is not None:
        raise WarehouseError(f"{damaged}: is damaged; `prbench aggregate` sets it aside and restores what it can")


def is_named_after(name: str, content_hash: str) -> bool:
    """Whether a part's name, or path, says that its content has this SHA-256."""
    return Path(name).stem.partition("-")[2] == content_hash[:HASH_HEX]


def is_database_whole(path: Path) -> bool:
    """Whether every block of a published file is there and has the checksum that was written with it."""
    from warehouse.files.blocks import are_blocks_whole  # NumPy takes long to import for commands that only read

    return are_blocks_whole(path)


@dataclass(frozen=True)
class Notice:
    """What was found and done about damage, for people. One that `is_mended` took nothing that anybody needs."""

    line: str
    is_mended: bool = False


_NOTICES: dict[Path, list[Notice]] = defaultdict(list)
"""What this process found and nobody has reported yet, by the warehouse's folder."""


def note(root: Path, line: str, *, is_mended: bool = False) -> None:
    """Keep a line about damage until somebody reports it."""
    _NOTICES[root.resolve()].append(Notice(line, is_mended))


def has_damage(root: Path) -> bool:
    """Whether a notice that nobody has taken yet is of damage that is not repaired."""
    return any(not notice.is_mended for notice in _NOTICES.get(root.resolve(), ()))


def take_notices(root: Path | None = None) -> list[Notice]:
    """What was found since the last look, in one warehouse or in all; the caller reports it."""
    if root is not None:
        return _NOTICES.pop(root.resolve(), [])
    found = [notice for notices in _NOTICES.values() for notice in notices]
    _NOTICES.clear()
    return found
