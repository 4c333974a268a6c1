"""A Prefect server for tests, as the project starts one, on a database that one of the test processes made for all."""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TextIO

import httpx

from flows.server.own_server import OwnServer, _made
from warehouse.locks import file_lock

_DATABASE = "prefect.db"
UNUSED = (
    "TRIGGERS", "EVENT_PERSISTER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR", "CLEANUP_RECONCILER",
)  # fmt: skip
"""Services that look every few seconds for what no test brings about; they take a fifth of the server's time."""


def take_database(shared: Path, home: Path) -> bool:
    """Give a server the database that another one made at its first start, which takes 11 s of CPU, if there is one."""
    if (shared / _DATABASE).exists():
        home.mkdir(exist_ok=True)
        shutil.copy(shared / _DATABASE, home / _DATABASE)
    return (shared / _DATABASE).exists()


@contextmanager
def serving_prefect(home: Path, shared: Path) -> Iterator[OwnServer]:
    """A server with its database in the folder `home`."""
    environment = {
        **os.environ, "PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1",
        **{f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in UNUSED},
    }  # fmt: skip
    with (home / "server.log").open("w") as log, ExitStack() as making:
        making.enter_context(file_lock(shared / "prefect.lock", wait=True))
        if take_database(shared, home):
            making.close()
        server = _started(home, environment, log)
        try:
            wait_until_healthy(f"{server.url}/health", home / "server.log")
            _keep_database(home, shared)
            making.close()
            yield server
        finally:
            server.stop()


def _started(home: Path, environment: dict[str, str], log: TextIO) -> OwnServer:
    """As `flows.server.own_server` does it, which would import Prefect here, before it is told where its home is."""
    with (home / "secret").open("w+b", buffering=0) as file, socket.create_server(("127.0.0.1", 0)) as listening:
        secret = _made(file)
        given = (listening.fileno(), file.fileno())
        command = [sys.executable, "-P", "-m", "flows.server.server_process", *map(str, given)]
        process = subprocess.Popen(command, env=environment, pass_fds=given, stdout=log, stderr=log)
        return OwnServer(f"http://127.0.0.1:{listening.getsockname()[1]}/api", secret, process)


def browser(url: str, secret: str | None = None) -> httpx.Client:
    """A client that talks to a server as its pages do: with the secret (the tests' own), and a token of its own."""
    user, _, password = (secret or os.environ["PREFECT_API_AUTH_STRING"]).partition(":")
    client = httpx.Client(base_url=url, timeout=60, auth=(user, password))
    token = client.get("/csrf-token", params={"client": "tests"}).raise_for_status().json()["token"]
    client.headers.update({"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "tests"})
    return client


def _keep_database(home: Path, shared: Path) -> None:
    if not (shared / _DATABASE).exists():
        copy = shared / f".{_DATABASE}"
        with closing(sqlite3.connect(home / _DATABASE)) as made, closing(sqlite3.connect(copy)) as kept:
            made.backup(kept)
        copy.rename(shared / _DATABASE)


def wait_until_healthy(url: str, log: Path) -> None:
    deadline_s = time.monotonic() + 180
    while time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"Prefect's server did not start:\n{log.read_text()}")
