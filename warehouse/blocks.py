"""Check the blocks of a DuckDB file: each must exist and have the checksum that was written with it."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warehouse.errors import refuse_unreadable

_HEADER_BYTES, _HEADERS = 4096, 3
_BLOCK_COUNT, _BLOCK_BYTES, _ITERATION = 4, 5, 1
"""Positions in a database header, in 8-byte words."""
_SEED, _FACTOR = np.uint64(5381), np.uint64(0xBF58476D1CE4E5B9)
"""DuckDB's checksum of a block: its words, each times the factor, XORed with the seed."""
_AT_ONCE_BYTES = 64 * 2**20


def fill_up(path: Path) -> None:
    """Extend a DuckDB file to the number of blocks in its header: DuckDB cuts off unused blocks, and so can damage."""
    with path.open("r+b") as file:
        n_blocks, block_bytes = _blocks(np.frombuffer(file.read(_HEADERS * _HEADER_BYTES), dtype=np.uint64))
        n_bytes = _HEADERS * _HEADER_BYTES + n_blocks * block_bytes
        if file.seek(0, os.SEEK_END) < n_bytes:
            file.truncate(n_bytes)


def are_blocks_whole(path: Path) -> bool:
    """Return whether every block of a published file exists and has the checksum that was written with it.

    DuckDB checks a block only when a query reads it, so damage can stay unnoticed for a long time. This function reads
    the file once, much faster than queries. A block of zeros was never used.
    """
    try:
        file = np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        refuse_unreadable(path, error)
        return False
    except ValueError:
        return False
    n_header_bytes = _HEADERS * _HEADER_BYTES
    if file.size < n_header_bytes:
        return False
    headers = file[:n_header_bytes].view(np.uint64)
    if not _are_sound(headers.reshape(_HEADERS, -1)).all():
        return False
    n_blocks, block_bytes = _blocks(headers)
    n_bytes = file.size - n_header_bytes
    if not block_bytes or n_bytes % block_bytes or n_bytes // block_bytes < n_blocks:
        return False
    blocks = file[n_header_bytes:].view(np.uint64).reshape(-1, block_bytes // 8)
    step = max(1, _AT_ONCE_BYTES // block_bytes)
    return all(_are_sound(blocks[first : first + step]).all() for first in range(0, len(blocks), step))


def _blocks(headers: NDArray[np.uint64]) -> tuple[int, int]:
    """Return the number of blocks in the newer of the database's two headers, and the bytes of each block."""
    _, *states = headers.reshape(_HEADERS, -1)
    state = max(states, key=lambda each: int(each[_ITERATION]))
    return int(state[_BLOCK_COUNT]), int(state[_BLOCK_BYTES])


def _are_sound(blocks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each block whether its first word is the checksum of its other words."""
    with np.errstate(over="ignore"):  # the checksum is modulo 2**64
        checksums = np.bitwise_xor.reduce(blocks[:, 1:] * _FACTOR, axis=1) ^ _SEED
    sound: NDArray[np.bool_] = (checksums == blocks[:, 0]) | ~blocks.any(axis=1)
    return sound
