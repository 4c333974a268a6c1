"""Showing rows: tables for people, and formats for machines, on standard output."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.console.terminal import exact
from tasks.rules.visible import visible, visible_json

if TYPE_CHECKING:
    from tasks.console.printing import VisibleConsole

FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown")
_WIDEST_CELL = 60
_MACHINE_WIDTH = 500

Rows = Sequence[Sequence[Any]]


def show_table(
    columns: Sequence[str], rows: Rows, *, title: str | None = None, is_cut: bool = True, n_least: int | None = None
) -> None:
    """A table for people; numbers stand on the right, long texts are cut unless told otherwise.

    On a terminal that is too narrow for it, columns behind the first `n_least` are left out, and named; where that is
    not enough or not allowed: a block a row, a line a column.
    """
    from rich.table import Table
    from rich.text import Text

    from tasks.console.printing import VisibleConsole

    columns, title = [visible(column) for column in columns], visible(title or "") or None
    cells = [[_short(_cell(value)) if is_cut else _cell(value) for value in row] for row in rows]
    are_numbers = [
        bool(rows) and all(isinstance(row[index], int | float | None) for row in rows) for index in range(len(columns))
    ]
    console = VisibleConsole()
    if not console.is_terminal:
        console = VisibleConsole(width=_MACHINE_WIDTH)
    n_fitting = len(columns)
    if console.is_terminal:
        # Where columns may go, cells stay whole; where none may, texts may be folded between words.
        n_fitting = _fitting(columns, cells, are_numbers, console.width, is_whole=n_least is not None)
        if n_fitting < (n_least or len(columns)):
            _print_records(console, columns, cells, title)
            return
    table = Table(title=title and Text(title), title_justify="left", header_style="bold")
    for column, is_number in zip(columns[:n_fitting], are_numbers, strict=False):
        table.add_column(Text(column), justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row[:n_fitting]))
    console.print(table)
    if n_fitting < len(columns):
        console.print(Text(f"A wider terminal also shows: {', '.join(columns[n_fitting:])}"), style="dim")


def _fitting(
    columns: Sequence[str], cells: Sequence[Sequence[str]], are_numbers: Sequence[bool], width: int, *, is_whole: bool
) -> int:
    """How many of the first columns fit side by side."""
    numbers = range(len(columns), 0, -1)
    return next((n for n in numbers if _narrowest(columns[:n], cells, are_numbers[:n], is_whole) <= width), 0)


def _narrowest(
    columns: Sequence[str], cells: Sequence[Sequence[str]], are_numbers: Sequence[bool], is_whole: bool
) -> int:
    """The width below which a table breaks the words of its cells, or cells at all; a header may be folded once."""
    widths = [
        max(
            len(column) if is_number else (len(column) + 1) // 2,
            *(len(part) for row in cells for part in ([row[index]] if is_whole else row[index].split())),
            0,
        )
        for index, (column, is_number) in enumerate(zip(columns, are_numbers, strict=True))
    ]
    # Beside its text a column has two blanks and a line.
    return sum(widths) + 3 * len(columns) + 1


def _print_records(
    console: "VisibleConsole", columns: Sequence[str], cells: Sequence[Sequence[str]], title: str | None
) -> None:
    from rich.table import Table
    from rich.text import Text

    if title:
        console.print(Text(title))
    for number, row in enumerate(cells, start=1):
        block = Table.grid(padding=(0, 2))
        block.add_column(style="bold", no_wrap=True)
        block.add_column(overflow="fold")
        for column, cell in zip(columns, row, strict=True):
            block.add_row(Text(column), Text(cell))
        console.rule(Text(f"row {number}"), align="left", style="dim")
        console.print(block)


def show(
    columns: Sequence[str], rows: Rows, file_format: str, output: Path | None = None, *, is_cut: bool = True
) -> None:
    """Rows in a text format, to a file or to standard output; only a table cuts long texts.

    Formats for machines are exact to the character, but on a terminal.
    """
    if file_format == "table" and output is None:
        show_table(columns, rows, is_cut=is_cut)
        return
    if file_format == "table":
        file_format = "markdown"
    text = {"csv": _csv, "json": _json, "jsonl": _jsonl, "markdown": _markdown}[file_format](columns, rows)
    if output is None:
        _put(text, is_json=file_format.startswith("json"))
    else:
        output.write_text(text, encoding="utf-8")


def show_rows(as_json: bool, columns: Sequence[str], rows: Rows) -> None:
    """Rows as a table for people, or as JSON for machines."""
    show(columns, rows, "json" if as_json else "table")


def show_json(value: Any) -> None:
    """A result for machines."""
    _put(json.dumps(value, default=str, ensure_ascii=False, indent=2) + "\n", is_json=True)


def _put(text: str, *, is_json: bool) -> None:
    if sys.stdout.isatty():
        sys.stdout.write((visible_json if is_json else visible)(text))
    else:
        exact(sys.stdout).write(text)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.1f}"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return visible(str(value).replace("\r\n", " ").replace("\n", " "))


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"


def _records(columns: Sequence[str], rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(columns, map(_json_value, row), strict=True)) for row in rows]


def _json_value(value: Any) -> Any:
    """JSON has no word for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(columns: Sequence[str], rows: Rows) -> str:
    return json.dumps(_records(columns, rows), default=str, ensure_ascii=False, indent=2) + "\n"


def _jsonl(columns: Sequence[str], rows: Rows) -> str:
    return "".join(json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in _records(columns, rows))


def _csv(columns: Sequence[str], rows: Rows) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _markdown(columns: Sequence[str], rows: Rows) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    return (
        line([visible(column) for column in columns])
        + line(["---"] * len(columns))
        + "".join(line([_cell(value) for value in row]) for row in rows)
    )
