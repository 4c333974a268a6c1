"""`prbench sql` on a terminal: a prompt that keeps its history, completes, and survives what is typed into it."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from flows.cli.look.sql_completion import SqlCompleter
from flows.cli.look.sql_describe import read_catalogue
from flows.cli.look.sql_query import MOST_COUNTED
from flows.cli.look.sql_shell import COMMANDS, ROWS_SHOWN, SqlPrompt
from flows.cli.main import main
from sql.cookbook import recipes
from tests.builders import row
from tests.flows.conftest import PRBENCH, PROJECT
from warehouse import Warehouse
from warehouse.contracts.columns import COLUMNS
from warehouse.contracts.tables import TABLES

pytestmark = pytest.mark.slow

Ask = Callable[[str], tuple[str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    warehouse = Warehouse(folder)
    warehouse.write("runs", [row("runs", command="run")])
    warehouse.publish()
    return folder


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "prbench" / "sql_history"


@pytest.fixture
def ask(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Ask]:
    """What the prompt says on standard output and standard error when this is typed; `\\r` is Enter."""

    def ask(typed: str, file_format: str = "jsonl", database: Path = folder / "prbench.duckdb") -> tuple[str, str]:
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text(typed + "\x04")
            SqlPrompt(database, file_format).run()
        said = capsys.readouterr()
        greeting, _, errors = said.err.partition("type help for the commands.\n")
        assert "read-only" in greeting
        return said.out, errors

    return ask  # type: ignore[return-value]


def test_queries_are_answered_one_after_the_other_whatever_stood_between(ask: Ask) -> None:
    answers, errors = ask("select 1 as a;\rselec 2;\r\r.nonsense\rselect * from nowhere;\rselect 3 as a;\r")
    assert [json.loads(line) for line in answers.splitlines()] == [{"a": 1}, {"a": 3}]
    assert len(errors.splitlines()) == 3
    assert all(line.startswith("prbench: ") for line in errors.splitlines())


def test_a_query_goes_on_over_lines_until_its_semicolon(ask: Ask) -> None:
    answers, errors = ask("select command\rfrom runs\r\rwhere true;\r")
    assert (json.loads(answers), errors) == ({"command": "run"}, "")


def test_ctrl_c_drops_what_was_typed(ask: Ask) -> None:
    assert ask("select 'dropped'\r\x03select 'kept' as a;\r") == ('{"a": "kept"}\n', "")


def test_quit_ends_it(ask: Ask) -> None:
    assert ask(".quit\rselect 1 as a;\r") == ("", "")


def test_what_is_published_meanwhile_is_seen_by_the_next_query(ask: Ask, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.publish()
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        prompt = SqlPrompt(warehouse.database, "jsonl")
        keys.send_text("select * from runs;\r\x04")
        prompt.run()
        warehouse.write("runs", [row("runs", command="judge")])
        warehouse.publish()
    assert ask("select command from runs;\r", database=warehouse.database)[0] == '{"command": "judge"}\n'


def test_commands_list_and_describe_tables_and_change_the_format(ask: Ask) -> None:
    answers, errors = ask(
        ".tables\r.describe RUNS\r.format csv\rselect 1 as a;\r.format parquet\r.describe runz\r.help\r"
    )
    assert '"leaderboard"' in answers
    assert "runs: One execution." in answers
    assert COLUMNS["git_commit"][1] in answers
    assert "\na\n1\n" in answers
    assert all(command in answers for command in COMMANDS)
    assert [line.split(":")[1] for line in errors.splitlines()] == [
        " .format parquet",
        " there is no table or view runz; did you mean runs?",
    ]


@pytest.mark.parametrize("typed", ["help\r", "HELP;\r", "?\r", ".help\r"])
def test_help_is_found_without_a_dot(ask: Ask, typed: str) -> None:
    answers, errors = ask(typed)
    assert all(command in answers for command in COMMANDS)
    assert errors == ""


def test_the_cookbook_is_listed_and_a_recipe_is_run(ask: Ask) -> None:
    first = recipes()[0]
    answers, errors = ask(f".cookbook\r.cookbook {first.name}\r.cookbook {first.name}x\r", "csv")
    assert all(recipe.name in answers for recipe in recipes())
    assert answers.count(first.question) == 2
    assert errors == f"prbench: there is no recipe {first.name}x; did you mean {first.name}?\n"


def test_a_long_table_is_cut_and_says_by_how_much_and_another_format_is_whole(ask: Ask) -> None:
    query = "select range as n from range({});\r"
    cut, _ = ask(query.format(1030), "table")
    assert f"... {1030 - ROWS_SHOWN} more rows" in cut
    assert f" {ROWS_SHOWN - 1} " in cut
    assert f" {ROWS_SHOWN} " not in cut
    assert "more rows" not in ask(query.format(ROWS_SHOWN), "table")[0]
    assert f"at least {MOST_COUNTED:,} more rows" in ask(query.format(10**9), "table")[0]
    assert len(ask(query.format(1030), "csv")[0].splitlines()) == 1031


def test_the_history_is_kept_for_the_next_time_and_for_the_user_alone(ask: Ask, history: Path) -> None:
    ask("select 1 as a,\r2 as b;\r")
    ask("select 3 as c;\r")
    lines = [line for line in history.read_text(encoding="utf-8").splitlines() if line.startswith("+")]
    assert lines == ["+select 1 as a,", "+2 as b;", "+select 3 as c;"]
    assert history.stat().st_mode & 0o077 == 0
    # Up, and what was asked last is asked again.
    assert ask("\x1b[A\r") == ('{"c": 3}\n', "")


def test_where_no_history_can_be_kept_the_prompt_says_so_once_and_goes_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a-file"))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("select 1 as a;\rselect 2 as a;\r\x04")
        SqlPrompt(folder / "prbench.duckdb", "csv").run()
    said = capsys.readouterr()
    assert said.out == "a\n1\na\n2\n"
    assert said.err.count("history is not saved") == 1


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("select 1; su", ["summarize", "sum", "substr"]),
        ("select command\nfro| from runs", ["from"]),
        ("select * from run", ["run_costs", "runs"]),
        ("select * from verdict_d", ["verdict_details"]),
        ("select r.git_c| from runs as r", ["git_commit"]),
        ("select runs.git_c| from runs", ["git_commit"]),
        ("select R.| from runs r join tasks t", list(TABLES["runs"].columns)),
        ("select t.turn| from runs r join tasks t", ["turns", "turn_pattern"]),
        ("select t.turn| from runs, tasks t", ["turns", "turn_pattern"]),
        ("select r.git_c| from runs join tasks r", []),
        ("select git_c", ["git_commit"]),
        ("select git_c| from tasks", []),
        ("select nothing.", []),
        ("select 'sel", []),
        ("select 1 as sel", []),
        ("select * from published_p", []),
        (".d", [".describe"]),
        (".describe hard_l", ["hard_leaderboard"]),
        (".format js", ["json", "jsonl"]),
        (".format par", []),
        (".cookbook rank", ["ranking"]),
    ],
)
def test_what_fits_at_the_cursor_is_offered(folder: Path, typed: str, offered: list[str]) -> None:
    catalogue = read_catalogue(folder / "prbench.duckdb")
    completer = SqlCompleter(lambda: catalogue, COMMANDS, ["json", "jsonl"], ["ranking"])
    before, _, after = typed.partition("|")
    found = completer.get_completions(Document(before + after, len(before)), CompleteEvent(text_inserted=True))
    assert [completion.text for completion in found] == offered


def test_an_offer_says_what_it_means_and_nothing_pops_up_after_a_blank(folder: Path) -> None:
    catalogue = read_catalogue(folder / "prbench.duckdb")
    completer = SqlCompleter(lambda: catalogue, COMMANDS, [])
    (offer,) = completer.get_completions(Document("select git_c"), CompleteEvent(text_inserted=True))
    assert offer.display_meta_text == COLUMNS["git_commit"][1]
    assert list(completer.get_completions(Document("select "), CompleteEvent(text_inserted=True))) == []
    assert list(completer.get_completions(Document("select "), CompleteEvent(completion_requested=True)))


def test_only_the_prompt_loads_what_a_prompt_needs(folder: Path) -> None:
    code = (
        "import sys; from flows.cli.main import main; main(sys.argv[1:]); "
        "print({'prompt_toolkit', 'prefect'} & set(sys.modules), file=sys.stderr)"
    )
    for arguments in (["select 1"], ["--describe", "runs"], ["--cookbook"]):
        done = subprocess.run(
            [sys.executable, "-c", code, "sql", *arguments, "--warehouse", folder],
            cwd=PROJECT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr.splitlines()[-1] == "set()"


@pytest.mark.parametrize("arguments", [["-o", "rows.csv"], ["--format", "parquet"]])
def test_a_prompt_writes_no_files(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["sql", *arguments, "--warehouse", str(folder)]) == 2
    assert "the prompt only writes text" in capsys.readouterr().err


class Terminal:
    """The installed command on a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._seen = ""
        self.process, self._end = pty.fork()
        if self.process == 0:
            os.environ |= {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", "PROMPT_TOOLKIT_NO_CPR": "1"}
            os.execv(PRBENCH, [str(PRBENCH), *arguments])

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until a text is shown that was not shown before."""
        until = time.monotonic() + 60
        while text not in self._seen:
            assert time.monotonic() < until, f"{text} was not shown:\n{self._seen}"
            if select.select([self._end], [], [], 0.1)[0]:
                shown = os.read(self._end, 65536).decode(errors="replace")
                self._seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
        self._seen = self._seen.partition(text)[2]

    def exit_code(self) -> int:
        """Close the terminal when the command has ended."""
        until = time.monotonic() + 30
        while not (ended := os.waitpid(self.process, os.WNOHANG))[0]:
            assert time.monotonic() < until, "the command did not end"
            time.sleep(0.05)
        os.close(self._end)
        return os.waitstatus_to_exitcode(ended[1])


def test_the_installed_command_is_a_prompt_on_a_real_terminal(folder: Path, history: Path) -> None:
    terminal = Terminal("sql", "--warehouse", str(folder))
    try:
        terminal.wait_for("prbench>")
        terminal.type("select 41 + 1 as answer,\r'run' || 'ning' as word;\r")
        terminal.wait_for("│     42 │ running │")
        terminal.wait_for("prbench>")
        terminal.type("select sum(a.range * b.range) from range(3000000) a, range(3000000) b;\r")
        # Ctrl-C is to come while the query runs.
        time.sleep(3)
        terminal.type("\x03")
        terminal.wait_for("prbench>")
        terminal.type("selec;\r")
        terminal.wait_for("prbench: SQL: Parser Error")
        terminal.type("select 'still ' || 'here' as x;\r")
        terminal.wait_for("│ still here │")
        # Between two prompts Ctrl-D is the terminal's, not the prompt's.
        terminal.wait_for("prbench>")
        terminal.type("\x04")
        assert terminal.exit_code() == 0
    except BaseException:
        os.kill(terminal.process, signal.SIGKILL)
        raise
    assert "+'run' || 'ning' as word;" in history.read_text(encoding="utf-8")
