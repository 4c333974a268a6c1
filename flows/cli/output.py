"""Output of rows and results, for people and machines: tables on standard output, other formats
also to a file.
"""

import io
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import Context
from flows.cli.regressions import OPEN, Gate
from tasks.console import exact, working
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.text.cells import csv_text, markdown_cell, sheet_cell
from tasks.rules.text.characters import visible, visible_json
from tasks.rules.text.json_text import json_value, plain_text

if TYPE_CHECKING:
    from flows.execution import Execution
    from tasks.config.job import Job
    from tasks.run.writing import StageReport


Rows = Sequence[Sequence[Any]]


def show(
    context: Context,
    columns: Sequence[str],
    rows: Rows,
    *,
    essential: Sequence[str] = (),
) -> None:
    """Write rows in the command's format to its file or to standard output.

    On a terminal, control characters are made visible; elsewhere JSON is exact. No text in CSV is
    run as a formula, and Markdown shows every text unchanged.
    """
    match context.file_format:
        case "table":
            with writing_table(context):
                show_table(columns, rows, essential=essential, is_wide=context.is_wide)
        case "markdown":
            put(context, markdown_text(columns, rows))
        case "csv":
            put(context, csv_text(map(sheet_cell, row) for row in (columns, *rows)))
        case _:
            show_records(context, [dict(zip(columns, row, strict=True)) for row in rows])


def show_records(context: Context, records: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON, JSON Lines, Parquet or a workbook."""
    match context.file_format:
        case "json":
            show_json(context, records)
        case "jsonl":
            lines = [_json(record) for record in records]
            put(context, "".join(lines), is_json=True)
        case "parquet":
            import polars

            content = io.BytesIO()
            polars.from_dicts(records, infer_schema_length=None).write_parquet(content)
            put_bytes(context, content.getvalue())
        case _:
            from tasks.exports.figure_files import Sheet, workbook

            put_bytes(context, workbook([Sheet("rows", records)]))


def markdown_text(columns: Sequence[str], rows: Rows) -> str:
    """Return rows as a table in Markdown."""
    lines = []
    for row in (columns, *rows):
        lines.append([markdown_cell(cell_text(value)) for value in row])
    lines.insert(1, ["---"] * len(columns))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def say(text: str, *, is_error: bool = False) -> None:
    """Print sentences to standard output or error; on a terminal, lines break between words.

    Lines that are indented, such as commands and configuration, stay whole.
    """
    stream = sys.stderr if is_error else sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(_wrapped(line, width) for line in text.split("\n"))
    click.echo(text, err=is_error)


def _wrapped(line: str, width: int) -> str:
    if line.startswith(" "):
        return line
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


@contextmanager
def writing_table(context: Context) -> Iterator[None]:
    """Write what is printed until the block ends to the command's file, if it has one."""
    if context.output is None:
        yield
        return
    with (
        disk_errors(context.output),
        context.output.open("w", encoding="utf-8") as file,
        redirect_stdout(file),
    ):
        yield


def show_nothing(context: Context, job: "Job", sentence: str) -> None:
    """Print that no row was found, and a summary of the stored data.

    An empty `sentence` stands for general words.

    Raises:
        UsageError: the result was to be written to a file.
    """
    from tasks.run.stored_data import stored_in_words

    text = f"{sentence or 'There is nothing to show yet.'} {stored_in_words(job)}"
    if context.output is not None:
        raise UsageError(f"-o {context.output}: not written. {text}")
    say(text)


def show_json(context: Context, value: Any) -> None:
    """Write a result as JSON to the command's file or to standard output."""
    put(context, _json(value, indent=2), is_json=True)


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(json_value(value), ensure_ascii=False, indent=indent) + "\n"


def put(context: Context, text: str, *, is_json: bool = False) -> None:
    """Write a text to the command's file or to standard output."""
    if context.output is not None:
        put_bytes(context, text.encode())
    elif sys.stdout.isatty():
        sys.stdout.write(visible_json(text) if is_json else visible(text))
    else:
        exact(sys.stdout).write(text)


def put_bytes(context: Context, content: bytes) -> None:
    """Write bytes to the command's file or to standard output."""
    if context.output is None:
        exact(sys.stdout).buffer.write(content)
    else:
        with disk_errors(context.output):
            context.output.write_bytes(content)


def show_table(
    names: Sequence[str],
    rows: Rows,
    *,
    essential: Sequence[str] = (),
    is_wide: bool = False,
    most_width: int | None = None,
) -> None:
    """Show rows as a table for people; a column of numbers is right-aligned (see `print_table`)."""
    from tasks.console.tables import TableColumn, print_table

    columns = []
    for index, name in enumerate(names):
        values = [row[index] for row in rows]
        are_numbers = all(isinstance(value, int | float | Decimal | None) for value in values)
        is_number = bool(values) and are_numbers
        cells = [cell_text(value) for value in values]
        columns.append(TableColumn(name, visible(name), cells, is_number, name in essential))
    print_table(columns, is_wide=is_wide, most_width=most_width, wide_option=wide_option())


def wide_option() -> str:
    """Return `--wide`, the option that shows all columns; an empty text if the current command
    lacks it.
    """
    current = click.get_current_context(silent=True)
    if current is None or any(option.name == "is_wide" for option in current.command.params):
        return "--wide"
    return ""


def cell_text(value: Any) -> str:
    """Return a value as text for people."""
    from tasks.console.tables import ABSENT, one_line_text

    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.1f}"
    if isinstance(value, list | tuple):
        return one_line_text(", ".join(map(plain_text, value)))
    return one_line_text(plain_text(value))


def run_flow(context: Context, name: str) -> "Execution":
    """Run a flow with the options of the command."""
    with context.working():
        from flows.work import FLOWS, execute_flow

        refuse_early(context, must_be_stored=not FLOWS[name].loads_data)
        return execute_flow(context.job, name, is_verbose=context.is_verbose)


def refuse_early(context: Context, *, must_be_stored: bool = False) -> None:
    """Refuse a command that cannot succeed, before it creates a warehouse.

    Raises:
        UsageError: the data set is missing, or has no split that the command names.
        PipelineError: nothing is stored, and the command needs stored data.
    """
    from tasks.dataset.source import source_of
    from tasks.rules.errors import PipelineError
    from warehouse import nothing_in, refuse_other_version

    job = context.job
    if context.arguments.splits:
        source_of(job)  # raises if a split is unknown
    if refuse_other_version(job.warehouse) is not None:
        return  # something is stored, and this version can read it
    if must_be_stored:
        raise PipelineError(nothing_in(job.warehouse, "stored"))
    _ = job.data  # raises if it is missing


def finish(
    context: Context,
    execution: "Execution",
    gate: Gate = OPEN,
    **json_keys: Any,
) -> int:
    """Show the result of a run, with further keys in JSON, and return the exit code.

    A gate (`--fail-if`) may replace the run's exit code; the more important of the two counts.
    """
    with working("costs of the run", is_quiet=execution.job.is_quiet):
        from flows.cli.run_end import end_lines
        from flows.run.outcomes import first_exit_code

        exit_code = first_exit_code({execution.exit_code, gate.exit_code})
        # The gate's line explains an exit code that is not the run's own.
        lines = list(end_lines(execution, is_explained=exit_code == execution.exit_code))
        if gate.line and gate.exit_code == exit_code:
            lines.append(gate.line)
    for line in lines:
        say(line, is_error=True)
    if context.as_json:
        show_json(context, execution.as_json | json_keys)
        return exit_code
    for report in execution.reports:
        if report.stage in {"import", "export"}:
            report_done(context, report)
    return exit_code


def run_work(context: Context, job: "Job", work: Callable[[], "list[StageReport]"]) -> int:
    """Do work that writes to the warehouse as a run, show its result, and return the exit code."""
    with context.working():
        from flows.execution import execute

        execution = execute(job, work)
    return finish(context, execution)


def report_done(context: Context, report: "StageReport") -> None:
    """Show the report of an import, an export or other work that is no stage of the pipeline."""
    if context.as_json:
        show_json(context, vars(report))
    elif not context.arguments.is_quiet:
        click.echo(report.line)
    for warning in report.warnings:
        click.echo(warning, err=True)
