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
    """A Markdown table of the criteria with their verdicts, and a line that counts them."""
    counted = Counter(row["status"] for row in criteria)
    order = [*_DECIDED, *sorted(counted.keys() - set(_DECIDED))]
    line = ", ".join(f"{counted[status]} {status.replace('_', ' ')}" for status in order if counted[status])
    rows = [_row(row) for row in criteria]
    head = ["| Verdict | Weight | Criterion | Explanation |", "| --- | ---: | --- | --- |"]
    return "\n".join([f"{len(criteria)} criteria: {line}", "", *head, *rows])


def _row(row: Row) -> str:
    weight = "" if row["weight"] is None else f"{row['weight']:g}"
    said = row["explanation"] or row["error"] or ""
    cells = (row["status"].replace("_", " "), weight, _text(row["title"]), _text(said))
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """A text in one cell of a table, with nothing in it that Markdown would read."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
