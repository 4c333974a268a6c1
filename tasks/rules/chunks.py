"""Cutting a long text into chunks that fit, so that nothing of it is dropped or appears twice."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

_BORDERS = (
    re.compile(r"\n(?:[ \t]*\r?\n)+"),
    re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f]|\n"),
    re.compile(r"\s+"),
)
"""What ends a paragraph, a sentence or line (of a table or of code, too), and a word; it belongs to what it ends."""


class NoRoom(ValueError):
    """Not even a single character fits."""


def cut(text: str, most: int, size_of: Callable[[str], int]) -> list[str]:
    """Cut a text into chunks of at most `most`, as `size_of` measures them; joined they are exactly the text.

    Chunks end where a paragraph does. A paragraph that is too large by itself is cut where a sentence or line ends, a
    sentence between words, a word between characters. A piece is measured once and a chunk once more, since the size of
    a text need not be the sum of the sizes of its pieces.

    Raises:
        NoRoom: a single character is larger than that.
    """
    chunks: list[str] = []
    pending: list[str] = []
    total = 0
    for piece, size in _pieces(text, most, size_of, 0):
        if pending and total + size > most:
            chunks += _joined(pending, most, size_of)
            pending, total = [], 0
        pending.append(piece)
        total += size
    return chunks + list(_joined(pending, most, size_of))


def _pieces(text: str, most: int, size_of: Callable[[str], int], level: int) -> Iterator[tuple[str, int]]:
    """The text in pieces that fit, with their sizes, each as long as its borders allow."""
    for piece in _split(text, level):
        size = size_of(piece)
        if size <= most:
            yield piece, size
        elif len(piece) == 1:
            raise NoRoom(f"a character has the size {size}, more than {most}")
        else:
            yield from _pieces(piece, most, size_of, level + 1)


def _split(text: str, level: int) -> Iterator[str]:
    """The text cut at each border of a level; beyond the last one, in two halves."""
    is_left = level < len(_BORDERS)
    ends = {found.end() for found in _BORDERS[level].finditer(text)} if is_left else {len(text) // 2}
    return (text[start:end] for start, end in pairwise(sorted({0, *ends, len(text)})))


def _joined(pieces: Sequence[str], most: int, size_of: Callable[[str], int]) -> Iterator[str]:
    """The pieces as one chunk, or as more if they are larger together than one by one."""
    text = "".join(pieces)
    if len(pieces) < 2 or size_of(text) <= most:
        if text:
            yield text
        return
    middle = len(pieces) // 2
    yield from _joined(pieces[:middle], most, size_of)
    yield from _joined(pieces[middle:], most, size_of)
