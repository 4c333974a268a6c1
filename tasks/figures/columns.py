"""Columns of a figure: their titles and kinds (from `sql/schema.yml`), and values as text for people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

import sql
from tasks.rules.text.numbers import SMALL_MARK, coverage_text, number

Row = Mapping[str, Any]
Rows = Sequence[Row]
Kind = Literal[
    "text", "count", "number", "score", "signed", "share", "coverage", "usd", "price", "p", "time", "yes", "task", "few"
]  # fmt: skip
"""The format of a column's values: a score with three decimals, a share in percent, a coverage rounded down, `yes`
for true.

`usd` is a sum, `price` the cost of one item, with more decimals. `task` is a task's id with a link to its page, or to
the row's `address` if there is one. `few` is not shown as a column: if it is true, the value in the column before it is
marked as based on few tasks.
"""
MISSING = "–"
_DECIMALS = {"score": 3, "signed": 3, "number": 2, "p": 4, "usd": 2, "price": 4, "count": 0, "share": 1, "coverage": 1}


@dataclass(frozen=True)
class Column:
    """A column of a figure's table: its name in the rows, its heading, its format, and its group's heading.

    `few` names the column that is true where the value is based on few tasks.
    """

    name: str
    title: str
    kind: Kind = "text"
    group: str = ""
    few: str = ""


_INTERVAL: tuple[Kind, str] = ("signed", "95 % interval")


def columns(*parts: str, **headings: str | tuple[Kind, str]) -> tuple[Column, ...]:
    """Return columns by their names.

    Args:
        parts: names in the rows, separated by spaces; after `Heading: ` they have this common heading instead of the
            usual one. `kappa±` means `kappa` and the two ends of its interval, `kappa_ci_low` and `kappa_ci_high`,
            under one heading; `ci~` means the two ends of an interval alone, `ci_low` and `ci_high`.
        headings: name -> a heading that differs from the usual one, or a format and a heading.

    Raises:
        LookupError: a column has no usual heading.
    """
    parsed: list[Column] = []
    for part in parts:
        group, _, names = part.rpartition(": ")
        for name in names.split():
            stem = name.rstrip("±~")
            given = headings.get(stem)
            if isinstance(given, tuple):
                kind, heading = given
            elif stem not in _usual() and name[-1] != "~":
                raise LookupError(f"no title of the column {stem!r} in sql/schema.yml")
            else:
                kind, own = _INTERVAL if name[-1] == "~" else _usual()[stem]
                heading = given or own
            if kind == "few":
                last = max(i for i, each in enumerate(parsed) if not each.name.endswith(("_low", "_high")))
                parsed[last] = replace(parsed[last], few=name)
                continue
            parsed += _columns_of(name, kind, heading, group)
    return tuple(parsed)


def _columns_of(name: str, kind: Kind, heading: str, group: str) -> Iterator[Column]:
    """Yield the columns that a name stands for in `columns`."""
    stem, (above, _, title) = name.rstrip("±~"), heading.rpartition(": ")
    if name == stem:
        yield Column(name, title, kind, group or above)
        return
    if name[-1] == "±":
        yield Column(stem, title if above else "Value", kind, above or title)
        stem = f"{stem}_ci"
    yield Column(f"{stem}_low", "from", kind, above or title)
    yield Column(f"{stem}_high", "to", kind, above or title)


@cache
def _usual() -> dict[str, tuple[Kind, str]]:
    """Return the kind and the heading of each column; a colon follows the heading of a group."""
    by_kind: Mapping[Kind, Mapping[str, str]] = sql.schema()["titles"]
    return {name: (kind, heading) for kind, headings in by_kind.items() for name, heading in headings.items()}


def usual(name: str) -> tuple[Kind, str]:
    """Return the kind and the usual heading of a column; an empty heading if it has none."""
    return _usual().get(name, ("text", ""))


def with_values(shown: Sequence[Column], rows: Rows) -> list[Column]:
    """Return the columns that have a value in any row; all columns if there is none."""
    return [column for column in shown if any(row.get(column.name) is not None for row in rows)] or [*shown]


def small_notes(shown: Sequence[Column], rows: Rows) -> list[str]:
    """Return a note that explains the mark for few tasks, if any value has this mark."""
    from tasks.rules.statistics.intervals import FEW_OTHERS, SMALL

    if not any(row.get(column.few) for column in with_values(shown, rows) if column.few for row in rows):
        return []
    return [
        f"{SMALL_MARK} Few tasks: fewer than {SMALL}, or fewer than {FEW_OTHERS} that differ; the interval may be too "
        "narrow."
    ]


def is_number(column: Column, rows: Rows) -> bool:
    """Return whether all values of a column are numbers."""
    values = [row.get(column.name) for row in rows if row.get(column.name) is not None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def cell(column: Column, row: Row) -> str:
    """Return a value as text for people, on pages and in terminals."""
    value = row.get(column.name)
    if value is None or (column.kind == "yes" and not value):
        return MISSING
    if column.kind == "yes":
        return "yes"
    # A value that was computed in Python may already be a text.
    is_figure = column.kind in _DECIMALS and not isinstance(value, str)
    mark = SMALL_MARK if column.few and row.get(column.few) else ""
    return (_figure(column.kind, value) if is_figure else _text(value)) + mark


def _figure(kind: str, value: float) -> str:
    """Return a number with digits in groups of three."""
    if kind == "coverage":
        return coverage_text(value)
    digits = number(100 * value if kind == "share" else value, f"z,.{_DECIMALS[kind]}f")
    if kind == "share":
        return f"{digits}%"
    if kind in {"usd", "price"}:
        return f"−${digits[1:]}" if digits.startswith("−") else f"${digits}"
    return f"+{digits}" if kind == "signed" and value > 0 and digits.strip("0.") else digits


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
