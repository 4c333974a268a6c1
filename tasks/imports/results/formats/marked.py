"""Texts for people in which every criterion stands behind a mark: `[True] [5] Says so.`, then the explanation."""

import re
from collections.abc import Mapping, Sequence

from tasks.imports.results.records import Decision


def marked(text: str, marks: Mapping[str, float], before_reason: str, unreadable: Sequence[str] = ()) -> list[Decision]:
    """The decisions in a text. Criteria are separated by a blank line; `before_reason` precedes an explanation.

    Such texts have what is not met first, so the order of criteria with the same words says nothing.

    An explanation that begins with one of `unreadable` says that the judge's reply could not be read.
    """
    either = "|".join(map(re.escape, marks))
    begin = re.compile(rf"(?:\A|\n\n)\[({either})\] (?:\[(-?[0-9]+(?:\.[0-9]+)?)\] )?")
    found, heads = [], list(begin.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=False):
        item = text[head.end() : following.start() if following else len(text)]
        title, _, reason = item.rpartition(before_reason)
        is_lost = any(reason.startswith(start) for start in unreadable)
        found.append(Decision(
            title if title else item, None if is_lost else marks[head[1]], weight=float(head[2]) if head[2] else None,
            explanation=reason.strip() or None if not is_lost else None, error=reason.strip() if is_lost else None,
            is_reordered=True,
        ))  # fmt: skip
    return found
