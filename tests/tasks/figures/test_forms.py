"""Every figure has the same cells on a page, in a terminal, in CSV and Excel, and as a data frame;
`tests/golden` has the JSON.
"""

import csv
import io
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from typing import Any
from unittest.mock import patch

import openpyxl
import pytest

from tasks.cascade import cascade_result
from tasks.exports.figure_files import figures_as_workbook
from tasks.figures.csv_rows import as_csv
from tasks.figures.figure import MISSING, Figure, terminal_columns, with_values
from tasks.figures.scope import Scope
from tasks.figures.shown import FIGURES
from tasks.report.rendering.page_figures import table
from tasks.rules.text.cells import without_mark
from tests.kit import in_batches

_DIFF = {"names": ["alder-large", "birch-2"]}
PARAMETERS: dict[str, dict[str, Any]] = {
    "people_agreement": {"people": ["lawyers"]},
    "weakness_candidates": {"model": "alder-large"},
    "diff": _DIFF,
    "diff_categories": _DIFF,
    "diff_tasks": _DIFF,
    "diff_flips": _DIFF,
    "cascade": {"cheap": "mild-judge", "strong": "strict-judge"},
    "debiased_differences": {
        "first": "alder-large",
        "others": ["birch-2", "cedar-mini"],
    },
}
"""Parameters of the figures that need some."""


@dataclass(frozen=True)
class FigureRows:
    """A figure with its rows."""

    figure: Figure
    rows: list[dict[str, Any]]

    @property
    def names(self) -> list[str]:
        """The columns of the rows."""
        return list(self.rows[0])

    @property
    def plain_rows(self) -> list[list[str]]:
        """The rows as in CSV, without the mark for spreadsheets."""
        return [list(map(plain, row.values())) for row in self.rows]


@pytest.fixture(scope="module", params=FIGURES)
def figure_rows(request, scope: Scope) -> FigureRows:
    """Each figure that has rows."""
    figure = FIGURES[request.param]
    with patch(
        "tasks.cascade.cascade_result", partial(cascade_result, resamples=200)
    ):
        rows = scope.rows_of(figure, PARAMETERS.get(figure.name, {}))
    if not rows:
        pytest.skip("the figure has no rows here")
    return FigureRows(figure, rows)


def test_a_terminal_has_each_cell_of_the_page(figure_rows):
    html = table(
        figure_rows.figure.name, figure_rows.figure.columns, figure_rows.rows
    )
    cells = re.findall(r"<td [^>]*>(.*?)</td>", html, re.DOTALL)
    page_cells = [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in cells]
    n_columns = len(with_values(figure_rows.figure.columns, figure_rows.rows))

    terminal = terminal_columns(figure_rows.figure.columns, figure_rows.rows)

    assert len(page_cells) == n_columns * len(figure_rows.rows)
    for index, cells_of_row in enumerate(in_batches(page_cells, n_columns)):
        terminal_cells = {MISSING}
        for column in terminal:
            # Both ends of an interval share a cell there.
            terminal_cells |= {
                column.cells[index],
                *re.split(r" to | \(|\)", column.cells[index]),
            }
        assert set(cells_of_row) <= terminal_cells


def test_csv_has_all_values(figure_rows):
    text = as_csv(figure_rows.names, figure_rows.rows)

    heading, *lines = csv.reader(io.StringIO(text))

    assert heading == figure_rows.names
    assert [list(map(without_mark, line)) for line in lines] == figure_rows.plain_rows


def test_a_workbook_has_all_values(figure_rows, scope):
    parts = [(figure_rows.figure, figure_rows.rows)]
    content = figures_as_workbook(scope.job.key, parts)

    book = openpyxl.load_workbook(io.BytesIO(content))
    sheets = [
        list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets[:2]
    ]
    names = {"row", "benchmark", "dataset_revision", *figure_rows.names}
    assert {*sheets[0][0], *sheets[1][0]} == names
    for index, row in enumerate(figure_rows.rows, start=1):
        cells = {}
        for sheet in sheets:
            cells |= dict(zip(sheet[0], sheet[index], strict=True))
        for name, value in row.items():
            cell = spreadsheet_value(cells[name])
            assert are_equal(cell, spreadsheet_value(value)), name


def test_a_data_frame_has_all_values(figure_rows, scope):
    figure = figure_rows.figure
    if figure.compute is not None:
        pytest.skip("a figure that is computed in Python has no query")

    query = scope.query_of(figure, PARAMETERS.get(figure.name, {}))
    frame = scope.reader.arrow(query)

    frame_rows = FigureRows(figure, frame.to_pylist())
    assert frame.column_names == figure_rows.names
    assert frame_rows.plain_rows == figure_rows.plain_rows


def plain(value: Any) -> str:
    """Return a value as in CSV, without the mark for spreadsheets."""
    match value:
        case None:
            return ""
        case list():
            return json.dumps(value, ensure_ascii=False)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return str(value)


def spreadsheet_value(value: Any) -> Any:
    """Return a value as a spreadsheet stores it: without time zone, lists and empty text."""
    match value:
        case "" | []:
            return None
        case list():
            return ", ".join(map(str, value))
        case datetime():
            return value.replace(tzinfo=None)
        case _:
            return value


def are_equal(first: Any, second: Any) -> bool:
    """Return whether two values are equal to the precision of a spreadsheet: 15 digits, and
    milliseconds.
    """
    if isinstance(first, datetime) and isinstance(second, datetime):
        return abs(first - second) < timedelta(milliseconds=2)
    if isinstance(first, float) and isinstance(second, float | int):
        return math.isclose(first, second, rel_tol=1e-12)
    return bool(first == second)
