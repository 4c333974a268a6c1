"""Embeddings: one call for one text through LiteLLM, its vector as the reply's text, its tokens and its price."""

import asyncio
import json
from typing import Any

import pytest

from tasks.llm.calls.sending import send
from tasks.llm.prices import most_answer_tokens, most_of
from tasks.llm.replies import EMPTY, OK, PROVIDER_ERROR
from tasks.llm.request import Call, Prices, Target
from tests.faults.answers import Answer
from tests.faults.bodies import words_vector
from tests.faults.server import FaultServer

ROUTES = ("hosted_vllm/", "openai/")


def target(server: FaultServer, route: str = ROUTES[0], **more: Any) -> Target:
    parameters = {"api": "embedding", "api_key": "${A_KEY}", **more}
    prices = Prices(2.0, None, 0.0, "configuration")
    return Target(f"{route}text-embedding-3-small", server.api_base, parameters, prices=prices)


def asked(to: Target, text: str) -> Any:
    call = Call(to, [{"role": "user", "content": text}], "a-cell")
    return asyncio.run(send(call, call.parameters(to.parameters)))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "a-secret-key")


@pytest.mark.parametrize("route", ROUTES)
def test_a_vector_comes_back_as_json_with_its_tokens_and_cost(route: str) -> None:
    with FaultServer() as server:
        reply = asked(target(server, route, dimensions=64), "reading long leases")
        (request,) = server.book

    assert reply.failure is None
    assert (OK, 3, 0) == (reply.status, reply.prompt_tokens, reply.completion_tokens)
    assert words_vector("reading long leases") == json.loads(reply.text)
    assert 3 * 2.0 / 1_000_000 == pytest.approx(reply.cost_usd)
    assert (["reading long leases"], 64) == (request["input"], request["dimensions"])
    assert "api" not in request


def test_a_failure_is_a_reply_with_its_cause() -> None:
    with FaultServer(lambda request, number: Answer(status=500)) as server:
        reply = asked(target(server), "leases")

    assert (PROVIDER_ERROR, None) == (reply.status, reply.text)
    assert reply.failure is not None
    assert reply.failure.passes


@pytest.mark.parametrize("data", [[], [{"object": "embedding", "index": 0, "embedding": []}]])
def test_a_reply_without_a_vector_is_empty(data: list[Any]) -> None:
    body = json.dumps({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
    with FaultServer(lambda request, number: Answer(raw=body.encode())) as server:
        reply = asked(target(server), "leases")

    assert (EMPTY, None) == (reply.status, reply.text)


def test_what_a_vector_costs_at_most_is_known_before_the_call() -> None:
    with FaultServer() as server:
        to = target(server)
    call = Call(to, [{"role": "user", "content": "leases"}], "a-cell")
    most = most_of(call, to.parameters)

    assert 0 == most_answer_tokens(to, to.parameters)
    assert most.usd is not None
    assert 0 < most.usd < 0.001
