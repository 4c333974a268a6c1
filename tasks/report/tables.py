"""Tables of numbers, drawn by Great Tables and dressed by the page.

Great Tables brings its styles along inside the page, which the pages' policy forbids; the table itself is taken, and
`assets/report.css` dresses its classes.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl
from great_tables import GT
from markupsafe import Markup

from tasks.report.figures import Column, Rows

_MISSING = "–"
_DECIMALS = {"score": 3, "signed": 3, "number": 2, "p": 4, "usd": 2}


def table(name: str, columns: Sequence[Column], rows: Rows) -> Markup:
    """An HTML table without styles; text is escaped by Great Tables."""
    shown = [column for column in columns if any(row.get(column.name) is not None for row in rows)] or list(columns)
    data = {column.title: [_plain(column, row.get(column.name)) for row in rows] for column in shown}
    drawn = GT(pl.DataFrame(data, strict=False), id=name)
    drawn = _formatted(drawn, shown)
    for group in dict.fromkeys(column.group for column in shown if column.group):
        drawn = drawn.tab_spanner(group, columns=[column.title for column in shown if column.group == group])
    whole = drawn.sub_missing(missing_text=_MISSING).as_raw_html()
    return Markup(whole[whole.index("<table") : whole.rindex("</table>") + len("</table>")])


def _formatted(drawn: GT, columns: Sequence[Column]) -> GT:
    of_kind = {kind: [column.title for column in columns if column.kind == kind] for kind in {c.kind for c in columns}}
    for kind, titles in of_kind.items():
        match kind:
            case "count":
                drawn = drawn.fmt_integer(titles)
            case "share":
                drawn = drawn.fmt_percent(titles, decimals=1)
            case "usd":
                drawn = drawn.fmt_currency(titles, currency="USD", decimals=_DECIMALS[kind])
            case "score" | "number" | "p" | "signed":
                drawn = drawn.fmt_number(titles, decimals=_DECIMALS[kind], force_sign=kind == "signed")
    return drawn


def _plain(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.kind == "yes":
        return "yes" if value else None
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value
