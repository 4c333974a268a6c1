"""Pages from templates; whatever comes from data is escaped."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tasks.report.drawing.charts import specification
from tasks.report.edition import Edition
from tasks.report.figures import Figure, Rows
from tasks.report.site import Site
from tasks.report.tables import table

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'none'; "
    "connect-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
"""The pages' content-security policy: nothing from elsewhere, no inline script or style, no evaluation of text."""


@dataclass(frozen=True)
class Drawn:
    """A figure as a page shows it: the SQL that was run, its numbers, charts as JSON, notes, and the table."""

    figure: Figure
    query: str
    n_rows: int
    panels: Sequence[tuple[str, Markup]]
    notes: Sequence[str]
    n_listed: int
    table: Markup


@cache
def templates() -> Environment:
    """The templates, with escaping for everything that is not marked as HTML."""
    folder = Path(__file__).parent / "templates"
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """A page."""
    return templates().get_template(template).render(policy=POLICY, **values)


def as_json(value: Any) -> Markup:
    """JSON that can stand in a page's data block and in a script: nothing in it ends the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=str)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def drawn(figure: Figure, edition: Edition, site: Site) -> Drawn:
    """Ask for a figure's numbers, write them and their SQL beside the pages, and draw them."""
    query = edition.asked(figure.query or figure.name, figure.given)
    columns, values = edition.reader.table(query)
    rows: Rows = [dict(zip(columns, row, strict=True)) for row in values]
    site.write(f"figures/{figure.name}.csv", as_csv(columns, rows))
    site.write(f"figures/{figure.name}.sql", f"{query};\n")
    panels = figure.panels(rows) if figure.panels and rows else []
    notes = figure.notes(rows) if figure.notes and rows else []
    listed = figure.listed(rows) if figure.listed else rows
    return Drawn(
        figure, query, len(rows), [(panel.title, as_json(specification(panel.chart))) for panel in panels], notes,
        len(listed), table(figure.name, figure.columns, listed) if rows else Markup(""),
    )  # fmt: skip


def as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with full precision; a list is JSON, a moment is UTC in ISO 8601."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    return file.getvalue()


def _plain(value: Any) -> Any:
    match value:
        case list():
            return json.dumps(value, ensure_ascii=False)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return value
