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
    NotCalled,
    TokenBucket,
)
from tasks.llm.replies import Failure, Kind, Reply
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tests.faults.behaviours import prompt_of
from tests.faults.server import HttpResponse
from tests.kit import job_on
from tests.tasks.llm.conftest import (
    call_to,
    calls_to,
    failed,
    first_request_at,
    prompts_at,
)

BUSY = Failure("provider_error", Kind.BUSY, "slow down")
LATE = Failure("timeout", Kind.DOWN, "late")
DOWN = Failure("provider_error", Kind.DOWN, "gone")
DEAD_ADDRESS = "http://127.0.0.1:9/v1"


async def let_others_run():
    """Let each task of the loop run until it waits."""
    for _ in range(9):
        await asyncio.sleep(0)


def limiter(concurrency: int = 4, **limits: Any) -> Limiter:
    """Return a limiter without a budget."""
    return Limiter(concurrency, Budget(None, None), **limits)


# requests and tokens per minute


STEPS = st.lists(
    st.tuples(st.floats(0, 90), st.integers(1, 40), st.floats(0.001, 1.5)),
    min_size=1,
    max_size=100,
)
"""A pause, a number of requests, and a share of the tokens of a minute."""


def amounts_of_last_minute(grants: list[tuple[float, float]], end_s: float) -> float:
    return sum(amount for granted_s, amount in grants if granted_s > end_s - 60.0)


@given(limit=st.integers(1, 500), steps=STEPS)
def test_no_minute_has_more_requests_than_the_limit(limit, steps):
    bucket = TokenBucket(limit, 0.0)
    now_s = 0.0
    grants = []

    for pause_s, n_requests, _ in steps:
        now_s += pause_s
        for _ in range(n_requests):
            now_s += bucket.wait_s(now_s)
            bucket.consume(1.0, now_s)
            grants.append((now_s, 1.0))

    for number, (end_s, _) in enumerate(grants, start=1):
        assert amounts_of_last_minute(grants[:number], end_s) <= limit * (1 + 1e-6)


@given(limit=st.integers(1, 500), steps=STEPS)
def test_only_the_last_call_of_a_minute_may_exceed_its_tokens(limit, steps):
    bucket = TokenBucket(limit, 0.0)
    now_s = 0.0
    grants = []

    for pause_s, _, share in steps:
        now_s += pause_s
        now_s += bucket.wait_s(now_s)
        bucket.consume(share * limit, now_s)
        grants.append((now_s, share * limit))

    for number, (end_s, _) in enumerate(grants):
        assert amounts_of_last_minute(grants[:number], end_s) <= limit * (1 + 1e-6)


@given(limit=st.integers(1, 10_000))
def test_a_bucket_grants_nearly_all_of_its_limit(limit):
    bucket = TokenBucket(limit, 0.0)
    now_s = 0.0
    n_grants = 0

    while now_s <= 600.0 and n_grants <= 3_000:
        bucket.consume(1, now_s)
        n_grants += 1
        now_s += bucket.wait_s(now_s)

    n_minutes = min(now_s, 600.0) / 60.0
    assert n_grants >= 0.95 * limit * n_minutes - 1


def test_tokens_that_were_reserved_and_not_used_are_returned():
    bucket = TokenBucket(6100, 0.0)

    bucket.consume(1100, 0.0)

    assert bucket.wait_s(0.0) == pytest.approx(10.01, abs=0.1)

    bucket.consume(-1000, 0.0)

    assert bucket.wait_s(0.0) == pytest.approx(0.01, abs=0.02)


# a bucket with one token, and no other for a hundred seconds; usage without any guess
@pytest.mark.parametrize(
    ("tpm", "likely_tokens", "used_tokens"), [(0.61, 1000, 0), (None, 0, 3)]
)
async def test_a_wrong_guess_delays_no_call(tpm, likely_tokens, used_tokens):
    limits = limiter(1, tpm=tpm)

    async with asyncio.timeout(60):
        for _ in range(2):
            admission = await limits.acquire(
                Admission("a", likely_tokens=likely_tokens)
            )
            limits.release(
                admission, Reply("ok", prompt_tokens=0, completion_tokens=used_tokens)
            )


def test_tokens_per_minute_count_the_reported_usage(calling, serve):
    usage = {
        "prompt_tokens": 500,
        "completion_tokens": 1500,
        "total_tokens": 2000,
    }
    server = serve(HttpResponse("x", usage=usage))
    calling.concurrency = 1
    calling.limits = {"tpm": 240_000}

    began_s = time.monotonic()
    calling.call_at_once(*calls_to(server, 6))

    elapsed_times_s = [entry.arrived_at_s - began_s for entry in server.entries]
    assert elapsed_times_s[-1] > 1.0
    for number, elapsed_s in enumerate(elapsed_times_s):
        assert number * 2000 <= elapsed_s * 4000 + 4000 + 2000


@pytest.mark.parametrize(("tpm", "n_first_calls"), [(None, 4), (1_000_000, 1)])
async def test_if_tokens_are_limited_one_call_goes_until_its_usage_is_known(
    tpm,
    n_first_calls,
):
    limits = limiter(4, tpm=tpm)
    admissions = [Admission("a", likely_tokens=500) for _ in range(8)]
    tasks = [
        asyncio.create_task(limits.acquire(admission)) for admission in admissions
    ]

    await let_others_run()
    n_begun = sum(task.done() for task in tasks)
    limits.release(
        admissions[0], Reply("ok", prompt_tokens=100, completion_tokens=900)
    )
    await let_others_run()

    assert n_begun == n_first_calls
    assert [task.done() for task in tasks] == [True] * 5 + [False] * 3
    assert admissions[4].tokens == 1000, (
        "the next reservation follows the first usage"
    )
    for task in tasks:
        task.cancel()


# concurrency and order


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_calls_are_under_way_than_allowed(concurrency, calling, serve):
    server = serve(HttpResponse("x", delay_s=0.2))
    calling.concurrency = concurrency
    calls = [
        *calls_to(server, 6, name="hosted_vllm/a"),
        *calls_to(server, 6, name="hosted_vllm/b"),
    ]

    calling.call_at_once(*calls)

    assert len(server.book) == 12
    assert server.most_in_hand == concurrency


def test_calls_go_by_priority_and_then_by_arrival_across_models(calling, serve):
    server = serve(HttpResponse("x", delay_s=0.02))
    other_server = serve(HttpResponse("x", delay_s=0.02))
    calling.concurrency = 1
    calls = [
        replace(call_to(server, "first"), priority=(9,)),
        replace(call_to(server, "c"), priority=(2, 0)),
        replace(call_to(other_server, "a"), priority=(0, 5)),
        replace(call_to(other_server, "b"), priority=(1,)),
        replace(call_to(server, "d"), priority=(2, 0)),
        replace(call_to(server, "e"), priority=(2, 0)),
        replace(call_to(other_server, "f"), priority=(2, 1)),
    ]

    calling.call_at_once(*calls)

    entries = sorted(
        server.entries + other_server.entries, key=lambda entry: entry.arrived_at_s
    )
    prompts = [prompt_of(entry.request) for entry in entries]
    assert prompts == ["first", "a", "b", "c", "d", "e", "f"]


async def test_a_call_whose_caller_is_gone_takes_no_turn():
    limits = limiter(1)
    admission = await limits.acquire(Admission("a"))
    waiting_tasks = [
        asyncio.create_task(limits.acquire(Admission("a"))) for _ in range(4)
    ]
    await asyncio.sleep(0)

    waiting_tasks[0].cancel()
    limits.release(admission)
    waiting_tasks[1].cancel()  # it was admitted, but has not run since
    await let_others_run()

    assert not waiting_tasks[3].done()
    for task in waiting_tasks[2:]:
        limits.release(task.result())
        await let_others_run()
    assert limits.endpoints["a"].in_hand == 0
    assert limits.n_calls == 0


@pytest.mark.parametrize("failure", [BUSY, LATE], ids=["429", "time-out"])
def test_concurrency_falls_to_one_when_a_model_is_busy(failure):
    endpoint = EndpointHealth("a", 16, outage_s=1e9)
    limits = [endpoint.limit]

    for second in range(1, 30, 2):
        endpoint.count_failure(failure, float(second), 0.1)
        limits.append(endpoint.limit)

    assert all(
        later < earlier or earlier == 1.0 for earlier, later in pairwise(limits)
    )
    assert endpoint.limit == 1.0


def test_concurrency_rises_again_when_calls_succeed():
    endpoint = EndpointHealth("a", 16, outage_s=1e9)
    endpoint.limit = 1.0

    for _ in range(1000):
        endpoint.count_success(100.0)

    assert endpoint.limit == 16.0


def test_failures_of_one_moment_cut_the_concurrency_once():
    endpoint = EndpointHealth("a", 16, outage_s=1e9)

    for _ in range(10):
        endpoint.count_failure(BUSY, 5.0, 0.1)

    assert 8 <= endpoint.limit < 16


def test_a_second_cut_of_the_concurrency_is_possible_after_a_second():
    endpoint = EndpointHealth("a", 16, outage_s=1e9)
    endpoint.count_failure(BUSY, now_s=5.0, latency_s=0.1)
    limit_after_first = endpoint.limit

    endpoint.count_failure(BUSY, now_s=6.0, latency_s=0.1)

    assert endpoint.limit < limit_after_first


async def test_a_failure_of_unknown_latency_is_no_earlier_silence():
    limits = limiter(outage_s=0.9)

    for _ in range(6):
        admission = await limits.acquire(Admission("a"))
        limits.release(admission, Reply("timeout", latency_s=None, failure=LATE))
        limits.endpoints["a"].paused_until_s = 0.0

    assert limits.endpoints["a"].stopped is None


# the stop time


async def refused(call: Awaitable[object]) -> float:
    """Wait until a call is refused because of the stop time, and return the time then."""
    message = r"^no call begins after the stop time, \d\d:\d\d UTC$"
    with pytest.raises(NotCalled, match=message):
        await asyncio.wait_for(call, 60)
    return time.time()


async def test_waiting_calls_are_refused_at_the_stop_time_and_the_one_under_way_goes_on():
    limits = limiter(1)
    admission = await limits.acquire(Admission("a"))
    limits.stop_at_s = time.time() + 0.3

    times_s = await asyncio.gather(
        refused(limits.acquire(Admission("a"))),
        refused(limits.acquire(Admission("a"))),
        refused(limits.acquire(Admission("c"))),
    )

    assert min(times_s) >= limits.stop_at_s
    assert limits.n_too_late == 3
    limits.release(admission, Reply("ok", prompt_tokens=1, completion_tokens=1))
    await refused(limits.acquire(Admission("a")))
    assert limits.n_calls == 1
    assert limits.n_too_late == 4


async def test_a_clock_that_is_set_forward_stops_at_the_next_call(monkeypatch):
    limits = limiter(1, stop_at_s=time.time() + 3_600)
    limits.release(await limits.acquire(Admission("a")))
    later_s = time.time() + 3_700

    monkeypatch.setattr(time, "time", lambda: later_s)

    await refused(limits.acquire(Admission("a")))


async def test_a_call_under_way_is_recorded_and_a_retry_is_not_begun(tmp_path, serve):
    limits = limiter(2)

    def stop_and_fail(_request, _number):
        limits.stop_at_s = time.time()
        return failed(503)

    slow_server = serve(HttpResponse("x", delay_s=1.0))
    broken_server = serve(stop_and_fail)

    with closing(Ledger(tmp_path)) as ledger:
        gateway = Gateway(limits, ledger, "a-run")
        under_way = asyncio.create_task(gateway.complete(call_to(slow_server)))
        await first_request_at(slow_server)
        failed_reply = await gateway.complete(call_to(broken_server))
        reply = await under_way

    assert reply.text == "x"
    assert failed_reply.status == "provider_error"
    assert failed_reply.attempts == 1
    assert len(broken_server.book) == 1
    assert sum(row["calls"] for row in spend_in(tmp_path)) == 2


async def test_a_wait_for_another_process_ends_at_the_stop_time(tmp_path, serve):
    call = call_to(serve(HttpResponse("x")))
    stop_at_s = time.time() + 0.4

    with (
        closing(Ledger(tmp_path)) as ledger,
        closing(Ledger(tmp_path)) as other_ledger,
    ):
        gateway = Gateway(limiter(1, stop_at_s=stop_at_s), ledger, "a-run")
        with other_ledger.call_locks.holding(call.key(call.parameters({}))):
            refused_s = await refused(gateway.complete(call))

    assert refused_s >= stop_at_s


@pytest.mark.parametrize(
    ("stage", "purpose"),
    [("sample", "sample"), ("judge", "judge"), ("drift", "judge")],
)
async def test_a_stage_reports_its_stop_only_after_a_call_was_refused(
    stage,
    purpose,
    tmp_path,
):
    stop_at = datetime(2026, 1, 2, 9, 30, tzinfo=timezone(timedelta(hours=2)))
    job = job_on("sample", tmp_path).model_copy(update={"stop_at": stop_at})
    earlier_report = StageReport(stage)
    later_report = StageReport(stage)

    async with open_run_context(job) as context:
        context.add_notices(earlier_report)
        await refused(
            context.gateway(stage, "a-model").complete(call_to(DEAD_ADDRESS))
        )
        n_refused = context.limiters[purpose].n_too_late
        context.add_notices(later_report)

    warning = "stopped at 07:30 UTC, the stop time; finished work is kept"
    assert n_refused == 1
    assert not earlier_report.is_at_stop_time
    assert earlier_report.warnings == []
    assert later_report.is_at_stop_time
    assert later_report.warnings == [warning]


async def test_every_report_says_that_the_budget_ended_its_stage(tmp_path):
    reports = [StageReport("sample"), StageReport("judge")]

    async with open_run_context(job_on("sample", tmp_path)) as context:
        context.budget.is_spent = True
        for report in reports:
            context.add_notices(report)

    for report in reports:
        assert report.is_at_budget
        [warning] = report.warnings
        assert warning.startswith("stopped at the budget")


# causes that stop a model for the run, immediately or after an outage, and causes that do not


def test_an_unset_variable_stops_the_model_before_any_call(
    calling, serve, monkeypatch
):
    monkeypatch.delenv("NOWHERE_SET", raising=False)
    server = serve(HttpResponse("x"))

    reply = calling(call_to(server, headers={"X-Team": "${NOWHERE_SET}"}))

    assert reply.attempts == 1
    assert len(server.book) == 0
    assert "NOWHERE_SET" in str(calling.reason_to_stop)


def test_a_bad_request_fails_its_cell_alone(calling, serve):
    def respond(request, _number):
        is_good = prompt_of(request) == "good"
        return HttpResponse("fine") if is_good else failed(400, "odd")

    server = serve(respond)
    calling.concurrency = 1

    replies = calling.call_at_once(call_to(server, "good"), *calls_to(server, 9))

    assert [reply.status for reply in replies] == ["ok"] + ["provider_error"] * 9
    assert len(server.book) == 10
    assert calling.reason_to_stop is None


def test_a_model_whose_first_calls_are_all_bad_requests_stops(calling, serve):
    server = serve(failed(400, "no such parameter"))
    calling.concurrency = 1

    replies = calling.call_at_once(*calls_to(server, 30))

    n_calls = len(server.book) - 1  # one is the harmless request
    assert 1 <= n_calls < 9
    assert prompts_at(server).count("Hi") == 1
    assert sum(isinstance(reply, NotCalled) for reply in replies) == 30 - n_calls
    assert "no such parameter" in str(calling.reason_to_stop)


def test_a_dead_endpoint_costs_few_calls_and_leaves_other_models_alone(
    calling, serve
):
    server = serve(HttpResponse("fine"))
    calling.attempts = 5
    calling.limits = {"outage_s": 1.0}
    calling.concurrency = 8
    dead_calls = calls_to(DEAD_ADDRESS, 200)

    replies = calling.call_at_once(*dead_calls, *calls_to(server, 200))

    failed_replies = [reply for reply in replies[:200] if isinstance(reply, Reply)]
    n_stopped = sum(isinstance(reply, NotCalled) for reply in replies)
    assert {reply.status for reply in replies[200:]} == {"ok"}
    assert {reply.status for reply in failed_replies} == {"provider_error"}
    assert len(failed_replies) < 50
    assert len(failed_replies) + n_stopped == 200


def test_calls_that_time_out_at_once_do_not_stop_a_model_that_replied_a_second_ago():
    endpoint = EndpointHealth("a", 16, outage_s=60.0)
    endpoint.count_success(99.0)

    for _ in range(5):
        endpoint.count_failure(LATE, now_s=100.0, latency_s=99.0)

    assert endpoint.stopped is None


def test_after_a_pause_one_call_tests_a_failing_endpoint():
    endpoint = EndpointHealth("a", 8, outage_s=60.0)

    for _ in range(5):
        endpoint.count_failure(DOWN, now_s=10.0, latency_s=0.0)

    assert 0 < endpoint.wait_s(10.0) <= 1
    assert endpoint.wait_s(12.0) == 0.0
    endpoint.in_hand = 1
    assert endpoint.wait_s(12.0) == math.inf


def test_a_reply_ends_the_pause():
    endpoint = EndpointHealth("a", 8, outage_s=60.0, in_hand=3)
    for _ in range(5):
        endpoint.count_failure(DOWN, now_s=10.0, latency_s=0.0)

    endpoint.count_success(12.0)

    assert endpoint.wait_s(12.0) == 0.0


@pytest.mark.parametrize("status", [400, 401, 403])
@pytest.mark.parametrize(
    ("key", "state"), [("a-key-that-is-long", "is set"), (None, "is not set")]
)
def test_a_key_that_is_refused_or_missing_stops_its_model_and_is_named(
    status,
    key,
    state,
    calling,
    serve,
    monkeypatch,
):
    monkeypatch.delenv("HOSTED_VLLM_API_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("HOSTED_VLLM_API_KEY", key)
    server = serve(failed(status, "API key not valid. Please pass a valid API key."))

    error = str(calling(call_to(server)).error)

    refusal = 'a harmless request ("Hi") was refused with the same error'
    assert error.endswith(f"check the key: HOSTED_VLLM_API_KEY {state}")
    assert calling.reason_to_stop == f"{error}; {refusal}"
