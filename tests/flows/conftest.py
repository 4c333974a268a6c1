"""A Prefect server for the tests that run flows, and the command as a person starts it."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.faults.server import FaultServer

PROJECT = Path(__file__).parents[2]
PRBENCH = Path(sys.executable).with_name("prbench")


@dataclass(frozen=True)
class Command:
    """The command `prbench` in a folder of its own, with the environment that it runs in."""

    folder: Path
    environment: dict[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PRBENCH, *arguments], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [PRBENCH, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            timeout=300,
        )  # fmt: skip
        assert done.returncode == code, f"exit {done.returncode}, wanted {code}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)

    def sql(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.json("sql", query, "--warehouse", "data")
        return rows

    def configure(self, **settings: Any) -> None:
        (self.folder / "prbench.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Prefect server, with a database of its own."""
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
            yield f"http://127.0.0.1:{port}/api"
        finally:
            server.terminate()
            server.wait(timeout=30)


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
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    return Command(tmp_path, {**environment, "PREFECT_API_URL": prefect_api, "PREFECT_HOME": str(tmp_path / "prefect")})


@pytest.fixture
def provider() -> Iterator[FaultServer]:
    """A model provider that answers well."""
    with FaultServer() as server:
        yield server
