"""Causes that stop a model for a run, at once or after silence, and causes that do not."""

import socket

import pytest

from tasks.llm.endpoint_health import EndpointHealth
from tasks.llm.limiter import ModelStopped, NotCalled
from tasks.llm.replies import Failure, Kind
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import Calling, Serve, call_to, failed


def test_a_fatal_cause_stops_its_model_at_once_and_no_other(calling: Calling, serve: Serve) -> None:
    good, server = serve(HttpResponse("fine")), serve(failed(401, "Incorrect API key provided", "invalid_api_key"))
    calling.attempts, calling.concurrency = 3, 1
    replies = calling.at_once(*(call_to(address, f"q{n}") for n in range(3) for address in (server, good)))
    stopped, others = replies[::2], replies[1::2]
    assert ("provider_error", 1, 1) == (stopped[0].status, stopped[0].attempts, len(server.book))
    assert all(isinstance(reply, ModelStopped) and "\n" not in str(reply) for reply in stopped[1:])
    assert ["fine"] * 3 == [reply.text for reply in others]
    (reason,) = [reason for reason in calling.stopped.values() if reason is not None]
    assert "\n" not in reason


def test_a_variable_that_is_not_set_stops_the_model_before_any_call(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOWHERE_SET", raising=False)
    calling.attempts, server = 2, serve(HttpResponse("x"))
    reply = calling(call_to(server, headers={"X-Team": "${NOWHERE_SET}"}))
    assert (1, 0) == (reply.attempts, len(server.book))
    assert "NOWHERE_SET" in str(calling.stopped.popitem()[1])


def test_a_bad_request_fails_its_cell_alone(calling: Calling, serve: Serve) -> None:
    server = serve(lambda r, _n: failed(400, "odd") if "bad" in r["messages"][0]["content"] else HttpResponse("fine"))
    calling.concurrency = 1
    replies = calling.at_once(*(call_to(server, prompt) for prompt in ["good", *(f"bad {n}" for n in range(9))]))
    assert ["ok", *["provider_error"] * 9] == [reply.status for reply in replies]
    assert (10, [None]) == (len(server.book), list(calling.stopped.values()))


def test_a_model_whose_first_calls_are_all_bad_requests_stops(calling: Calling, serve: Serve) -> None:
    server, calling.concurrency = serve(failed(400, "no such parameter")), 1
    replies = calling.at_once(*(call_to(server, f"q{n}") for n in range(30)))
    assert 2 <= len(server.book) < 10
    assert 30 - len(server.book) == sum(isinstance(reply, NotCalled) for reply in replies)
    assert "no such parameter" in str(calling.stopped.popitem()[1])


def test_a_dead_endpoint_costs_few_calls_and_leaves_other_models_alone(calling: Calling, serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        good, dead = serve(HttpResponse("fine")), f"http://127.0.0.1:{held.getsockname()[1]}/v1"
    calling.attempts, calling.limits, calling.concurrency = 5, {"outage_s": 1.0}, 8
    replies = calling.at_once(*(call_to(address, f"q{n}") for n in range(200) for address in (dead, good)))
    assert {"ok"} == {reply.status for reply in replies[1::2]}
    n_stopped = sum(isinstance(reply, ModelStopped) for reply in replies[::2])
    assert n_stopped > 150
    assert 200 - n_stopped == sum(getattr(reply, "status", None) == "provider_error" for reply in replies[::2])


DOWN, LATE = Failure("provider_error", Kind.DOWN, "gone"), Failure("timeout", Kind.DOWN, "late")


def test_calls_that_time_out_at_once_do_not_stop_a_model_that_replied_a_second_ago() -> None:
    endpoint = EndpointHealth("a", 16, outage_s=60.0, now_s=0.0)
    endpoint.succeeded(99.0, ("m", None))
    for _ in range(5):
        endpoint.failed(LATE, now_s=100.0, latency_s=99.0)
    assert endpoint.stopped is None


def test_an_open_breaker_lets_one_call_try_after_a_pause() -> None:
    endpoint = EndpointHealth("a", 8, outage_s=60.0, now_s=0.0)
    for _ in range(5):
        endpoint.failed(DOWN, now_s=10.0, latency_s=0.0)
    assert 0 < (endpoint.wait_s(10.0) or 0) <= 1
    assert 0.0 == endpoint.wait_s(12.0)
    endpoint.in_hand += 1
    assert endpoint.wait_s(12.0) is None
    endpoint.in_hand -= 1
    endpoint.succeeded(12.0, ("m", None))
    for _ in range(3):
        endpoint.in_hand += 1
    assert 0.0 == endpoint.wait_s(12.0)


@pytest.mark.parametrize("status", [400, 401, 403])
@pytest.mark.parametrize("key", ["a-key-that-is-long", None])
def test_a_key_that_is_refused_or_missing_stops_its_model_and_is_named(
    status: int, key: str | None, calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOSTED_VLLM_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("HOSTED_VLLM_API_KEY", key)
    server = serve(failed(status, "API key not valid. Please pass a valid API key."))
    error = calling(call_to(server)).error
    assert str(error).endswith(f"check the key: HOSTED_VLLM_API_KEY is {'' if key else 'not '}set")
    assert [error] == list(calling.stopped.values())
