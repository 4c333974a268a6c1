"""Rows and results for people and machines: tables on standard output, other formats also to a file."""

import json
import math
import sys
from collections.abc import Container, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasks.console import exact
from tasks.rules.text.characters import visible, visible_json

if TYPE_CHECKING:
    from tasks.config.job import Job
    from tasks.console.printing import VisibleConsole

Rows = Sequence[Sequence[Any]]
_HEADINGS = {"cost_usd": "cost in USD", "what": "item", "share": "coverage"}
FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown")


def show(columns: Sequence[str], rows: Rows, file_format: str, output: Path | None = None) -> None:
    """Rows in a text format, to a file or to standard output.

    Formats for machines are exact to the character, except on a terminal.
    """
    if file_format == "table" and output is None:
        show_table(columns, rows)
        return
    if is_json := file_format.startswith("json"):
        # JSON has no NaN and no infinity.
        values = ([None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in rows)
        records = [dict(zip(columns, row, strict=True)) for row in values]
        text = _json(records) if file_format == "json" else "".join(_json(each, indent=None) for each in records)
    else:
        text = (_csv if file_format == "csv" else _markdown)(columns, rows)
    if output is None:
        _put(text, is_json=is_json)
    else:
        output.write_text(text, encoding="utf-8")


def show_rows(as_json: bool, columns: Sequence[str], rows: Rows, *, if_empty: str = "") -> None:
    """Rows as a table for people, with columns in plain words, or as JSON for machines; `if_empty` replaces no rows."""
    if as_json:
        show(columns, rows, "json")
    elif rows:
        show_table(in_words(columns), rows)
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
    _put(_json(value), is_json=True)


def _json(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, default=str, ensure_ascii=False, indent=indent) + "\n"


def _put(text: str, *, is_json: bool) -> None:
    if sys.stdout.isatty():
        sys.stdout.write((visible_json if is_json else visible)(text))
    else:
        exact(sys.stdout).write(text)


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


_WITHOUT_LIMIT = 10**6


def show_table(
    columns: Sequence[str], rows: Rows, *, title: str | None = None, n_least: int | None = None,
    groups: Sequence[Any] = (),
) -> None:  # fmt: skip
    """Show a table for people: numbers on the right.

    On a terminal that is too narrow, columns after the first `n_least` are left out, and named. If that is not enough,
    or `n_least` is None, each row becomes a block with one line for each column.

    `groups` says for each row what it belongs to; a line separates the groups.
    """
    from tasks.console.printing import VisibleConsole

    console = VisibleConsole()
    columns, title = [visible(column) for column in columns], visible(title or "") or None
    cells = [list(map(cell_text, row)) for row in rows]
    are_numbers = [
        bool(rows) and all(isinstance(row[index], int | float | None) for row in rows) for index in range(len(columns))
    ]
    if not console.is_terminal:
        console = VisibleConsole(width=_WITHOUT_LIMIT)
    n_fitting = len(columns)
    if console.is_terminal:
        # Where columns may be left out, cells stay whole; otherwise texts may be folded between words.
        n_fitting = _fitting(columns, cells, are_numbers, console.width, is_whole=n_least is not None)
        if n_fitting < (n_least or len(columns)):
            _print_records(console, columns, cells, title)
            return
    ends = {row for row, (group, following) in enumerate(pairwise(groups)) if group != following}
    _print_table(console, columns[:n_fitting], cells, are_numbers, title, ends)
    if n_fitting < len(columns):
        console.print(f"A wider terminal also shows: {', '.join(columns[n_fitting:])}", style="dim", markup=False)


def _print_table(
    console: "VisibleConsole", columns: Sequence[str], cells: Sequence[Sequence[str]], are_numbers: Sequence[bool],
    title: str | None, ends: Container[int],
) -> None:  # fmt: skip
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title and Text(title), title_justify="left", header_style="bold")
    for column, is_number in zip(columns, are_numbers, strict=False):
        table.add_column(Text(column), justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for place, row in enumerate(cells):
        table.add_row(*map(Text, row[: len(columns)]), end_section=place in ends)
    console.print(table)


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


def cell_text(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.1f}"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return visible(str(value).replace("\r\n", " ").replace("\n", " "))
