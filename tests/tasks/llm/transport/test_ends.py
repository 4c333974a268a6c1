"""Ends of replies: words of success, of failure and unknown ones; content in parts; errors inside a
reply.
"""

import asyncio
import json
from typing import Any

import pytest

from tasks.llm.replies import Reply
from tests.faults.anything import AnyServer, Plain
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import ROUTES, Calling, Serve, call_to, in_turn, then

pytestmark = pytest.mark.usefixtures("hurried")

CHAT = [route for route in ROUTES if route != "responses"]
WHOLE = [route for route in CHAT if "streamed" not in route]
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
}
EVENTS = {"Content-Type": "text/event-stream"}
TEXT: dict[str, Any] = {"type": "text", "text": "A debt."}
THINKING: dict[str, Any] = {
    "type": "thinking",
    "thinking": [{"type": "text", "text": "Is it a debt?"}],
}


def reply_to(body: bytes | str, headers: dict[str, str], **target: Any) -> Reply:
    """The reply to a call whose response has this body, in one attempt."""
    raw = body if isinstance(body, bytes) else body.encode()
    with AnyServer(Plain(headers=headers, body=lambda: [raw])) as server:
        return one_attempt(f"{server.address}/v1", **target)


def one_attempt(api_base: str, **target: Any) -> Reply:
    from tasks.llm.calls.sending import send

    call = call_to(api_base, **target)
    return asyncio.run(send(call, call.parameters()))


def whole(message: dict[str, Any], finish_reason: Any = "stop", **beside: Any) -> str:
    """The body of a completion with a message."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish_reason,
        **beside,
    }
    head = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
    }
    return json.dumps(
        {
            **head,
            "choices": [choice],
            "usage": USAGE,
        }
    )


def streamed(*deltas: dict[str, Any], finish_reason: Any = "stop") -> str:
    """The body of a streamed completion with these pieces, a last one with the end, the usage, and
    the mark `DONE`.
    """
    head = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }
    ends: list[Any] = [None] * len(deltas) + [finish_reason]
    pieces = [
        {
            "index": 0,
            "delta": each,
            "finish_reason": end,
        }
        for each, end in zip([*deltas, {}], ends, strict=True)
    ]
    events = [{**head, "choices": [piece]} for piece in pieces] + [
        {
            **head,
            "choices": [],
            "usage": USAGE,
        }
    ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


TROUBLE = (
    "error",
    "abort",
    "ABORTED",
    "cancelled",
    "insufficient_system_resource",
    "network_error",
    "in_progress",
)


@pytest.mark.parametrize(("word", "route"), in_turn(TROUBLE, CHAT))
def test_a_word_for_trouble_of_the_server_is_a_failure_that_is_tried_again(
    word: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(then(HttpResponse("Half of", finish_reason=word), HttpResponse("All of it.")))
    reply = calling(call_to(server, **ROUTES[route]))
    assert reply.status == "ok"
    assert reply.text == "All of it."
    assert len(server.book) == 2


@pytest.mark.parametrize(("word", "route"), in_turn(["error", "abort"], CHAT))
def test_a_failure_by_its_end_names_the_word_and_counts_what_was_used(
    word: str, route: str, calling: Calling, serve: Serve
) -> None:
    reply = calling(
        call_to(serve(HttpResponse("Half of", finish_reason=word, usage=USAGE)), **ROUTES[route])
    )
    assert reply.status == "provider_error"
    assert reply.text is None
    assert word == reply.finish_reason
    assert f'ended with "{word}"' in str(reply.error)
    assert reply.prompt_tokens == 7


FAILED = {
    "max_tokens": "truncated",
    "MAX_TOKENS": "truncated",
    "model_length": "truncated",
    "token_limit": "truncated",
    "ERROR_LIMIT": "truncated",
    "content_filtered": "refused",
    "SAFETY": "refused",
    "sensitive": "refused",
    "ERROR_TOXIC": "refused",
    "guardrail_intervened": "refused",
    "PROHIBITED_CONTENT": "refused",
}


@pytest.mark.parametrize(("word", "route"), in_turn(FAILED, CHAT))
def test_a_word_for_a_limit_or_a_filter_is_a_permanent_failure(
    word: str, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("Half of", finish_reason=word))
    reply = calling(call_to(server, **ROUTES[route]))
    assert FAILED[word] == reply.status
    assert reply.text is None
    assert len(server.book) == 1


STREAMED_ROUTES = [ROUTES["streamed"], ROUTES["openai-streamed"]]


@pytest.mark.parametrize(
    ("word", "target"), in_turn(["length", "content_filter", "abort", "weird"], STREAMED_ROUTES)
)
def test_a_word_for_a_failure_stands_whatever_follows_in_the_stream(
    word: str, target: dict[str, Any]
) -> None:
    expected = {
        "length": "truncated",
        "content_filter": "refused",
        "abort": "provider_error",
        "weird": "unclear",
    }
    last_event = streamed(finish_reason="stop").partition("\n\n")[0]
    body = streamed({"content": "Half of"}, finish_reason=word).replace(
        "data: [DONE]", f"{last_event}\n\ndata: [DONE]"
    )

    reply = reply_to(body, EVENTS, **target)

    assert reply.status == expected[word]
    assert reply.text is None


@pytest.mark.parametrize(
    ("kind", "target"),
    in_turn(["text/plain", "application/json", "application/x-ndjson"], STREAMED_ROUTES),
)
def test_a_stream_under_another_content_type_is_read_as_a_stream(
    kind: str, target: dict[str, Any]
) -> None:
    good = reply_to(streamed({"content": [TEXT]}), {"Content-Type": kind}, **target)
    odd = reply_to(
        streamed({"content": "Half of"}, finish_reason="weird"), {"Content-Type": kind}, **target
    )

    assert good.text == "A debt."
    assert odd.status == "unclear"
    assert odd.prompt_tokens == 7


UNKNOWN: list[Any] = [
    "weird",
    "Stopped?",
    "tool_calls",
    5,
    0,
    True,
    False,
    {},
    [],
    {"type": "stop"},
    ["stop"],
    "null",
]


@pytest.mark.parametrize(("stated", "route"), in_turn(UNKNOWN, CHAT), ids=str)
def test_whatever_else_stands_for_a_word_is_a_permanent_failure_that_names_it(
    stated: Any, route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("Half of", finish_reason=stated))
    reply = calling(call_to(server, **ROUTES[route]))
    word = stated if isinstance(stated, str) else json.dumps(stated)
    assert reply.status == "unclear"
    assert reply.text is None
    assert word == reply.finish_reason
    assert f'ended with "{word}"' in str(reply.error)
    assert len(server.book) == 1
    assert calling(call_to(server, **ROUTES[route])).status == "unclear"
    assert len(server.book) == 1


@pytest.mark.parametrize("route", ["streamed", "openai-streamed"])
def test_a_stream_must_say_how_it_ended(route: str, calling: Calling, serve: Serve) -> None:
    nothing: Any = None
    server = serve(HttpResponse("A debt.", finish_reason=nothing))
    reply = calling(call_to(server, **ROUTES[route]))
    assert reply.status == "provider_error"
    assert reply.text is None
    assert len(server.book) == 2


@pytest.mark.parametrize("route", CHAT)
def test_a_word_that_is_accepted_later_needs_no_call(
    route: str, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("A debt.", finish_reason="Weird End"))
    failed = calling(call_to(server, **ROUTES[route]))
    calling.spend(failed)
    call = call_to(server, ends_ok=("weird end",), **ROUTES[route])
    reply = calling(call)
    assert reply.status == "ok"
    assert reply.text == "A debt."
    assert reply.error is None
    assert failed.cost_usd == reply.cost_usd
    assert len(server.book) == 1
    assert call.target.config_hash == call_to(server, **ROUTES[route]).target.config_hash


def test_a_word_that_is_accepted_from_the_start_is_a_success(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("A debt.", finish_reason="weird"))
    assert calling(call_to(server, ends_ok=("weird",))).status == "ok"
    assert calling(call_to(server)).status == "ok"
    assert len(server.book) == 1


def test_another_word_than_the_accepted_one_stays_a_failure(calling: Calling, serve: Serve) -> None:
    server = serve(HttpResponse("A debt.", finish_reason="weird"))
    assert calling(call_to(server, ends_ok=("odd",))).status == "unclear"


async def test_a_result_of_a_batch_ends_like_any_reply(calling: Calling, serve: Serve) -> None:
    server = serve(HttpResponse("Half of", finish_reason="weird"))
    call = call_to(server, name="openai/candidate")
    (reply,) = (await calling.batched([call])).replies
    assert reply.status == "unclear"
    assert reply.text is None


async def test_a_result_of_a_batch_may_have_content_in_parts(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("A debt."))
    parts = json.dumps([THINKING, TEXT]).encode()
    server.written = lambda line, _number: line.replace(b'"A debt."', parts)
    (reply,) = (await calling.batched([call_to(server, name="openai/candidate")])).replies
    assert reply.status == "ok"
    assert reply.text == "A debt."


PARTS: dict[str, list[Any]] = {
    "a text": [TEXT],
    "thinking first": [THINKING, TEXT],
    "two texts": [{"type": "text", "text": "A "}, "debt."],
    "thinking as a text": [
        {"type": "reasoning", "reasoning": "Hm."},
        {"type": "output_text", "text": "A debt."},
    ],
    "a text as an object": [{"type": "text", "text": {"value": "A debt."}}],
    "no type": [{"text": "A debt."}],
}


@pytest.mark.parametrize(
    ("parts", "name"), in_turn(PARTS, ["hosted_vllm/c", "openai/c", "mistral/c", "openrouter/c"])
)
def test_text_in_parts_is_the_text(parts: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-of-the-tests")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-of-the-tests")
    for reply in (
        reply_to(whole({"content": PARTS[parts]}), {"Content-Type": "application/json"}, name=name),
        reply_to(
            streamed(*({"content": [part]} for part in PARTS[parts])),
            EVENTS,
            name=name,
            is_streamed=True,
        ),
    ):
        assert reply.status == "ok"
        assert reply.text == "A debt."
        assert reply.prompt_tokens == 7


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "image_url", "image_url": "x"}, "image_url"),
        ({"type": "audio"}, "audio"),
        (5, "int"),
        (None, "NoneType"),
        ({"type": 5}, "no type"),
        ({}, "no type"),
        ({"type": "text", "text": 5}, "text without a text"),
    ],
)
def test_a_part_of_another_type_is_a_failure_that_names_it(part: Any, kind: str) -> None:
    for reply in (
        reply_to(whole({"content": [TEXT, part]}), {"Content-Type": "application/json"}),
        reply_to(streamed({"content": [TEXT]}, {"content": [part]}), EVENTS, is_streamed=True),
    ):
        assert reply.status == "unclear"
        assert reply.text is None
        assert str(reply.error).endswith(f"a part of unknown type: {kind}")
        assert reply.is_final


def test_an_error_in_a_choice_is_a_failure_whatever_the_end() -> None:
    error = {"code": 502, "message": "Provider disconnected"}
    reply = reply_to(
        whole({"content": "Half of"}, error=error), {"Content-Type": "application/json"}
    )
    assert reply.status == "provider_error"
    assert reply.text is None
    assert not reply.is_final
    assert "Provider disconnected" in str(reply.error)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_reply_that_is_only_in_the_reasoning_says_so(field: str) -> None:
    for reply in (
        reply_to(whole({"content": None, field: "A debt."}), {"Content-Type": "application/json"}),
        reply_to(streamed({field: "A debt."}), EVENTS, is_streamed=True),
    ):
        assert reply.status == "empty"
        assert "reasoning_content" in str(reply.error)


RESPONSE: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "error": None,
    "model": "m",
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "tools": [],
    "tool_choice": "auto",
    "output": [
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "A debt.",
                    "annotations": [],
                }
            ],
        }
    ],
    "usage": {
        "input_tokens": 7,
        "output_tokens": 3,
        "total_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}


def response(**replaced: Any) -> FaultServer:
    return FaultServer(
        lambda _request, _n: HttpResponse(raw=json.dumps({**RESPONSE, **replaced}).encode())
    )


@pytest.mark.parametrize(
    ("status", "expected", "n_calls"),
    [
        ("completed", "ok", 1),
        (None, "ok", 1),
        ("", "ok", 1),
        ("cancelled", "provider_error", 2),
        ("queued", "provider_error", 2),
        ("in_progress", "provider_error", 2),
        ("weird", "unclear", 1),
        (5, "unclear", 1),
    ],
)
def test_the_status_of_a_response_is_its_end(
    status: Any, expected: str, n_calls: int, calling: Calling
) -> None:
    with response(status=status) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))
    assert reply.status == expected
    assert n_calls == len(server.book)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", "truncated"),
        ("content_filter", "refused"),
        ("server_error", "provider_error"),
        ("weird", "unclear"),
    ],
)
def test_the_reason_of_an_incomplete_response_is_its_end(
    reason: str, expected: str, calling: Calling
) -> None:
    with response(status="incomplete", incomplete_details={"reason": reason}) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))

    assert reply.status == expected


@pytest.mark.parametrize(
    ("error", "n_calls"),
    [
        ({"code": "internal_error", "message": "boom"}, 2),
        ({"code": "server_error", "message": "boom"}, 2),
        ({"code": "rate_limit_exceeded", "message": "slow"}, 2),
        (None, 2),
        ({"code": "invalid_prompt", "message": "no"}, 1),
    ],
)
def test_a_failed_response_is_tried_again_if_its_cause_may_pass(
    error: Any, n_calls: int, calling: Calling
) -> None:
    with response(
        status="failed",
        output=[],
        error=error,
    ) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))
    assert reply.status == "provider_error"
    assert n_calls == len(server.book)


def test_a_part_of_a_response_of_another_type_is_a_failure_that_names_it(calling: Calling) -> None:
    content = [*RESPONSE["output"][0]["content"], {"type": "picture"}]
    with response(output=[{**RESPONSE["output"][0], "content": content}]) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))
    assert reply.status == "unclear"
    assert len(server.book) == 1
    assert "picture" in str(reply.error)
