"""The command `sql`: queries, descriptions of tables, recipes, and how to open the database."""

import re
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import click

from flows.cli.options import WAREHOUSE, Context, show_command
from flows.cli.output import show, show_json
from tasks.console import exact
from tasks.rules.errors import PipelineError, UsageError, disk_errors

if TYPE_CHECKING:
    import duckdb


_MAY_BE_BARE: dict[str, Any] = {"is_flag": False, "flag_value": ""}
"""Settings of an option that may be given without a value, which then is the empty text."""


@show_command(location_options=WAREHOUSE)
@click.argument("query", required=False)
@click.option(
    "-f",
    "--file",
    type=click.File(encoding="utf-8-sig"),
    metavar="FILE",
    help="Read the query from a file.",
)
@click.option(
    "--describe",
    metavar="[TABLE]",
    help="List the tables, or the columns of one table.",
    **_MAY_BE_BARE,
)
@click.option(
    "--cookbook",
    metavar="[NAME]",
    help="List the recipes, or run one of them.",
    **_MAY_BE_BARE,
)
@click.option(
    "--show",
    "shown_name",
    metavar="[NAME]",
    help="Print the SQL of a recipe, model, figure or query, and do not run it.",
    **_MAY_BE_BARE,
)
@click.option("--all", "shows_internal", is_flag=True, help="With --describe: internal tables too.")
def sql(
    context: Context,
    query: str | None,
    file: TextIO | None,
    describe: str | None,
    cookbook: str | None,
    shown_name: str | None,
    shows_internal: bool,
) -> None:
    """Query the database in SQL.

    Queries are read-only. A query can also be piped in. Without a query, the command prints the
    path of the database, a command that opens it in DuckDB's own shell, and the cookbook: a list of
    ready-made queries, called recipes.

    Examples:
      prbench sql 'select model, mean_score from leaderboard where is_primary'
      prbench sql -f query.sql -o rows.csv
      prbench sql                           how to open the database
      prbench sql --describe                list the tables, the most used first
      prbench sql --describe --all          list internal tables too
      prbench sql --describe leaderboard    list the columns of one
      prbench sql --cookbook                list the recipes
      prbench sql --cookbook ranking        run one
      prbench sql --cookbook ranking --show > mine.sql
      prbench sql --show score_history      print the SQL of a table or figure
    """
    # --describe, --cookbook and --show without a name are the empty text.
    sources = {
        "a query": query,
        "-f": file,
        "--describe": describe,
        "--cookbook": cookbook,
        "--show NAME": shown_name or None,
    }
    _refuse_several(sources)
    if shows_internal and describe != "":
        raise click.UsageError("--all lists internal tables; use it with --describe")
    if shown_name == "" and not cookbook:
        raise click.UsageError("--show prints SQL; give a name with --show NAME or --cookbook NAME")
    if shown_name is not None:
        _show_query(context, shown_name or cookbook or "")
    elif describe is not None:
        _describe(context, describe, shows_internal=shows_internal)
    elif cookbook is not None:
        _cookbook(context, cookbook)
    elif query is not None:
        _run(context, query)
    elif file is None and sys.stdin.isatty():
        _show_database(context)
    else:
        _run(context, _text_of(file or sys.stdin))


def _refuse_several(sources: dict[str, str | TextIO | None]) -> None:
    names = [name for name, value in sources.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"{' and '.join(names)} cannot be used together; give one")


def _text_of(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the query is not text in UTF-8 ({error})") from error


def _run(context: Context, query: str) -> None:
    database = _database(context)
    if context.file_format == "parquet":
        # DuckDB's types are kept.
        write_parquet(database, query, context.output or exact(sys.stdout).buffer)
        return
    show(context, *run_sql(database, query))


def _describe(context: Context, table: str, *, shows_internal: bool) -> None:
    """Describe the columns of a table, or without a name list all tables."""
    from sql import public_tables, template
    from warehouse import TABLES, quoted

    if table:
        _describe_columns(context, table)
        return
    subjects = public_tables()
    if shows_internal:
        subjects |= dict.fromkeys(sorted(TABLES.keys() - subjects.keys()), "internal")
    rows = []
    for index, (name, subject) in enumerate(subjects.items()):
        rows.append(f"({quoted(name)}, {quoted(subject)}, {index})")
    _run(context, template("queries/look/tables", subjects=", ".join(rows)))


def _describe_columns(context: Context, table: str) -> None:
    from sql import public_tables, template
    from tasks.rules.text.characters import did_you_mean
    from warehouse import TABLES, quoted

    # Names ignore case, as in SQL.
    query = template("queries/look/columns", table=quoted(table.lower()))
    _, rows = run_sql(_database(context), query)
    if not rows:
        hint = did_you_mean(table, [*public_tables(), *TABLES])
        raise UsageError(
            f"there is no table or view {table}{hint}; `prbench sql --describe` lists all"
        )
    _run(context, query)


def _cookbook(context: Context, name: str) -> None:
    """Run a recipe, or without a name list all of them."""
    from sql.cookbook import recipes
    from tasks.rules.text.characters import did_you_mean

    if not name:
        show(context, ["name", "question"], [(recipe.name, recipe.title) for recipe in recipes()])
        return
    queries = {recipe.name: recipe.query for recipe in recipes()}
    if name not in queries:
        raise click.UsageError(f"there is no recipe {name}{did_you_mean(name, queries)}")
    _run(context, queries[name])


def _show_query(context: Context, name: str) -> None:
    """Print the SQL of all that has a name, without running it."""
    if context.output is not None or context.file_format not in {"table", "json"}:
        raise click.UsageError("--show prints SQL; write it to a file with >")
    queries = _queries_named(context, name)
    if context.as_json:
        show_json(context, [{"name": title, "query": query} for title, query in queries.items()])
    else:
        blocks = [f"-- {title}\n{query};\n" for title, query in queries.items()]
        click.echo("\n".join(blocks), nl=False)


def _queries_named(context: Context, name: str) -> dict[str, str]:
    """Return the SQL of everything with a name, by title; of a figure only if nothing else has it.

    Raises:
        UsageError: nothing has the name, or only a figure that is computed in Python.
    """
    from sql import named
    from sql.cookbook import recipes
    from tasks.figures.scope import Scope
    from tasks.figures.shown import FIGURES
    from warehouse import Warehouse

    queries = named(name)
    for recipe in recipes():
        if recipe.name == name:
            queries[f"recipe {name}: {recipe.title}"] = recipe.query
    if queries:
        return queries
    figure = FIGURES.get(name)
    if figure and not figure.compute:
        job = context.stored_job()
        with Warehouse(job.warehouse).reader() as reader:
            return {f"figure {name}": Scope(job, reader).query_of(figure)}
    reason = f"the figure {name} is computed in Python" if figure else f"nothing is named {name}"
    raise UsageError(f"{reason}; `prbench figures` lists figures, `prbench sql --describe` tables")


def _show_database(context: Context) -> None:
    """Print how to open the database, and the recipes."""
    if context.output is not None or context.file_format != "table":
        raise click.UsageError("-o, --json and --format need a query")
    database = _database(context)
    run_sql(database, "select 1")  # raises if nothing is published
    command = f"uvx --from duckdb-cli duckdb -readonly {shlex.quote(str(database))}"
    click.echo(f"The database: {database}\nOpen it in DuckDB's shell: {command}\n")
    click.echo("The cookbook; `prbench sql --cookbook NAME` runs one:")
    _cookbook(context, "")


def _database(context: Context) -> Path:
    from warehouse import Warehouse

    return Warehouse(context.job.warehouse).database


def run_sql(database: Path, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and the rows of a query.

    It can change nothing, and read nothing but the published database.

    Raises:
        PipelineError: DuckDB refuses the query; the message is DuckDB's.
    """
    with _opened(database, query) as connection, ThreadPoolExecutor(1) as pool:
        # DuckDB ignores Ctrl-C while it computes rows, so it runs in a thread.
        work = pool.submit(lambda: connection.execute(query).fetchall())
        try:
            rows = work.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise
        columns = _unique([column[0] for column in connection.description or []])
        return columns, rows if columns else []


def write_parquet(database: Path, query: str, output: Path | BinaryIO) -> None:
    """Write the result of a query as Parquet, with the types that DuckDB gives its columns.

    Raises:
        PipelineError: DuckDB refuses the query, or Parquet cannot hold the result.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _opened(database, query) as connection:
        table = connection.sql(query).to_arrow_table()
        try:
            with disk_errors(output, "check the path"):
                pq.write_table(table.rename_columns(_unique(table.column_names)), output)
        except (pa.ArrowException, NotImplementedError) as error:
            raise PipelineError(f"--format parquet: {' '.join(str(error).split())}") from error


@contextmanager
def _opened(database: Path, query: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    import duckdb

    from warehouse import nothing_in, reporting_damage

    if not database.exists():
        raise PipelineError(nothing_in(database))
    try:
        with (
            reporting_damage(database),
            duckdb.connect(str(database), read_only=True) as connection,
        ):
            connection.execute("set autoinstall_known_extensions = false")
            connection.execute("set autoload_known_extensions = false")
            # A query must read this database only, no other file or address.
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            if not connection.extract_statements(query):
                raise UsageError("SQL: the query is empty")
            yield connection
    except duckdb.Error as error:
        # Leave out the quoted line and the caret below it: they are useless in a one-line message.
        text = re.split(r"\n+LINE \d+: ", str(error))[0]
        raise PipelineError(f"SQL: {' '.join(text.split())}") from error


def _unique(names: list[str]) -> list[str]:
    """Return the column names with duplicates numbered: a, a_1, ..."""
    unique: list[str] = []
    for name in names:
        unique_name = name
        numbers = count(1)
        while unique_name in unique:
            unique_name = f"{name}_{next(numbers)}"
        unique.append(unique_name)
    return unique
