"""Evidence: the prompt on a chunk of a long report, the reply's parser, and the last call's text.

The module also cuts a long text into chunks that fit, without gaps or overlaps.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tasks.rules.conversation import Message, prompt_on
from tasks.rules.text.characters import is_blank, storable
from tasks.rules.verdict import JsonObject, VerdictError, json_object, strict_format

REMINDER = (
    'Reply again with only the JSON object: {"evidence": ["...", "..."]}, or {"evidence": []} for'
    " nothing."
)

_IN_REPORT = "Part {part} of {n_parts} of the report"
_IN_NOTES = (
    "Part {part} of {n_parts} of the notes that were made on the report, which are too long to be"
    " read at once: report all of them that bears on the criterion in fewer words, with the part of"
    " the report that it stands in"
)
_SHOWN = (
    "[The report is too long to be shown whole. All {n_parts} parts of it were searched, from its"
    " first word to its last, for what bears on the criterion. This is what was found: quotations"
    " and notes, in the order of the report. Read them as excerpts of the report; what is not among"
    " them was not found in it.]"
)
_NOTHING = "nothing found"
WORDING = (REMINDER, _IN_REPORT, _IN_NOTES, _SHOWN, _NOTHING)
"""Texts for judges outside the templates; they are part of a verdict's identity, so they still say
*part*.
"""


def evidence_prompt(
    template: str,
    messages: Sequence[Message],
    criterion: str,
    *,
    text: str,
    number: int,
    n_chunks: int,
    round_: int,
) -> str:
    """Return the prompt for the evidence in a chunk.

    It is a chunk of the report in round 1, of the notes on it in later rounds.
    """
    wording = _IN_REPORT if round_ == 1 else _IN_NOTES
    texts = {"<<place>>": wording.format(part=number, n_parts=n_chunks), "<<part>>": text}
    return prompt_on(template, messages, criterion, extra_texts=texts)


def evidence_format(*, is_bounded: bool) -> JsonObject:
    """Return the JSON schema of the reply; its statements may be bounded in length and number."""
    statement: JsonObject = {"type": "string"}
    statements: JsonObject = {"type": "array", "items": statement}
    if is_bounded:
        # Far more than the evidence of a chunk on one criterion; the bounds prevent a reply that
        # never ends.
        statement["maxLength"] = 2_000
        statements["maxItems"] = 100
    return strict_format("evidence", {"evidence": statements})


def parse_evidence(reply: str, *, omits_think_tag: bool = False) -> tuple[str, ...]:
    """Return the evidence in a reply, without blank texts.

    Raises:
        VerdictError: the reply is not one JSON object (bare, fenced, or behind thinking) with a
            list of texts.
    """
    evidence = json_object(reply, omits_think_tag=omits_think_tag).get("evidence")
    if not isinstance(evidence, list) or not all(isinstance(text, str) for text in evidence):
        raise VerdictError("evidence is not a list of texts")
    return tuple(storable(text.strip()) for text in evidence if not is_blank(text))


def evidence_text(
    evidence: Sequence[Sequence[str]],
    n_chunks: int,
    round_: int,
    *,
    is_indented: bool = False,
) -> str:
    """Return the text that replaces a report of `n_chunks` chunks in the last call.

    It has the round's evidence by chunk. With `is_indented` all lines of a quotation after the
    first are indented, so that none looks like a chunk's name.
    """
    name = "Part" if round_ == 1 else "Notes"
    paragraphs = [_SHOWN.format(n_parts=n_chunks)]
    for number, quotations in enumerate(evidence, start=1):
        paragraph = f"{name} {number} of {len(evidence)}:"
        for quotation in quotations:
            lines = quotation.splitlines() if is_indented else [quotation]
            paragraph += "\n- " + "\n  ".join(lines)
        if not quotations:
            paragraph += f" {_NOTHING}"
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


_BORDERS = (
    re.compile(r"\n(?:[ \t]*\r?\n)+"),
    re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f]|\n"),
    re.compile(r"\s+"),
)
"""The ends of a paragraph, a sentence or line (also of a table or of code), and a word; an end
stays with its text.
"""


class NoRoom(ValueError):
    """Not even a single character fits."""


def cut(text: str, largest: int, size_of: Callable[[str], int]) -> list[str]:
    """Cut a text into chunks of at most a size, as `size_of` measures it.

    Joined they are exactly the text. Chunks end at the end of a paragraph. A paragraph that is too
    large is cut at the end of a sentence or line, a sentence between words, a word between
    characters. Each piece is measured once, and each chunk once more, because the size of a text
    may differ from the sum of the sizes of its pieces.

    Raises:
        NoRoom: a single character is too large.
    """
    chunks: list[str] = []
    pending: list[str] = []
    total = 0
    for piece, size in _pieces(text, largest, size_of, 0):
        if pending and total + size > largest:
            chunks += _joined(pending, largest, size_of)
            pending = []
            total = 0
        pending.append(piece)
        total += size
    chunks += _joined(pending, largest, size_of)
    return chunks


def _pieces(
    text: str,
    largest: int,
    size_of: Callable[[str], int],
    level: int,
) -> Iterator[tuple[str, int]]:
    """Yield pieces of the text that fit, with their sizes, each as long as the borders allow."""
    for piece in _split(text, level):
        size = size_of(piece)
        if size <= largest:
            yield piece, size
        elif len(piece) == 1:
            raise NoRoom(f"a character has the size {size}, more than {largest}")
        else:
            yield from _pieces(piece, largest, size_of, level + 1)


def _split(text: str, level: int) -> Iterator[str]:
    """Return the text cut at each border of a level; beyond the last level, in two halves."""
    ends = {0, len(text)}
    if level < len(_BORDERS):
        ends.update(match.end() for match in _BORDERS[level].finditer(text))
    else:
        ends.add(len(text) // 2)
    return (text[start:end] for start, end in pairwise(sorted(ends)))


def _joined(pieces: Sequence[str], largest: int, size_of: Callable[[str], int]) -> Iterator[str]:
    """Yield the pieces as one chunk, or as several if they are larger joined than one by one."""
    text = "".join(pieces)
    if len(pieces) < 2 or size_of(text) <= largest:
        if text:
            yield text
        return
    middle = len(pieces) // 2
    yield from _joined(pieces[:middle], largest, size_of)
    yield from _joined(pieces[middle:], largest, size_of)
