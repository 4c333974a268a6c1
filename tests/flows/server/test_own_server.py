"""The Prefect servers that the project starts obey their user alone: what a foreign page tries is refused."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from flows.server.own_server import OwnServer
from flows.server.prefect_environment import follow_no_redirects
from tests.faults.anything import AnyServer, Plain
from tests.flows.conftest import PRBENCH
from tests.flows.prefect_server import browser, take_database
from tests.flows.server.foreign_page import EVIL, attempts, basic, preflight, socket_ended
from tests.sharing import shared_folder
from tests.tasks.report.browser import browsing

REFUSED = {401, 403}


@pytest.fixture
def lasting(prefect_api: str) -> OwnServer:
    """The server of these tests, which is the process that `prbench serve` starts."""
    return OwnServer(prefect_api, os.environ["PREFECT_API_AUTH_STRING"])


@dataclass(frozen=True)
class Served:
    """`prbench serve` on a server of its own, in a home and a folder of their own."""

    folder: Path
    port: int
    log: Path
    process: "subprocess.Popen[bytes]"

    @property
    def secret_file(self) -> Path:
        return self.folder / "prefect" / "prbench" / f"server-{self.port}.secret"

    @property
    def server(self) -> OwnServer:
        return OwnServer(f"http://127.0.0.1:{self.port}/api", self.secret_file.read_text())


def without_prefect(**more: str) -> dict[str, str]:
    """The environment of somebody who has configured no Prefect server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")} | more


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    take_database(shared_folder(tmp_path_factory), folder / "prefect")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "said.txt"
    with log.open("w") as said:
        process = subprocess.Popen(
            [PRBENCH, "serve", "--port", str(port), "--warehouse", "data"], cwd=folder, stdout=said, stderr=said,
            env=without_prefect(PREFECT_HOME=str(folder / "prefect")),
        )  # fmt: skip
        try:
            yield Served(folder, port, log, process)
        finally:
            process.terminate()
            process.wait(timeout=180)


@pytest.fixture(scope="module")
def of_a_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OwnServer, "subprocess.Popen[str]"]]:
    """The server that a run starts for itself, and the process that has started it."""
    home = tmp_path_factory.mktemp("run") / "prefect"
    take_database(shared_folder(tmp_path_factory), home)
    # Whoever looks for a fault has everything logged.
    debug = {"PREFECT_LOGGING_LEVEL": "DEBUG", "PREFECT_SERVER_LOGGING_LEVEL": "DEBUG"}
    with (
        (home.parent / "said.txt").open("w") as said,
        subprocess.Popen(
            [sys.executable, "-c", _A_RUN], env=without_prefect(PREFECT_HOME=str(home), **debug), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        server = OwnServer(told["PREFECT_API_URL"], told["PREFECT_API_AUTH_STRING"])
        yield server, process
        process.kill()
        process.wait()
    for form in (server.secret, basic(server.secret).removeprefix("Basic ")):
        assert form not in (home.parent / "said.txt").read_text()


_A_RUN = """
import asyncio, json, os, sys
from flows.server.prefect_environment import prepare
from flows.server.own_server import started_for_this_run
prepare()
server = started_for_this_run()
asyncio.run(server.until_ready())
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
    assert "flows.server.server_process" in own
    assert secret not in shown
    assert secret.encode() not in Path(f"/proc/{own.split()[0]}/environ").read_bytes()

    run.kill()
    run.wait()
    # Its end closes the pipe, and the server's end the connection.
    with pytest.raises((httpx.NetworkError, httpx.RemoteProtocolError)):
        keep_asking(server)


def keep_asking(server: OwnServer) -> None:
    """Ask a server whether it is there until it is not, for five minutes at most."""
    deadline_s = time.monotonic() + 300
    with httpx.Client(timeout=60) as client:
        while time.monotonic() < deadline_s:
            client.get(f"{server.url}/health")
            time.sleep(0.2)


@pytest.mark.slow
def test_serve_starts_a_server_that_obeys_its_user_alone_and_names_the_file_with_the_password(served: Served) -> None:
    deadline_s = time.monotonic() + 300
    while "to start one now" not in served.log.read_text():
        assert served.process.poll() is None, served.log.read_text()
        assert time.monotonic() < deadline_s
        time.sleep(0.5)
    assert f"http://127.0.0.1:{served.port}, the password is in {served.secret_file}" in served.log.read_text()
    refuses(served.server)
    with closing(browser(served.server.url, served.server.secret)) as client:
        names = {each["name"] for each in client.post("/deployments/filter", json={}).json()}
    assert "nightly" in names
    # Those that serve and those that run have it in their environment, which is their user's alone.
    shown = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    password = served.server.secret.partition(":")[2]
    assert password not in shown
    assert password not in served.log.read_text()
    others = [path for path in served.folder.rglob("*") if path.is_file() and path != served.secret_file]
    assert served.folder / "prefect" / "prefect.db" in others
    encoded = basic(served.server.secret).removeprefix("Basic ")
    assert [path for path in others for text in (password, encoded) if text.encode() in path.read_bytes()] == []


_NAMED = """
from flows.server.prefect_environment import prepare
from flows.server.own_server import named_server, started_for_this_run
prepare()
assert started_for_this_run() is None
from prefect.settings import get_current_settings
print(named_server(), get_current_settings().api.auth_string.get_secret_value())
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_in_profile", [True, False])
def test_a_server_that_the_user_has_named_is_used_with_the_secret_that_the_user_has_set(
    tmp_path: Path, is_in_profile: bool
) -> None:
    named = {"PREFECT_API_URL": "http://127.0.0.1:1/api", "PREFECT_API_AUTH_STRING": "theirs:secret"}
    lines = [f'{name} = "{value}"' for name, value in named.items()]
    (tmp_path / "profiles.toml").write_text("\n".join(['active = "team"', "[profiles.team]", *lines]))
    shown = subprocess.run(
        [sys.executable, "-c", _NAMED], capture_output=True, text=True, check=False,
        env=without_prefect(**({} if is_in_profile else named), PREFECT_HOME=str(tmp_path)),
    )  # fmt: skip
    assert shown.stdout.split() == list(named.values()), shown.stderr


@pytest.mark.slow
def test_a_person_logs_in_to_the_pages_with_the_secret_and_sees_the_runs(lasting: OwnServer) -> None:
    with closing(browser(lasting.url)) as client:
        flow = client.post("/flows/", json={"name": "seen"}).raise_for_status().json()["id"]
        run = {"flow_id": flow, "name": "a-run-to-see", "state": {"type": "COMPLETED"}}
        client.post("/flow_runs/", json=run).raise_for_status()
    address = lasting.url.removesuffix("/api")
    with browsing() as chromium:
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        password = page.locator("input[type=password]")
        password.fill("prbench:guess")
        password.press("Enter")
        page.get_by_text("invalid", exact=False).first.wait_for()
        assert "/login" in page.url
        password.fill(lasting.secret)
        password.press("Enter")
        page.wait_for_url("**/dashboard**")
        page.goto(f"{address}/v2/runs")
        page.get_by_text("a-run-to-see").first.wait_for()
        # A change is made with the token that the page has fetched.
        page.goto(f"{address}/v2/variables")
        page.get_by_role("button", name="Add Variable").first.click()
        page.get_by_label("Name").fill("from_the_page")
        page.locator(".cm-content").fill("1")
        page.get_by_role("button", name="Create").click()
        page.get_by_text("from_the_page").first.wait_for()


def test_prefects_clients_take_what_they_send_to_no_other_host(lasting: OwnServer) -> None:
    from prefect import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    follow_no_redirects()
    with AnyServer(Plain()) as elsewhere:
        away = Plain(307, {"location": f"{elsewhere.address}/api/flows/"})
        with (
            AnyServer(away) as named,
            get_client(sync_client=True, httpx_settings={"base_url": named.address}) as client,
        ):
            client._client.enable_csrf_support = False
            with pytest.raises(PrefectHTTPStatusError, match="307"):
                client._client.post("/flows/", json={"name": "a-flow"})
        assert [(1, 0)] == [(len(named.seen), len(elsewhere.seen))]


def test_a_hint_names_the_server_that_it_is_for(lasting: OwnServer) -> None:
    from flows.registration import at_this_server

    assert f"PREFECT_API_URL={lasting.url} prefect deployment run x/y" == at_this_server("deployment run x/y")
