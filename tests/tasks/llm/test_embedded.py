"""The embedded model, and vectors of texts."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import pytest

from tasks.llm import embedded
from tasks.llm.calls.sending import send
from tasks.llm.replies import EMPTY, OK, PROVIDER_ERROR
from tasks.llm.request import Call, Prices, Target, most_of, most_reply_tokens
from tests.faults.behaviours import HttpResponse
from tests.faults.bodies import words_vector
from tests.faults.server import FaultServer
from tests.kit import ROOT


@pytest.mark.slow
def test_the_server_of_the_embedded_model_serves_this_process_alone() -> None:
    embedded.weights_path()
    parts = urlsplit(embedded.api_base())
    assert parts.hostname == "127.0.0.1"
    assert embedded.count_tokens("two words") > 0

    def requested(method: str, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0)
        body = (
            json.dumps(
                {
                    "content": "a",
                    "prompt": "a",
                    "n_predict": 1,
                }
            )
            if method == "POST"
            else None
        )
        connection.request(method, path, body, headers)
        return connection.getresponse()

    for headers in (
        {},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Authorization": "Bearer none"},
    ):
        for path in (
            "/v1/chat/completions",
            "/completion",
            "/tokenize",
            "/lora-adapters",
            "/slots/0?action=erase",
        ):
            assert (
                requested("POST", path, **headers, **{"Content-Type": "text/plain"}).status == 401
            ), path
        for path in ("/v1/models", "/props", "/slots", "/metrics"):
            assert requested("GET", path, **headers).status == 401, path
        assert requested("GET", "/", **headers).status in {401, 404}
    for origin in ("http://evil.example", "null"):
        preflight = requested(
            "OPTIONS", "/tokenize", Origin=origin, **{"Access-Control-Request-Method": "POST"}
        )
        assert preflight.headers["Access-Control-Allow-Origin"] not in {origin, "*"}


@pytest.mark.slow
def test_waiting_threads_of_the_embedded_model_sleep() -> None:
    command = [sys.executable, "-c", "from tasks.llm import embedded; embedded.api_base()"]
    environment = os.environ | {"OMP_DISPLAY_ENV": "verbose"}

    ended = subprocess.run(
        command,
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "GOMP_SPINCOUNT = '0'" in ended.stderr


@pytest.mark.parametrize(
    ("n_cpus", "load", "n_threads"),
    [
        (2, 0.0, 2),
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
    n_cpus: int, load: float, n_threads: int
) -> None:
    assert embedded.idle_threads(n_cpus, load) == n_threads


ROUTES = ("hosted_vllm/", "openai/")


def target(api_base: str, route: str = ROUTES[0], **more: Any) -> Target:
    parameters = {
        "api": "embedding",
        "api_key": "${OPENAI_API_KEY}",
        **more,
    }
    prices = Prices(2.0, None, 0.0, "configuration")
    return Target(f"{route}text-embedding-3-small", api_base, parameters, prices=prices)


def requested(to: Target, text: str) -> Any:
    call = Call(to, [{"role": "user", "content": text}], "a-cell")
    return asyncio.run(send(call, call.parameters(to.parameters)))


@pytest.mark.parametrize("route", ROUTES)
def test_a_vector_comes_back_as_json_with_its_tokens_and_cost(route: str) -> None:
    with FaultServer() as server:
        reply = requested(target(server.api_base, route, dimensions=64), "reading long leases")
        (request,) = server.book

    assert reply.failure is None
    assert reply.status == OK
    assert reply.prompt_tokens == 3
    assert reply.completion_tokens == 0
    assert words_vector("reading long leases") == json.loads(reply.text)
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
def test_a_reply_without_a_vector_is_a_failure(
    status_code: int, data: list[Any], status: str
) -> None:
    body = json.dumps(
        {
            "object": "list",
            "data": data,
            "model": "m",
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
    )
    with FaultServer(
        lambda request, number: HttpResponse(status=status_code, raw=body.encode())
    ) as server:
        reply = requested(target(server.api_base), "leases")

    assert status == reply.status
    assert reply.text is None
    assert status == EMPTY or (reply.failure and reply.failure.passes)


def test_what_a_vector_costs_at_most_is_known_before_the_call() -> None:
    to = target("http://127.0.0.1:9/v1")
    most = most_of(Call(to, [{"role": "user", "content": "leases"}], "a-cell"), to.parameters)

    assert most_reply_tokens(to, to.parameters) == 0
    assert 0 < (most.usd or 1) < 0.001
