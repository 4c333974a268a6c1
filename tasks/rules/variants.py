"""Other wordings of a rubric, to measure how much a judge depends on the wording."""

import re

from tasks.rules.text.characters import is_blank, shows_nothing
from tasks.rules.verdict import VerdictError, json_object

EXAMPLES_REMOVED = "examples_removed"
AUGMENTED = "augmented"

_EXAMPLE = re.compile(r"\(\s*(?:e\.\s?g\.?|eg\b|for example|for instance|such as)", re.IGNORECASE)
_PUNCTUATION = (".", ";", ",")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MOST_GROWTH = 8
"""Largest allowed length of a rewritten criterion, as a multiple of the original length."""


def without_examples(title: str) -> str:
    """Return a criterion without its examples in parentheses, such as "(e.g., ...)".

    Nested parentheses belong to the example. An example that is never closed stays, because its end
    is unknown. "Including" is part of the request. A criterion that consists only of an example
    does not change.
    """
    result = ""
    position = 0
    for match in _EXAMPLE.finditer(title):
        start = match.start()
        end = _closing(title, start)
        if start >= position and end is not None:
            result += title[position:start].rstrip()
            position = _continuation(title, end, result)
    result = re.sub(r"[ \t]{2,}", " ", result + title[position:]).strip()
    return title.strip() if is_blank(result.strip(".,;: ")) else result


def _continuation(title: str, end: int, text: str) -> int:
    """Return the position at which a title goes on after an example that ends at `end`.

    Spaces before punctuation are skipped, and the punctuation too if `text`, the title before the
    example, ends with some.
    """
    position = end
    while title[position : position + 1] == " ":
        position += 1
    if title[position : position + 1] not in _PUNCTUATION:
        return end
    if text.endswith(_PUNCTUATION):
        position += 1
    return position


def _closing(text: str, start: int) -> int | None:
    """Return the position where the parenthesis at `start` is closed; None if it never is."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    return None


def read_augmented(reply: str, title: str, *, omits_think_tag: bool = False) -> str:
    """Return the more detailed criterion in a model's reply.

    The reply is one JSON object with the text `criterion`. It must be longer than the original, but
    not too long, and have all its numbers, because the criterion must not change.

    Raises:
        VerdictError: the reply is anything else.
    """
    written = json_object(reply, omits_think_tag=omits_think_tag).get("criterion")
    if not isinstance(written, str) or shows_nothing(written):
        raise VerdictError("criterion is not a text")
    written = written.strip()
    if len(written) <= len(title):
        raise VerdictError("the criterion says no more than the original")
    if len(written) > _MOST_GROWTH * max(len(title), 80):
        raise VerdictError(
            f"the criterion is more than {_MOST_GROWTH} times as long as the original"
        )
    lost = set(_NUMBER.findall(title)) - set(_NUMBER.findall(written))
    if lost:
        raise VerdictError(f"the criterion lost {min(lost)}, which the original says")
    return written
