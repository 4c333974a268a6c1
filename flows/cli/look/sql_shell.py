"""The SQL prompt: queries over several lines, a saved history, completion, and commands that begin with a dot."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import create_output
from pygments.lexers.sql import SqlLexer

from flows.cli.common.output import FORMATS, show
from flows.cli.look.sql_completion import SqlCompleter
from flows.cli.look.sql_describe import Catalogue, columns_query, nearest, read_catalogue, tables_query
from flows.cli.look.sql_query import MOST_COUNTED, run_sql
from sql.cookbook import recipes
from tasks.console import exact
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.table import Table
from tasks.rules.text.visible import always_shown, visible

# What is typed, pasted or remembered is shown too; Prompt Toolkit itself shows the first 160 characters only.
Char.display_mappings.update({character: visible(character) for character in always_shown() if ord(character) > 0xA0})
ROWS_SHOWN = 50
"""How many rows of a result the prompt shows as a table."""
# Parquet cannot be read on a terminal.
_FORMATS = tuple(name for name in FORMATS if name != "parquet")
_WITHOUT_DOT = {"help": ".help", "?": ".help", "quit": ".quit", "exit": ".quit"}
"""What people type who do not know the commands yet; no query begins so."""
COMMANDS = {
    ".help": "List the commands.",
    ".tables": "List all tables and views.",
    ".describe": "List the columns of a table: .describe NAME",
    ".cookbook": "List the recipes, or run one: .cookbook NAME",
    ".format": f"Choose the format of results: .format {'|'.join(_FORMATS)}",
    ".quit": "Leave the prompt (or press Ctrl-D).",
}


class SqlPrompt:
    """A prompt on the published database; each query sees what is published at that moment."""

    def __init__(self, database: Path, file_format: str) -> None:
        self._database = database
        self._format = file_format
        self._known = Catalogue()
        self._session: PromptSession[str] = PromptSession(
            message="prbench> ",
            prompt_continuation=lambda width, line, wraps: "... ".rjust(width),
            multiline=True,
            key_bindings=_keys(),
            history=_history(),
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(lambda: self._known, COMMANDS, _FORMATS, _recipe_names()),
            complete_while_typing=True,
        )

    def run(self) -> None:
        """Read and run queries until `.quit` or the end of the input."""
        click.echo(f"{self._database}, read-only. End a query with ; and type help for the commands.", err=True)
        while True:
            try:
                self._look_again()
                text = self._session.prompt().strip()
                text = _WITHOUT_DOT.get(_bare(text), text)
                if text.rstrip(";").rstrip() in {".quit", ".exit"}:
                    return
                self._answer(text)
            except EOFError:
                return
            except KeyboardInterrupt:
                # Drops the text that is being written, or stops the running query.
                continue
            except PipelineError as error:
                click.echo(f"prbench: {error}", err=True)
            except Exception as error:  # noqa: BLE001 - the prompt survives any error of a query
                click.echo(f"prbench: {type(error).__name__}: {' '.join(str(error).split())}", err=True)

    def _look_again(self) -> None:
        try:
            self._known = read_catalogue(self._database)
        except PipelineError:
            # Completion works without; the next query reports what is wrong.
            self._known = Catalogue()

    def _answer(self, text: str) -> None:
        if text.startswith("."):
            command, _, name = text.rstrip("; ").partition(" ")
            self._do(command, name.strip())
        elif text.strip("; \n"):
            is_cut = self._format == "table"
            table = run_sql(self._database, text, ROWS_SHOWN if is_cut else None)
            show(table.columns, table.rows, self._format)
            _show_what_is_missing(table)

    def _do(self, command: str, name: str) -> None:
        if command == ".help":
            self._help()
        elif command == ".tables" or (command == ".describe" and not name):
            self._show_all(tables_query())
        elif command == ".describe":
            table = read_catalogue(self._database)[name]
            click.echo(f"{table.name}: {table.meaning}")
            self._show_all(columns_query(table.name))
        elif command == ".cookbook":
            self._cookbook(name)
        elif command == ".format":
            self._choose(name)
        else:
            raise UsageError(f"there is no command {command}; {nearest(command, COMMANDS)}")

    def _show_all(self, query: str) -> None:
        table = run_sql(self._database, query)
        show(table.columns, table.rows, self._format, is_cut=False)

    def _cookbook(self, name: str) -> None:
        if name:
            recipe = next((each for each in recipes() if each.name == name), None)
            if recipe is None:
                raise UsageError(f"there is no recipe {name}; {nearest(name, _recipe_names())}")
            click.echo(recipe.question)
            self._answer(recipe.query)
        else:
            show(["name", "question"], [(each.name, each.question) for each in recipes()], self._format, is_cut=False)

    def _choose(self, name: str) -> None:
        if name and name not in _FORMATS:
            raise UsageError(f".format {name}: choose one of {', '.join(_FORMATS)}")
        self._format = name or self._format
        click.echo(f"Results are written as {self._format}.")

    def _help(self) -> None:
        for command, meaning in COMMANDS.items():
            click.echo(f"{command:<10}  {meaning}")
        click.echo("Enter runs a query that ends with ;, otherwise it starts a new line. Tab completes.")
        click.echo("Up and Ctrl-R find earlier queries. Ctrl-C clears the text.")
        click.echo(f"A table shows the first {ROWS_SHOWN} rows and cuts long texts; other formats show everything.")


@contextmanager
def on_terminal() -> Iterator[None]:
    """Show the prompt on the terminal, even if results go elsewhere."""
    # Its own commands go to the terminal as they are.
    terminal = next((stream for stream in (sys.stdout, sys.stderr) if stream.isatty()), sys.stdout)
    with create_app_session(output=create_output(exact(terminal))):
        yield


def _show_what_is_missing(table: Table) -> None:
    if table.n_more:
        number = f"{table.n_more:,}" if table.n_more < MOST_COUNTED else f"at least {MOST_COUNTED:,}"
        click.echo(f"... {number} more rows; `.format csv` shows all, `prbench sql -o FILE QUERY` writes them")


def _is_finished(text: str) -> bool:
    text = text.strip()
    return not text or text.startswith(".") or text.endswith(";") or _bare(text) in _WITHOUT_DOT


def _bare(text: str) -> str:
    return text.strip("; \n").lower()


def _recipe_names() -> list[str]:
    return [each.name for each in recipes()]


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            # The chosen word is already in the text.
            buffer.complete_state = None
        elif _is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    return keys


def _history() -> History:
    """Earlier queries, from a file of the user; in memory if that file cannot be written."""
    try:
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        path = Path(state).expanduser() / "prbench" / "sql_history"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("ab"):
            return _CarefulHistory(str(path))
    except (OSError, RuntimeError) as error:
        click.echo(f"prbench: history is not saved ({error})", err=True)
        return InMemoryHistory()


class _CarefulHistory(FileHistory):
    """A history whose file may become unwritable: the prompt continues silently."""

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            return
