"""A figure on a page: charts and a table of its rows, which are also written as a file."""

from collections.abc import Iterator, Sequence
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
    with_values,
)
from tasks.figures.page import Page, placeholder_values
from tasks.figures.scope import Scope
from tasks.report.rendering.site import Site, dated
from tasks.rules.text.characters import visible


def table(name: str, columns: Sequence[Column], rows: Rows) -> Markup:
    """Return the table of a figure as HTML, without columns that have no value.

    All text is escaped.

    Args:
        name: the figure's name, which the ids of the headings start with.
        columns: the shown columns, in this order; neighbours with the same group get a common
            heading.
        rows: the figure's rows, or some of them.
    """
    columns = with_values(columns, rows)
    head, tags = _head(name, columns, rows)
    body = ""
    for row in rows:
        # `dated` escapes the text. `Markup.format` would take several times as long, which matters
        # with so many cells.
        cells = "".join(
            f"{tag}{dated(_shown(column, row))}</td>"
            for tag, column in zip(tags, columns, strict=True)
        )
        body += f"<tr>{cells}</tr>\n"
    return _TABLE.format(head, Markup(body))


def _head(name: str, columns: Sequence[Column], rows: Rows) -> tuple[Markup, list[str]]:
    """Return the rows of headings, and for each column the tag that begins its cells."""
    has_groups = any(column.group for column in columns)
    upper: list[Markup] = []
    lower: list[Markup] = []
    tags: list[str] = []
    for number, (group, members) in enumerate(groupby(columns, key=lambda column: column.group)):
        group_columns = list(members)
        group_id = f"{name}-group-{number}"
        if group:
            heading = _GROUP_HEADING.format(
                id=group_id, n_columns=len(group_columns), title=visible(group)
            )
            upper.append(heading)
        for column in group_columns:
            heading_id = f"{name}-{column.name}"
            alignment = "right" if is_number(column, rows) else "left"
            heading = _HEADING.format(
                id=heading_id,
                alignment=alignment,
                n_rows=2 if has_groups and not group else 1,
                title=dated(column.title),
            )
            if group:
                lower.append(heading)
                heading_id = f"{group_id} {heading_id}"
            else:
                upper.append(heading)
            tags.append(f'<td headers="{escape(heading_id)}" class="{alignment}">')
    head = [_ROW.format(Markup("").join(headings)) for headings in (upper, lower) if headings]
    return Markup("").join(head), tags


_TABLE = Markup("<table>\n<thead>\n{}</thead>\n<tbody>\n{}</tbody>\n</table>")
_ROW = Markup("<tr>{}</tr>\n")
_HEADING = Markup('<th id="{id}" class="{alignment}" scope="col" rowspan="{n_rows}">{title}</th>')
_GROUP_HEADING = Markup('<th id="{id}" scope="colgroup" colspan="{n_columns}">{title}</th>')


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
    """A figure on a page: its explanation, its charts, its table, and links to its files.

    `n_rows` counts the rows of the figure (without a CSV file those of its table), `n_listed` those
    of its table. `table_notes` explain marks in the table, which may be folded. A figure that is
    computed in Python has no SQL. On a served page a figure has no files, nor in a report if it is
    pooled over all tasks and not shown.
    """

    figure: Figure
    says: str
    n_rows: int
    notes: Sequence[str]
    n_listed: int
    table: Markup
    table_notes: Sequence[str]
    charts: Sequence[Chart] = ()
    has_sql: bool = False
    has_csv: bool = False


def figures_of(page: Page, scope: Scope, site: Site) -> list[PageFigure]:
    """Return the drawn figures of a page, without those that are left out in this scope."""
    kinds = {"", *scope.kinds}
    figures = [figure for figure in page.figures if figure.breakdown in kinds]
    if page.own_figure:
        figures += map(page.own_figure, scope.own_breakdowns)
    page_figures = [_write_figure(_titled(figure, scope), scope, site) for figure in figures]
    return list(filter(None, page_figures))


def _titled(figure: Figure, scope: Scope) -> Figure:
    """Return a figure whose title has the benchmark's name for its categories."""
    if not scope.category_title or figure.breakdown != "category":
        return figure
    return replace(figure, title=f"{figure.title} ({scope.category_title})")


def _write_figure(figure: Figure, scope: Scope, site: Site) -> PageFigure | None:
    """Write the rows of a figure, and their SQL if it has a query, as files; return the figure with
    its charts.

    Return None if it is optional (no text for `empty`) and has no rows. In a report of some splits,
    a figure that is pooled over all tasks is not written, and only states that it is not shown.
    """
    sql, columns, rows = _rows_of(figure, scope)
    if not figure.empty and not rows:
        return None
    if scope.split_limit and figure.reach == "pooled":
        empty = f"Measured over all splits at once, but this report shows only {scope.split_limit}."
        return page_figure_of(replace(figure, empty=empty), (), scope.benchmark)
    site.write(f"figures/{figure.name}.csv", as_csv(columns, rows))
    if sql:
        site.write(f"figures/{figure.name}.sql", f"{sql};\n")
    page_figure = page_figure_of(figure, rows, scope.benchmark)
    charts = figure.drawn(rows)
    return replace(
        page_figure,
        has_sql=bool(sql),
        has_csv=True,
        n_rows=len(rows),
        charts=[chart for chart in charts if not chart.is_blank],
        notes=[*page_figure.notes, *_notes_in_report(figure, charts, rows, scope)],
    )


def _notes_in_report(
    figure: Figure,
    charts: Sequence[Chart],
    rows: Rows,
    scope: Scope,
) -> Iterator[str]:
    """Yield the notes on a figure that only a report has: on its charts, and on its scope."""
    blank_titles = [chart.title or figure.title for chart in charts if chart.is_blank]
    if blank_titles:
        yield f"Not drawn, because no value is known: {', '.join(blank_titles)}."
    if figure.mark_note and any(chart.has_marks for chart in charts):
        yield figure.mark_note
    if rows and figure.breakdown in scope.annotation_notes:
        yield scope.annotation_notes[figure.breakdown]
    if scope.split_limit and figure.reach == "warehouse":
        yield f"This covers all splits, not only {scope.split_limit}."


def _rows_of(figure: Figure, scope: Scope) -> tuple[str, Sequence[str], Rows]:
    """Return the SQL, the columns and the rows of a figure; the SQL of a computed one is empty."""
    if figure.compute is not None:
        rows = scope.rows_of(figure)
        return "", list(rows[0]) if rows else [], rows
    sql = scope.query_of(figure)
    columns, _ = scope.table(sql)
    return sql, columns, scope.filled_rows(sql)


def page_figure_of(figure: Figure, rows: Rows, benchmark: Benchmark) -> PageFigure:
    """Return a figure with given rows: its texts and table, without charts and files.

    Only the pages of a report add these; served pages do without them.
    """
    says = Template(figure.says).substitute(placeholder_values(benchmark))
    source = benchmark.figure_sources.get(figure.name)
    if source:
        says += f" See {source}."
    table_rows = figure.listed(rows)
    return PageFigure(
        figure=figure,
        says=says,
        n_rows=len(table_rows),
        notes=figure.notes_on(rows),
        n_listed=len(table_rows),
        table=table(figure.name, figure.columns, table_rows) if rows else Markup(""),
        table_notes=figure.small_notes(table_rows),
    )
