"""The commands that only read: they start no Prefect and import nothing heavy."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.options import Context, examples, shared_options
from flows.output import FORMATS, show, show_json, show_rows, show_table

if TYPE_CHECKING:
    from flows.query import Table
    from tasks.settings import Job

_FILE = click.Path(path_type=Path)


@click.command(epilog=examples("prbench status", "prbench status --json"))
@shared_options
def status(context: Context) -> int:
    """Show what is wanted, done, failed and missing: model x trial x judge."""
    from tasks.coverage import coverage

    columns = ["model", "trial", "judge", "judge_trial", "wanted", "done", "missing", "failed", "share", "causes"]
    rows = [
        (
            cell.model, cell.trial, cell.judge or "(responses)", cell.judge_trial, cell.wanted, cell.done,
            cell.missing, sum(cell.failures.values()), cell.share,
            ", ".join(f"{number} {cause}" for cause, number in sorted(cell.failures.items())),
        )
        for cell in coverage(context.job)
    ]  # fmt: skip
    show_rows(context.as_json, columns, rows)
    return 0


@click.command(epilog=examples("prbench leaderboard --hard", "prbench leaderboard --by category --json"))
@click.option("--hard", "is_hard", is_flag=True, help="On the latest own hard selection.")
@click.option("--score", metavar="NAME", help="Which score.  [default: the benchmark's main one]")
@click.option("--by", type=click.Choice(["category"]), help="One row a model and label.")
@shared_options
def leaderboard(context: Context, is_hard: bool, score: str | None, by: str | None) -> int:
    """Rank the models, with interval and coverage."""
    from flows.leaderboard import leaderboard as ranked

    job = context.job
    table = ranked(job, vintage=context.asked.vintage, score=score, by=by, is_hard=is_hard, must_know=True)
    if context.as_json:
        show_json(table.records)
    else:
        _show_leaderboard(job, table)
    return 0


@click.command(epilog=examples(
    "prbench sql \"select * from leaderboard\"", "prbench sql -f query.sql --format csv > rows.csv",
    "prbench sql                         a prompt; an empty line ends it",
))  # fmt: skip
@click.argument("query", required=False)
@click.option("-f", "--file", type=_FILE, help="Read the query from a file.")
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="How to write the result.  [default: table]")
@click.option("-o", "--output", type=_FILE, help="Write the result to a file.")
@shared_options
def sql(context: Context, query: str | None, file: Path | None, file_format: str | None, output: Path | None) -> int:
    """Ask the database in SQL, read-only. Without a query: a prompt, or all that comes through a pipe."""
    from tasks.rules.errors import UsageError

    database = _database(context)
    if context.as_json and file_format not in {None, "json"}:
        raise UsageError(f"--json and --format {file_format} ask for two formats; give one")
    chosen = file_format or ("json" if context.as_json else "table")
    if file is not None:
        try:
            query = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"-f {file}: cannot be read as text ({getattr(error, 'strerror', error)})") from error
    if query is None and sys.stdin.isatty():
        return _prompt(database, chosen)
    _answer(database, sys.stdin.read() if query is None else query, chosen, output)
    return 0


def _answer(database: Path, query: str, file_format: str, output: Path | None = None) -> None:
    from flows.query import run_sql, write_parquet
    from tasks.rules.errors import UsageError

    if file_format == "parquet":
        if output is None and sys.stdout.isatty():
            raise UsageError("--format parquet: is not text; name a file with -o, or send it somewhere with >")
        write_parquet(database, query, output or sys.stdout.buffer)
        return
    table = run_sql(database, query)
    show(table.columns, table.rows, file_format, output)


def _prompt(database: Path, file_format: str) -> int:
    """Ask for queries, one a line, until an empty line or the end of the input."""
    import readline  # noqa: F401 - gives `input` its line editing and history

    from tasks.rules.errors import PipelineError

    while True:
        try:
            query = input("prbench> ")
        except EOFError:
            return 0
        if not query.strip():
            return 0
        try:
            _answer(database, query, file_format)
        except PipelineError as error:
            click.echo(f"prbench: {error}", err=True)


@click.command(epilog=examples("prbench doctor --config prbench.yaml"))
@shared_options
def doctor(context: Context) -> int:
    """Look whether everything is in place: configuration, keys, endpoints, warehouse, versions."""
    from flows.doctor import examine

    findings = examine(context.job)
    marks = {True: "ok", False: "PROBLEM", None: "unknown"}
    show_rows(context.as_json, ["what", "state", "detail"], [(f.subject, marks[f.is_ok], f.detail) for f in findings])
    return 1 if any(finding.is_ok is False for finding in findings) else 0


def _database(context: Context) -> Path:
    from warehouse import Warehouse

    return Warehouse(context.job.warehouse).database


def show_leaderboard(context: Context, job: "Job") -> None:
    """The leaderboard of a job, for people."""
    from flows.leaderboard import leaderboard as ranked

    _show_leaderboard(job, ranked(job, vintage=context.asked.vintage))


def leaderboard_records(context: Context, job: "Job") -> list[dict[str, Any]]:
    """The leaderboard of a job, for machines."""
    from flows.leaderboard import leaderboard as ranked

    return ranked(job, vintage=context.asked.vintage).records


def _show_leaderboard(job: "Job", table: "Table") -> None:
    if not table.rows:
        click.echo("No model has a verdict here yet.")
        return
    from flows.leaderboard import caveats, for_people

    columns, rows = for_people(table)
    show_table(columns, rows)
    for line in caveats(job, table.records):
        click.echo(line)


READING_COMMANDS = (status, leaderboard, sql, doctor)
