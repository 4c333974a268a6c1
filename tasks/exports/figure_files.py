"""Figures as files for spreadsheets: CSV with a file that explains the columns, or a workbook."""

import io
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import sql
from tasks.exports.tables import meaning_of_column
from tasks.figures.csv_rows import as_csv
from tasks.figures.figure import Figure, Rows, usual
from tasks.rules.errors import PipelineError, disk_errors
from tasks.rules.text.cells import defused_formula, may_run
from tasks.rules.text.characters import visible
from tasks.rules.text.json_text import plain_text
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import write_atomically

Key = Mapping[str, str]
"""The benchmark and the revision of the data set, which each row in a file has; empty for a figure
about neither.
"""
_MARTS = ("leaderboard", "severity_leaderboard", "breakdown_leaderboard")
"""Marts that explain a column that nothing else explains, asked in this order."""
_OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "remove_timezone": True,
    "nan_inf_to_errors": True,
    "default_date_format": "yyyy-mm-dd hh:mm:ss",
}
_NUMBER_FORMATS = {
    "score": "0.000",
    "signed": "+0.000;-0.000;0.000",
    "number": "#,##0.00",
    "p": "0.0000",
    "usd": "$#,##0.00",
    "price": "$#,##0.0000",
    "count": "#,##0",
    "share": "0.0%",
    "coverage": "0.0%",
}
"""Kind of a column -> the number format of its cells, whose values are not rounded."""
_LONGEST_NAME = 31
"""The most characters of a sheet's name in Excel."""


class Sheet(NamedTuple):
    """A sheet of a workbook: its name, its rows, and the kinds of its columns, where they are
    known.
    """

    name: str
    rows: Rows
    kinds: Mapping[str, str | None] = {}


def write_csv(key: Key, figure: Figure, rows: Rows, file: Path) -> StageReport:
    """Write a figure, which has at least one row, as CSV, and a second file that explains the
    columns.

    Raises:
        PipelineError: the file cannot be written.
    """
    flat = _flat(key, rows)
    columns_file = file.with_name(f"{file.stem}-columns.csv")
    with disk_errors(file):
        _write_lines(file, flat)
        _write_lines(columns_file, column_meanings(figure, flat))
    notes = [
        f"{counted(len(rows), 'row')} in {file}",
        f"its columns are explained in {columns_file}",
    ]
    return StageReport(figure.name, rows=len(rows), notes=notes)


def _write_lines(file: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    text = as_csv(list(lines[0]), lines, mark=defused_formula)
    # Without a byte order mark, spreadsheets assume another encoding.
    write_atomically(file, text.encode("utf-8-sig"))


def figures_as_workbook(key: Key, parts: Sequence[tuple[Figure, Rows]]) -> bytes:
    """Return a workbook of figures, each of which has at least one row.

    It has a sheet for each figure, with the figure's own columns first, then a sheet for each with
    its hashes and ids, and last a sheet that explains the columns.

    Raises:
        PipelineError: Excel cannot hold a value.
    """
    flat = [(figure, _flat(key, rows)) for figure, rows in parts]
    sheets = [_sheet_of(figure, rows) for figure, rows in flat]
    sheets += [_sheet_of_hashes(figure, rows) for figure, rows in flat]
    meanings: dict[str, dict[str, str]] = {}
    for figure, rows in flat:
        meanings |= {line["column"]: line for line in column_meanings(figure, rows)}
    sheets.append(Sheet("columns", list(meanings.values())))
    return workbook(sheets)


def column_meanings(figure: Figure, rows: Rows) -> list[dict[str, str]]:
    """Return the meaning of each column of a figure's rows."""
    meanings = sql.schema()["meanings"]
    marts = (figure.mart, figure.name)
    lines = []
    for name in rows[0]:
        meaning = (
            meanings.get(name)
            or meaning_of_column(name, marts)
            or meaning_of_column(name, _MARTS)
            or usual(name).heading
        )
        lines.append({"column": name, "meaning": meaning})
    return lines


def workbook(sheets: Sequence[Sheet]) -> bytes:
    """Return a workbook; the same rows give the same bytes.

    Raises:
        PipelineError: Excel cannot hold a value.
    """
    import xlsxwriter

    content = io.BytesIO()
    with xlsxwriter.Workbook(content, _OPTIONS) as book:
        # A fixed time, so that the same rows give the same bytes.
        book.set_properties({"created": datetime(2026, 1, 1)})
        for sheet in sheets:
            _write_sheet(book, sheet)
    return content.getvalue()


def _flat(key: Key, rows: Rows) -> list[dict[str, Any]]:
    """Return rows with the columns of the key first, and with lists as texts."""
    flat_rows = []
    for row in rows:
        flat_row = {**key, **row}
        for name, value in row.items():
            if isinstance(value, list | tuple):
                flat_row[name] = ", ".join(map(str, value))
        flat_rows.append(flat_row)
    return flat_rows


def _sheet_of(figure: Figure, rows: Rows) -> Sheet:
    """Return the sheet of a figure: its columns in their order, then all others that are neither
    hashes nor ids.
    """
    declared = [column.name for column in figure.columns if column.name in rows[0]]
    # The kinds that the figure declares, and the usual ones of other columns.
    usual_kinds = {name: usual(name).kind for name in rows[0]}
    kinds = usual_kinds | {column.name: column.kind for column in figure.columns}
    # A dictionary keeps the order, and each name once.
    names = dict.fromkeys([*declared, *rows[0]])
    for name in _identifiers_in(figure, rows):
        del names[name]
    sheet_rows = []
    for row in rows:
        sheet_rows.append({name: row[name] for name in names})
    return Sheet(figure.name, sheet_rows, kinds)


def _sheet_of_hashes(figure: Figure, rows: Rows) -> Sheet:
    """Return the sheet with the benchmark, revision, hashes and ids of a figure's rows, each with
    the number of its row on the sheet of the figure.
    """
    names = _identifiers_in(figure, rows)
    title = f"{figure.name[: _LONGEST_NAME - len(' hashes')]} hashes"
    sheet_rows = []
    for number, row in enumerate(rows, start=2):  # the first row has the headings
        sheet_rows.append({"row": number} | {name: row[name] for name in names})
    return Sheet(title, sheet_rows)


def _identifiers_in(figure: Figure, rows: Rows) -> list[str]:
    """Return the columns of benchmark, revision, hashes and ids that the figure does not show."""
    declared = {column.name for column in figure.columns}
    names = []
    for name in rows[0]:
        identifies = name in ("benchmark", "dataset_revision") or name.endswith(("_hash", "_id"))
        if identifies and name not in declared:
            names.append(name)
    return names


def _write_sheet(book: Any, sheet: Sheet) -> None:
    """Write a sheet with a heading that stays in view, each value in its own type."""
    worksheet = book.add_worksheet(sheet.name[:_LONGEST_NAME])
    text_format = book.add_format({"quote_prefix": True})
    formats = {
        kind: book.add_format({"num_format": text}) for kind, text in _NUMBER_FORMATS.items()
    }
    bold = book.add_format({"bold": True})
    worksheet.write_row(0, 0, sheet.rows[0], bold)
    for number, row in enumerate(sheet.rows, start=1):
        for column, (name, value) in enumerate(row.items()):
            cell = _cell(value)
            cell_format = None
            if isinstance(value, int | float | Decimal):
                cell_format = formats.get(sheet.kinds.get(name) or "")
            elif isinstance(cell, str) and may_run(cell):
                # Marked as text, so that it never becomes a formula, even after it is edited.
                cell_format = text_format
            # Any other result than 0 means that the value was not written.
            if worksheet.write(number, column, cell, cell_format) != 0:
                reason = "a workbook has at most 1,048,576 rows and 32,767 characters in a cell"
                raise PipelineError(
                    f"row {number + 1}, column {name}: {reason}; write a .csv or .parquet file"
                )
    worksheet.autofit(800)
    worksheet.freeze_panes(1, 0)
    worksheet.autofilter(0, 0, len(sheet.rows), len(sheet.rows[0]) - 1)


def _cell(value: Any) -> Any:
    """Return a value that a cell can hold: a number, a date, or visible text."""
    if value is None or isinstance(value, int | float | Decimal | date | time | timedelta):
        return value
    return visible(plain_text(value))
