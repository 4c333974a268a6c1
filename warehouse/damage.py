"""Finding damage: parts whose content is not what their name says, and a database with changed or missing blocks."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warehouse.errors import WarehouseError

HASH_HEX = 24
"""Length of the content hash in the name of a part."""
_HEADER_BYTES, _HEADERS = 4096, 3
_BLOCK_COUNT, _BLOCK_BYTES, _ITERATION = 4, 5, 1
"""Places in a database header, in words of 8 bytes."""
_SEED, _FACTOR = np.uint64(5381), np.uint64(0xBF58476D1CE4E5B9)
"""DuckDB's checksum of a block: its words, each times the factor, XORed with the seed."""
_AT_ONCE_BYTES = 64 * 2**20


def is_whole(path: Path) -> bool:
    """Whether a part is there and its content is what its name says.

    Raises:
        WarehouseError: it may not be read, which says nothing about its content.
    """
    try:
        with path.open("rb") as file:
            content_hash = hashlib.file_digest(file, "sha256").hexdigest()
    except PermissionError as error:
        raise WarehouseError(f"{path}: cannot be read ({error.strerror}); may it be used?") from error
    except OSError:
        return False
    return path.stem.partition("-")[2] == content_hash[:HASH_HEX]


def is_database_whole(path: Path) -> bool:
    """Whether every block of a DuckDB file is there and has the checksum that was written with it.

    DuckDB itself looks at a block when a query needs it, so damage may stay unseen for long. This reads the file once
    and takes no database. A block of zeros is one that was never used.
    """
    try:
        file = np.memmap(path, dtype=np.uint64, mode="r")
    except (OSError, ValueError):
        return False
    words = _HEADER_BYTES // 8
    headers = file[: _HEADERS * words]
    if headers.size < _HEADERS * words or not all(_are_sound(headers.reshape(_HEADERS, words))):
        return False
    _, *states = headers.reshape(_HEADERS, words)
    state = max(states, key=lambda header: int(header[_ITERATION]))
    n_blocks, block_words = int(state[_BLOCK_COUNT]), int(state[_BLOCK_BYTES]) // 8
    blocks = file[headers.size :]
    if not block_words or blocks.size % block_words or blocks.size // block_words < n_blocks:
        return False
    blocks = blocks.reshape(-1, block_words)
    step = max(1, _AT_ONCE_BYTES // (8 * block_words))
    return all(all(_are_sound(blocks[first : first + step])) for first in range(0, len(blocks), step))


def _are_sound(blocks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Of each block whether its first word is the checksum of the others."""
    with np.errstate(over="ignore"):
        checksums = np.bitwise_xor.reduce(blocks[:, 1:] * _FACTOR, axis=1) ^ _SEED
    sound: NDArray[np.bool_] = (checksums == blocks[:, 0]) | ~blocks.any(axis=1)
    return sound


@dataclass(frozen=True)
class Notice:
    """What was found and done about damage, for people. One that `is_mended` took nothing that anybody needs."""

    line: str
    is_mended: bool = False


_NOTICES: dict[Path, list[Notice]] = defaultdict(list)
"""What this process found and nobody has told yet, by the warehouse's folder."""


def note(root: Path, line: str, *, is_mended: bool = False) -> None:
    """Keep a line about damage until somebody tells it."""
    _NOTICES[root.resolve()].append(Notice(line, is_mended))


def take_notices(root: Path | None = None) -> list[Notice]:
    """What was found since the last look, in one warehouse or in all; it is the caller's to tell."""
    if root is not None:
        return _NOTICES.pop(root.resolve(), [])
    found = [notice for notices in _NOTICES.values() for notice in notices]
    _NOTICES.clear()
    return found
