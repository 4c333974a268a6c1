"""A stop time: no call begins after it, those that wait fail at once, what is under way comes to its end."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tasks.llm.budget import Budget
from tasks.llm.calls.gateway import Gateway, Tries
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.limiter import AdmissionRequest, Limiter, Outcome, TimeIsUp
from tasks.llm.replies import Reply
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.kit import job_on
from tests.tasks.llm.conftest import call_to, failed

Serve = Callable[[Behaviour | Answer], FaultServer]
AT_ONCE_S = 5.0
"""More than a busy machine takes; who is not told waits for ever."""


def limiter_until(stop_at_s: float, concurrency: int = 1) -> Limiter:
    return Limiter(concurrency, Budget(None, None), stop_at_s=stop_at_s)


async def refused_at_s(asked: "asyncio.Task[object]") -> float:
    """When a task was told that the time is up."""
    with pytest.raises(TimeIsUp, match=r"^no call begins after the stop time, \d\d:\d\d UTC$"):
        await asked
    return time.time()


def test_all_that_wait_are_told_at_the_moment_and_what_is_under_way_goes_on() -> None:
    async def run() -> None:
        stop_at_s = time.time() + 0.3
        limiter = limiter_until(stop_at_s)
        admission = await limiter.acquire(AdmissionRequest("a", "held"))
        waiting = [
            asyncio.create_task(limiter.acquire(AdmissionRequest(endpoint, key)))
            for endpoint, key in ("ab", "ab", ("c", "held"))
        ]
        told_at_s = await asyncio.gather(*map(refused_at_s, waiting))
        assert all(0.0 <= at_s - stop_at_s < AT_ONCE_S for at_s in told_at_s)
        assert limiter.too_late == 3
        limiter.release(admission, Outcome(Reply("ok", prompt_tokens=1, completion_tokens=1)))
        with pytest.raises(TimeIsUp):
            await limiter.acquire(AdmissionRequest("a", "late"))
        assert (limiter.totals.calls, limiter.too_late) == (1, 4)

    asyncio.run(run())


def test_calls_that_wait_for_one_with_the_same_key_are_told_too() -> None:
    async def run() -> None:
        stop_at_s = time.time() + 0.2
        limiter = limiter_until(stop_at_s, concurrency=4)
        await limiter.acquire(AdmissionRequest("a", "same"))
        waiting = asyncio.create_task(limiter.acquire(AdmissionRequest("a", "same")))
        assert await refused_at_s(waiting) - stop_at_s < AT_ONCE_S

    asyncio.run(run())


def test_a_clock_that_is_set_forward_stops_at_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        limiter = limiter_until(time.time() + 3_600)
        limiter.release(await limiter.acquire(AdmissionRequest("a", "early")), Outcome())
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + 3_700)
        with pytest.raises(TimeIsUp):
            await limiter.acquire(AdmissionRequest("a", "late"))

    asyncio.run(run())


def test_a_call_under_way_is_recorded_and_a_retry_is_not_begun(tmp_path: Path, serve: Serve) -> None:
    slow, broken = serve(Answer("x", delay_s=0.6)), serve(replace(failed(503), delay_s=0.25))

    async def run() -> list[Reply]:
        stop_at_s = time.time() + 0.4
        ledger = Ledger(tmp_path)
        tries = Tries(attempts=5, stop_at_s=stop_at_s)
        gateway = Gateway(limiter_until(stop_at_s, concurrency=2), ledger, "a-run", tries)
        replies = await asyncio.gather(gateway.complete(call_to(slow)), gateway.complete(call_to(broken)))
        ledger.close()
        return list(replies)

    kept, given_up = asyncio.run(run())
    assert (kept.text, given_up.status, given_up.attempts) == ("x", "provider_error", 1)
    assert (len(slow.book), len(broken.book)) == (1, 1)
    assert sum(row["calls"] for row in spend_in(tmp_path)) == 2


def test_a_wait_for_another_process_ends_at_the_moment(tmp_path: Path, serve: Serve) -> None:
    call = call_to(serve(Answer("x")))

    async def run() -> float:
        stop_at_s = time.time() + 0.4
        ledger, theirs = Ledger(tmp_path), Ledger(tmp_path)
        gateway = Gateway(limiter_until(stop_at_s), ledger, "a-run", Tries(stop_at_s=stop_at_s))
        with theirs.call_locks.holding(call.key(call.parameters({}))):
            told_at_s = await refused_at_s(asyncio.create_task(gateway.complete(call)))
        ledger.close()
        theirs.close()
        return told_at_s - stop_at_s

    assert asyncio.run(run()) < AT_ONCE_S


@pytest.mark.parametrize(("stage", "role"), [("sample", "sample"), ("judge", "judge"), ("drift", "judge")])
def test_a_stage_says_that_it_stopped_if_a_call_was_refused_for_it(stage: str, role: str, tmp_path: Path) -> None:
    stop_at = datetime(2026, 1, 2, 9, 30, tzinfo=timezone(timedelta(hours=2)))
    job = job_on("sample", tmp_path).model_copy(update={"stop_at": stop_at})

    async def run() -> list[StageReport]:
        quiet, told = StageReport(stage), StageReport(stage)
        async with open_run_context(job) as context:
            context.add_notices(quiet)
            with pytest.raises(TimeIsUp):
                await context.gateway(stage, "a-model").complete(call_to("http://127.0.0.1:9/v1"))
            assert context.limiters[role].too_late == 1
            context.add_notices(told)
        return [quiet, told]

    quiet, told = asyncio.run(run())
    assert (quiet.is_at_stop_time, quiet.warnings) == (False, [])
    assert told.is_at_stop_time
    assert told.warnings == ["stopped at 07:30 UTC, the stop time; finished work is kept"]
