"""Progress: no command is silent while it loads or computes."""

import io
import subprocess
import sys
import time

import pytest

from tasks.console import advance, notice, progress, working
from tests.flows.conftest import Terminal, opened_terminal

HEAVY = (
    "duckdb",
    "litellm",
    "prefect",
    "pandas",
    "great_expectations",
    "pydantic",
    "rich",
)
REFUSE_HEAVY = f"""
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name in {HEAVY}:
            raise ImportError(name)
from flows.cli.main import main
sys.meta_path.insert(0, Refusing())
for command in sys.argv[1:]:
    try:
        main([command])
    except ImportError as error:
        print("refused", file=sys.stderr)
"""


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time in seconds, which stands still unless a test changes it."""
    time_s = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: time_s[0])
    return time_s


def test_a_command_prints_a_line_before_it_imports_large_libraries():
    commands = ["run", "nightly", "backfill", "sample", "aggregate", "plan", "report"]
    call = [sys.executable, "-c", REFUSE_HEAVY, *commands]

    process = subprocess.run(
        call,
        check=False,
        capture_output=True,
        text=True,
    )

    assert process.stdout == ""
    assert process.stderr == "".join(
        f"{command}: started\nrefused\n" for command in commands
    )


def test_a_step_is_on_a_terminal_while_it_lasts_and_not_after_it(monkeypatch, capsys):
    terminal = opened_terminal(monkeypatch, "stderr", n_columns=120)

    with working("a command", is_command=True):
        output_of_command = terminal.getvalue()
        with working("a slow import"):
            output_of_import = terminal.getvalue()
        notice("a result")
    print("a table")

    assert output_of_command.startswith("a command\r")
    assert "a slow import" in output_of_import
    assert "started" not in terminal.getvalue()
    # Its row is erased.
    assert "\r\x1b[2K" in terminal.getvalue().rpartition("a command")[2]
    assert capsys.readouterr().out == "a table\n"


def test_bars_stay_on_a_terminal_without_the_step_around_them(monkeypatch):
    terminal = opened_terminal(monkeypatch, "stderr", n_columns=120)

    with working("a command", is_command=True), progress("sample", {"a-model": 1}):
        advance("sample", "a-model", succeeded=True)

    beginning, _, end = terminal.getvalue().rpartition("sample a-model")
    assert "a command" in beginning
    assert "1/1" in end
    # The cursor does not go up to it again.
    assert "\x1b[1A" not in end


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_quiet_command_shows_no_step(is_terminal, monkeypatch):
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)

    with (
        working("a command", is_quiet=True, is_command=True),
        progress("sample", {"a": 1}, is_quiet=True),
    ):
        advance("sample", "a", succeeded=True)

    assert stream.getvalue() == ""


def test_lines_in_a_pipe_estimate_the_time_left_from_finished_units(clock, capsys):
    with progress("judge", {"a-model": 10}):
        clock[0] += 100  # until everything has started
        advance("judge", "a-model", succeeded=True)
        for succeeded in (True, False):
            clock[0] += 20
            advance("judge", "a-model", succeeded=succeeded)

    assert capsys.readouterr().err.splitlines() == [
        "judge a-model: 1 of 10",
        "judge a-model: 2 of 10, about 2 min 40 s left",
        "judge a-model: 3 of 10, 1 failed, about 2 min 20 s left",
    ]


def test_lines_in_a_pipe_become_rarer_in_a_long_stage(clock, capsys):
    n_units = 12 * 3600
    with progress("judge", {"": n_units}):
        for _ in range(n_units - 1):
            clock[0] += 1
            advance("judge", succeeded=True)

    lines = capsys.readouterr().err.splitlines()
    assert 60 < len(lines) < 200
