"""The project's Prefect server obeys its user alone: it refuses what foreign pages try."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing

import httpx
import pytest
import websockets

from flows.server import PrefectServer
from tests.flows.prefect_server import browser
from tests.tasks.report.browser import browsing

pytestmark = pytest.mark.slow

REFUSED = {401, 403}


def test_the_projects_server_refuses_what_a_foreign_page_or_another_user_sends(
    prefect_server,
):
    secret = prefect_server.secret.partition(":")[2]
    with closing(browser(prefect_server.url, prefect_server.secret)) as client:
        names = ("Prefect-Csrf-Token", "Prefect-Csrf-Client")
        token = {name: client.headers[name] for name in names}

    with httpx.Client(timeout=60) as client:
        for description, request in attempts(prefect_server, token):
            http_response = client.send(request)
            assert http_response.status_code in REFUSED, description
            assert http_response.headers.get("access-control-allow-origin") != EVIL, (
                description
            )
            assert secret not in http_response.text


def test_the_server_serves_its_own_page_also_through_a_tunnel(prefect_server):
    with closing(browser(prefect_server.url, prefect_server.secret)) as client:
        assert client.post("/flows/filter", json={}).status_code == 200
        assert client.get("/admin/version").status_code == 200
        for host in ("127.0.0.1:5000", "localhost:5000"):
            headers = {"Host": host, "Origin": f"http://{host}"}
            reply = client.post(
                "/flows/filter",
                json={},
                headers=headers,
            )
            assert reply.status_code == 200


def test_a_browser_that_asks_for_a_foreign_page_is_refused(prefect_server):
    with httpx.Client(timeout=60) as client:
        for origin in (EVIL, "null", "http://127.0.0.1:1"):
            http_response = client.send(preflight(prefect_server.url, origin))
            assert http_response.status_code == 403
            assert "access-control-allow-origin" not in http_response.headers
        health = client.get(
            f"{prefect_server.url}/health", headers={"Host": "evil.example"}
        )
        assert health.status_code == 403


@pytest.mark.parametrize("path", ["/events/in", "/events/out", "/logs/out"])
def test_a_web_socket_asks_for_the_secret_and_for_a_page_of_its_own(
    prefect_server, path
):
    address = f"{prefect_server.url.replace('http', 'ws', 1)}{path}"
    secret = prefect_server.secret
    own_page = prefect_server.url.removesuffix("/api")

    assert socket_ended(address, secret) == "open"
    assert socket_ended(address, secret, Origin=own_page) == "open"
    assert socket_ended(address, "") == "1008"
    assert socket_ended(address, "prbench:guess") == "1008"
    assert socket_ended(address, secret, Origin=EVIL) == "403"


def test_a_person_logs_in_to_the_pages_with_the_secret_and_sees_the_runs(
    prefect_server,
):
    with closing(browser(prefect_server.url, prefect_server.secret)) as client:
        flow = client.post("/flows/", json={"name": "seen"}).raise_for_status().json()
        run = {
            "flow_id": flow["id"],
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
_STEP = {"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}
_PATCH = json.dumps({"pull_steps": [_STEP]})
_ANY = "00000000-0000-4000-8000-000000000000"
_CHANGES = (
    ("PATCH", f"/deployments/{_ANY}", _PATCH),
    ("POST", f"/deployments/{_ANY}/create_flow_run", "{}"),
    ("DELETE", f"/deployments/{_ANY}", ""),
    ("POST", "/admin/database/drop", '{"confirm": true}'),
)
"""Method, path and body of each attempted request."""


def attempts(
    server: PrefectServer,
    token: Mapping[str, str],
) -> Iterator[tuple[str, httpx.Request]]:
    """Yield every request with every disguise; some have the secret or a CSRF token, as if a
    browser had added it.
    """
    for disguise, headers in disguises(server, token).items():
        for method, path, body in _CHANGES:
            for media_type in ("application/json", "text/plain"):
                request = httpx.Request(
                    method,
                    f"{server.url}{path}",
                    headers=headers | {"Content-Type": media_type},
                    content=body,
                )
                yield f"{method} {path} {disguise} as {media_type}", request
        if "token" not in disguise:
            for path in (
                "/admin/settings",
                "/admin/version",
                f"/csrf-token?client={_ANY}",
            ):
                request = httpx.Request("GET", f"{server.url}{path}", headers=headers)
                yield f"GET {path} {disguise}", request


def disguises(
    server: PrefectServer, token: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """The headers of requests that must be refused, by a description."""
    page = server.url.removesuffix("/api")
    host = page.removeprefix("http://")
    foreign_host = f"evil.example:{host.rpartition(':')[2]}"
    secret = {"Authorization": basic(server.secret)}
    wrong_secret = {"Authorization": basic("prbench:guess")}
    guessed_token = {"Prefect-Csrf-Token": "x", "Prefect-Csrf-Client": "tests"}
    foreign_origin = {"Host": foreign_host, "Origin": f"http://{foreign_host}"}
    return {
        "without a secret": {"Host": host, **token},
        "with a wrong secret": {
            "Host": host,
            **wrong_secret,
            **token,
        },
        "from a foreign page": {
            "Host": host,
            "Origin": EVIL,
            **secret,
            **token,
        },
        "from another port": {
            "Host": host,
            "Origin": "http://127.0.0.1:1",
            **secret,
            **token,
        },
        "by a foreign name": {
            "Host": "evil.example",
            **secret,
            **token,
        },
        "by a foreign name that leads here": {
            **foreign_origin,
            **secret,
            **token,
        },
        "without a token": {
            "Host": host,
            "Origin": page,
            **secret,
        },
        "with a guessed token": {
            "Host": host,
            "Origin": page,
            **secret,
            **guessed_token,
        },
    }


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


def socket_ended(address: str, token: str, **headers: str) -> str:
    """Return how the server refuses a web socket: the HTTP status or the close code; `open` if it
    does not.
    """

    async def tried():
        protocol = websockets.Subprotocol("prefect")
        try:
            async with websockets.connect(
                address,
                subprotocols=[protocol],
                additional_headers=headers,
            ) as socket:
                await socket.send(f'{{"type": "auth", "token": "{token}"}}')
                reply = str(await socket.recv())
                return "open" if "auth_success" in reply else "unclear"
        except websockets.InvalidStatus as refused:
            return str(refused.response.status_code)
        except websockets.ConnectionClosed as closed:
            return str(closed.rcvd.code if closed.rcvd else None)

    return asyncio.run(tried())
