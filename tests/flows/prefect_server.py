"""A Prefect server for tests, started as the project starts one, with a copy of one database for
all test processes.
"""

import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx

from flows.server import ADDRESS, HOST, PrefectServer
from warehouse.locks import file_lock

_DATABASE = "prefect.db"
UNUSED = (
    "TRIGGERS",
    "EVENT_PERSISTER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "CLEANUP_RECONCILER",
)
"""Services that poll every few seconds for events that no test causes; they take a fifth of the
server's time.
"""


def take_database(shared: Path, home: Path) -> bool:
    """Copy the database of an earlier server, if any, which saves 11 s of CPU; return whether there
    was one.
    """
    is_there = (shared / _DATABASE).exists()
    if is_there:
        home.mkdir(exist_ok=True)
        shutil.copy(shared / _DATABASE, home / _DATABASE)
    return is_there


@contextmanager
def serving_prefect(home: Path, shared: Path) -> Iterator[PrefectServer]:
    """A server with its database in the folder `home`, whose process ends with the block."""
    environment = os.environ | {
        f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in UNUSED
    }
    secret = f"prbench:{secrets.token_urlsafe(32)}"
    log = home / "server.log"
    (home / "secret").write_text(secret)
    (home / ADDRESS).touch()
    with (
        ExitStack() as database_lock,
        (home / "secret").open() as file,
        socket.create_server((HOST, 0)) as listening,
    ):
        # Only the first server makes the database; the others wait and copy it.
        database_lock.enter_context(file_lock(shared / "prefect.lock", wait=True))
        if take_database(shared, home):
            database_lock.close()
        files = (
            listening.fileno(),
            file.fileno(),
            file.fileno(),
        )
        command = [
            sys.executable,
            "-P",
            "-m",
            "flows.server",
            *map(str, files),
            str(home),
            "3600",
        ]
        with (
            log.open("w") as output,
            subprocess.Popen(
                command,
                env=environment | {"PREFECT_HOME": str(home)},
                pass_fds=files,
                stdout=output,
                stderr=output,
            ) as process,
        ):
            try:
                server = PrefectServer(
                    f"http://{HOST}:{listening.getsockname()[1]}/api", secret
                )
                assert server.wait_until_ready(180), log.read_text()
                _keep_database(home, shared)
                database_lock.close()
                yield server
            finally:
                process.kill()


def browser(url: str, secret: str | None = None) -> httpx.Client:
    """A client that talks to a server as its pages do: with the secret (default: the tests') and
    its own token.
    """
    user, _, password = (secret or os.environ["PREFECT_API_AUTH_STRING"]).partition(
        ":"
    )
    client = httpx.Client(
        base_url=url,
        timeout=60,
        auth=(user, password),
    )
    reply = client.get("/csrf-token", params={"client": "tests"}).raise_for_status()
    token = reply.json()["token"]
    client.headers.update(
        {"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": "tests"}
    )
    return client


def artifacts_of(url: str, key: str, run_id: str) -> list[str]:
    """The artifacts with a key that belong to a run."""
    key_filter = {"artifacts": {"key": {"like_": key}}}
    reply = browser(url).post("/artifacts/filter", json=key_filter).raise_for_status()
    return [
        artifact["data"]
        for artifact in reply.json()
        if run_id in (artifact["description"] or "")
    ]


def _keep_database(home: Path, shared: Path):
    if not (shared / _DATABASE).exists():
        path = shared / f".{_DATABASE}"
        with (
            closing(sqlite3.connect(home / _DATABASE)) as source,
            closing(sqlite3.connect(path)) as copy,
        ):
            source.backup(copy)
        path.rename(shared / _DATABASE)
