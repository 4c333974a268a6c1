"""Every figure has the same cells on a page, in a terminal, in JSON, CSV and Excel, and as a data
frame.
"""

import csv
import html
import io
import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import openpyxl
import pytest

from flows.cli.options import Context
from flows.cli.output import show_json
from flows.run.arguments import Arguments
from tasks.exports.figure_files import figures_as_workbook
from tasks.figures.csv_rows import as_csv
from tasks.figures.figure import MISSING, terminal_columns, with_values
from tasks.figures.scope import Scope
from tasks.figures.shown import FIGURES
from tasks.report.rendering.page_figures import table
from tasks.rules.text.cells import as_before
from tests.kit import Printed

pytestmark = pytest.mark.slow
GIVEN: dict[str, dict[str, Any]] = {
    "people_agreement": {"people": ["lawyers"]},
    "weakness_candidates": {"model": "alder-large"},
    **{
        name: {"names": ["alder-large", "birch-2"]}
        for name in ("diff", "diff_categories", "diff_tasks", "diff_flips")
    },
    "cascade": {"cheap": "mild-judge", "strong": "strict-judge"},
    "debiased_differences": {"first": "alder-large", "others": ["birch-2", "cedar-mini"]},
}
"""Arguments of the figures that need some."""


@pytest.mark.parametrize("name", FIGURES)
def test_six_forms_are_alike(name: str, scope: Scope, capsys: Printed) -> None:
    figure = FIGURES[name]
    given = GIVEN.get(name, {})
    rows = scope.rows_of(figure, given)
    if not rows:
        return
    names = list(rows[0])

    # For people: the terminal has each cell of the page; both ends of an interval share a cell
    # there.
    page = re.findall(r"<td [^>]*>(.*?)</td>", str(table(name, figure.columns, rows)), re.DOTALL)
    on_page = [html.unescape(re.sub(r"<[^>]+>", "", each)) for each in page]
    n_columns = len(with_values(figure.columns, rows))
    terminal = terminal_columns(figure.columns, rows)
    assert n_columns * len(rows) == len(on_page)
    for index in range(len(rows)):
        cells = [column.cells[index] for column in terminal]
        expected = on_page[index * n_columns : (index + 1) * n_columns]
        parts = {part for cell in cells for part in re.split(r" to | \(|\)", cell)}
        assert {each for each in expected if each != MISSING} <= {*cells, *parts}

    # For machines: all columns, under the same names, with the same values.
    show_json(Context(Arguments(), is_verbose=False), rows)
    assert json.loads(json.dumps(rows, default=str)) == json.loads(capsys.readouterr().out)
    plain_rows = [[plain(value) for value in row.values()] for row in rows]
    heading, *lines = csv.reader(io.StringIO(as_csv(names, rows)))
    assert names == heading
    assert plain_rows == [[as_before(each) for each in line] for line in lines]
    book = openpyxl.load_workbook(io.BytesIO(figures_as_workbook(scope.job.key, [(figure, rows)])))
    sheets = [list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets[:2]]
    assert {"row", "benchmark", "dataset_revision", *names} == {*sheets[0][0], *sheets[1][0]}
    for index, row in enumerate(rows, start=1):
        cells = {
            name: value
            for sheet in sheets
            for name, value in zip(sheet[0], sheet[index], strict=True)
        }
        assert all(are_alike(alike(cells[name]), alike(value)) for name, value in row.items()), (
            cells,
            row,
        )
    if figure.compute is None:
        frame = scope.reader.arrow(scope.query_of(figure, given))
        assert names == frame.column_names
        assert plain_rows == [[plain(value) for value in row.values()] for row in frame.to_pylist()]


def plain(value: Any) -> str:
    """A value as in CSV, without the mark for spreadsheets."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return (
        ""
        if value is None
        else value.astimezone(UTC).isoformat()
        if isinstance(value, datetime)
        else str(value)
    )


def are_alike(a: Any, b: Any) -> bool:
    """Return whether two cells are equal to the precision of a spreadsheet: 15 digits, and
    milliseconds.
    """
    if isinstance(a, datetime) and isinstance(b, datetime):
        return abs(a - b) < timedelta(milliseconds=2)
    return (
        math.isclose(a, b, rel_tol=1e-12)
        if isinstance(a, float) and isinstance(b, float | int)
        else bool(a == b)
    )


def alike(value: Any) -> Any:
    """A value as a spreadsheet stores it: without time zone, lists and empty text."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or None
    return (
        value.replace(tzinfo=None)
        if isinstance(value, datetime)
        else None
        if value == ""
        else value
    )
