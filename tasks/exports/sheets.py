"""Sheets for people to fill in: a CSV file that spreadsheets open as it is meant."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.cells import defused
from tasks.run.missing_work import Conversation
from warehouse import write_atomically

SUFFIX = ".csv"
_CELL_CHARS = 32_000
"""Spreadsheets hold a little more in a cell, and put the rest of a longer one into other rows."""


def refuse_place(file: Path) -> None:
    """Refuse a place where no sheet can be, or one with a sheet that may be filled in.

    Raises:
        UsageError: it is such a place.
    """
    if file.suffix != SUFFIX:
        raise UsageError(f"{file}: the sheet must end in {SUFFIX}")
    if file.exists():
        raise UsageError(f"{file}: already exists and may be filled in; choose another name")


def readable(conversations: Mapping[str, Conversation]) -> dict[str, str]:
    """Task id -> its conversation as one text for people."""
    return {task_id: "\n\n".join(map(": ".join, of.messages)) for task_id, of in conversations.items()}


def fitting(text: str) -> str:
    """A text to be read that fits into a cell: of a longer one the middle is left out, which the cell says."""
    if len(text) <= _CELL_CHARS:
        return text
    half = _CELL_CHARS // 2 - 50
    return f"{text[:half]}\n\n[... {len(text) - 2 * half} characters left out ...]\n\n{text[-half:]}"


def write_sheet(file: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV, each cell safe to open in a spreadsheet; a cell without a value is empty.

    Raises:
        PipelineError: the file cannot be written.
    """
    import polars as pl

    sheet = pl.DataFrame(
        [[defused("" if row.get(name) is None else str(row[name])) for name in columns] for row in rows],
        schema=dict.fromkeys(columns, pl.String), orient="row",
    )  # fmt: skip
    # All quoted, since some spreadsheets separate cells by semicolons; with a byte order mark, without which they
    # assume another encoding.
    content = sheet.write_csv(quote_style="always", include_bom=True, line_terminator="\r\n")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content.encode())
    except OSError as error:
        raise PipelineError(f"{file}: cannot be written ({error.strerror}); choose another place") from error
