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
from tests.tasks.llm.conftest import (
    ROUTES,
    call_to,
    in_turn,
    json_body,
    responding_with,
)

pytestmark = pytest.mark.usefixtures("hurried")

CHAT = [route for route in ROUTES if route != "responses"]
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
}
JSON = {"Content-Type": "application/json"}
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


def completion_body(
    message: dict[str, Any],
    finish_reason: Any = "stop",
    **extra: Any,
) -> str:
    """The body of a completion with a message."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": finish_reason,
        **extra,
    }
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
    }
    return json.dumps(body)


def event(**fields: Any) -> str:
    """An event of a streamed completion."""
    head = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }
    return f"data: {json.dumps({**head, **fields})}\n\n"


def stream_body(*deltas: dict[str, Any], finish_reason: Any = "stop") -> str:
    """The body of a streamed completion with these pieces, a last one with the end, the usage, and
    the mark `DONE`.
    """
    events = []
    for delta in deltas:
        events.append(
            event(choices=[{"index": 0, "delta": delta, "finish_reason": None}])
        )
    end = {
        "index": 0,
        "delta": {},
        "finish_reason": finish_reason,
    }
    events += [
        event(choices=[end]),
        event(choices=[], usage=USAGE),
        "data: [DONE]\n\n",
    ]
    return "".join(events)


WORDS_FOR_TROUBLE = (
    "error",
    "abort",
    "ABORTED",
    "cancelled",
    "insufficient_system_resource",
    "network_error",
    "in_progress",
)


@pytest.mark.parametrize(("word", "route"), in_turn(WORDS_FOR_TROUBLE, CHAT))
def test_a_word_for_trouble_of_the_server_is_a_failure_that_is_tried_again(
    word,
    route,
    calling,
    serve,
):
    half = HttpResponse("Half of", finish_reason=word)
    server = serve(responding_with(half, HttpResponse("All of it.")))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.text == "All of it."
    assert len(server.book) == 2


@pytest.mark.parametrize(("word", "route"), in_turn(["error", "abort"], CHAT))
def test_a_failure_by_its_end_names_the_word_and_counts_what_was_used(
    word,
    route,
    calling,
    serve,
):
    server = serve(HttpResponse("Half of", finish_reason=word, usage=USAGE))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "provider_error"
    assert reply.text is None
    assert reply.finish_reason == word
    assert f'ended with "{word}"' in str(reply.error)
    assert reply.prompt_tokens == 7


STATUS_BY_WORD = {
    "max_tokens": "truncated",
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


@pytest.mark.parametrize(("word", "route"), in_turn(STATUS_BY_WORD, CHAT))
def test_a_word_for_a_limit_or_a_filter_is_a_permanent_failure(
    word,
    route,
    calling,
    serve,
):
    server = serve(HttpResponse("Half of", finish_reason=word))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == STATUS_BY_WORD[word]
    assert reply.text is None
    assert len(server.book) == 1


STREAMED_ROUTES = [ROUTES["streamed"], ROUTES["openai-streamed"]]


STATUS_BY_END = {
    "length": "truncated",
    "content_filter": "refused",
    "abort": "provider_error",
    "weird": "unclear",
}


@pytest.mark.parametrize(("word", "target"), in_turn(STATUS_BY_END, STREAMED_ROUTES))
def test_a_word_for_a_failure_stands_whatever_follows_in_the_stream(word, target):
    failure = stream_body({"content": "Half of"}, finish_reason=word)
    unended_failure = failure.removesuffix("data: [DONE]\n\n")
    success = stream_body(finish_reason="stop")

    reply = reply_to(unended_failure + success, EVENTS, **target)

    assert reply.status == STATUS_BY_END[word]
    assert reply.text is None


@pytest.mark.parametrize(
    ("kind", "target"),
    in_turn(
        ["text/plain", "application/json", "application/x-ndjson"], STREAMED_ROUTES
    ),
)
def test_a_stream_under_another_content_type_is_read_as_a_stream(kind, target):
    headers = {"Content-Type": kind}
    odd_body = stream_body({"content": "Half of"}, finish_reason="weird")

    reply = reply_to(stream_body({"content": [TEXT]}), headers, **target)
    odd_reply = reply_to(odd_body, headers, **target)

    assert reply.text == "A debt."
    assert odd_reply.status == "unclear"
    assert odd_reply.prompt_tokens == 7


UNKNOWN_ENDS: list[Any] = [
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


@pytest.mark.parametrize(("stated", "route"), in_turn(UNKNOWN_ENDS, CHAT), ids=str)
def test_whatever_else_stands_for_a_word_is_a_permanent_failure_that_names_it(
    stated,
    route,
    calling,
    serve,
):
    word = stated if isinstance(stated, str) else json.dumps(stated)
    server = serve(HttpResponse("Half of", finish_reason=stated))

    reply = calling(call_to(server, **ROUTES[route]))
    stored_reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "unclear"
    assert reply.text is None
    assert reply.finish_reason == word
    assert f'ended with "{word}"' in str(reply.error)
    assert stored_reply.status == "unclear"
    assert len(server.book) == 1


@pytest.mark.parametrize("route", ["streamed", "openai-streamed"])
def test_a_stream_must_say_how_it_ended(route, calling, serve):
    server = serve(HttpResponse("A debt.", finish_reason=None))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "provider_error"
    assert reply.text is None
    assert len(server.book) == 2


@pytest.mark.parametrize("route", CHAT)
def test_a_word_that_is_accepted_later_needs_no_call(route, calling, serve):
    server = serve(HttpResponse("A debt.", finish_reason="Weird End"))
    first_call = call_to(server, **ROUTES[route])
    failure = calling(first_call)
    calling.mark_spent(failure)
    call = call_to(server, ends_ok=("weird end",), **ROUTES[route])

    reply = calling(call)

    assert reply.status == "ok"
    assert reply.text == "A debt."
    assert reply.error is None
    assert reply.cost_usd == failure.cost_usd
    assert len(server.book) == 1
    assert call.target.config_hash == first_call.target.config_hash


def test_a_word_that_is_accepted_from_the_start_is_a_success(calling, serve):
    server = serve(HttpResponse("A debt.", finish_reason="weird"))

    reply = calling(call_to(server, ends_ok=("weird",)))
    later_reply = calling(call_to(server))

    assert reply.status == "ok"
    assert later_reply.status == "ok"
    assert len(server.book) == 1


def test_another_word_than_the_accepted_one_stays_a_failure(calling, serve):
    server = serve(HttpResponse("A debt.", finish_reason="weird"))

    assert calling(call_to(server, ends_ok=("odd",))).status == "unclear"


async def test_a_result_of_a_batch_ends_like_any_reply(calling, serve):
    server = serve(HttpResponse("Half of", finish_reason="weird"))

    batching = await calling.batched([call_to(server, name="openai/candidate")])

    [reply] = batching.replies
    assert reply.status == "unclear"
    assert reply.text is None


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


def both_replies(whole_body: str, streamed_body: str, **target: Any) -> list[Reply]:
    """The replies to a call that gets one body, and to a streamed call."""
    return [
        reply_to(whole_body, JSON, **target),
        reply_to(streamed_body, EVENTS, is_streamed=True, **target),
    ]


@pytest.mark.parametrize(
    ("parts", "name"),
    in_turn(PARTS, ["hosted_vllm/c", "openai/c", "mistral/c", "openrouter/c"]),
)
def test_text_in_parts_is_the_text(parts, name):
    content = PARTS[parts]
    stream = stream_body(*({"content": [part]} for part in content))

    replies = both_replies(completion_body({"content": content}), stream, name=name)

    for reply in replies:
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
def test_a_part_of_another_type_is_a_failure_that_names_it(part, kind):
    replies = both_replies(
        completion_body({"content": [TEXT, part]}),
        stream_body({"content": [TEXT]}, {"content": [part]}),
    )

    for reply in replies:
        assert reply.status == "unclear"
        assert reply.text is None
        assert str(reply.error).endswith(f"a part of unknown type: {kind}")
        assert reply.is_final


def test_a_refusal_is_not_tried_again_whatever_the_end():
    body = completion_body({"content": None, "refusal": "I can't help."}, "error")

    reply = reply_to(body, JSON)

    assert reply.status == "refused"
    assert reply.is_final


def test_an_error_in_a_choice_is_a_failure_whatever_the_end():
    error = {"code": 502, "message": "Provider disconnected"}

    reply = reply_to(completion_body({"content": "Half of"}, error=error), JSON)

    assert reply.status == "provider_error"
    assert reply.text is None
    assert not reply.is_final
    assert "Provider disconnected" in str(reply.error)


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
                {"type": "output_text", "text": "A debt.", "annotations": []}
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
    return FaultServer(responding_with(json_body({**RESPONSE, **replaced})))


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
def test_the_status_of_a_response_is_its_end(status, expected, n_calls, calling):
    with response(status=status) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))

    assert reply.status == expected
    assert len(server.book) == n_calls


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", "truncated"),
        ("content_filter", "refused"),
        ("server_error", "provider_error"),
        ("weird", "unclear"),
    ],
)
def test_the_reason_of_an_incomplete_response_is_its_end(reason, expected, calling):
    with response(
        status="incomplete", incomplete_details={"reason": reason}
    ) as server:
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
    error,
    n_calls,
    calling,
):
    with response(status="failed", output=[], error=error) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))

    assert reply.status == "provider_error"
    assert len(server.book) == n_calls


def test_a_part_of_a_response_of_another_type_is_a_failure_that_names_it(calling):
    content = [*RESPONSE["output"][0]["content"], {"type": "picture"}]
    with response(output=[{**RESPONSE["output"][0], "content": content}]) as server:
        reply = calling(call_to(server, **ROUTES["responses"]))

    assert reply.status == "unclear"
    assert len(server.book) == 1
    assert "picture" in str(reply.error)
