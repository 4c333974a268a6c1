"""A Prefect server for the tests that run flows, and the command as a person starts it."""

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli import main
from tests.faults.server import FaultServer

PROJECT = Path(__file__).parents[2]
PRBENCH = Path(sys.executable).with_name("prbench")


@dataclass(frozen=True)
class Done:
    """What a finished command said."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class Command:
    """The command `prbench` in a folder of its own.

    Called, it runs in this process, which saves the libraries' imports (15 s a time); `start` gives a process of its
    own, for what has to be killed or watched, and for seeing that the installed command works.
    """

    folder: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PRBENCH, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def in_process_of_its_own(self, *arguments: str, code: int = 0) -> Done:
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=300)
        return _expected(process.returncode, code, Done(stdout, stderr))

    def __call__(self, *arguments: str, code: int = 0) -> Done:
        stdout, stderr = io.StringIO(), io.StringIO()
        with redirect_stdout(stdout), redirect_stderr(stderr), contextlib.chdir(self.folder):
            returned = main(arguments)
        return _expected(returned, code, Done(stdout.getvalue(), stderr.getvalue()))

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)

    def sql(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.json("sql", query, "--warehouse", "data")
        return rows

    def configure(self, **settings: Any) -> None:
        # The report at the end of a run takes seconds of each test; those that are about it ask for it.
        settings = {"report": {"enabled": False}, **settings}
        (self.folder / "prbench.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


def _expected(returned: int, code: int, done: Done) -> Done:
    assert returned == code, f"exit {returned}, wanted {code}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Prefect server with a database of its own, which all flows of these tests talk to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("prefect")
    environment = {
        **os.environ, "PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1",
    }  # fmt: skip
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(
            [Path(sys.executable).with_name("prefect"), "server", "start", "--port", str(port)],
            env=environment, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}/api/health", home / "server.log")
            # Prefect reads its settings once, when it is imported.
            assert "prefect" not in sys.modules
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PREFECT_HOME", str(home))
                patch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
                yield f"http://127.0.0.1:{port}/api"
        finally:
            _send_logs()
            server.terminate()
            server.wait(timeout=30)


def _send_logs() -> None:
    """Send what Prefect still holds: without its server it would try to for a minute when this process ends."""
    if "prefect" in sys.modules:
        from prefect.logging.handlers import APILogWorker

        APILogWorker.drain_all(timeout=5)


def _wait_until_healthy(url: str, log: Path) -> None:
    deadline_s = time.monotonic() + 180
    while time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"Prefect's server did not start:\n{log.read_text()}")


@pytest.fixture
def command(tmp_path: Path, prefect_api: str) -> Command:
    """`prbench` in an empty folder, talking to the test's Prefect server."""
    assert os.environ["PREFECT_API_URL"] == prefect_api
    return Command(tmp_path)


@pytest.fixture
def provider() -> Iterator[FaultServer]:
    """A model provider that answers well."""
    with FaultServer() as server:
        yield server
