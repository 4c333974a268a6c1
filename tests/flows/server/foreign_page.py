"""What a page of another site, or another user of the machine, tries on a Prefect server."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx
import websockets

from flows.server.project_server import Server

EVIL = "http://evil.example"
_PATCH = '{"pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}]}'
_ANY = "00000000-0000-4000-8000-000000000000"
_CHANGES = (
    ("POST", "/deployments/filter", "{}"),
    ("PATCH", f"/deployments/{_ANY}", _PATCH),
    ("POST", f"/deployments/{_ANY}/create_flow_run", "{}"),
    ("POST", "/flow_runs/filter", "{}"),
    ("DELETE", f"/deployments/{_ANY}", ""),
    ("POST", "/admin/database/drop", '{"confirm": true}'),
)
"""Method, path and body of what it would do."""


@dataclass(frozen=True)
class Attempt:
    """A request, and what it shows when the server refuses it."""

    what: str
    request: httpx.Request


def attempts(server: Server, token: Mapping[str, str]) -> Iterator[Attempt]:
    """Every request in every disguise; some have the secret or a CSRF token, as if a browser had added them."""
    at = server.url.removesuffix("/api")
    own, port = at.removeprefix("http://"), at.rpartition(":")[2]
    with_secret = {"Authorization": basic(server.secret)}
    strangers = {
        "without a secret": {"Host": own, **token},
        "without a secret, as a page of its own": {"Host": own, "Origin": at, **token},
        "with a wrong secret": {"Host": own, "Authorization": basic("prbench:guess"), **token},
        "with an empty secret": {"Host": own, "Authorization": basic("prbench:"), **token},
    }
    insiders = {
        "from a foreign page": {"Host": own, "Origin": EVIL, **with_secret, **token},
        "from a page of another port": {"Host": own, "Origin": "http://127.0.0.1:1", **with_secret, **token},
        "from a page without an address": {"Host": own, "Origin": "null", **with_secret, **token},
        "by a foreign name": {"Host": "evil.example", **with_secret, **token},
        "by a foreign name that leads here": {
            "Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}", **with_secret, **token,
        },
        "without a token": {"Host": own, "Origin": at, **with_secret},
        "with a guessed token": {
            "Host": own, "Origin": at, **with_secret, "Prefect-Csrf-Token": "x", "Prefect-Csrf-Client": "tests",
        },
    }  # fmt: skip
    for disguise, headers in (strangers | insiders).items():
        for method, path, body in _CHANGES:
            for kind in ("application/json", "text/plain"):
                sent = httpx.Request(method, f"{at}/api{path}", headers=headers | {"Content-Type": kind}, content=body)
                yield Attempt(f"{method} {path} {disguise} as {kind}", sent)
        if "token" not in disguise:
            for path in ("/api/admin/settings", "/api/admin/version", f"/api/csrf-token?client={_ANY}"):
                yield Attempt(f"GET {path} {disguise}", httpx.Request("GET", at + path, headers=headers))


def basic(secret: str) -> str:
    """A secret as a header has it."""
    return f"Basic {b64encode(secret.encode()).decode()}"


def preflight(url: str, origin: str) -> httpx.Request:
    """What a browser asks before it sends a page's request to another address."""
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": "content-type",
    }
    return httpx.Request("OPTIONS", f"{url}/deployments/{_ANY}", headers=asked)


def socket_ended(url: str, path: str, *, token: str = "", **headers: str) -> str:
    """How the server refuses a web socket: the status, or the code with which it closes; `open` if it does not."""

    async def tried() -> str:
        address = f"{url.replace('http', 'ws', 1)}{path}"
        try:
            async with websockets.connect(
                address, subprotocols=[websockets.Subprotocol("prefect")], additional_headers=headers
            ) as socket:
                await socket.send(f'{{"type": "auth", "token": "{token}"}}')
                return "open" if "auth_success" in str(await socket.recv()) else "unclear"
        except websockets.InvalidStatus as refused:
            return str(refused.response.status_code)
        except websockets.ConnectionClosed as closed:
            return str(closed.rcvd.code if closed.rcvd else None)

    return asyncio.run(tried())
