"""Figures on the command line: what commands show, a list of all figures, and any one in any format."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import Context, command
from flows.cli.output import FORMATS, show, show_json, show_nothing, show_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tasks.config.job import Job
    from tasks.figures.columns import Column, Rows
    from tasks.figures.figure import Figure

_ENDINGS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".xlsx": "xlsx",
}
Part = tuple[str, Mapping[str, Any]]
"""A figure that a command shows: its name, and what its query asks for."""


def shown(
    context: Context, job: "Job", parts: Mapping[str, Part] | Part, *, nothing: str, vintage: str | None = None,
    title: str = "", **narrowed: Any,
) -> "dict[str, Rows]":  # fmt: skip
    """Show figures on stored data, as tables or as JSON, or say that there is nothing.

    Args:
        context: of the command.
        job: whose benchmark, data-set revision, splits, models and judges are shown.
        parts: the figures, by their names in the JSON; of a single one it is the rows alone.
        nothing: what is said where no figure has a row.
        vintage: which sampling of each model; None: the latest.
        title: of a single figure, where it has another one here.
        narrowed: whether own hard subsets are shown instead of splits (`is_hard`), and a `score`.

    Returns:
        The rows by part, if tables of them were shown.

    Raises:
        UsageError: the benchmark has no such score, or nothing stored has a name that was given.
    """
    from tasks.figures.registry import figure_of
    from tasks.figures.scope import open_scope
    from warehouse import Warehouse

    by_key = parts if isinstance(parts, Mapping) else {"": parts}
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader, vintage, **narrowed)
        found: dict[str, Rows] = {key: scope.rows_of(figure_of(name), given) for key, (name, given) in by_key.items()}
    if context.as_json:
        show_json(found.get("", found))
    elif not any(found.values()):
        show_nothing(job, nothing)
    else:
        for key, (name, _) in by_key.items():
            show_figure(figure_of(name), found[key], title)
        return found
    return {}


def show_figure(figure: "Figure", rows: "Rows", title: str = "") -> None:
    """Show the table of a figure."""
    listed = figure.listed(rows) if figure.listed else rows
    show_columns(figure.columns, listed, title or figure.title)
    for note in figure.notes(rows) if figure.notes and rows else ():
        click.echo(note)


def show_columns(columns: "Sequence[Column]", rows: "Rows", title: str | None = None) -> None:
    """Show some columns of rows; a judge that all rows have is named below them."""
    from tasks.figures.rendering import as_text

    if not rows:
        return
    judgings = {row["judging"] for row in rows} if "judging" in rows[0] else set()
    table = as_text([each for each in columns if each.name != "judging" or len(judgings) > 1], rows)
    boards = [(row.get("judging"), row.get("split")) for row in rows]
    show_table(table.headings, table.cells, title=title, n_least=table.n_least, groups=boards, right=table.are_numbers)
    if len(judgings) == 1:
        click.echo(f"Judge: {judgings.pop()}")


def say_missing(are_missing: "Iterable[bool]") -> None:
    """Say so where a figure is not computed yet."""
    if any(are_missing):
        click.echo("Some figures are missing; `prbench aggregate` computes them.")


@command(place=(), output=("json", "verbose"))
def figures(context: Context) -> int:
    """List all figures.

    The report, and the commands that show results, are made of them.

    Examples:
      prbench figures
      prbench figure judge_agreement --format csv
    """
    from tasks.figures.registry import FIGURES

    rows = [
        {
            "figure": figure.name, "shows": figure.title, "source": figure.relation or figure.query or "its own query",
            "parameters": [f"{name}={value}" for name, value in figure.given.items()],
        }
        for figure in FIGURES.values()
    ]  # fmt: skip
    show(list(rows[0]), [list(row.values()) for row in rows], "json" if context.as_json else "table")
    return 0


@command("split", "model", "judge", "vintage-shown", "hard", "score", output=("json", "verbose"))
@click.argument("name", metavar="FIGURE")
@click.option("--by", metavar="BREAKDOWN", help="Break it down, if the figure can be.")
@click.option("--format", "file_format", type=click.Choice([*FORMATS, "xlsx"]),
              help="Format.  [default: by the ending of the file, else table]")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to this file.")  # fmt: skip
def figure(
    context: Context, name: str, is_hard: bool, score: str | None, by: str | None, file_format: str | None,
    output: Path | None,
) -> int:  # fmt: skip
    """Show one figure, in any format.

    `prbench figures` lists all of them. Rows and columns are those of the file beside the figure in the report.

    Examples:
      prbench figure judge_agreement
      prbench figure leaderboard --by category --format csv
      prbench figure critical -o critical.xlsx
    """
    from tasks.figures.leaderboard import Choice, chosen
    from tasks.figures.registry import figure_of
    from tasks.figures.scope import open_scope
    from tasks.rules.errors import UsageError
    from warehouse import Warehouse

    shows, job = figure_of(name), context.stored_job()
    if by is not None and "breakdown" not in shows.given:
        raise UsageError(f"--by {by}: {name} cannot be broken down")
    shape = file_format or ("json" if context.as_json else _ENDINGS.get(output.suffix if output else "", "table"))
    if shape == "parquet" and shows.compute:
        raise UsageError(f"--format parquet: {name} is no query; choose another format")
    if shape in {"parquet", "xlsx"} and output is None and (shape == "xlsx" or sys.stdout.isatty()):
        raise UsageError(f"--format {shape}: cannot be shown; write it to a file with -o")
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader, context.arguments.vintage, is_hard=is_hard, score=score)
        given: dict[str, Any] = {"is_hard": True} if is_hard and "is_hard" in shows.given else {}
        if by:
            is_board = "of_criteria" in shows.given
            given |= chosen(scope, Choice(by=by, is_hard=is_hard))[1] if is_board else {"breakdown": by}
        if shape == "parquet":
            from flows.cli.sql import write_parquet
            from tasks.console import exact

            query, database = scope.query_of(shows, given), Warehouse(job.warehouse).database
            write_parquet(database, query, output or exact(sys.stdout).buffer)
            return 0
        rows = scope.rows_of(shows, given)
    _write(job, shows, rows, shape, output)
    return 0


def _write(job: "Job", shows: "Figure", rows: "Rows", file_format: str, output: Path | None) -> None:
    from tasks.figures.rendering import as_csv, as_text

    if not rows:
        show_nothing(job, shows.empty)
    elif file_format == "table" and output is None:
        show_figure(shows, rows)
    elif file_format == "xlsx" or (file_format == "csv" and output is not None):
        from tasks.exports.board_files import write_board
        from tasks.rules.records import Table

        assert output is not None, "refused before"
        table = Table(list(rows[0]), [tuple(row.values()) for row in rows])
        click.echo(write_board(job, table, output, name=shows.name, relation=shows.relation).line)
    elif file_format == "csv":
        click.echo(as_csv(list(rows[0]), rows), nl=False)
    elif file_format == "markdown":
        table_ = as_text(shows.columns, rows)
        show(table_.headings, table_.cells, file_format, output)
    else:
        show(list(rows[0]), [list(row.values()) for row in rows], file_format, output)
