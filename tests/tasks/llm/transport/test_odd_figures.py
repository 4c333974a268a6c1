"""Figures and reasons that are none: the reply is kept, they are not known, and nothing is asked twice."""

import json
from typing import Any

import pytest

from tasks.llm.calls.batches import Batching
from tasks.llm.limiter import Budget
from tests.faults.anything import AnyServer, Plain
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import ROUTES, Calling, Serve, call_to, failed

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]

CHAT = [route for route in ROUTES if route != "responses"]
GOOD = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
USAGES: dict[str, Any] = {
    "a text": "many",
    "a list": [1, 2],
    "figures as texts": {"prompt_tokens": "7", "completion_tokens": "3"},
    "no numbers": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")},
    "one figure is a text": GOOD | {"completion_tokens": "three"},
    "halves": GOOD | {"completion_tokens": 2.5},
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("usage", USAGES)
def test_an_odd_usage_is_unknown_and_the_reply_stays(usage: str, route: str, calling: Calling, serve: Serve) -> None:
    server = serve(HttpResponse("A debt.", usage=USAGES[usage]))
    reply = calling(call_to(server, **ROUTES[route]))
    assert ("ok", "A debt.", 1) == (reply.status, reply.text, len(server.book))
    assert (None, None, None) == (reply.prompt_tokens, reply.completion_tokens, reply.cost_usd)


@pytest.mark.parametrize("route", CHAT)
def test_a_detail_of_the_usage_that_is_none_spoils_no_other(route: str, calling: Calling, serve: Serve) -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": "most"},
        "completion_tokens_details": "no",
        "total_tokens": "x",
    }
    reply = calling(call_to(serve(HttpResponse("A debt.", usage=GOOD | details)), **ROUTES[route]))
    assert ("ok", 7, 3) == (reply.status, reply.prompt_tokens, reply.completion_tokens)
    assert reply.cached_tokens is None


@pytest.mark.parametrize("route", CHAT[:2])
@pytest.mark.parametrize(
    ("reason", "stored"), [(None, None), ("eos_token", "eos_token"), ("weird", "weird"), (5, None), ({}, None)]
)
def test_a_reason_for_the_end_is_stored_as_it_came(
    reason: Any, stored: str | None, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("A debt.", finish_reason=reason))
    reply = calling(call_to(server, **ROUTES[route]))
    assert ("ok", "A debt.", stored, 1) == (reply.status, reply.text, reply.finish_reason, len(server.book))


@pytest.mark.parametrize("route", CHAT[2:])
def test_a_stream_s_reason_for_its_end_is_stored_as_it_came(route: str, calling: Calling, serve: Serve) -> None:
    assert (
        calling(call_to(serve(HttpResponse("A debt.", finish_reason="weird")), **ROUTES[route])).finish_reason
        == "weird"
    )


def test_a_reason_that_a_stream_does_not_give_is_not_made_up(calling: Calling, serve: Serve) -> None:
    reason: Any = None
    reply = calling(call_to(serve(HttpResponse("A debt.", finish_reason=reason)), is_streamed=True))
    assert ("ok", "A debt.", None) == (reply.status, reply.text, reply.finish_reason)


@pytest.mark.parametrize("route", CHAT[2:])
def test_a_stream_that_ends_without_saying_so_is_not_whole(route: str, calling: Calling, serve: Serve) -> None:
    delta = {"choices": [{"index": 0, "delta": {"content": "A de"}, "finish_reason": None}]}
    event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", **delta}
    http_response = HttpResponse(
        raw=f"data: {json.dumps(event)}\n\n".encode(), headers={"Content-Type": "text/event-stream"}
    )
    reply = calling(call_to(serve(http_response), **ROUTES[route]))
    assert ("provider_error", None) == (reply.status, reply.text)


def test_a_provider_s_own_word_for_a_cut_reply_is_understood(calling: Calling, serve: Serve) -> None:
    reply = calling(call_to(serve(HttpResponse("A de", finish_reason="MAX_TOKENS"))))
    assert ("truncated", "length") == (reply.status, reply.finish_reason)


async def test_the_same_holds_for_the_results_of_a_batch(calling: Calling, serve: Serve) -> None:
    reason: Any = None
    server = serve(HttpResponse("A debt.", finish_reason=reason, usage={"prompt_tokens": "7", "completion_tokens": 3}))
    call = call_to(server, name="openai/candidate")
    async with calling.opened() as (_, ledger):
        merged = await Batching(call.target, ledger, Budget(None, None), "a-run").submit_and_collect([call], 30.0)
    (reply,) = merged.replies
    assert ("ok", "A debt.", None, None) == (reply.status, reply.text, reply.finish_reason, reply.prompt_tokens)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "body",
    [
        b"null", b"[]", b"5", b'"text"', b"[" * 100_000, b'{"choices": 5}', b'{"choices": [null]}', b"\xff\xfe",
        b'{"choices": [{"message": "text"}]}', b'{"id": NaN, "choices": [{"message": {"content": 5}}]}'
    ]
)  # fmt: skip
def test_an_error_is_one_line_without_a_trace_of_code(body: bytes, route: str, calling: Calling) -> None:
    with AnyServer(Plain(headers={"Content-Type": "application/json"}, body=lambda: [body])) as server:
        reply = calling(call_to(f"{server.address}/v1", **ROUTES[route]))
    assert reply.error is not None
    assert not any(word in reply.error for word in ("Traceback", 'File "', "\n", "site-packages"))


def test_a_traceback_in_a_provider_s_own_message_is_cut_too(calling: Calling, serve: Serve) -> None:
    error = 'it broke\nTraceback (most recent call last):\n  File "/srv/app.py", line 3, in run\nValueError: x'
    reply = calling(call_to(serve(failed(500, error))))
    assert reply.error is not None
    assert "it broke" in reply.error
    assert "app.py" not in reply.error
