"""The embedded model, and vectors of texts."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import pytest

from tasks.llm import embedded
from tasks.llm.calls.sending import send
from tasks.llm.replies import EMPTY, OK, PROVIDER_ERROR
from tasks.llm.request import (
    Call,
    Prices,
    Target,
    highest_usage_of,
    most_reply_tokens,
)
from tests.faults.bodies import words_vector
from tests.faults.server import FaultServer
from tests.kit import ROOT
from tests.tasks.llm.conftest import json_body, responding_with

WITHOUT_KEY = (
    {},
    {"Host": "evil.example", "Origin": "http://evil.example"},
    {"Authorization": "Bearer none"},
)


def response_to(
    method: str,
    path: str,
    headers: dict[str, str],
) -> http.client.HTTPResponse:
    """The embedded model's response to a request without its key."""
    address = urlsplit(embedded.api_base())
    assert address.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(address.hostname, address.port or 0)
    body = None
    if method == "POST":
        body = json.dumps(
            {
                "content": "a",
                "prompt": "a",
                "n_predict": 1,
            }
        )
    connection.request(method, path, body, headers)
    return connection.getresponse()


@pytest.mark.slow
@pytest.mark.parametrize("headers", WITHOUT_KEY)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/completion"),
        ("POST", "/tokenize"),
        ("POST", "/lora-adapters"),
        ("POST", "/slots/0?action=erase"),
        ("GET", "/v1/models"),
        ("GET", "/props"),
        ("GET", "/slots"),
        ("GET", "/metrics"),
    ],
)
def test_the_embedded_model_refuses_requests_without_its_key(method, path, headers):
    response = response_to(method, path, {"Content-Type": "text/plain", **headers})

    assert response.status == 401


@pytest.mark.slow
@pytest.mark.parametrize("headers", WITHOUT_KEY)
def test_the_embedded_model_has_no_page(headers):
    assert response_to("GET", "/", headers).status in {401, 404}


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
def test_no_page_may_read_responses_of_the_embedded_model(origin):
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}

    response = response_to("OPTIONS", "/tokenize", headers)

    assert response.headers["Access-Control-Allow-Origin"] not in {origin, "*"}


@pytest.mark.slow
def test_waiting_threads_of_the_embedded_model_sleep():
    # The process leaves without waiting for the server's threads.
    script = (
        "import os; from tasks.llm import embedded; embedded.api_base(); os._exit(0)"
    )

    process = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"OMP_DISPLAY_ENV": "verbose"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )

    assert "GOMP_SPINCOUNT = '0'" in process.stderr


class SlowServer:
    """A server as xllamacpp's: its address is known before its loop runs.

    Metrics come from the loop. A server that is deleted before its loop runs never ends.
    """

    listening_address = "http://127.0.0.1:9"

    def __init__(self, _parameters: object):
        self.has_running_loop = False

    def handle_metrics(self) -> str:
        self.has_running_loop = True
        return "{}"


def test_the_embedded_model_has_started_when_its_address_is_known(monkeypatch):
    servers = []

    def start(parameters):
        servers.append(SlowServer(parameters))
        return servers[-1]

    library = SimpleNamespace(CommonParams=MagicMock, Server=start)
    monkeypatch.setitem(sys.modules, "xllamacpp", library)
    monkeypatch.setattr(embedded, "_running_server", None)
    monkeypatch.setattr(embedded, "weights_path", lambda: Path("weights"))

    address = embedded.api_base()

    assert address == "http://127.0.0.1:9/v1"
    assert [server.has_running_loop for server in servers] == [True]


@pytest.mark.parametrize(
    ("n_cpus", "load", "n_threads"),
    [
        (2, 0.4, 2),
        (2, 1.0, 1),
        (2, 6.0, 1),
        (1, 0.0, 1),
        (4, 1.2, 3),
        (64, 10.0, 4),
        (64, 63.2, 1),
    ],
)
def test_the_embedded_model_computes_on_idle_processors_alone(
    n_cpus, load, n_threads
):
    assert embedded.n_threads_to_use(n_cpus, load) == n_threads


ROUTES = ("hosted_vllm/", "openai/")


def target_at(api_base: str, route: str = ROUTES[0], **parameters: Any) -> Target:
    parameters = {
        "api": "embedding",
        "api_key": "${OPENAI_API_KEY}",
        **parameters,
    }
    prices = Prices(2.0, None, 0.0, "configuration")
    return Target(
        f"{route}text-embedding-3-small", api_base, parameters, prices=prices
    )


def embedding_of(text: str, target: Target) -> Any:
    """The reply to a call for the vector of a text."""
    call = Call(target, [{"role": "user", "content": text}], "a-cell")
    return asyncio.run(send(call, call.parameters(target.parameters)))


@pytest.mark.parametrize("route", ROUTES)
def test_a_vector_comes_back_as_json_with_its_tokens_and_cost(route):
    with FaultServer() as server:
        reply = embedding_of(
            "reading long leases",
            target_at(server.api_base, route, dimensions=64),
        )
        [request] = server.book

    assert reply.failure is None
    assert reply.status == OK
    assert reply.prompt_tokens == 3
    assert reply.completion_tokens == 0
    assert json.loads(reply.text) == words_vector("reading long leases")
    assert reply.cost_usd == pytest.approx(3 * 2.0 / 1_000_000)
    assert request["input"] == ["reading long leases"]
    assert request["dimensions"] == 64
    assert "api" not in request


@pytest.mark.parametrize(
    ("status_code", "data", "status"),
    [
        (500, [], PROVIDER_ERROR),
        (200, [], EMPTY),
        (200, [{"object": "embedding", "index": 0, "embedding": []}], EMPTY),
        (200, [{"object": "embedding", "index": 0, "embedding": [0.5, None]}], EMPTY),
    ],
)
def test_a_reply_without_a_vector_is_a_failure(status_code, data, status):
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    body = {"object": "list", "data": data, "model": "m", "usage": usage}
    with FaultServer(responding_with(json_body(body, status_code))) as server:
        reply = embedding_of("leases", target_at(server.api_base))

    assert reply.status == status
    assert reply.text is None
    assert reply.may_pass


def test_what_a_vector_costs_at_most_is_known_before_the_call():
    target = target_at("http://127.0.0.1:9/v1")
    call = Call(target, [{"role": "user", "content": "leases"}], "a-cell")

    bound = highest_usage_of(call, target.parameters)

    assert most_reply_tokens(target, target.parameters) == 0
    assert bound.usd is not None
    assert 0 < bound.usd < 0.001
