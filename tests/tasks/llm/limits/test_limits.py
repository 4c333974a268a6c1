"""Limits on concurrent calls and calls per minute, the order of calls, the stop time, and what
stops a model.
"""

import asyncio
import math
import time
from collections.abc import Awaitable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.calls.gateway import Gateway
from tasks.llm.endpoint_health import Admission, EndpointHealth
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.limiter import (
    Budget,
    Limiter,
    ModelStopped,
    NotCalled,
    TimeIsUp,
    TokenBucket,
)
from tasks.llm.replies import Failure, Kind, Reply
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tests.faults.behaviours import prompt_of
from tests.faults.server import HttpResponse
from tests.kit import Patch, job_on
from tests.tasks.llm.conftest import Calling, Serve, call_to, failed

BUSY = Failure("provider_error", Kind.BUSY, "slow down")
LATE = Failure("timeout", Kind.DOWN, "late")
DOWN = Failure("provider_error", Kind.DOWN, "gone")
FREE = None


async def turns() -> None:
    for _ in range(9):
        await asyncio.sleep(0)


def limiter(concurrency: int = 4, **limits: Any) -> Limiter:
    return Limiter(concurrency, Budget(None, None), **limits)


STEPS = st.lists(
    st.tuples(st.floats(0, 90), st.integers(1, 40), st.floats(0.001, 1.5)), min_size=1, max_size=100
)


@given(
    limit=st.integers(1, 500),
    steps=STEPS,
    counts_requests=st.booleans(),
)
def test_no_minute_passes_the_limit_but_for_a_last_call(
    limit: int, steps: Any, counts_requests: bool
) -> None:
    """After each pause, some requests (or one call with tokens) are made as soon as they are
    allowed.
    """
    meter = TokenBucket(limit, 0.0)
    now_s = 0.0
    went: list[tuple[float, float]] = []
    for pause_s, number, share in steps:
        now_s += pause_s
        for amount in [1.0] * number if counts_requests else [share * limit]:
            now_s += meter.wait_s(now_s)
            meter.consume(amount, now_s)
            went.append((now_s, amount))
    for last, (end_s, _) in enumerate(went):
        counted = went[: last + 1] if counts_requests else went[:last]
        assert sum(amount for at_s, amount in counted if at_s > end_s - 60.0) <= limit * (1 + 1e-6)


@given(limit=st.integers(1, 10_000))
def test_a_meter_lets_nearly_all_of_its_limit_through(limit: int) -> None:
    meter = TokenBucket(limit, 0.0)
    now_s = 0.0
    number = 0
    while now_s <= 600.0 and number <= 3_000:
        meter.consume(1, now_s)
        number += 1
        now_s += meter.wait_s(now_s)
    assert number >= 0.95 * limit * min(now_s, 600.0) / 60.0 - 1


def test_tokens_that_were_taken_and_not_used_are_given_back() -> None:
    meter = TokenBucket(6100, 0.0)
    meter.consume(1100, 0.0)
    assert meter.wait_s(0.0) == pytest.approx(10.01, abs=0.1)
    meter.consume(-1000, 0.0)
    assert meter.wait_s(0.0) == pytest.approx(0.01, abs=0.02)


# a bucket with one token, and no other for a hundred seconds; usage without any guess
@pytest.mark.parametrize(("tpm", "guessed", "used"), [(0.61, 1000, 0), (None, 0, 3)])
async def test_a_wrong_guess_holds_no_call_up(tpm: float | None, guessed: int, used: int) -> None:
    limits = limiter(1, tpm=tpm)
    async with asyncio.timeout(60):
        for _ in range(2):
            admission = await limits.acquire(Admission("a", likely_tokens=guessed))
            limits.release(admission, Reply("ok", prompt_tokens=0, completion_tokens=used))


def test_tokens_a_minute_count_what_was_really_used(calling: Calling, serve: Serve) -> None:
    usage = {
        "prompt_tokens": 500,
        "completion_tokens": 1500,
        "total_tokens": 2000,
    }
    server = serve(HttpResponse("x", usage=usage))
    calling.concurrency = 1
    calling.limits = {"tpm": 240_000}
    calling.at_once(*(call_to(server, f"q{number}") for number in range(6)))
    arrived_at_s = [entry.arrived_at_s for entry in server.entries]
    assert arrived_at_s[-1] - arrived_at_s[0] > 1.0
    for number, at_s in enumerate(arrived_at_s):
        assert number * 2000 <= (at_s - arrived_at_s[0]) * 4000 + 4000 + 2000


@pytest.mark.parametrize(("tpm", "first_go"), [(None, 4), (1_000_000, 1)])
async def test_where_tokens_are_limited_one_call_goes_until_its_use_is_known(
    tpm: float | None, first_go: int
) -> None:
    limits = limiter(4, tpm=tpm)
    asks = [
        asyncio.create_task(limits.acquire(Admission("a", likely_tokens=500))) for _ in range(8)
    ]
    await turns()
    went = [ask.result() for ask in asks if ask.done()]
    limits.release(went[0], Reply("ok", prompt_tokens=100, completion_tokens=900))
    await turns()
    under_way = [ask.result() for ask in asks if ask.done()][1:]
    assert under_way[-1].tokens == 1000, (
        "what the next call sets aside follows what the first one used"
    )
    for ask in asks:
        ask.cancel()
    assert first_go == len(went)
    assert len(under_way) == 4


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_calls_are_under_way_at_once_than_allowed(
    concurrency: int, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("x", delay_s=0.05))
    calling.concurrency = concurrency
    calling.at_once(
        *(call_to(server, f"q{n}", name=f"hosted_vllm/{name}") for n in range(6) for name in "ab")
    )
    assert len(server.book) == 12
    assert concurrency == server.most_in_hand


def test_calls_go_by_priority_and_then_by_coming_also_across_models(
    calling: Calling, serve: Serve
) -> None:
    servers = [serve(HttpResponse("x", delay_s=0.02)) for _ in range(2)]
    calling.concurrency = 1
    priorities = {
        "first": (9,),
        "c": (2, 0),
        "a": (0, 5),
        "b": (1,),
        "d": (2, 0),
        "e": (2, 0),
        "f": (2, 1),
    }
    calls = [call_to(servers[q in "abf"], q) for q in priorities]
    calling.at_once(*(replace(call, priority=priorities[call.cell]) for call in calls))
    entries = sorted(servers[0].entries + servers[1].entries, key=lambda entry: entry.arrived_at_s)
    assert [each.request["messages"][0]["content"] for each in entries] == [
        "first",
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
    ]


async def test_a_call_that_nobody_waits_for_any_more_takes_no_turn() -> None:
    limits = limiter(1)
    admission = await limits.acquire(Admission("a"))
    waiting = [asyncio.create_task(limits.acquire(Admission("a"))) for _ in range(1, 5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    limits.release(admission, FREE)
    waiting[1].cancel()  # it was admitted, but has not run since
    await turns()
    assert not waiting[3].done()
    for each in waiting[2:]:
        limits.release(each.result(), FREE)
        await turns()
    assert limits.endpoints["a"].in_hand == 0
    assert limits.n_calls == 0


@pytest.mark.parametrize("failure", [BUSY, LATE], ids=["429", "time-out"])
def test_concurrency_goes_down_when_a_model_is_busy_and_up_again_when_it_replies(
    failure: Failure,
) -> None:
    endpoint = EndpointHealth("a", 16, outage_s=1e9)
    levels = [endpoint.limit]
    for second in range(1, 30, 2):
        endpoint.failed(failure, float(second), 0.1)
        levels.append(endpoint.limit)
    assert all(after < before or before == 1.0 for before, after in pairwise(levels))
    assert endpoint.limit == 1.0
    for _ in range(1000):
        endpoint.succeeded(100.0)
    assert endpoint.limit == 16.0


def test_failures_of_one_moment_cut_the_concurrency_once() -> None:
    endpoint = EndpointHealth("a", 16, outage_s=1e9)
    for _ in range(10):
        endpoint.failed(BUSY, 5.0, 0.1)
    assert 8 <= endpoint.limit < 16


def test_a_second_cut_of_the_concurrency_is_possible_after_a_second() -> None:
    endpoint = EndpointHealth("a", 16, outage_s=1e9)
    endpoint.failed(BUSY, now_s=5.0, latency_s=0.1)
    limit_after_first = endpoint.limit

    endpoint.failed(BUSY, now_s=6.0, latency_s=0.1)

    assert endpoint.limit < limit_after_first


async def test_a_failure_of_unknown_latency_is_no_earlier_silence() -> None:
    limits = limiter(outage_s=0.9)

    for _ in range(6):
        admission = await limits.acquire(Admission("a"))
        limits.release(admission, Reply("timeout", latency_s=None, failure=LATE))
        limits.endpoints["a"].closed_until_s = 0.0

    assert limits.endpoints["a"].stopped is None


async def refused(call: Awaitable[object]) -> float:
    """Wait until a call is refused because of the stop time, and return the time then."""
    with pytest.raises(TimeIsUp, match=r"^no call begins after the stop time, \d\d:\d\d UTC$"):
        await asyncio.wait_for(call, 60)
    return time.time()


async def test_all_that_wait_are_told_when_the_time_is_up_and_what_is_under_way_goes_on() -> None:
    limits = limiter(1, stop_at_s=(stop_at_s := time.time() + 0.3))
    admission = await limits.acquire(Admission("a"))
    waiting = [limits.acquire(Admission(endpoint)) for endpoint in "aac"]
    assert min(await asyncio.gather(*map(refused, waiting))) >= stop_at_s
    assert limits.too_late == 3
    limits.release(admission, Reply("ok", prompt_tokens=1, completion_tokens=1))
    await refused(limits.acquire(Admission("a")))
    assert limits.n_calls == 1
    assert limits.too_late == 4


async def test_a_clock_that_is_set_forward_stops_at_the_next_call(monkeypatch: Patch) -> None:
    limits = limiter(1, stop_at_s=time.time() + 3_600)
    limits.release(await limits.acquire(Admission("a")), FREE)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3_700)
    await refused(limits.acquire(Admission("a")))


async def test_a_call_under_way_is_recorded_and_a_retry_is_not_begun(
    tmp_path: Path, serve: Serve
) -> None:
    slow = serve(HttpResponse("x", delay_s=3.0))
    broken = serve(replace(failed(503), delay_s=1.8))
    with closing(Ledger(tmp_path)) as ledger:
        stop_at_s = time.time() + 2.0
        gateway = Gateway(limiter(2, stop_at_s=stop_at_s), ledger, "a-run")
        kept, given_up = await asyncio.gather(
            gateway.complete(call_to(slow)), gateway.complete(call_to(broken))
        )
    assert kept.text == "x"
    assert given_up.status == "provider_error"
    assert given_up.attempts == 1
    assert len(slow.book) == 1
    assert len(broken.book) == 1
    assert sum(row["calls"] for row in spend_in(tmp_path)) == 2


async def test_a_wait_for_another_process_ends_when_the_time_is_up(
    tmp_path: Path, serve: Serve
) -> None:
    call = call_to(serve(HttpResponse("x")))
    with closing(Ledger(tmp_path)) as ledger, closing(Ledger(tmp_path)) as theirs:
        stop_at_s = time.time() + 0.4
        gateway = Gateway(limiter(1, stop_at_s=stop_at_s), ledger, "a-run")
        with theirs.call_locks.holding(call.key(call.parameters({}))):
            assert await refused(gateway.complete(call)) >= stop_at_s


@pytest.mark.parametrize(
    ("stage", "purpose"), [("sample", "sample"), ("judge", "judge"), ("drift", "judge")]
)
async def test_a_stage_says_that_it_stopped_if_a_call_was_refused(
    stage: str, purpose: str, tmp_path: Path
) -> None:
    stop_at = datetime(2026, 1, 2, 9, 30, tzinfo=timezone(timedelta(hours=2)))
    quiet = StageReport(stage)
    late = StageReport(stage)
    async with open_run_context(
        job_on("sample", tmp_path).model_copy(update={"stop_at": stop_at})
    ) as context:
        context.add_notices(quiet)
        await refused(context.gateway(stage, "a-model").complete(call_to("http://127.0.0.1:9/v1")))
        assert context.limiters[purpose].too_late == 1
        context.add_notices(late)
    assert not quiet.is_at_stop_time
    assert quiet.warnings == []
    warnings = ["stopped at 07:30 UTC, the stop time; finished work is kept"]
    assert late.is_at_stop_time
    assert warnings == late.warnings


# causes that stop a model for the run, immediately or after an outage, and causes that do not


def test_an_unset_variable_stops_the_model_before_any_call(
    calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("NOWHERE_SET", raising=False)
    calling.attempts = 2
    server = serve(HttpResponse("x"))
    reply = calling(call_to(server, headers={"X-Team": "${NOWHERE_SET}"}))
    assert reply.attempts == 1
    assert len(server.book) == 0
    assert "NOWHERE_SET" in str(calling.stopped.popitem()[1])


def test_a_bad_request_fails_its_cell_alone(calling: Calling, serve: Serve) -> None:
    server = serve(
        lambda r, _n: (
            failed(400, "odd") if "bad" in r["messages"][0]["content"] else HttpResponse("fine")
        )
    )
    calling.concurrency = 1
    replies = calling.at_once(
        *(call_to(server, prompt) for prompt in ["good", *(f"bad {n}" for n in range(9))])
    )
    assert ["ok", *["provider_error"] * 9] == [reply.status for reply in replies]
    assert len(server.book) == 10
    assert list(calling.stopped.values()) == [None]


def test_a_model_whose_first_calls_are_all_bad_requests_stops(
    calling: Calling, serve: Serve
) -> None:
    server = serve(failed(400, "no such parameter"))
    calling.concurrency = 1
    replies = calling.at_once(*(call_to(server, f"q{n}") for n in range(30)))
    n_harmless = [prompt_of(request) for request in server.book].count("Hi")
    assert n_harmless == 1
    assert 2 <= len(server.book) < 10
    assert sum(isinstance(reply, NotCalled) for reply in replies) == 30 + n_harmless - len(
        server.book
    )
    assert "no such parameter" in str(calling.stopped.popitem()[1])


def test_a_dead_endpoint_costs_few_calls_and_leaves_other_models_alone(
    calling: Calling, serve: Serve
) -> None:
    good = serve(HttpResponse("fine"))
    dead = "http://127.0.0.1:9/v1"
    calling.attempts = 5
    calling.limits = {"outage_s": 1.0}
    calling.concurrency = 8
    replies = calling.at_once(
        *(call_to(address, f"q{n}") for n in range(200) for address in (dead, good))
    )
    assert {reply.status for reply in replies[1::2]} == {"ok"}
    n_stopped = sum(isinstance(reply, ModelStopped) for reply in replies[::2])
    assert n_stopped > 150
    assert 200 - n_stopped == sum(
        getattr(reply, "status", None) == "provider_error" for reply in replies[::2]
    )


def test_calls_that_time_out_at_once_do_not_stop_a_model_that_replied_a_second_ago() -> None:
    endpoint = EndpointHealth("a", 16, outage_s=60.0)
    endpoint.succeeded(99.0)
    for _ in range(5):
        endpoint.failed(LATE, now_s=100.0, latency_s=99.0)
    assert endpoint.stopped is None


def test_an_open_breaker_lets_one_call_try_after_a_pause() -> None:
    endpoint = EndpointHealth("a", 8, outage_s=60.0)
    for _ in range(5):
        endpoint.failed(DOWN, now_s=10.0, latency_s=0.0)
    assert 0 < endpoint.wait_s(10.0) <= 1
    assert endpoint.wait_s(12.0) == 0.0
    endpoint.in_hand += 1
    assert math.inf == endpoint.wait_s(12.0)
    endpoint.in_hand -= 1
    endpoint.succeeded(12.0)
    for _ in range(3):
        endpoint.in_hand += 1
    assert endpoint.wait_s(12.0) == 0.0


@pytest.mark.parametrize("status", [400, 401, 403])
@pytest.mark.parametrize("key", ["a-key-that-is-long", None])
def test_a_key_that_is_refused_or_missing_stops_its_model_and_is_named(
    status: int, key: str | None, calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("HOSTED_VLLM_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("HOSTED_VLLM_API_KEY", key)
    server = serve(failed(status, "API key not valid. Please pass a valid API key."))
    error = calling(call_to(server)).error
    assert str(error).endswith(f"check the key: HOSTED_VLLM_API_KEY is {'' if key else 'not '}set")
    harmless = 'a harmless request ("Hi") was refused with the same error'
    assert list(calling.stopped.values()) == [f"{error}; {harmless}"]
