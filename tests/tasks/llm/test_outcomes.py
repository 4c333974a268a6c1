"""Every outcome of a call, over a real socket: its status and cause, and whether and how it is
retried.
"""

import asyncio
import json
import re
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.calls import gateway, sending
from tasks.llm.calls.gateway import backoff_s
from tasks.llm.failures import failure_of_http, retry_after_s
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import (
    DECISION_ROUTES,
    ROUTES,
    Calling,
    Serve,
    call_to,
    failed,
    in_turn,
    responding_with,
)

pytestmark = pytest.mark.usefixtures("hurried")


LONG = json.dumps("a word and a word " * 100)
ALL_ROUTES = ROUTES | DECISION_ROUTES

CONTEXT_TEXTS = [
    (400, "prompt is too long: 9 tokens"),
    (400, '{"error": {"message": "Prompt exceeds max length"}}'),
    (
        422,
        '{"error": "Input validation error: inputs tokens + max_new_tokens must be <= 4096.'
        ' Given: 5000"}',
    ),
    (400, '{"error": {"code": "1261", "message": "no"}}'),
    (500, "the request exceeds the available context size"),
]
STATES: dict[str, tuple[HttpResponse, str, int]] = {
    "400": (failed(400), "provider_error", 1),
    "403": (failed(403), "provider_error", 1),
    "409": (failed(409), "provider_error", 2),
    "424": (failed(424), "provider_error", 2),
    "498": (failed(498), "provider_error", 2),
    "499": (failed(499), "provider_error", 2),
    "503": (failed(503), "provider_error", 2),
    "402": (HttpResponse(status=402, raw=b"<html>No</html>"), "provider_error", 1),
    "413": (HttpResponse(status=413, raw=b"<html>No</html>"), "provider_error", 1),
    "502": (HttpResponse(status=502, raw=b"<html>No</html>"), "provider_error", 2),
    "408": (HttpResponse(status=408, raw=b""), "timeout", 2),
    "504": (HttpResponse(status=504, raw=b""), "timeout", 2),
    "429 of another type": (
        failed(429, kind="invalid_request_error"),
        "provider_error",
        2,
    ),
    "500 of another type": (
        failed(500, kind="invalid_request_error"),
        "provider_error",
        2,
    ),
    "401": (
        failed(
            401,
            "Incorrect API key provided",
            "invalid_api_key",
            "invalid_request_error",
        ),
        "provider_error",
        1,
    ),
    "401 of another type": (
        failed(401, "Authentication Fails", "invalid_request_error"),
        "provider_error",
        1,
    ),
    "404": (
        failed(404, "The model `candidate` does not exist", "model_not_found"),
        "provider_error",
        1,
    ),
    "429": (failed(429, "slow down", kind="rate_limit_error"), "provider_error", 2),
    "500": (failed(500, "broken", kind="server_error"), "provider_error", 2),
    "a code for a full context": (
        failed(400, "no", "context_length_exceeded"),
        "context_length",
        1,
    ),
    "a text about a full context": (
        failed(400, "maximum context length is 10 tokens, not 99"),
        "context_length",
        1,
    ),
    "a code for a filter": (failed(400, "filtered", "content_filter"), "refused", 1),
    "refusal": (HttpResponse(None, refusal="I will not."), "refused", 1),
    "cut at the limit": (HttpResponse("cut", finish_reason="length"), "truncated", 1),
    "cut by a filter": (
        HttpResponse("cut", finish_reason="content_filter"),
        "refused",
        1,
    ),
    "400 for an unknown model": (
        failed(400, "The model `c` does not exist"),
        "provider_error",
        1,
    ),
    "429 for an exhausted quota": (
        failed(
            429,
            "You exceeded your current quota, please check your plan",
            "insufficient_quota",
        ),
        "provider_error",
        1,
    ),
    "429 that mentions payment": (
        failed(
            429,
            "Rate limit reached on requests per min. Limit: 3 / min. Please try again in 20s."
            " Please add a payment method to your account to increase your rate limit.",
            "rate_limit_exceeded",
        ),
        "provider_error",
        2,
    ),
    "400 that quotes a question about payment": (
        failed(
            400, "Invalid value for 'messages[0].content': 'Is this payment taxed?'"
        ),
        "provider_error",
        1,
    ),
    "no text": (HttpResponse(""), "empty", 2),
    "null for a text": (HttpResponse(None), "empty", 2),
    "no choices": (HttpResponse("x", choices=0), "empty", 2),
    "cut connection": (HttpResponse(cuts_connection=True), "provider_error", 2),
    "cut body": (HttpResponse(LONG, cuts_body=True), "provider_error", 2),
    "half a body": (
        HttpResponse(raw=b'{"id": "chatcmpl", "choi'),
        "provider_error",
        2,
    ),
    "a page for a body": (
        HttpResponse(raw=b"<html>hello</html>"),
        "provider_error",
        2,
    ),
    "nothing for a body": (HttpResponse(raw=b""), "provider_error", 2),
    **{
        text: (HttpResponse(status=status, raw=text.encode()), "context_length", 1)
        for status, text in CONTEXT_TEXTS
    },
}
"""Name -> the response, the status of the reply, and the number of attempts."""
CHAT_STATES = {
    "refusal",
    "cut at the limit",
    "cut by a filter",
    "no text",
    "null for a text",
    "no choices",
}
FATAL_STATES = {
    "401",
    "401 of another type",
    "402",
    "403",
    "404",
    "400 for an unknown model",
    "429 for an exhausted quota",
}
"""Outcomes that stop the model for the run."""
MAIN_STATES = (
    "401 of another type",
    "429",
    "500",
    "a code for a full context",
    "a text about a full context",
    "a code for a filter",
    "refusal",
    "cut at the limit",
    "cut by a filter",
    "no text",
    "no choices",
    "cut connection",
    "cut body",
    "half a body",
)


def every_state() -> list[tuple[str, str]]:
    """Each outcome on one route to chat models and on one to decision models; the main outcomes on
    all routes.
    """
    states = []
    for state, decision_route in in_turn(STATES, DECISION_ROUTES):
        for route in ALL_ROUTES if state in MAIN_STATES else ("vllm", decision_route):
            cannot_stream = state == "no choices" and "streamed" in route
            cannot_decide = state in CHAT_STATES and route in DECISION_ROUTES
            if not cannot_stream and not cannot_decide:
                states.append((state, route))
    return states


@pytest.mark.parametrize(("state", "route"), every_state())
def test_only_a_failure_that_may_pass_is_tried_again(state, route, calling, serve):
    http_response, status, n_attempts = STATES[state]
    server = serve(http_response)

    reply = calling(call_to(server, **ALL_ROUTES[route]))

    n_harmless = sum(prompt_of(request) == "Hi" for request in server.book)
    assert reply.status == status
    assert reply.text is None
    assert reply.attempts == n_attempts
    assert len(server.book) - n_harmless == n_attempts
    assert n_harmless == int(state in FATAL_STATES and route not in DECISION_ROUTES)
    assert re.fullmatch(".{1,300}", reply.error or "")
    assert (calling.reason_to_stop is not None) == (state in FATAL_STATES)


@pytest.mark.parametrize("route", ALL_ROUTES)
@pytest.mark.parametrize(
    "late",
    [HttpResponse("[]", delay_s=90), HttpResponse(LONG, body_delay_s=90)],
    ids=["before", "during"],
)
def test_a_reply_that_is_too_late_is_a_timeout(late, route, calling, serve):
    server = serve(late)

    reply = calling(call_to(server, timeout_s=0.3, **ALL_ROUTES[route]))

    assert reply.status == "timeout"
    assert reply.text is None
    assert reply.attempts == 2
    # On a busy machine the time may be up before a request is sent.
    assert len(server.book) <= 2
    assert "0.3 s" in str(reply.error)


@pytest.mark.parametrize("route", ALL_ROUTES)
def test_a_server_that_is_not_there_is_a_provider_error(route, calling):
    reply = calling(call_to("http://127.0.0.1:9/v1", **ALL_ROUTES[route]))

    assert reply.status == "provider_error"
    assert reply.text is None
    assert reply.attempts == 2
    assert reply.error


@pytest.mark.parametrize("route", ROUTES)
def test_a_good_reply_has_its_text_and_the_provider_s_report_on_it(
    route,
    calling,
    serve,
):
    """A lone surrogate in its text is replaced.

    LiteLLM drops the fingerprint on two routes, on one before 1.110.
    """
    http_response = HttpResponse(
        "A \ud83d debt.",
        model="candidate-0613",
        reasoning_tokens=7,
        fingerprint="fp_1",
    )
    server = serve(http_response)

    reply = calling(call_to(server, **ROUTES[route]))

    assert reply.status == "ok"
    assert reply.text == "A \ufffd debt."
    assert reply.served_model == "candidate-0613"
    assert reply.served_fingerprint == "fp_1" or route in {"responses", "streamed"}
    assert reply.prompt_tokens == 4
    assert reply.cached_tokens == 2
    assert reply.completion_tokens == 10
    assert reply.reasoning_tokens == 7
    assert reply.attempts == 1
    assert not reply.degraded
    assert reply.error is None
    assert reply.latency_s is not None
    assert reply.latency_s > 0
    assert len(server.book) == 1


@pytest.mark.parametrize(("attempt", "middle_s"), [(1, 0.01), (3, 0.04), (20, 60.0)])
def test_waits_between_attempts_double_and_are_spread(attempt, middle_s):
    waits = [backoff_s(attempt) for _ in range(200)]

    assert min(waits) >= 0.5 * middle_s
    assert max(waits) <= 1.5 * middle_s
    assert max(waits) - min(waits) > 0.5 * middle_s


@pytest.mark.parametrize("route", ROUTES)
def test_the_wait_that_a_server_requests_is_kept(route, calling, serve):
    refusal = failed(429, kind="rate_limit_error", retry_after_ms="200")
    server = serve(responding_with(refusal, HttpResponse("now")))

    reply = calling(call_to(server, **ROUTES[route]))

    first_entry, second_entry = server.entries
    assert reply.status == "ok"
    assert reply.attempts == 2
    assert second_entry.arrived_at_s - first_entry.arrived_at_s >= 0.2


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "600"}, 600.0),
        ({"retry-after": "7200"}, None),
        ({"retry-after": "Thu, 01 Jan 2099 00:00:00 GMT"}, None),
        ({"retry-after-ms": "60000"}, 60.0),
        ({"retry-after-ms": "6e9", "retry-after": "9"}, 9.0),
        (
            {
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-reset-tokens": "99999",
            },
            None,
        ),
    ],
)
def test_a_requested_wait_is_read_if_it_is_believed(headers, wait_s):
    assert retry_after_s(headers, now_s=1000.0) == wait_s


NAMES = ("retry-after", "retry-after-ms")
NUMBERS = st.floats().map(str) | st.integers().map(str)
DATES = st.datetimes().map(
    lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
)


@given(
    headers=st.dictionaries(
        st.sampled_from(NAMES), NUMBERS | DATES | st.text(max_size=30)
    )
)
def test_no_header_gives_a_wait_beyond_the_bound(headers):
    wait_s = retry_after_s(headers, now_s=1.8e9)

    assert wait_s is None or 0 <= wait_s <= 600


def test_no_requested_wait_stops_a_model(calling, serve):
    refusal = failed(429, "come back tomorrow", retry_after="7200")
    server = serve(responding_with(refusal, HttpResponse("now")))

    reply = calling(call_to(server))

    assert reply.status == "ok"
    assert reply.attempts == 2
    assert calling.reason_to_stop is None


def test_an_error_without_a_message_is_no_timeout(monkeypatch):
    async def lose_connection(*_):
        raise ConnectionResetError

    monkeypatch.setattr(sending, "_request", lose_connection)

    reply = asyncio.run(sending.send(call_to("http://127.0.0.1:9/v1"), {}))

    assert reply.status == "provider_error"
    assert reply.error == "ConnectionResetError:"


def test_no_wait_is_begun_that_ends_after_the_deadline(calling, serve):
    calling.deadline_s = 0.5
    server = serve(failed(503, retry_after="500"))  # longer than the test's patience

    reply = calling(call_to(server))

    assert reply.status == "provider_error"
    assert len(server.book) == 1


def test_the_wait_for_its_turn_is_no_part_of_a_call_s_deadline(
    calling, serve, monkeypatch
):
    passed_s = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + passed_s[-1], time=time.time
    )
    monkeypatch.setattr(gateway, "time", clock)
    calling.deadline_s = 60.0
    calling.concurrency = 1

    def fail_late(*_) -> HttpResponse:
        passed_s.append(1_000.0)
        return failed(503)

    server = serve(fail_late)

    replies = calling.call_at_once(
        call_to(server), call_to(server, "Another prompt.")
    )

    assert [reply.attempts for reply in replies] == [2, 2]


HIGH: dict[str, Any] = {
    "parameters": {"temperature": 1.0},
    "fallback": {"temperature": 0.0},
}


def only_low(request, _number: int) -> HttpResponse:
    return HttpResponse("low") if request["temperature"] == 0 else failed(500)


def temperatures(server: FaultServer) -> list[float]:
    return [request["temperature"] for request in server.book]


@pytest.fixture
def low_server(calling: Calling, serve: Serve) -> FaultServer:
    """A server that has responded to the fallback of a cell, after two failures."""
    calling.attempts = 3
    server = serve(only_low)
    calling(call_to(server, **HIGH))
    return server


def test_the_last_attempt_alone_uses_the_fallback_and_its_cell_keeps_the_reply(
    calling,
    low_server,
):
    reply = calling(call_to(low_server, **HIGH))

    assert temperatures(low_server) == [1, 1, 0]
    assert reply.text == "low"
    assert reply.degraded
    assert reply.attempts == 3


def test_the_reply_to_a_fallback_is_that_of_a_call_with_these_parameters(
    calling,
    low_server,
):
    call = call_to(
        low_server,
        cell="of its parameters",
        parameters={"temperature": 0.0},
    )

    reply = calling(call)

    assert reply.text == "low"
    assert not reply.degraded
    assert len(low_server.book) == 3


def test_another_cell_does_not_use_the_reply_to_a_fallback(calling, low_server):
    low_server.behaviour = lambda _request, _number: HttpResponse("high")

    reply = calling(call_to(low_server, cell="another", **HIGH))

    assert reply.text == "high"
    assert not reply.degraded
    assert temperatures(low_server) == [1, 1, 0, 1]


def test_two_cells_with_one_request_that_both_fall_back_are_both_marked(
    calling, serve
):
    server = serve(only_low)

    replies = calling.call_at_once(
        call_to(server, cell="a", **HIGH),
        call_to(server, cell="b", **HIGH),
    )

    assert [reply.text for reply in replies] == ["low", "low"]
    assert [reply.degraded for reply in replies] == [True, True]
    assert temperatures(server).count(0) == 1


def test_a_fallback_that_fails_is_a_marked_failure_and_is_tried_again_in_full(
    calling,
    serve,
):
    server = serve(failed(500))
    failure = calling(call_to(server, **HIGH))
    calling.mark_spent(failure)
    server.behaviour = lambda _request, _number: HttpResponse("now")

    reply = calling(call_to(server, **HIGH))

    assert failure.status == "provider_error"
    assert failure.degraded
    assert reply.text == "now"
    assert not reply.degraded
    assert reply.attempts == 1
    assert temperatures(server) == [1, 0, 1]


def test_words_about_a_key_count_only_in_the_error_itself():
    body = '{"error": {"message": "no", "details": {"hint": "invalid api key"}}}'

    failure = failure_of_http(400, body, text="")

    assert not failure.is_about_key
