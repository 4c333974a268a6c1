"""Rows of a figure as CSV."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.rules.text.cells import csv_text, defused


def as_csv(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    mark: Callable[[str], str] = defused,
    must_quote: bool = False,
) -> str:
    """Return rows as CSV, with full precision; a list is JSON, a moment is UTC in ISO 8601.

    The values of each row are in the order of the columns. `mark` makes text safe: by default, text
    that a spreadsheet would run or rewrite gets an apostrophe before it (`tasks.rules.text.cells`).
    """
    header = [mark(column) for column in columns]
    lines = [header]
    for row in rows:
        lines.append([_plain(value, mark) for value in row.values()])
    return csv_text(lines, must_quote=must_quote)


def _plain(value: Any, mark: Callable[[str], str]) -> Any:
    match value:
        case str():
            return mark(value)
        case list():
            return json.dumps(value, ensure_ascii=False)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return value
