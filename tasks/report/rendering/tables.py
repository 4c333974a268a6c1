"""Tables of numbers as HTML without styles, which `assets/report.css` brings: the pages' policy forbids them inside."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from tasks.report.content.addresses import task_address
from tasks.report.content.columns import Column
from tasks.report.content.figures import Row, Rows
from tasks.report.rendering.html import dated
from tasks.rules.text.numbers import coverage_text, number

_MISSING = "–"
_DECIMALS = {"score": 3, "signed": 3, "number": 2, "p": 4, "usd": 2, "price": 4, "count": 0, "share": 1, "coverage": 1}


def table(name: str, columns: Sequence[Column], rows: Rows) -> Markup:
    """The table of a figure; columns without a value in any row are left out, and all text is escaped.

    Args:
        name: the figure's, which the ids of the headings begin with.
        columns: what is shown, in this order; neighbours with the same group get a common heading.
        rows: the figure's rows, or some of them.
    """
    shown = [column for column in columns if any(row.get(column.name) is not None for row in rows)] or list(columns)
    are_numbers = {column.name: _is_number(column, rows) for column in shown}
    headings, headers = _headings(name, shown, are_numbers)
    body = [_row(_body_cells(shown, row, headers, are_numbers)) for row in rows]
    return Markup('<table class="figure">\n<thead>\n{}</thead>\n<tbody>\n{}</tbody>\n</table>').format(
        Markup("").join(map(_row, headings)), Markup("").join(body)
    )


def _headings(
    name: str, columns: Sequence[Column], are_numbers: dict[str, bool]
) -> tuple[list[list[Markup]], dict[str, str]]:
    """The rows of headings, two if there are groups, and by column the ids of the headings above its cells."""
    n_rows = 2 if any(column.group for column in columns) else 1
    upper, lower, headers = list[Markup](), list[Markup](), dict[str, str]()
    for place, (group, members) in enumerate(groupby(columns, key=lambda column: column.group)):
        mine = list(members)
        group_id = f"{name}-group-{place}"
        if group:
            upper.append(_heading(group_id, group, "center", "colgroup", colspan=len(mine)))
        for column in mine:
            column_id, alignment = f"{name}-{column.name}", _alignment(are_numbers[column.name])
            heading = _heading(column_id, column.title, alignment, "col", rowspan=1 if group else n_rows)
            (lower if group else upper).append(heading)
            headers[column.name] = f"{group_id} {column_id}" if group else column_id
    return [row for row in (upper, lower) if row], headers


def _heading(own_id: str, title: str, alignment: str, scope: str, *, rowspan: int = 1, colspan: int = 1) -> Markup:
    return Markup('<th id="{}" class="{}" scope="{}" rowspan="{}" colspan="{}">{}</th>').format(
        own_id, alignment, scope, rowspan, colspan, title
    )


def _row(cells: Iterable[Markup]) -> Markup:
    return Markup("<tr>{}</tr>\n").format(Markup("").join(cells))


def _body_cells(
    columns: Sequence[Column], row: Row, headers: dict[str, str], are_numbers: dict[str, bool]
) -> list[Markup]:
    # Not by `Markup.format`, which takes several times as long, and there are very many cells.
    return [
        Markup(
            f'<td headers="{escape(headers[column.name])}" class="{_alignment(are_numbers[column.name])}">'
            f"{dated(_shown(column, row))}</td>"
        )
        for column in columns
    ]


def _is_number(column: Column, rows: Rows) -> bool:
    values = [row.get(column.name) for row in rows if row.get(column.name) is not None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _alignment(is_number: bool) -> str:
    return "right" if is_number else "left"


def _shown(column: Column, row: Row) -> str:
    """A value as people read it; what is HTML already is marked so."""
    value = row.get(column.name)
    if value is None or (column.kind == "yes" and not value):
        return _MISSING
    if column.kind == "yes":
        return "yes"
    if column.kind == "task":
        return Markup('<a href="{}">{}</a>').format(row.get("address") or task_address(value), value)
    return _figure(column.kind, value) if column.kind in _DECIMALS else _text(value)


def _figure(kind: str, value: float) -> str:
    if kind == "coverage":
        return coverage_text(value)
    if kind == "share":
        return _number(100 * value, _DECIMALS[kind]) + "%"
    digits = _number(value, _DECIMALS[kind])
    if kind in {"usd", "price"}:
        return f"−${digits[1:]}" if digits.startswith("−") else f"${digits}"
    is_positive = value > 0 and digits.strip("0.") != ""
    return f"+{digits}" if kind == "signed" and is_positive else digits


def _number(value: float, decimals: int) -> str:
    """Digits in groups of three."""
    return number(value, f"z,.{decimals}f")


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
