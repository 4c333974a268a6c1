"""Replies with fields that no standard has: what is not used of a paid reply cannot lose it."""

import json
import re
from typing import Any

import pytest

from tasks.llm.replies import Kind
from tasks.llm.request import Prices
from tasks.rules.ends import End, meaning_of
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import ROUTES, call_to, calls_to, in_turn, json_body
from tests.tasks.llm.transport.test_ends import (
    CHAT,
    EVENTS,
    JSON,
    USAGE,
    both_replies,
    completion_body,
    event,
    one_attempt,
    reply_to,
    response,
    stream_body,
)

JsonObject = dict[str, Any]

pytestmark = pytest.mark.usefixtures("hurried")

PRICES = Prices(1.0, None, 10.0, "a list")
ROUTE_NAMES = ["hosted_vllm/c", "openai/c", "openrouter/a/b", "mistral/c"]
STREAMED_NAMES = ["hosted_vllm/c", "openai/c", "openrouter/a/b"]


MESSAGE_FIELDS: dict[str, JsonObject] = {
    "reasoning as a list": {"reasoning_content": ["Hm."]},
    "reasoning in parts": {"reasoning_content": [{"type": "text", "text": "Hm."}]},
    "reasoning as an object": {"reasoning": {}},
    "an empty audio": {"audio": {}},
    "an empty function call": {"function_call": {}},
    "another role": {"role": "model"},
    "a number for thinking blocks": {"thinking_blocks": 5},
    "a refusal that is a number": {"refusal": 5},
    "half a tool call": {
        "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, 5]
    },
    "annotations of another form": {
        "annotations": [{"type": "url_citation", "url_citation": 5}]
    },
}
TOP_FIELDS: dict[str, JsonObject] = {
    "a number for an id": {"id": 5},
    "a time with fractions": {"created": 1727000000.5},
    "a date": {"created": "2026-11-28T10:00:00Z"},
    "a number for a fingerprint": {"system_fingerprint": 12},
    "a list for a model": {"model": ["m"]},
    "an error that is false": {"error": False},
    "a name that LiteLLM uses itself": {"_hidden_params": 5},
    "a service tier that is a number": {"service_tier": 5},
}


def with_top(body: str, fields: JsonObject) -> str:
    return json.dumps({**json.loads(body), **fields})


def stream_with_top(body: str, fields: JsonObject) -> str:
    return re.sub(
        "(?m)^data: ({.*)$",
        lambda line: f"data: {with_top(line[1], fields)}",
        body,
    )


@pytest.mark.parametrize(("fields", "name"), in_turn(MESSAGE_FIELDS, ROUTE_NAMES))
def test_odd_fields_of_a_message_do_not_lose_it(fields, name):
    body = completion_body({"content": "A debt.", **MESSAGE_FIELDS[fields]})

    reply = reply_to(body, JSON, name=name, prices=PRICES)

    assert reply.text == "A debt."
    assert reply.prompt_tokens == USAGE["prompt_tokens"]
    assert reply.cost_usd is not None


@pytest.mark.parametrize(("fields", "name"), in_turn(MESSAGE_FIELDS, STREAMED_NAMES))
def test_odd_fields_of_a_piece_do_not_lose_a_stream(fields, name):
    body = stream_body(
        {"content": "A "}, {"content": "debt.", **MESSAGE_FIELDS[fields]}
    )

    reply = reply_to(body, EVENTS, name=name, is_streamed=True, prices=PRICES)

    assert reply.text == "A debt."
    assert reply.prompt_tokens == USAGE["prompt_tokens"]


@pytest.mark.parametrize(("fields", "name"), in_turn(TOP_FIELDS, ROUTE_NAMES))
def test_odd_fields_beside_the_choices_do_not_lose_a_reply(fields, name):
    reply = reply_to(
        with_top(completion_body({"content": "A debt."}), TOP_FIELDS[fields]),
        JSON,
        name=name,
    )

    assert reply.text == "A debt."


@pytest.mark.parametrize(("fields", "name"), in_turn(TOP_FIELDS, STREAMED_NAMES))
def test_odd_fields_beside_the_choices_do_not_lose_a_stream(fields, name):
    body = stream_with_top(stream_body({"content": "A debt."}), TOP_FIELDS[fields])

    reply = reply_to(body, EVENTS, name=name, is_streamed=True)

    assert reply.text == "A debt."


NO_MESSAGES: list[Any] = [None, {}, "x", 5, [None], [{}], [{"message": "text"}]]


@pytest.mark.parametrize(
    ("choices", "route"),
    in_turn(NO_MESSAGES, CHAT),
    ids=str,
)
def test_a_paid_reply_without_a_message_is_paid_once_and_counted(
    choices,
    route,
    calling,
    serve,
):
    body = {
        "id": "c",
        "object": "chat.completion",
        "choices": choices,
        "usage": USAGE,
    }
    server = serve(json_body(body))
    call = call_to(server, prices=PRICES, **ROUTES[route])

    reply = calling(call)
    calling(call)

    assert reply.status == "provider_error"
    assert reply.failure is not None
    assert reply.failure.kind is Kind.DECLINED
    assert reply.prompt_tokens == USAGE["prompt_tokens"]
    assert reply.cost_usd is not None
    assert len(server.book) == 1


def test_paid_replies_that_cannot_be_read_are_no_sign_of_an_outage(calling, serve):
    calling.concurrency = 1
    body = {
        "id": "c",
        "choices": None,
        "usage": USAGE,
    }
    server = serve(json_body(body))

    replies = calling.call_at_once(*calls_to(server, 12))

    assert {reply.status for reply in replies} == {"provider_error"}
    assert calling.reason_to_stop is None


FIRST = event(
    choices=[{"index": 0, "delta": {"content": "A "}, "finish_reason": None}]
)
LAST = event(
    choices=[{"index": 0, "delta": {"content": "debt."}, "finish_reason": "stop"}]
)
REPORT = event(choices=[], usage=USAGE)
STREAM = FIRST + LAST + REPORT
DONE = "data: [DONE]\n\n"
KEPT_ALIVE: dict[str, str] = {
    "comments": ": ping\n\n",
    "a comment after an id": "id: 1\n: ping\n\n",
    "a time to reconnect": "retry: 3000\n\n",
    "empty data": "data:\n\n",
    "a name alone": "event: ping\n\n",
    "a named event without data": "event: keepalive\ndata: \n\n",
    "an object": 'data: {"type": "ping"}\n\n',
    "a named object": 'event: ping\ndata: {"type": "ping"}\n\n',
    "an empty object": "data: {}\n\n",
    "a comment as data": "data: : ping\n\n",
    "an error that is null": 'data: {"error": null}\n\n',
}


@pytest.mark.parametrize(("kind", "name"), in_turn(KEPT_ALIVE, STREAMED_NAMES))
def test_a_sign_of_life_does_not_end_a_stream(kind, name):
    sign = KEPT_ALIVE[kind]
    body = f"{sign}id: 7\n{FIRST}{sign}{LAST}{sign}{REPORT}{DONE}{sign}"

    reply = reply_to(body, EVENTS, name=name, is_streamed=True)

    assert reply.text == "A debt."
    assert reply.prompt_tokens == USAGE["prompt_tokens"]


def over_lines(event: str) -> str:
    """An event with its JSON over several lines."""
    lines = json.dumps(
        json.loads(event.removeprefix("data: ")), indent=1
    ).splitlines()
    return "".join(f"data: {line}\n" for line in lines) + "\n"


WHOLE_TEXT = (
    '{"index": 0, "message": {"content": "A debt."}, "finish_reason": "stop"}'
)
FORMS: dict[str, str] = {
    "data over several lines": "".join(map(over_lines, [FIRST, LAST, REPORT])) + DONE,
    "lines that end with CR LF": (STREAM + DONE).replace("\n", "\r\n"),
    "no empty lines": (STREAM + DONE).replace("\n\n", "\n"),
    "no end of the last line": STREAM.rstrip(),
    "the whole text again at the end": STREAM.replace(
        '"choices": []',
        f'"choices": [{WHOLE_TEXT}]',
    ),
    "one event that is a whole reply": f"data: {completion_body({'content': 'A debt.'})}\n\n{DONE}",
}


@pytest.mark.parametrize(("form", "name"), in_turn(FORMS, STREAMED_NAMES))
def test_each_form_of_a_stream_is_read(form, name):
    reply = reply_to(FORMS[form], EVENTS, name=name, is_streamed=True)

    assert reply.text == "A debt."
    assert reply.prompt_tokens == USAGE["prompt_tokens"]


@pytest.mark.parametrize(
    ("end", "headers", "name"),
    [
        ("stop", JSON, "hosted_vllm/c"),
        (None, JSON, "openai/c"),
        ("stop", EVENTS, "openai/c"),
        (None, EVENTS, "openrouter/a/b"),
    ],
)
def test_a_whole_reply_to_a_streamed_call_is_a_reply(name, end, headers):
    body = json.dumps(
        json.loads(completion_body({"content": "A debt."}, end)), indent=1
    )

    reply = reply_to(body, headers, name=name, is_streamed=True)

    assert reply.text == "A debt."
    assert reply.finish_reason == end
    assert reply.prompt_tokens == USAGE["prompt_tokens"]


def test_a_stream_that_is_cut_in_its_reasoning_counts_what_was_used():
    body = event(choices=[{"index": 0, "delta": {"reasoning": "Hm."}}], usage=USAGE)

    reply = reply_to(body + DONE, EVENTS, is_streamed=True)

    assert reply.status == "provider_error"
    assert reply.prompt_tokens == USAGE["prompt_tokens"]


def logprobs(logprob: float) -> JsonObject:
    """The log-probabilities of the only token of a reply."""
    token = {
        "token": "A debt.",
        "logprob": logprob,
        "bytes": None,
        "top_logprobs": [],
    }
    return {"content": [token]}


def test_tool_calls_log_probabilities_and_details_of_usage_are_read():
    tool_call = {
        "id": "t",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
    }
    message = {"content": "A debt.", "tool_calls": [tool_call]}
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 2}}
    body = with_top(
        completion_body(message, "tool_calls", logprobs=logprobs(-0.1)),
        {"usage": usage},
    )

    reply = reply_to(body, JSON, wants_logprobs=True, ends_ok=("tool_calls",))

    assert reply.finish_reason == "tool_calls"
    assert reply.text == "A debt."
    assert reply.cached_tokens == 2


def test_log_probabilities_are_kept_with_six_decimals():
    body = completion_body({"content": "A debt."}, logprobs=logprobs(-0.12345678))

    reply = reply_to(body, JSON, wants_logprobs=True)

    assert reply.logprobs == (("A debt.", -0.123457),)


@pytest.mark.parametrize(
    "error",
    [{"code": "server_error", "message": "boom"}, "boom", {"code": "invalid_prompt"}],
)
def test_a_completed_response_with_an_error_is_a_failure(error):
    with response(error=error) as server:
        reply = one_attempt(server.api_base, **ROUTES["responses"])

    assert reply.status == "provider_error"
    assert reply.text is None
    assert reply.prompt_tokens == USAGE["prompt_tokens"]


def test_a_response_of_reasoning_alone_says_so():
    summary = [{"type": "summary_text", "text": "Hm."}]
    reasoning = {
        "type": "reasoning",
        "id": "r",
        "summary": summary,
    }

    with response(output=[reasoning]) as server:
        reply = one_attempt(server.api_base, **ROUTES["responses"])

    assert reply.status == "empty"
    assert "only reasoning" in str(reply.error)


THINKING_FIELDS: list[JsonObject] = [
    {"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
    {"thinking_blocks": [{"type": "thinking", "thinking": "Hm."}]},
    {"reasoning_content": "Hm."},
    {"thinking": "Hm."},
    {"reasoning": "Hm."},
    {"reasoning": {"content": "Hm."}},
]


@pytest.mark.parametrize(
    ("thinking", "content"), in_turn(THINKING_FIELDS, [None, "", " ", "\n"])
)
def test_a_reply_of_reasoning_alone_says_so(thinking, content):
    message = {"content": content, **thinking}

    replies = both_replies(completion_body(message), stream_body(message))

    for reply in replies:
        assert reply.status == "empty"
        assert "only `reasoning_content`" in str(reply.error)


MARKS: dict[str, JsonObject] = {
    "output_sensitive": {"output_sensitive": True},
    "a code of the reply": {
        "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}
    },
    "a code of the prompt": {
        "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}
    },
}


@pytest.mark.parametrize(
    ("mark", "route"),
    in_turn(MARKS, ["vllm", "openai", "streamed", "openai-streamed"]),
)
def test_a_reply_that_its_provider_marks_as_sensitive_is_refused(
    mark,
    route,
    calling,
    serve,
):
    message = {"content": "Half of"}
    headers = JSON
    body = with_top(completion_body(message), MARKS[mark])
    if "streamed" in route:
        headers = EVENTS
        body = stream_with_top(stream_body(message), MARKS[mark])
    server = serve(HttpResponse(raw=body.encode(), headers=headers))

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "refused"
    assert reply.text is None
    assert reply.prompt_tokens == USAGE["prompt_tokens"]
    assert len(server.book) == 1


def test_a_state_of_success_is_none_of_an_error():
    state = {
        "base_resp": {"status_code": 0, "status_msg": ""},
        "output_sensitive": False,
    }

    reply = reply_to(with_top(completion_body({"content": "A debt."}), state), JSON)

    assert reply.text == "A debt."


@pytest.mark.parametrize(
    "word",
    [
        "FINISH_REASON_STOP",
        "REASON_STOP",
        "FinishReason.STOP",
        "stopped_eos",
        "stopped_word",
        "end_id",
        "stop_words",
        "eosFound",
        "stopStringFound",
        "StopReason.END_TURN",
    ],
)
def test_words_of_success_of_other_servers_are_known(word):
    assert meaning_of(word) is End.COMPLETE


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("FINISH_REASON_UNSPECIFIED", End.UNKNOWN),
        ("FINISH_REASON_SAFETY", End.FILTERED),
        ("REASON_MAX_LEN", End.CUT),
        ("stopped_limit", End.CUT),
        ("maxPredictedTokensReached", End.CUT),
        ("FinishReason.ERROR", End.TROUBLE),
        ("reason_", End.UNKNOWN),
        ("stop_reason", End.UNKNOWN),
        ("userStopped", End.UNKNOWN),
    ],
)
def test_a_type_before_a_word_does_not_make_it_one_of_success(word, end):
    assert meaning_of(word) is end
