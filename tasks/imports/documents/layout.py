"""Words of a page with their places -> lines -> Markdown: headings, lists and paragraphs as a reader sees them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from tasks.rules.text.characters import count_alphanumeric

Word = Mapping[str, Any]
"""A word as pdfplumber gives it: `text`, its box `x0`, `x1`, `top`, `bottom` in points, `upright`; and `uri`."""

_LEAST_HEADING = 1.15
"""How much larger than the body's a heading's letters are."""
_LONGEST_HEADING = 200
_PARAGRAPH_GAP = 0.6
"""The space between two lines, in heights of a line, from which on they are two paragraphs."""
_SHARED = 0.3
"""How much of the height of two words of one line is at the same height."""
_TIGHT = 0.15
"""The space between two words, in heights of a word, up to which a raised one belongs to the one before it."""
_WIDE = 1.5
"""The space between two words, in heights of a word, from which on they are in two columns: a tab stands for it."""
_BULLET = re.compile(r"^[•◦▪▫‣●○■□∙·\uf0b7\uf0a7]\s*(?=\S)")


class Line(NamedTuple):
    """A line of a page, or a table of it, which is as many lines of Markdown."""

    text: str
    size: float
    top: float
    bottom: float
    page: int
    is_table: bool = False


def lines_of(words: Sequence[Word], page: int) -> Iterator[Line]:
    """The lines that words make, in the order in which the page draws them."""
    line: list[Word] = []
    for word in words:
        if line and not _is_beside(line, word):
            yield _line(line, page)
            line = []
        line.append(word)
    if line:
        yield _line(line, page)


def text_of(words: Sequence[Word]) -> str:
    """The text of words on one line, linked ones as links."""
    parts = []
    for uri, run in groupby(words, lambda word: word.get("uri")):
        text = _joined(list(run))
        parts.append(text if uri is None or uri in text else f"[{text}]({_target(uri)})")
    return " ".join(parts)


def markdown_of(lines: Sequence[Line]) -> str:
    """Markdown of a document's lines: large ones are headings by their size, and what stands apart is a paragraph."""
    paragraphs = list(_paragraphs(lines))
    levels = _heading_levels(paragraphs)
    blocks = [_block(paragraph, levels) for paragraph in paragraphs]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _block(paragraph: Sequence[Line], levels: Mapping[int, int]) -> str:
    if _may_be_heading(paragraph) and (level := levels.get(round(paragraph[0].size))):
        return f"{'#' * level} {' '.join(line.text for line in paragraph)}"
    return "\n".join(line.text if line.is_table else _BULLET.sub("- ", line.text) for line in paragraph)


def _paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    paragraph: list[Line] = []
    for line in lines:
        if paragraph and not _goes_on(paragraph[-1], line):
            yield paragraph
            paragraph = []
        paragraph.append(line)
    if paragraph:
        yield paragraph


def _is_beside(line: Sequence[Word], word: Word) -> bool:
    """Whether a word is on a line: a part of the lower one's height is beside the other, as of raised letters too."""
    last = max(line, key=_height)
    shared = min(last["bottom"], word["bottom"]) - max(last["top"], word["top"])
    return bool(word["upright"] and last["upright"] and shared >= _SHARED * min(_height(last), _height(word)))


def _line(words: Sequence[Word], page: int) -> Line:
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[_height(word)] += count_alphanumeric(word["text"])  # a list's mark may be larger than its text
    tops, bottoms = (word["top"] for word in words), (word["bottom"] for word in words)
    return Line(text_of(words), sizes.most_common(1)[0][0], min(tops), max(bottoms), page)


def _height(word: Word) -> float:
    return float(word["bottom"] - word["top"] if word["upright"] else word["x1"] - word["x0"])


def _joined(words: Sequence[Word]) -> str:
    text = words[0]["text"]
    for before, word in pairwise(words):
        text += _between(before, word) + word["text"]
    return str(text)


def _between(before: Word, word: Word) -> str:
    """What stands between two words: a space, a tab where they are in two columns, nothing before a raised one."""
    gap = (word["x0"] - before["x1"]) / _height(word) if _height(word) else 0.0
    is_raised = abs(before["bottom"] - word["bottom"]) > 1 or abs(before["top"] - word["top"]) > 1
    if is_raised and abs(gap) < _TIGHT:
        return ""
    return "\t" if gap > _WIDE else " "


def _target(uri: str) -> str:
    return f"<{uri}>" if re.search(r"[\s()]", uri) else uri


def _heading_levels(paragraphs: Sequence[Sequence[Line]]) -> dict[int, int]:
    """Size of letters in points -> level of headings in it; the body's size is the one that most letters have."""
    letters: Counter[int] = Counter()
    for line in (line for paragraph in paragraphs for line in paragraph if not line.is_table):
        letters[round(line.size)] += len(line.text)
    if not letters:
        return {}
    least = letters.most_common(1)[0][0] * _LEAST_HEADING
    large = {round(lines[0].size) for lines in paragraphs if lines[0].size >= least and _may_be_heading(lines)}
    return {size: min(level, 6) for level, size in enumerate(sorted(large, reverse=True), start=1)}


def _may_be_heading(paragraph: Sequence[Line]) -> bool:
    text = "".join(line.text for line in paragraph)
    return not paragraph[0].is_table and len(text) <= _LONGEST_HEADING and any(map(str.isalpha, text))


def _goes_on(before: Line, line: Line) -> bool:
    """Whether a line belongs to the paragraph, or the heading, of the one before it."""
    if before.is_table or line.is_table or round(before.size) != round(line.size):
        return False
    gap = line.top - before.bottom
    if before.page != line.page or gap < -line.size:  # the next page, or the next column
        return line.text[:1].islower()
    return gap < _PARAGRAPH_GAP * line.size
