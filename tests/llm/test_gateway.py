"""The gateway against a real server over a real socket: every kind of failure is its own state."""

import asyncio
import time
from typing import Any

import pytest

from tasks.llm.gateway import Gateway, Target
from tasks.llm.replies import Reply
from tests.faults.server import Answer, FaultServer

CONVERSATION = [{"role": "user", "content": "What is a bond?"}]


def _error(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"message": message, "type": kind, "code": code}


def ask(answer: Answer, *, attempts: int = 2, timeout_s: float = 5.0, **target: Any) -> tuple[Reply, FaultServer]:
    with FaultServer(lambda _request, _number: answer) as server:
        gateway = Gateway(concurrency=4, attempts=attempts)
        called = Target("hosted_vllm/candidate", server.api_base, timeout_s=timeout_s, **target)
        return asyncio.run(gateway.complete(called, CONVERSATION)), server


def test_a_good_reply_carries_its_text_and_what_the_provider_reported() -> None:
    reply, server = ask(Answer("A debt.", model="candidate-0613"), parameters={"temperature": 0.5})
    assert (reply.status, reply.text, reply.served_model) == ("ok", "A debt.", "candidate-0613")
    assert (reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens) == (4, 2, 2)
    assert (reply.attempts, reply.degraded, reply.error) == (1, False, None)
    assert [(request["messages"], request["temperature"]) for request in server.book] == [(CONVERSATION, 0.5)]


@pytest.mark.parametrize(
    ("answer", "status", "calls"),
    [
        (Answer(status=400, error=_error("bad parameter")), "provider_error", 1),
        (Answer(status=401, error=_error("bad key")), "provider_error", 1),
        (Answer(status=404, error=_error("no such model")), "provider_error", 1),
        (Answer(status=429, error=_error("slow down", kind="rate_limit_error")), "provider_error", 2),
        (Answer(status=500, error=_error("broken", kind="server_error")), "provider_error", 2),
        (Answer(status=503, error=_error("overloaded", kind="server_error")), "provider_error", 2),
        (Answer(status=400, error=_error("This model's maximum context length is 10", "context_length_exceeded")),
         "context_length", 1),
        (Answer(status=400, error=_error("filtered", "content_filter")), "refused", 1),
        (Answer("cut", finish_reason="length"), "truncated", 1),
        (Answer("cut", finish_reason="content_filter"), "refused", 1),
        (Answer(None, refusal="I will not."), "refused", 1),
        (Answer(""), "empty", 2),
        (Answer("x", choices=0), "empty", 2),
        (Answer(cuts_connection=True), "provider_error", 2),
        (Answer(raw=b'{"id": "chatcmpl", "choi'), "provider_error", 2),
    ],
)  # fmt: skip
def test_a_failure_is_a_state_with_its_cause_and_only_passing_causes_are_tried_again(
    answer: Answer, status: str, calls: int
) -> None:
    reply, server = ask(answer)
    assert (reply.status, reply.text, len(server.book), reply.attempts) == (status, None, calls, calls)
    assert reply.error
    assert "\n" not in reply.error


def test_a_reply_that_comes_too_late_is_a_timeout() -> None:
    started_s = time.monotonic()
    reply, server = ask(Answer("late", delay_s=20), timeout_s=0.5, attempts=2)
    assert (reply.status, len(server.book)) == ("timeout", 2)
    assert time.monotonic() - started_s < 15


def test_a_server_that_is_not_there_is_a_provider_error() -> None:
    with FaultServer() as server:
        address = server.api_base
    reply = asyncio.run(Gateway(1, 1).complete(Target("hosted_vllm/candidate", address), CONVERSATION))
    assert (reply.status, reply.text) == ("provider_error", None)


def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    def slow_once(_request: dict[str, Any], number: int) -> Answer:
        return (
            Answer("now")
            if number
            else Answer(status=429, error=_error("wait", kind="rate_limit_error"), headers={"Retry-After": "2"})
        )

    with FaultServer(slow_once) as server:
        started_s = time.monotonic()
        target = Target("hosted_vllm/candidate", server.api_base)
        reply = asyncio.run(Gateway(1, 3).complete(target, CONVERSATION))
    assert (reply.status, reply.attempts) == ("ok", 2)
    assert time.monotonic() - started_s >= 2


def test_only_the_last_attempt_uses_the_fallback_and_its_reply_is_marked() -> None:
    def fails_twice(request: dict[str, Any], _number: int) -> Answer:
        return (
            Answer("at last")
            if request["temperature"] == 0
            else Answer(status=500, error=_error("no", kind="server_error"))
        )

    with FaultServer(fails_twice) as server:
        target = Target("hosted_vllm/c", server.api_base, {"temperature": 1}, fallback={"temperature": 0})
        reply = asyncio.run(Gateway(1, 3).complete(target, CONVERSATION))
    assert [request["temperature"] for request in server.book] == [1, 1, 0]
    assert (reply.status, reply.degraded, reply.attempts) == ("ok", True, 3)


def test_no_more_calls_are_under_way_at_once_than_allowed() -> None:
    async def many(server: FaultServer) -> None:
        gateway = Gateway(concurrency=3, attempts=1)
        target = Target("hosted_vllm/candidate", server.api_base)
        await asyncio.gather(*(gateway.complete(target, CONVERSATION) for _ in range(12)))

    with FaultServer(lambda _request, _number: Answer("x", delay_s=0.1)) as server:
        asyncio.run(many(server))
    assert (len(server.book), server.most_in_hand) == (12, 3)


def test_a_key_that_a_provider_echoes_is_not_in_the_stored_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-planted-0123456789")
    reply, _ = ask(Answer(status=401, error=_error("Incorrect API key provided: sk-planted-0123456789")))
    assert reply.error is not None
    assert "sk-planted" not in reply.error
    assert "[redacted]" in reply.error


def test_text_that_cannot_be_stored_is_mended_and_kept() -> None:
    reply, _ = ask(Answer("cut emoji \ud83d end"))
    assert reply.text == "cut emoji \ufffd end"
