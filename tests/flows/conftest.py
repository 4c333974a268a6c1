"""The command as a user starts it, its configuration, and a Prefect server for the tests that run
flows.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from flows.cli.main import cli, main
from flows.server import PrefectServer
from tests.faults.server import FaultServer
from tests.flows.prefect_server import serving_prefect
from tests.kit import configure, endpoint, shared_folder

PROJECT = Path(__file__).parents[2]
PRBENCH = Path(sys.executable).with_name("prbench")
N_TASKS = 8
N_CRITERIA = 98
"""The shipped sample."""
CONCURRENCY = 8


@pytest.fixture(scope="module", autouse=True)
def _in_an_empty_folder(tmp_path_factory) -> Iterator[None]:
    """No command reads the configuration of the checkout's owner."""
    with contextlib.chdir(tmp_path_factory.mktemp("working")):
        yield


def settings(server: FaultServer, **changes: Any) -> dict[str, Any]:
    """A configuration with two models, one judge and two trials on the sample."""
    return {
        "dataset": {"source": "sample"},
        "models": [
            endpoint("alpha", server.api_base),
            endpoint("beta", server.api_base),
        ],
        "judges": [endpoint("judge", server.api_base)],
        "trials": 2,
        "limits": {"concurrency": CONCURRENCY, "attempts": 2},
        **changes,
    }


def commands_of(
    group: click.Group = cli, prefix: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its full name, those of groups too."""
    for name, command in group.commands.items():
        yield f"{prefix}{name}", command
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{prefix}{name} ")


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def opened_terminal(monkeypatch, stream: str, n_columns: int) -> Terminal:
    """Make `stdout` or `stderr` a terminal.

    A fixture could not: each phase of a test has a stream of its own.
    """
    terminal = Terminal()
    monkeypatch.setattr(sys, stream, terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(n_columns))
    return terminal


def put_packages_of_the_user(folder: Path):
    """Put packages and modules with names of this project's, its libraries' and Python's beside the
    configuration.
    """
    for package in (
        "flows",
        "tasks",
        "warehouse",
        "sql",
        "expectations",
        "datasets",
        "prefect",
    ):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(
            "raise SystemExit('a package of the user')"
        )
    for module in ("yaml", "json", "asyncio", "click"):
        (folder / f"{module}.py").write_text(
            "raise SystemExit('a module of the user')"
        )


@dataclass(frozen=True)
class Done:
    """The output of a finished command."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class Command:
    """The command `prbench` in a folder of its own.

    A call runs it in this process, which saves the imports of libraries (15 s each time); `start`
    starts a separate process, to be killed or watched.
    """

    folder: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [PRBENCH, *arguments],
            cwd=self.folder,
            text=True,
            **pipes,
        )

    def __call__(self, *arguments: str, code: int = 0) -> Done:
        stdout = io.StringIO()
        stderr = io.StringIO()
        with (
            redirect_stdout(stdout),
            redirect_stderr(stderr),
            contextlib.chdir(self.folder),
        ):
            exit_code = main(arguments)
        output = Done(stdout.getvalue(), stderr.getvalue())
        assert exit_code == code, f"{output.stdout}\n{output.stderr}"
        return output

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)

    def sql(self, query: str) -> list[dict[str, Any]]:
        return self.json("sql", query, "--warehouse", "data")

    def configure(self, **settings: Any):
        # The report at the end of a run takes seconds; tests about it enable it.
        settings = {"report": {"enabled": False}, **settings}
        configure(self.folder, **settings)


class Run:
    """The command `prbench` in this process, with the same options at the end of every call."""

    def __init__(self, capsys, *location: str | Path):
        self._capsys = capsys
        self._location = location
        self.out = ""
        self.err = ""

    def __call__(
        self, *arguments: str | Path, code: int | tuple[int, ...] = 0
    ) -> str:
        """Run a command and return its output, or its error if it must fail; `out` and `err` hold
        both.
        """
        exit_code = main([*map(str, arguments), *map(str, self._location)])
        self.out, self.err = self._capsys.readouterr()
        assert exit_code in (code if isinstance(code, tuple) else (code,)), self.err
        return self.err if code else self.out

    def refusal(self, *arguments: str | Path, code: int | tuple[int, ...] = 2) -> str:
        """Run a command that must fail with one line, after the one that it has started; return the
        line.
        """
        line = re.sub(r"\A[a-z -]+: started\n", "", self(*arguments, code=code))
        assert self.out == "", line
        assert line.count("\n") == 1, line
        return line

    def json(self, *arguments: str | Path) -> Any:
        return json.loads(self(*arguments, "--json"))


def run_on(folder: Path, capsys) -> Run:
    """The command on a warehouse, or on a folder with a configuration and a warehouse `data`
    (`tests.kit.stored`).
    """
    config = folder / "prbench.yaml"
    if config.exists():
        return Run(capsys, "--config", config, "--warehouse", folder / "data")
    return Run(capsys, "--warehouse", folder)


@pytest.fixture
def run(capsys) -> Run:
    return Run(capsys)


@pytest.fixture
def run_here(folder: Path, capsys) -> Run:
    """The command on the folder of a module."""
    return run_on(folder, capsys)


@pytest.fixture(scope="module")
def prefect_server(tmp_path_factory) -> Iterator[PrefectServer]:
    """Start a real Prefect server with a database of its own."""
    home = tmp_path_factory.mktemp("prefect")
    with serving_prefect(home, shared_folder(tmp_path_factory)) as server:
        yield server


@pytest.fixture
def prefect_api(prefect_server: PrefectServer, monkeypatch) -> str:
    """The address of the server, which records what the test runs."""
    monkeypatch.setenv("PRBENCH_PREFECT", "auto")
    monkeypatch.setenv("PREFECT_API_URL", prefect_server.url)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", prefect_server.secret)
    prefect_server.use()
    return prefect_server.url


@pytest.fixture
def command(tmp_path) -> Command:
    """`prbench` in an empty folder."""
    return Command(tmp_path)


@pytest.fixture
def provider() -> Iterator[FaultServer]:
    """A model provider without faults."""
    with FaultServer() as server:
        yield server
