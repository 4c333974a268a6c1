"""A figure as text: a table for a terminal, and CSV; pages draw theirs in
`tasks.report.rendering`.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.console.tables import TableColumn, one_line_text
from tasks.figures.figure import MISSING, Column, Rows, cell, is_number, short_title
from tasks.rules.text.cells import csv_text, defused

_ENDS = (("low", "high"), ("lower", "upper"))
"""Pairs of suffixes: two columns whose names differ only in these share a cell in a terminal."""
SEPARATOR = " · "
"""Between two values in a heading of rows."""


def as_text(
    columns: Sequence[Column], rows: Rows, essential: Collection[str] = ()
) -> list[TableColumn]:
    """Return the columns of a figure for a terminal, whose cells look as on a page.

    The two ends of an interval share a cell, together with the value before them if it has the same
    group heading.
    """
    parts: list[list[Column]] = []
    for column in columns:
        if not parts or not any(
            column.name == parts[-1][-1].name.removesuffix(low) + high for low, high in _ENDS
        ):
            parts.append([column])
            continue
        parts[-1].append(column)
        if (
            len(parts) > 1
            and len(parts[-2]) == 1
            and column.group
            and parts[-2][0].group == column.group
        ):
            interval = parts.pop()
            parts[-1] += interval
    return [
        TableColumn(
            name=part[0].name,
            heading=_heading(part),
            cells=[_cell(part, row) for row in rows],
            is_number=all(is_number(column, rows) for column in part),
            is_essential=part[0].name in essential,
            short=short_title(part[0].name),
        )
        for part in parts
    ]


def _heading(part: Sequence[Column]) -> str:
    group = part[0].group
    title = part[0].title
    if len(part) == 1:
        return f"{group}: {title}" if group else title
    return group or f"{title} to {part[1].title}"


def _cell(part: Sequence[Column], row: Mapping[str, Any]) -> str:
    cells = [one_line_text(cell(column, row)) for column in part]
    if len(cells) == 1:
        return cells[0]
    *value, low, high = cells
    span = high if low in {MISSING, high} else f"{low} to {high}"
    if not value:
        return span
    return value[0] if span == MISSING else f"{value[0]} ({span})"


def as_csv(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    mark: Callable[[str], str] = defused,
    must_quote: bool = False,
) -> str:
    """Return rows as CSV, with full precision; a list is JSON, a moment is UTC in ISO 8601.

    Text that a spreadsheet would run or rewrite gets an apostrophe before it
    (`tasks.rules.text.cells`).
    """
    header = [mark(column) for column in columns]
    cells = ([_plain(value, mark) for value in row.values()] for row in rows)
    return csv_text([header, *cells], must_quote=must_quote)


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
