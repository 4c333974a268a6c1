"""Tables of numbers, drawn by Great Tables and dressed by the page.

Great Tables brings its styles along inside the page, which the pages' policy forbids; the table itself is taken, and
`assets/report.css` dresses its classes.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl
from great_tables import GT
from markupsafe import Markup

from tasks.report.addresses import task_address
from tasks.report.figures import Column, Row, Rows

_MISSING = "–"
_DECIMALS = {"score": 3, "signed": 3, "number": 2, "p": 4, "usd": 2, "price": 4}


def table(name: str, columns: Sequence[Column], rows: Rows) -> Markup:
    """An HTML table without styles; text is escaped by Great Tables."""
    shown = [column for column in columns if any(row.get(column.name) is not None for row in rows)] or list(columns)
    data = {column.name: [_plain(column, row) for row in rows] for column in shown}
    drawn = GT(pl.DataFrame(data, strict=False), id=name).cols_label({column.name: column.title for column in shown})
    drawn = _formatted(drawn, shown)
    for group in dict.fromkeys(column.group for column in shown if column.group):
        drawn = drawn.tab_spanner(group, columns=[column.name for column in shown if column.group == group])
    whole = drawn.sub_missing(missing_text=_MISSING).as_raw_html()
    return Markup(whole[whole.index("<table") : whole.rindex("</table>") + len("</table>")])


def _formatted(drawn: GT, columns: Sequence[Column]) -> GT:
    of_kind = {kind: [column.name for column in columns if column.kind == kind] for kind in {c.kind for c in columns}}
    for kind, names in of_kind.items():
        match kind:
            case "count":
                drawn = drawn.fmt_integer(names)
            case "share":
                drawn = drawn.fmt_percent(names, decimals=1)
            case "usd" | "price":
                drawn = drawn.fmt_currency(names, currency="USD", decimals=_DECIMALS[kind])
            case "score" | "number" | "p" | "signed":
                drawn = drawn.fmt_number(names, decimals=_DECIMALS[kind], force_sign=kind == "signed")
            case "task":
                drawn = drawn.fmt(str, names)  # it is HTML already, which the default would escape
    return drawn


def _plain(column: Column, row: Row) -> Any:
    value = row.get(column.name)
    if value is None:
        return None
    if column.kind == "task":
        return str(Markup('<a href="{}">{}</a>').format(row.get("address") or task_address(value), value))
    if column.kind == "yes":
        return "yes" if value else None
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value
