"""A figure as a file for spreadsheets, with an explanation of each column."""

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import sql
from tasks.config.job import Job
from tasks.exports.tables import meaning_of_column
from tasks.figures.columns import usual
from tasks.figures.rendering import as_csv
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.records import ResultTable
from tasks.rules.text.cells import may_run, not_run
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import write_atomically

SUFFIXES = (".csv", ".xlsx")
_MARTS = ("leaderboard", "severity_leaderboard", "breakdown_leaderboard")
_OPTIONS = {
    "in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "remove_timezone": True,
    "default_date_format": "yyyy-mm-dd hh:mm:ss",
}  # fmt: skip


def write_board(job: Job, table: ResultTable, file: Path, name: str = "leaderboard", relation: str = "") -> StageReport:
    """Write a figure as CSV, with a second file for its columns, or as Excel, with a second sheet.

    Args:
        job: the job of the leaderboard.
        table: its columns and rows.
        file: ends in .csv or .xlsx; an existing file is replaced.
        name: the figure's name.
        relation: the mart or view that the rows come from, if there is only one; it describes the columns.
    """
    refuse_other_suffix(file)
    if not table.rows:
        raise UsageError(f"{file}: no model has a verdict in this selection; see `prbench status`")
    # A file must say which benchmark and revision it is about.
    columns = ["benchmark", "dataset_revision", *table.columns]
    about = (job.settings.benchmark, job.data.revision)
    values = ([", ".join(map(str, v)) if isinstance(v, list | tuple) else v for v in row] for row in table.rows)
    rows = [dict(zip(columns, (*about, *row), strict=True)) for row in values]
    known, marts = sql.schema()["meanings"], (relation, name, *_MARTS)
    meanings = {each: known.get(each) or meaning_of_column(each, marts) or usual(each)[1] for each in columns}
    explained = [{"column": column, "meaning": meaning} for column, meaning in meanings.items()]
    beside = file.with_name(f"{file.stem}-columns.csv")
    sheets = ((name[:31], file, rows), ("columns", beside, explained))  # Excel allows names of 31 characters
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".csv":
            for _, path, cells in sheets:
                # Without a byte order mark, spreadsheets assume another encoding.
                write_atomically(path, as_csv(list(cells[0]), cells, mark=not_run).encode("utf-8-sig"))
        else:
            import xlsxwriter

            content = io.BytesIO()
            with xlsxwriter.Workbook(content, _OPTIONS) as workbook:
                workbook.set_properties({"created": datetime(2026, 1, 1)})  # the same rows give the same bytes
                for title, _, cells in sheets:
                    _write_sheet(workbook, title, cells)
            write_atomically(file, content.getvalue())
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


def _write_sheet(workbook: Any, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a sheet with a heading that stays in view, each value in its own type."""
    sheet = workbook.add_worksheet(name)
    marked = workbook.add_format({"quote_prefix": True})
    sheet.write_row(0, 0, rows[0], workbook.add_format({"bold": True}))
    for number, row in enumerate(rows, start=1):
        for column, value in enumerate(row.values()):
            # Marked as text, so that it never becomes a formula, even after it is edited.
            sheet.write(number, column, value, marked if isinstance(value, str) and may_run(value) else None)
    sheet.autofit(800)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(rows), len(rows[0]) - 1)
