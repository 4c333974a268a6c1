"""The verdicts on a response, for people to read in Inspect View."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$])")
"""What Markdown would give a meaning to; a title or an explanation is text. Inspect View escapes HTML itself."""
_DECIDED = ("met", "partial", "unmet")
_FAILED, _NOT_JUDGED = "grader_failed", "not_judged"


def unscored_reason(criteria: Sequence[Row]) -> str | None:
    """Why a response with an answer has no score: a judge's call failed, or is still to be made."""
    undecided = {row["status"] for row in criteria} - set(_DECIDED)
    if not undecided:
        return None
    return _NOT_JUDGED if undecided == {_NOT_JUDGED} else _FAILED


def explanation_of(criteria: Sequence[Row]) -> str:
    """A line that counts the verdicts, and a Markdown table of the criteria; explanations where there are any."""
    counted = Counter(row["status"] for row in criteria)
    order = [*_DECIDED, *sorted(counted.keys() - set(_DECIDED))]
    line = ", ".join(f"{counted[status]} {_in_words(status)}" for status in order if counted[status])
    columns = {
        "Verdict": [_in_words(row["status"]) for row in criteria],
        "Weight": ["" if row["weight"] is None else f"{row['weight']:g}" for row in criteria],
        "Criterion": [_text(row["title"]) for row in criteria],
        "Explanation": [_text(row["explanation"] or row["error"] or "") for row in criteria],
    }
    if not any(columns["Explanation"]):
        del columns["Explanation"]
    cells = [list(columns), ["---"] * len(columns), *zip(*columns.values(), strict=True)]
    return "\n".join([f"{len(criteria)} criteria: {line}", "", *(f"| {' | '.join(row)} |" for row in cells)])


def _in_words(status: str) -> str:
    return status.replace("_", " ")


def _text(text: str) -> str:
    """A text in one cell of a table, with nothing in it that Markdown would read."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
