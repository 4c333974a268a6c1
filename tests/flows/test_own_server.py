"""The Prefect servers that the project starts obey their user alone: what a foreign page tries is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from flows.own_server import OwnServer
from tests.flows.foreign_page import EVIL, attempts, preflight, socket_ended
from tests.flows.prefect_server import browser, take_database
from tests.sharing import shared_folder

REFUSED = {401, 403}


@pytest.fixture
def lasting(prefect_api: str) -> OwnServer:
    """The server of these tests, which is the process that `prbench serve` starts."""
    return OwnServer(prefect_api, os.environ["PREFECT_API_AUTH_STRING"])


@pytest.fixture(scope="module")
def of_a_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OwnServer, "subprocess.Popen[str]"]]:
    """The server that a run starts for itself, and the process that has started it."""
    home = tmp_path_factory.mktemp("run") / "prefect"
    take_database(shared_folder(tmp_path_factory), home)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with subprocess.Popen(
        [sys.executable, "-c", _A_RUN], env=environment | {"PREFECT_HOME": str(home)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield OwnServer(told["PREFECT_API_URL"], told["PREFECT_API_AUTH_STRING"]), process
        process.kill()


_A_RUN = """
import asyncio, json, os, sys
from flows.environment import prepare
from flows.own_server import started_for_this_run
prepare()
server = started_for_this_run()
asyncio.run(server.is_ready())
from prefect import flow
assert flow(lambda: 7, name="seven")() == 7
assert started_for_this_run() is None
print(json.dumps({name: os.environ[name] for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING")}), flush=True)
sys.stdin.read()
"""


def refuses(server: OwnServer) -> None:
    """All that a foreign page or another user can send is refused, and the user's own client is not."""
    with closing(browser(server.url, server.secret)) as client:
        token = {name: client.headers[name] for name in ("Prefect-Csrf-Token", "Prefect-Csrf-Client")}
        assert client.post("/flows/filter", json={}).status_code == 200
        assert client.get("/admin/version").status_code == 200
        # A page of the server itself, as a tunnel with another port or a name of this machine shows it.
        for page in ("http://127.0.0.1:5000", "http://localhost:5000"):
            host = {"Host": page.removeprefix("http://"), "Origin": page}
            assert client.post("/flows/filter", json={}, headers=host).status_code == 200
    with httpx.Client(timeout=60) as anybody:
        for attempt in attempts(server, token):
            answer = anybody.send(attempt.request)
            assert answer.status_code in REFUSED, attempt.what
            assert answer.headers.get("access-control-allow-origin") != EVIL, attempt.what
            assert server.secret.partition(":")[2] not in answer.text
        for origin in (EVIL, "null", "http://127.0.0.1:1"):
            answer = anybody.send(preflight(server.url, origin))
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
        assert anybody.get(f"{server.url}/health", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.slow
def test_a_lasting_server_refuses_what_a_foreign_page_sends(lasting: OwnServer) -> None:
    refuses(lasting)


@pytest.mark.slow
def test_the_server_of_a_run_refuses_what_a_foreign_page_sends(
    of_a_run: tuple[OwnServer, "subprocess.Popen[str]"],
) -> None:
    refuses(of_a_run[0])


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/events/in", "/events/out", "/logs/out"])
def test_a_web_socket_asks_for_the_secret_and_for_a_page_of_its_own(lasting: OwnServer, path: str) -> None:
    at = lasting.url.removesuffix("/api")

    assert socket_ended(lasting.url, path, token=lasting.secret) == "open"
    assert socket_ended(lasting.url, path, token=lasting.secret, Origin=at) == "open"
    assert socket_ended(lasting.url, path) == "1008"
    assert socket_ended(lasting.url, path, token="prbench:guess") == "1008"
    assert socket_ended(lasting.url, path, token=lasting.secret, Origin=EVIL) == "403"


@pytest.mark.slow
def test_nobody_sees_a_secret_in_the_list_of_processes_and_it_ends_with_the_run(
    of_a_run: tuple[OwnServer, "subprocess.Popen[str]"],
) -> None:
    server, run = of_a_run
    secret = server.secret.partition(":")[2]
    shown = subprocess.run(["ps", "-eww", "-o", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    (own,) = [line for line in shown.splitlines() if line.split()[1] == str(run.pid)]
    assert "flows.server_process" in own
    assert secret not in shown
    assert secret.encode() not in Path(f"/proc/{own.split()[0]}/environ").read_bytes()

    run.kill()
    run.wait()
    # Its end closes the pipe, and the server's end the connection.
    with httpx.Client(timeout=60) as client:
        deadline = 600
        while deadline:
            try:
                client.get(f"{server.url}/health")
            except httpx.TransportError:
                return
            deadline -= 1
    raise AssertionError("the server of a run that was killed goes on")
