"""A figure as a page shows it: its numbers asked for, written beside the pages, and drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import Template

from markupsafe import Markup

from tasks.benchmarks.base import Benchmark
from tasks.report.content.edition import Edition
from tasks.report.content.figures import Figure, Page, Rows
from tasks.report.content.wording import words
from tasks.report.drawing.specification import shows_anything, specification, unchecked
from tasks.report.rendering.csv_files import as_csv, is_marked
from tasks.report.rendering.html import as_json
from tasks.report.rendering.site import Site
from tasks.report.rendering.tables import table

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
    query = edition.asked(figure.query, figure.given)
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
