"""Output of rows and results, for people and machines: tables on standard output, other formats also to a file."""

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from flows.cli.options import Context
from tasks.console import exact, working
from tasks.rules.text.cells import csv_text, markdown_cell, sheet_cell
from tasks.rules.text.characters import visible, visible_json

if TYPE_CHECKING:
    from flows.execution import Execution
    from tasks.config.job import Job
    from tasks.run.writing import StageReport


Rows = Sequence[Sequence[Any]]
ENDINGS = {
    ".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".parquet": "parquet", ".md": "markdown", ".xlsx": "xlsx",
}  # fmt: skip
"""The format of a file by its ending."""
FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown")


def show(columns: Sequence[str], rows: Rows, file_format: str, output: Path | None = None) -> None:
    """Write rows in a text format to a file or to standard output.

    On a terminal, control characters are made visible; elsewhere JSON is exact. No text in CSV is run as a formula, and
    none in Markdown is anything but text.
    """
    if file_format == "table" and output is None:
        show_table(columns, rows)
        return
    if is_json := file_format.startswith("json"):
        # JSON has no NaN and no infinity.
        values = ([None if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in rows)
        records = [dict(zip(columns, row, strict=True)) for row in values]
        text = _json(records) if file_format == "json" else "".join(_json(each, indent=None) for each in records)
    elif file_format == "csv":
        text = csv_text([sheet_cell(value) for value in row] for row in (columns, *rows))
    else:
        lines = [[markdown_cell(cell_text(value)) for value in row] for row in (columns, *rows)]
        lines.insert(1, ["---"] * len(columns))
        text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    if output is None:
        _put(text, is_json=is_json)
    else:
        output.write_text(text, encoding="utf-8")


def show_nothing(job: "Job", sentence: str) -> None:
    """Print that no row was found, by default in general words, and a summary of the stored data."""
    from tasks.run.stored_data import stored_in_words

    click.echo(f"{sentence or 'There is nothing to show yet.'} {stored_in_words(job)}")


def show_json(value: Any) -> None:
    """Print a result as JSON."""
    _put(_json(value), is_json=True)


def _json(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, default=str, ensure_ascii=False, indent=indent) + "\n"


def _put(text: str, *, is_json: bool) -> None:
    if sys.stdout.isatty():
        sys.stdout.write((visible_json if is_json else visible)(text))
    else:
        exact(sys.stdout).write(text)


_WITHOUT_LIMIT = 10**6


def show_table(
    columns: Sequence[str], rows: Rows, *, title: str | None = None, right: Sequence[bool] = (),
    groups: Sequence[Any] = (),
) -> None:  # fmt: skip
    """Show a table for people; numbers, and the columns marked in `right`, are right-aligned.

    On a terminal that is too narrow, the last columns are left out and listed below. `groups` holds the group of each
    row; a line separates groups.
    """
    from rich.table import Table
    from rich.text import Text

    from tasks.console.printing import VisibleConsole

    table = Table(title=Text(title) if title else None, title_justify="left", header_style="bold")
    for index, column in enumerate(map(visible, columns)):
        holds_numbers = bool(rows) and all(isinstance(row[index], int | float | None) for row in rows)
        is_number = right[index] if right else holds_numbers
        width = len(column) if is_number else None
        side: Literal["right", "left"] = "right" if is_number else "left"
        table.add_column(Text(column), justify=side, no_wrap=is_number, overflow="fold", min_width=width)
    groups = groups or [None] * len(rows)
    for row, group, following in zip(rows, groups, [*groups[1:], None], strict=False):
        table.add_row(*(Text(cell_text(value)) for value in row), end_section=group != following)
    console = VisibleConsole()
    if not console.is_terminal:
        console = VisibleConsole(width=_WITHOUT_LIMIT)
    unlimited = console.options.update(width=_WITHOUT_LIMIT)
    while len(table.columns) > 1 and console.measure(table, options=unlimited).minimum > console.width:
        table.columns.pop()
    console.print(table)
    if hidden := columns[len(table.columns) :]:
        console.print(f"A wider terminal also shows: {', '.join(hidden)}", style="dim", markup=False)


def cell_text(value: Any) -> str:
    """Return a value as text for people."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.1f}"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    return visible(str(value).replace("\r\n", " ").replace("\n", " "))


def run_flow(context: Context, name: str) -> "Execution":
    """Run a flow with the options of the command."""
    with context.working():
        from flows.execution import execute_flow
        from flows.work import FLOWS

        refuse_early(context, must_be_stored="data" not in FLOWS[name].work)
        return execute_flow(context.job, name, is_verbose=context.is_verbose)


def refuse_early(context: Context, *, must_be_stored: bool = False) -> None:
    """Refuse a command that cannot succeed, before it creates a warehouse.

    Raises:
        UsageError: the data set is missing, or has no split of a given name.
        PipelineError: nothing is stored, and the command needs stored data.
    """
    from tasks.dataset.source import source_of
    from tasks.rules.errors import PipelineError
    from warehouse import nothing_in, refuse_other_version

    job = context.job
    if context.arguments.splits:
        source_of(job)
    if refuse_other_version(job.warehouse) is not None:
        return
    if must_be_stored:
        raise PipelineError(nothing_in(job.warehouse, "stored"))
    _ = job.data  # raises if it is missing


def finish(context: Context, execution: "Execution", **more: Any) -> int:
    """Show the result, with `more` keys in JSON, and return the exit code."""
    with working("costs of the run", is_quiet=execution.job.is_quiet):
        from flows.cli.run_end import end_lines

        lines = list(end_lines(execution))
    for line in lines:
        click.echo(line, err=True)
    if context.as_json:
        show_json(execution.as_json | more)
    else:
        for report in (each for each in execution.reports if each.stage in {"import", "export"}):
            report_done(context, report)
    return execution.exit_code


def write(context: Context, job: "Job", work: Callable[[], "list[StageReport]"]) -> int:
    """Do work that writes to the warehouse as a run, show its result, and return the exit code."""
    with context.working():
        from flows.execution import execute

        execution = execute(job, work)
    return finish(context, execution)


def report_done(context: Context, report: "StageReport") -> int:
    """Show the report of work that is not a run and has no row in `runs`."""
    if context.as_json:
        show_json(vars(report))
    elif not context.arguments.is_quiet:
        click.echo(report.line)
    for warning in report.warnings:
        click.echo(warning, err=True)
    return 0
