"""A figure on a page: charts and a table of its rows, which are also written as a file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from string import Template

from markupsafe import Markup, escape

from tasks.benchmarks.base import Benchmark
from tasks.figures.addresses import task_address
from tasks.figures.csv_rows import as_csv
from tasks.figures.figure import (
    Chart,
    Column,
    Figure,
    Row,
    Rows,
    cell,
    is_number,
    small_notes,
    with_values,
)
from tasks.figures.page import Page, words
from tasks.figures.scope import Scope
from tasks.report.rendering.site import Site, dated
from tasks.rules.text.characters import visible


def table(name: str, columns: Sequence[Column], rows: Rows) -> Markup:
    """Return the table of a figure as HTML; columns without any value are left out, and all text is
    escaped.

    Args:
        name: the figure's name, which the ids of the headings start with.
        columns: the shown columns, in this order; neighbours with the same group get a common
            heading.
        rows: the figure's rows, or some of them.
    """
    shown = with_values(columns, rows)
    n_headings = 2 if any(column.group for column in shown) else 1
    upper = list[Markup]()
    lower = list[Markup]()
    begun: list[tuple[Column, str]] = []  # each column with the opening tag of its cells
    for number, (group, members) in enumerate(groupby(shown, key=lambda column: column.group)):
        mine = list(members)
        group_id = f"{name}-group-{number}"
        if group:
            upper.append(
                _HEADING.format(group_id, "center", "colgroup", 1, len(mine), visible(group))
            )
        for column in mine:
            own_id = f"{name}-{column.name}"
            alignment = "right" if is_number(column, rows) else "left"
            heading = _HEADING.format(
                own_id, alignment, "col", 1 if group else n_headings, 1, dated(column.title)
            )
            (lower if group else upper).append(heading)
            headings = escape(f"{group_id} {own_id}" if group else own_id)
            begun.append((column, f'<td headers="{headings}" class="{alignment}">'))
    head = [_ROW.format(Markup("").join(row)) for row in (upper, lower) if row]
    # `Markup.format` would take several times as long, which matters with so many cells.
    cells = (
        "".join(f"{begin}{dated(_shown(column, row))}</td>" for column, begin in begun)
        for row in rows
    )
    body = "".join(f"<tr>{each}</tr>\n" for each in cells)
    return _TABLE.format(Markup("").join(head), Markup(body))


_TABLE = Markup('<table class="figure">\n<thead>\n{}</thead>\n<tbody>\n{}</tbody>\n</table>')
_ROW = Markup("<tr>{}</tr>\n")
_HEADING = Markup('<th id="{}" class="{}" scope="{}" rowspan="{}" colspan="{}">{}</th>')


def _shown(column: Column, row: Row) -> str:
    """Return a value as text for a page; a value that is already HTML is marked as such."""
    value = row.get(column.name)
    if isinstance(value, Markup):
        return value
    if column.kind != "task" or value is None:
        return cell(column, row)
    return Markup('<a href="{}">{}</a>').format(
        row.get("address") or task_address(value), visible(value)
    )


@dataclass(frozen=True)
class PageFigure:
    """A figure on a page: its explanation, the SQL that was run, its charts, its table.

    `query` is empty if the figure is left out. `table_notes` explain marks in the table, which may
    be folded.
    """

    figure: Figure
    says: str
    query: str
    n_rows: int
    plots: Sequence[Chart]
    notes: Sequence[str]
    n_listed: int
    table: Markup
    table_notes: Sequence[str]


def figures_of(page: Page, scope: Scope, site: Site) -> list[PageFigure]:
    """Return the drawn figures of a page, without those that are left out in this scope."""
    title = scope.category_title  # the benchmark's name for its categories
    figures = [
        (
            replace(figure, title=f"{figure.title} ({title})")
            if title and figure.breakdown == "category"
            else figure
        )
        for figure in page.figures
        if not figure.breakdown or figure.breakdown in scope.kinds
    ]
    own = [page.own(breakdown) for breakdown in scope.own_breakdowns] if page.own else []
    return [each for figure in (*figures, *own) if (each := page_figure(figure, scope, site))]


def page_figure(figure: Figure, scope: Scope, site: Site) -> PageFigure | None:
    """Read the rows of a figure, write them and their SQL as files, and declare its charts.

    Return None if the figure is left out because it is optional and has no rows. In a report of
    some splits, a figure that is pooled over all tasks only states that it is not shown.
    """
    query = scope.query_of(figure)
    columns, values = scope.reader.table(query)
    rows: Rows = [dict(zip(columns, row, strict=True)) for row in values]
    if not figure.empty and not rows:
        return None
    if scope.narrowed_to and figure.reach == "pooled":
        empty = f"Measured over all splits at once, but this report shows only {scope.narrowed_to}."
        return served(replace(figure, empty=empty), (), scope.benchmark)
    site.write(f"figures/{figure.name}.csv", as_csv(columns, rows))
    site.write(f"figures/{figure.name}.sql", f"{query};\n")
    shown = served(figure, rows, scope.benchmark)
    drawn = figure.drawn(rows)
    blank = [chart.title or figure.title for chart in drawn if chart.is_blank]
    notes = [
        *shown.notes,
        *([f"Not drawn, because no value is known: {', '.join(blank)}."] if blank else []),
    ]
    if figure.mark_note and any(chart.has_marks for chart in drawn):
        notes.append(figure.mark_note)
    if rows and figure.breakdown in scope.annotated:
        notes.append(scope.annotated[figure.breakdown])
    if scope.narrowed_to and figure.reach == "warehouse":
        notes.append(f"This covers the whole warehouse, not only {scope.narrowed_to}.")
    return replace(
        shown,
        query=query,
        n_rows=len(rows),
        plots=[chart for chart in drawn if not chart.is_blank],
        notes=notes,
    )


def served(figure: Figure, rows: Rows, benchmark: Benchmark) -> PageFigure:
    """Return a figure with given rows, for a page without files."""
    says = Template(figure.says).substitute(words(benchmark))
    source = benchmark.figure_sources.get(figure.name)
    if source:
        says += f" See {source}."
    listed = figure.listed(rows)
    shown = table(figure.name, figure.columns, listed) if rows else Markup("")
    table_notes = small_notes(figure.columns, listed)
    notes = [note for note in figure.notes_on(rows, listed) if note not in table_notes]
    return PageFigure(figure, says, "", len(listed), [], notes, len(listed), shown, table_notes)
