"""A figure as a file for spreadsheets, with a line that explains each column."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import sql
from tasks.config.job import Job
from tasks.exports.tables import meaning_of_column
from tasks.figures.columns import usual_heading
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.records import Table
from tasks.rules.text.cells import may_run, not_run
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import write_atomically

SUFFIXES = (".csv", ".xlsx")
_OF_DATA = ("benchmark", "dataset_revision")
"""Columns in front of a leaderboard's own, since a file goes where nobody knows what it is about."""
_MARTS = ("leaderboard", "severity_leaderboard", "breakdown_leaderboard")
_WIDEST, _CREATED = 60, datetime(2026, 1, 1)
"""Width of a column in characters; the same time in every file, so that the same rows give the same bytes."""


_OPTIONS = {
    "in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "remove_timezone": True,
    "default_date_format": "yyyy-mm-dd hh:mm:ss",
}  # fmt: skip


def write_board(
    job: Job, table: Table, file: Path, by: str | None = None, name: str = "leaderboard", relation: str = ""
) -> StageReport:
    """Write a figure as CSV, with a second file for its columns, or as Excel, with a second sheet.

    Args:
        job: what the leaderboard is about.
        table: its columns and rows.
        file: ends in .csv or .xlsx; what is there is replaced.
        by: the breakdown whose labels it has.
        name: the figure's.
        relation: where its rows are from, if that is one relation.

    Raises:
        UsageError: the file has another ending, or there is no row.
        PipelineError: it cannot be written.
    """
    refuse_other_suffix(file)
    if not table.rows:
        raise UsageError(f"{file}: no model has a verdict in this selection; see `prbench status`")
    columns = [*_OF_DATA, *table.columns]
    about = (job.settings.benchmark, job.data.revision)
    rows = [[*about, *map(_cell, row)] for row in table.rows]
    explained = [(column, _meaning(column, by, (relation, name, *_MARTS))) for column in columns]
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".csv":
            beside = file.with_name(f"{file.stem}-columns.csv")
            write_atomically(beside, _csv([("column", "meaning"), *explained]))
            write_atomically(file, _csv([columns, *rows]))
        else:
            write_atomically(file, _workbook(name, columns, rows, explained))
    where = f"in {beside}" if file.suffix == ".csv" else "on the second sheet"
    notes = [f"{counted(len(rows), 'row')} in {file}", f"its columns are explained {where}"]
    return StageReport(name, rows=len(rows), notes=notes)


def refuse_other_suffix(file: Path) -> None:
    """Refuse a file that is neither CSV nor Excel.

    Raises:
        UsageError: it is not.
    """
    if file.suffix not in SUFFIXES:
        raise UsageError(f"{file}: the file must end in {' or '.join(SUFFIXES)}")


def _meaning(column: str, by: str | None, marts: Sequence[str]) -> str:
    if column == "label" and by:
        return f"Label of the breakdown by {column.replace('_', ' ')}; a task with several labels counts for each."
    return sql.schema()["meanings"].get(column) or meaning_of_column(column, marts) or usual_heading(column)


def _cell(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([_plain(value) for value in row] for row in rows)
    # With a byte order mark, without which spreadsheets assume another encoding.
    return text.getvalue().encode("utf-8-sig")


def _plain(value: Any) -> Any:
    """A value as CSV has it: numbers and dates as they are, a text that a spreadsheet might run with a mark."""
    if isinstance(value, bool):
        return str(value).lower()
    return not_run(value) if isinstance(value, str) else value


def _workbook(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], explained: Sequence[Sequence[str]]
) -> bytes:
    import xlsxwriter

    content = io.BytesIO()
    with xlsxwriter.Workbook(content, _OPTIONS) as workbook:
        workbook.set_properties({"created": _CREATED})
        # Excel takes names of sheets up to 31 characters.
        _write_sheet(workbook, name[:31], columns, rows)
        _write_sheet(workbook, "columns", ("column", "meaning"), explained)
    return content.getvalue()


def _write_sheet(workbook: Any, name: str, titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A sheet with a heading that stays in view, each value in its own type."""
    sheet = workbook.add_worksheet(name)
    heading, marked = workbook.add_format({"bold": True}), workbook.add_format({"quote_prefix": True})
    for column, title in enumerate(titles):
        sheet.write_string(0, column, title, heading)
        for place, row in enumerate(rows, start=1):
            value = row[column]
            # A text is never a formula, also after it was edited.
            sheet.write(place, column, value, marked if isinstance(value, str) and may_run(value) else None)
        widest = max(len(str(each)) for each in (title, *(row[column] for row in rows)) if each is not None)
        sheet.set_column(column, column, min(widest + 1, 2 * _WIDEST if name == "columns" else _WIDEST))
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(rows), len(titles) - 1)
