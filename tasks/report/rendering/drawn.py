"""A figure as a page shows it: its numbers asked for, written beside the pages, drawn, and as a table."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from string import Template
from typing import Any

from markupsafe import Markup, escape

from tasks.benchmarks.base import Benchmark
from tasks.report.content.edition import Edition, task_address
from tasks.report.content.figures import Column, Figure, Page, Row, Rows, words
from tasks.report.drawing.plots import shows_anything, specification, unchecked
from tasks.report.rendering.site import Site, as_json, dated
from tasks.rules.text.cells import defused
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


def as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with full precision; a list is JSON, a moment is UTC in ISO 8601.

    Text that a spreadsheet would run or rewrite has an apostrophe in front (`tasks.rules.text.cells`).
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    return file.getvalue()


def is_marked(value: Any) -> bool:
    """Whether a cell has an apostrophe in front in the CSV."""
    return isinstance(value, str) and defused(value) != value


def _plain(value: Any) -> Any:
    match value:
        case str():
            return defused(value)
        case list():
            return json.dumps(value, ensure_ascii=False)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return value


_TWO_LINES = 160
"""So many characters stand in two lines of text."""


@dataclass(frozen=True)
class Drawn:
    """A figure as a page shows it: how it is to be read, the SQL that was run, its charts as JSON, its table.

    `query` is empty where the figure is left out; `is_marked` is whether a cell of the CSV is defused.
    """

    figure: Figure
    says: str
    query: str
    n_rows: int
    plots: Sequence[tuple[str, Markup]]
    notes: Sequence[str]
    n_listed: int
    table: Markup
    is_marked: bool = False

    @property
    def is_long(self) -> bool:
        """Whether its explanation takes more than two lines, and so is folded."""
        return len(self.says) > _TWO_LINES


def figures_of(page: Page, edition: Edition, site: Site) -> list[Drawn]:
    """Draw the figures of a page that the edition has something for."""
    own = [page.own(breakdown) for breakdown in edition.own_breakdowns] if page.own else []
    figures = [
        _titled(figure, edition) for figure in page.figures if not figure.breakdown or figure.breakdown in edition.kinds
    ]
    found = [drawn(figure, edition, site) for figure in (*figures, *own)]
    return [each for each in found if each is not None]


def _titled(figure: Figure, edition: Edition) -> Figure:
    """A figure, with what the benchmark calls its categories where it is about them."""
    title = edition.category_title if figure.breakdown == "category" else None
    return replace(figure, title=f"{figure.title} ({title})") if title else figure


def drawn(figure: Figure, edition: Edition, site: Site) -> Drawn | None:
    """Ask for a figure's numbers, write them and their SQL beside the pages, and draw them.

    None where the figure is left out, since it has no rows; in a report of some splits one that is pooled over all
    tasks only says that it is not there.
    """
    if edition.narrowed_to and figure.reach == "pooled":
        return None if figure.is_optional else _pooled(figure, edition)
    query = edition.asked(figure.query or figure.name, figure.given)
    columns, values = edition.reader.table(query)
    rows: Rows = [dict(zip(columns, row, strict=True)) for row in values]
    if figure.is_optional and not rows:
        return None
    site.write(f"figures/{figure.name}.csv", as_csv(columns, rows))
    site.write(f"figures/{figure.name}.sql", f"{query};\n")
    plots, notes = _charts(figure, rows)
    if rows and figure.breakdown in edition.annotated:
        notes.append(edition.annotated[figure.breakdown])
    if edition.narrowed_to and figure.reach == "warehouse":
        notes.append(f"This covers the whole warehouse, not only {edition.narrowed_to}.")
    listed = figure.listed(rows) if figure.listed else rows
    return Drawn(
        figure, _says(figure, edition.benchmark), query, len(rows), plots, notes, len(listed),
        table(figure.name, figure.columns, listed) if rows else Markup(""),
        any(is_marked(value) for row in rows for value in row.values()),
    )  # fmt: skip


def _pooled(figure: Figure, edition: Edition) -> Drawn:
    empty = f"Measured over all splits at once, but this report shows only {edition.narrowed_to}."
    return Drawn(
        replace(figure, empty=empty), _says(figure, edition.benchmark), "", 0, [], [], 0, Markup("")
    )  # fmt: skip


def _charts(figure: Figure, rows: Rows) -> tuple[list[tuple[str, Markup]], list[str]]:
    """A figure's charts, each with its title, and the notes on them; one without a value is only named."""
    if not rows:
        return [], []
    with unchecked():
        charts = [(plot.title, specification(plot.chart)) for plot in (figure.plots(rows) if figure.plots else [])]
    notes = list(figure.notes(rows)) if figure.notes else []
    if blank := [title or figure.title for title, chart in charts if not shows_anything(chart)]:
        notes.append(f"Not drawn, because no value is known: {', '.join(blank)}.")
    return [(title, as_json(chart)) for title, chart in charts if shows_anything(chart)], notes


def _says(figure: Figure, benchmark: Benchmark) -> str:
    """How a figure is to be read, in the benchmark's words."""
    source = benchmark.figure_sources.get(figure.name)
    return Template(figure.says).substitute(words(benchmark)) + (f" See {source}." if source else "")
