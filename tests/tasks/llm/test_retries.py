"""How often a call is made again, and when: counted on the server's book."""

import email.utils
import time
from collections.abc import Callable
from typing import Any

import pytest

from tasks.llm.calls.gateway import _backoff_s
from tasks.llm.replies import retry_after_s
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to, failed, then

Serve = Callable[[Behaviour | Answer], FaultServer]
ROUTES: list[dict[str, Any]] = [
    {}, {"name": "openai/candidate"}, {"is_streamed": True}, {"name": "openai/c", "parameters": {"api": "responses"}},
]  # fmt: skip


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("attempts", [1, 3, 5])
def test_a_call_is_made_as_often_as_allowed_and_no_more(attempts: int, calling: Calling, serve: Serve) -> None:
    calling.attempts, server = attempts, serve(failed(503))
    reply = calling(call_to(server))
    assert (reply.status, reply.attempts, len(server.book)) == ("provider_error", attempts, attempts)


@pytest.mark.usefixtures("hurried")
def test_a_failure_that_passes_leaves_the_answer_of_the_next_attempt(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 4, serve(then(failed(500), Answer(""), Answer("at last")))
    reply = calling(call_to(server))
    assert (reply.status, reply.text, reply.attempts, len(server.book)) == ("ok", "at last", 3, 3)


def test_waits_between_attempts_double_and_are_spread() -> None:
    for attempt, middle_s in ((1, 0.5), (2, 1.0), (3, 2.0), (12, 60.0)):
        waits = [_backoff_s(attempt) for _ in range(200)]
        assert all(0.5 * middle_s <= wait <= 1.5 * middle_s for wait in waits)
        assert max(waits) - min(waits) > 0.5 * middle_s


@pytest.mark.parametrize("route", ROUTES)
def test_the_seconds_that_a_server_asks_for_are_waited(route: dict[str, Any], calling: Calling, serve: Serve) -> None:
    server = serve(then(failed(429, kind="rate_limit_error", retry_after="1"), Answer("now")))
    reply = calling(call_to(server, **route))
    first, second = (entry.arrived_at_s for entry in server.entries)
    assert (reply.status, reply.attempts) == ("ok", 2)
    assert 1.0 <= second - first < 30.0


def test_a_wait_in_milliseconds_and_one_until_a_date_are_kept(calling: Calling, serve: Serve) -> None:
    def until_a_date(_request: dict[str, Any], number: int) -> Answer:
        date = email.utils.formatdate(time.time() + 2, usegmt=True)
        return Answer("now") if number else failed(503, retry_after=date)

    for behaviour, least_s in ((then(failed(503, retry_after_ms="800"), Answer("now")), 0.8), (until_a_date, 0.95)):
        server = serve(behaviour)
        assert calling(call_to(server)).status == "ok"
        first, second = (entry.arrived_at_s for entry in server.entries)
        assert least_s <= second - first < 30.0


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7.0), ({"retry-after": "0"}, 0.0), ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1.5"}, 1.5), ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({}, None),
        ({"retry-after": "soon"}, None), ({"retry-after": ""}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:16:50 GMT"}, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
    ],
)  # fmt: skip
def test_what_a_server_asks_for_is_read(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(headers, now_s=1000.0) == wait_s


def test_a_model_that_asks_for_hours_is_stopped(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 3, serve(failed(429, "come back tomorrow", retry_after="7200"))
    assert calling(call_to(server)).status == "provider_error"
    assert len(server.book) == 1
    assert "7200" in str(calling.stopped.popitem()[1])


def test_attempts_end_soon_after_the_deadline(calling: Calling, serve: Serve) -> None:
    calling.attempts, calling.deadline_s, server = 50, 1.0, serve(failed(503))
    started_s = time.monotonic()
    assert calling(call_to(server)).status == "provider_error"
    assert time.monotonic() - started_s < 6
    assert 2 <= len(server.book) <= 5


def test_no_wait_is_begun_that_ends_after_the_deadline(calling: Calling, serve: Serve) -> None:
    calling.attempts, calling.deadline_s, server = 2, 0.5, serve(failed(503, retry_after="20"))
    started_s = time.monotonic()
    assert calling(call_to(server)).status == "provider_error"
    assert time.monotonic() - started_s < 10
    assert len(server.book) == 1
