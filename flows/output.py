"""Showing rows: tables for people, and formats for machines, on standard output."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown")
_WIDEST_CELL = 60
_MACHINE_WIDTH = 500

Rows = Sequence[Sequence[Any]]


def show_table(columns: Sequence[str], rows: Rows, *, title: str | None = None) -> None:
    """A table for people; numbers stand on the right, long texts are cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_short(_cell(value))) for value in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_MACHINE_WIDTH)
    console.print(table)


def show(columns: Sequence[str], rows: Rows, file_format: str, output: Path | None = None) -> None:
    """Rows in a text format, to a file or to standard output."""
    if file_format == "table" and output is None:
        show_table(columns, rows)
        return
    if file_format == "table":
        file_format = "markdown"
    text = {"csv": _csv, "json": _json, "jsonl": _jsonl, "markdown": _markdown}[file_format](columns, rows)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


def show_rows(as_json: bool, columns: Sequence[str], rows: Rows) -> None:
    """Rows as a table for people, or as JSON for machines."""
    show(columns, rows, "json" if as_json else "table")


def show_json(value: Any) -> None:
    """A result for machines."""
    sys.stdout.write(json.dumps(value, default=str, ensure_ascii=False, indent=2) + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.1f}"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return str(value).replace("\n", " ")


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

    return line(columns) + line(["---"] * len(columns)) + "".join(line([_cell(value) for value in row]) for row in rows)
