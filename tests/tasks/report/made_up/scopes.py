"""Scopes of made-up warehouses, and what is true of every figure, whatever it shows."""

import csv
import io
from pathlib import Path
from typing import Any

import duckdb

from tasks.config.job import DataRevision
from tasks.figures.figure import Figure
from tasks.figures.rendering import as_csv
from tasks.figures.scope import Scope, open_scope
from tasks.report.drawing.charts import drawn as drawn_chart
from tasks.report.rendering.drawn import drawn
from tasks.report.rendering.site import Site
from tests.kit import REVISION, job_on, written
from warehouse import Warehouse

Row = dict[str, Any]


def scope_of(folder: Path, rows: dict[str, list[dict[str, Any]]], vintage: str | None = None) -> Scope:
    """Store rows by table in a fresh warehouse, publish, and open the scope of their revision."""
    warehouse = written(folder, rows)
    warehouse.publish()
    data = DataRevision(name="sample", revision=REVISION, splits=("sample",))
    return open_scope(job_on("sample", folder).looking_up(lambda: data), warehouse.reader(), vintage)


def rows_of(figure: Figure, scope: Scope) -> list[dict[str, Any]]:
    """The numbers of a figure."""
    return scope.reader.rows(scope.query_of(figure))


def check_sources(figure: Figure, scope: Scope, folder: Path) -> None:
    """The SQL that is offered runs as it stands, in any client, and gives the CSV; charts and table can be drawn."""
    assert drawn(figure, scope, Site(folder)) is not None
    text = (folder / "figures" / f"{figure.name}.sql").read_text(encoding="utf-8")
    written = (folder / "figures" / f"{figure.name}.csv").read_text(encoding="utf-8")
    with duckdb.connect(str(Warehouse(scope.job.warehouse).database), read_only=True) as connection:
        connection.execute("set timezone = 'Pacific/Auckland'")
        cursor = connection.execute(text)
        columns = [column[0] for column in cursor.description or []]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    assert rows, f"{figure.name} has no rows to look at"
    assert as_csv(columns, rows) == written
    assert len(list(csv.reader(io.StringIO(written)))) == 1 + len(rows)
    assert {column.name for column in figure.columns} <= set(columns)
    for plot in figure.plots(rows) if figure.plots else []:
        drawn_chart(plot.chart).to_dict()  # raises where it is no valid chart
