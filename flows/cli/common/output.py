"""Rows and results in formats for people and machines, to a file or standard output."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.tables import Rows, cell_text, show_table
from tasks.console import exact
from tasks.rules.text.characters import visible, visible_json

if TYPE_CHECKING:
    from tasks.config.job import Job

_HEADINGS = {"cost_usd": "cost in USD", "what": "item", "share": "coverage"}
FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown")


def show(
    columns: Sequence[str], rows: Rows, file_format: str, output: Path | None = None, *, is_cut: bool = True
) -> None:
    """Rows in a text format, to a file or to standard output; only a table on a terminal cuts long texts.

    Formats for machines are exact to the character, except on a terminal.
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


def show_rows(as_json: bool, columns: Sequence[str], rows: Rows, *, if_empty: str = "") -> None:
    """Rows as a table for people, with columns in plain words, or as JSON for machines; `if_empty` replaces no rows."""
    if as_json:
        show(columns, rows, "json")
    elif rows:
        show_table(in_words(columns), rows, is_cut=False)
    else:
        click.echo(if_empty)


def show_nothing(job: "Job", sentence: str) -> None:
    """A sentence that says that nothing was found, with what was looked for and what is stored."""
    from tasks.run.stored_data import stored_in_words

    click.echo(f"{sentence} {stored_in_words(job)}")


def in_words(columns: Sequence[str]) -> list[str]:
    """Column names as headings."""
    return [_HEADINGS.get(column, column.removeprefix("n_").replace("_", " ")) for column in columns]


def show_json(value: Any) -> None:
    """A result for machines."""
    _put(json.dumps(value, default=str, ensure_ascii=False, indent=2) + "\n", is_json=True)


def _put(text: str, *, is_json: bool) -> None:
    if sys.stdout.isatty():
        sys.stdout.write((visible_json if is_json else visible)(text))
    else:
        exact(sys.stdout).write(text)


def _records(columns: Sequence[str], rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(columns, map(_json_value, row), strict=True)) for row in rows]


def _json_value(value: Any) -> Any:
    """A value as JSON can hold it: NaN and infinity become null."""
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
        + "".join(line([cell_text(value) for value in row]) for row in rows)
    )
