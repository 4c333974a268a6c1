"""The project's Prefect server obeys its user alone: it refuses what foreign pages try."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing

import httpx
import pytest
import websockets

from flows.server import PrefectServer
from tests.flows.prefect_server import browser
from tests.tasks.report.browser import browsing

REFUSED = {401, 403}


@pytest.mark.slow
def test_the_projects_server_refuses_what_a_foreign_page_or_another_user_sends(
    prefect_server: PrefectServer,
) -> None:
    server = prefect_server
    with closing(browser(server.url, server.secret)) as client:
        token = {
            name: client.headers[name] for name in ("Prefect-Csrf-Token", "Prefect-Csrf-Client")
        }
        assert client.post("/flows/filter", json={}).status_code == 200
        assert client.get("/admin/version").status_code == 200
        # The server's own page, reached through a tunnel with another port, or by another name of
        # this machine.
        for page in ("http://127.0.0.1:5000", "http://localhost:5000"):
            host = {"Host": page.removeprefix("http://"), "Origin": page}
            assert client.post("/flows/filter", json={}, headers=host).status_code == 200
    with httpx.Client(timeout=60) as anybody:
        for what, request in attempts(server, token):
            http_response = anybody.send(request)
            assert http_response.status_code in REFUSED, what
            assert http_response.headers.get("access-control-allow-origin") != EVIL, what
            assert server.secret.partition(":")[2] not in http_response.text
        for origin in (EVIL, "null", "http://127.0.0.1:1"):
            http_response = anybody.send(preflight(server.url, origin))
            assert http_response.status_code == 403
            assert "access-control-allow-origin" not in http_response.headers
        assert (
            anybody.get(f"{server.url}/health", headers={"Host": "evil.example"}).status_code == 403
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/events/in", "/events/out", "/logs/out"])
def test_a_web_socket_asks_for_the_secret_and_for_a_page_of_its_own(
    prefect_server: PrefectServer, path: str
) -> None:
    at = prefect_server.url.removesuffix("/api")

    assert socket_ended(prefect_server.url, path, token=prefect_server.secret) == "open"
    assert socket_ended(prefect_server.url, path, token=prefect_server.secret, Origin=at) == "open"
    assert socket_ended(prefect_server.url, path) == "1008"
    assert socket_ended(prefect_server.url, path, token="prbench:guess") == "1008"
    assert socket_ended(prefect_server.url, path, token=prefect_server.secret, Origin=EVIL) == "403"


@pytest.mark.slow
def test_a_person_logs_in_to_the_pages_with_the_secret_and_sees_the_runs(
    prefect_server: PrefectServer,
) -> None:
    with closing(browser(prefect_server.url, prefect_server.secret)) as client:
        flow = client.post("/flows/", json={"name": "seen"}).raise_for_status().json()["id"]
        run = {
            "flow_id": flow,
            "name": "a-run-to-see",
            "state": {"type": "COMPLETED"},
        }
        client.post("/flow_runs/", json=run).raise_for_status()
    address = prefect_server.url.removesuffix("/api")
    with browsing() as chromium:
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        password = page.locator("input[type=password]")
        password.fill("prbench:guess")
        password.press("Enter")
        page.get_by_text("invalid", exact=False).first.wait_for()
        assert "/login" in page.url
        password.fill(prefect_server.secret)
        password.press("Enter")
        page.wait_for_url("**/dashboard**")
        page.goto(f"{address}/v2/runs")
        page.get_by_text("a-run-to-see").first.wait_for()
        # The page changes data with the token that it has fetched.
        page.goto(f"{address}/v2/variables")
        page.get_by_role("button", name="Add Variable").first.click()
        page.get_by_label("Name").fill("from_the_page")
        page.locator(".cm-content").fill("1")
        page.get_by_role("button", name="Create").click()
        page.get_by_text("from_the_page").first.wait_for()


EVIL = "http://evil.example"
_PATCH = (
    '{"pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}]}'
)
_ANY = "00000000-0000-4000-8000-000000000000"
_CHANGES = (
    ("PATCH", f"/deployments/{_ANY}", _PATCH),
    ("POST", f"/deployments/{_ANY}/create_flow_run", "{}"),
    ("DELETE", f"/deployments/{_ANY}", ""),
    ("POST", "/admin/database/drop", '{"confirm": true}'),
)
"""Method, path and body of each attempted request."""


def attempts(
    server: PrefectServer, token: Mapping[str, str]
) -> Iterator[tuple[str, httpx.Request]]:
    """Yield every request with every disguise; some have the secret or a CSRF token, as if a
    browser had added it.
    """
    at = server.url.removesuffix("/api")
    own = at.removeprefix("http://")
    port = at.rpartition(":")[2]
    with_secret = {"Authorization": basic(server.secret)}
    strangers = {
        "without a secret": {"Host": own, **token},
        "with a wrong secret": {
            "Host": own,
            "Authorization": basic("prbench:guess"),
            **token,
        },
    }
    insiders = {
        "from a foreign page": {
            "Host": own,
            "Origin": EVIL,
            **with_secret,
            **token,
        },
        "from a page of another port": {
            "Host": own,
            "Origin": "http://127.0.0.1:1",
            **with_secret,
            **token,
        },
        "by a foreign name": {
            "Host": "evil.example",
            **with_secret,
            **token,
        },
        "by a foreign name that leads here": {
            "Host": f"evil.example:{port}",
            "Origin": f"http://evil.example:{port}",
            **with_secret,
            **token,
        },
        "without a token": {
            "Host": own,
            "Origin": at,
            **with_secret,
        },
        "with a guessed token": {
            "Host": own,
            "Origin": at,
            **with_secret,
            "Prefect-Csrf-Token": "x",
            "Prefect-Csrf-Client": "tests",
        },
    }
    for disguise, headers in (strangers | insiders).items():
        for method, path, body in _CHANGES:
            for kind in ("application/json", "text/plain"):
                sent = httpx.Request(
                    method,
                    f"{at}/api{path}",
                    headers=headers | {"Content-Type": kind},
                    content=body,
                )
                yield f"{method} {path} {disguise} as {kind}", sent
        if "token" not in disguise:
            for path in (
                "/api/admin/settings",
                "/api/admin/version",
                f"/api/csrf-token?client={_ANY}",
            ):
                yield f"GET {path} {disguise}", httpx.Request("GET", at + path, headers=headers)


def basic(secret: str) -> str:
    """The value of the header `Authorization` for a secret."""
    return f"Basic {b64encode(secret.encode()).decode()}"


def preflight(url: str, origin: str) -> httpx.Request:
    """Return the preflight request that a browser sends before a page's request to another
    address.
    """
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": "content-type",
    }
    return httpx.Request("OPTIONS", f"{url}/deployments/{_ANY}", headers=headers)


def socket_ended(url: str, path: str, *, token: str = "", **headers: str) -> str:
    """Return how the server refuses a web socket: the HTTP status or the close code; `open` if it
    does not.
    """

    async def tried() -> str:
        address = f"{url.replace('http', 'ws', 1)}{path}"
        try:
            async with websockets.connect(
                address,
                subprotocols=[websockets.Subprotocol("prefect")],
                additional_headers=headers,
            ) as socket:
                await socket.send(f'{{"type": "auth", "token": "{token}"}}')
                return "open" if "auth_success" in str(await socket.recv()) else "unclear"
        except websockets.InvalidStatus as refused:
            return str(refused.response.status_code)
        except websockets.ConnectionClosed as closed:
            return str(closed.rcvd.code if closed.rcvd else None)

    return asyncio.run(tried())
