"""Every way a call can end, over a real socket: each is a state of its own with a cause, and none is an exception."""

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to, failed

pytestmark = pytest.mark.usefixtures("hurried")

Serve = Callable[[Answer], FaultServer]

ROUTES: dict[str, dict[str, Any]] = {
    "vllm": {},
    "openai": {"name": "openai/candidate"},
    "streamed": {"is_streamed": True},
    "openai-streamed": {"name": "openai/candidate", "is_streamed": True},
    "responses": {"name": "openai/candidate", "parameters": {"api": "responses"}},
}
LONG = "a word and a word " * 100

STATES: dict[str, tuple[Answer, str, int]] = {
    "400": (failed(400, "bad parameter"), "provider_error", 1),
    "401": (failed(401, "Incorrect API key provided", "invalid_api_key", "invalid_request_error"), "provider_error", 1),
    "401 of another type": (failed(401, "Authentication Fails", "invalid_request_error"), "provider_error", 1),
    "402": (Answer(status=402, raw=b"pay first"), "provider_error", 1),
    "403": (failed(403, "not for you"), "provider_error", 1),
    "404": (failed(404, "The model `candidate` does not exist", "model_not_found"), "provider_error", 1),
    "408": (Answer(status=408, raw=b""), "timeout", 2),
    "409": (failed(409, "again"), "provider_error", 2),
    "413": (Answer(status=413, raw=b"<html>too large</html>"), "provider_error", 1),
    "422": (failed(422, "not understood"), "provider_error", 1),
    "429": (failed(429, "slow down", kind="rate_limit_error"), "provider_error", 2),
    "429 of another type": (failed(429, "slow down", kind="invalid_request_error"), "provider_error", 2),
    "500": (failed(500, "broken", kind="server_error"), "provider_error", 2),
    "500 of another type": (failed(500, "broken", kind="invalid_request_error"), "provider_error", 2),
    "502": (Answer(status=502, raw=b"<html>Bad Gateway</html>"), "provider_error", 2),
    "503": (failed(503, "overloaded", kind="server_error"), "provider_error", 2),
    "504": (Answer(status=504, raw=b""), "timeout", 2),
    "529": (failed(529, "overloaded"), "provider_error", 2),
    "a code for a full context": (failed(400, "no", "context_length_exceeded"), "context_length", 1),
    "a text about a full context": (
        failed(400, "This model's maximum context length is 10 tokens. However, you requested 99 tokens."),
        "context_length", 1,
    ),
    "a bare text about a full context": (Answer(status=400, raw=b"prompt is too long: 9 tokens"), "context_length", 1),
    "a full context told as a broken server": (
        Answer(status=500, raw=b"the request exceeds the available context size"), "context_length", 1,
    ),
    "a code for a filter": (failed(400, "filtered", "content_filter"), "refused", 1),
    "refusal": (Answer(None, refusal="I will not."), "refused", 1),
    "cut at the limit": (Answer("cut", finish_reason="length"), "truncated", 1),
    "cut by a filter": (Answer("cut", finish_reason="content_filter"), "refused", 1),
    "no text": (Answer(""), "empty", 2),
    "null for a text": (Answer(None), "empty", 2),
    "no choices": (Answer("x", choices=0), "empty", 2),
    "cut connection": (Answer(cuts_connection=True), "provider_error", 2),
    "cut body": (Answer(LONG, cuts_body=True), "provider_error", 2),
    "half a body": (Answer(raw=b'{"id": "chatcmpl", "choi'), "provider_error", 2),
    "a page for a body": (Answer(raw=b"<html>hello</html>"), "provider_error", 2),
    "nothing for a body": (Answer(raw=b""), "provider_error", 2),
}  # fmt: skip
MAIN = (
    "401 of another type", "429", "500", "a code for a full context", "a text about a full context",
    "a code for a filter", "refusal", "cut at the limit", "cut by a filter", "no text", "no choices", "cut connection",
    "cut body", "half a body",
)  # fmt: skip
STREAMS = ("streamed", "openai-streamed")
LOST = pytest.mark.xfail(strict=True, reason="LiteLLM drops the pieces of a stream that hold a refusal and no text")
DROPPED = pytest.mark.xfail(strict=False, reason="LiteLLM drops the fingerprint of such a stream before version 1.110")


def every_state() -> list[Any]:
    """All on one route, the main ones on all."""
    return [
        pytest.param(
            state, route, id=f"{state}-{route}",
            marks=[LOST] if state == "refusal" and route in STREAMS else [],
        )
        for state in STATES for route in ROUTES
        if (route == "vllm" or state in MAIN) and (state, route) != ("no choices", "openai-streamed")
    ]  # fmt: skip


@pytest.mark.parametrize(("state", "route"), every_state())
def test_a_failure_is_a_state_with_its_cause_and_only_what_may_pass_is_tried_again(
    state: str, route: str, calling: Calling, serve: Serve
) -> None:
    answer, status, calls = STATES[state]
    server = serve(answer)
    reply = calling(call_to(server, **ROUTES[route]))
    assert (reply.status, reply.text, len(server.book), reply.attempts) == (status, None, calls, calls)
    assert reply.error
    assert "\n" not in reply.error
    assert len(reply.error) <= 300


def test_a_stream_without_choices_has_no_reason_for_its_end_and_is_a_broken_one(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("x", choices=0))
    reply = calling(call_to(server, **ROUTES["openai-streamed"]))
    assert (reply.status, reply.text, len(server.book)) == ("provider_error", None, 2)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("late", [Answer("late", delay_s=20), Answer(LONG, body_delay_s=20)], ids=["before", "during"])
def test_a_reply_not_complete_in_time_is_a_timeout(late: Answer, route: str, calling: Calling, serve: Serve) -> None:
    server, started_s = serve(late), time.monotonic()
    reply = calling(call_to(server, timeout_s=0.3, **ROUTES[route]))
    assert (reply.status, reply.text, reply.attempts) == ("timeout", None, 2)
    assert len(server.book) <= 2  # where the machine is busy, the time may be over before a request leaves
    assert reply.error
    assert "0.3 s" in reply.error
    assert time.monotonic() - started_s < 10


@pytest.mark.parametrize("route", ROUTES)
def test_a_server_that_is_not_there_is_a_provider_error(route: str, calling: Calling) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    reply = calling(call_to(f"http://127.0.0.1:{port}/v1", **ROUTES[route]))
    assert (reply.status, reply.text, reply.attempts) == ("provider_error", None, 2)
    assert reply.error


@pytest.mark.parametrize("route", ROUTES)
def test_a_good_reply_has_its_text_and_what_the_provider_reported(route: str, calling: Calling, serve: Serve) -> None:
    server = serve(Answer("A debt.", model="candidate-0613", reasoning_tokens=7))
    reply = calling(call_to(server, **ROUTES[route]))
    assert (reply.status, reply.text, reply.served_model) == ("ok", "A debt.", "candidate-0613")
    assert (reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens, reply.reasoning_tokens) == (4, 2, 9, 7)
    assert (reply.attempts, reply.degraded, reply.error, len(server.book)) == (1, False, None, 1)
    assert reply.latency_s is not None
    assert 0 < reply.latency_s < 5


@pytest.mark.parametrize("route", ["vllm", "openai", pytest.param("streamed", marks=DROPPED), "openai-streamed"])
def test_the_fingerprint_of_what_served_is_kept(route: str, calling: Calling, serve: Serve) -> None:
    assert calling(call_to(serve(Answer("x", fingerprint="fp_1")), **ROUTES[route])).served_fingerprint == "fp_1"


@pytest.mark.parametrize("route", ROUTES)
def test_what_the_provider_did_not_report_is_not_known(route: str, calling: Calling, serve: Serve) -> None:
    reply = calling(call_to(serve(Answer("A debt.", usage=None)), **ROUTES[route]))
    assert (reply.status, reply.prompt_tokens, reply.completion_tokens, reply.reasoning_tokens) == (
        "ok", None, None, None,
    )  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
def test_a_lone_surrogate_is_mended_and_the_text_kept(route: str, calling: Calling, serve: Serve) -> None:
    assert calling(call_to(serve(Answer("cut emoji \ud83d end")), **ROUTES[route])).text == "cut emoji \ufffd end"


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_ten_megabytes_of_text_arrive_whole(route: str, calling: Calling, serve: Serve) -> None:
    text = "täglich " * 1_250_000
    assert calling(call_to(serve(Answer(text)), **ROUTES[route] | {"timeout_s": 30})).text == text


def test_litellm_puts_nothing_together_for_loggers_that_nobody_has(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litellm import utils

    logged: list[dict[str, Any]] = []
    monkeypatch.setattr(utils, "_schedule_async_success_logging", lambda **told: logged.append(told))
    reply = calling(call_to(serve(Answer("fine"))))

    assert reply.status == "ok"
    assert logged == []
