"""Call locks: one process makes a call; the others wait for its reply and hold nothing
meanwhile.
"""

import asyncio
import time
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tasks.llm.calls.gateway import Gateway
from tasks.llm.endpoint_health import Admission
from tasks.llm.ledger.call_locks import CallLocks
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Budget, Limiter
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import Calling, Serve, call_to

pytestmark = pytest.mark.usefixtures("hurried")
REFUSED = HttpResponse(None, refusal="no")


def hold(folder: Path, is_locked: "Event") -> None:
    """Lock a call for as long as this process lives."""
    with CallLocks(folder).holding("a call") as is_ours:
        is_locked.set() if is_ours else None
        time.sleep(600)


def test_what_one_has_locked_no_other_gets_until_it_is_released(tmp_path: Path) -> None:
    one = CallLocks(tmp_path)
    other = CallLocks(tmp_path)
    with one.holding("a") as first:
        with other.holding("a") as second, other.holding("b") as beside:
            assert first
            assert not second
            assert beside
        assert one.is_held("a")
        assert other.is_held("a")
        assert not other.is_held("b")
        with one.holding("a") as again:
            assert again is False
        assert other.is_held("a")  # a block without the lock releases nothing
    with other.holding("a") as second:
        assert second
    one.close()
    other.close()


def test_the_locks_of_a_process_end_with_it(tmp_path: Path) -> None:
    spawning = get_context("spawn")
    is_locked = spawning.Event()
    process = spawning.Process(target=hold, args=(tmp_path, is_locked))
    process.start()
    assert is_locked.wait(60)
    mine = CallLocks(tmp_path)
    with mine.holding("a call") as is_mine:
        assert not is_mine
    process.kill()
    asyncio.run(asyncio.wait_for(mine.released("a call"), 60))
    with mine.holding("a call") as is_mine:
        assert is_mine
    mine.close()


async def test_calls_that_another_process_has_in_hand_leave_the_slots_to_others(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("x"))
    calling.folder.mkdir()
    calling.concurrency = 2
    theirs = CallLocks(calling.folder)
    calls = [call_to(server, f"question {number}") for number in range(6)]
    in_hand = [theirs.holding(call.key(call.parameters({}))) for call in calls[:4]]
    assert all(each.__enter__() for each in in_hand)
    async with calling.opened() as (gateway, _):
        waiting_calls = [asyncio.create_task(gateway.complete(call)) for call in calls]
        await asyncio.gather(*waiting_calls[4:])
        await asyncio.sleep(0.1)
        assert [task.done() for task in waiting_calls] == [False] * 4 + [True] * 2
        assert [endpoint.in_hand for endpoint in calling.limiter.endpoints.values()] == [0]
        assert len(server.book) == 2
        theirs.close()
        replies = await asyncio.gather(*waiting_calls)
    assert [(reply.status, reply.attempts) for reply in replies] == [("ok", 1)] * 6
    assert len(server.book) == 6


async def test_two_runs_with_the_same_calls_make_each_once_even_if_it_fails(
    calling: Calling, serve: Serve
) -> None:
    server = serve(
        lambda request, _n: (
            REFUSED if "no" in request["messages"][0]["content"] else HttpResponse("yes")
        )
    )
    calls = [call_to(server, f"{what} {number}") for number in range(15) for what in ("no", "yes")]
    async with calling.opened() as (gateway, ledger):
        with closing(Ledger(calling.folder)) as theirs:
            # One after the other, so that the failed rows of the first run exist before the second
            # one begins.
            other = Gateway(Limiter(4, Budget(None, None)), theirs, "another-run")
            for own, of in ((gateway, ledger), (other, theirs)):
                replies = [await own.complete(call) for call in calls]
                assert [reply.status for reply in replies] == ["refused", "ok"] * 15
                for reply in replies[::2]:
                    of.mark_used(reply.paid)  # as if the failed row were on disk
    assert len(server.book) == 30
    async with calling.opened() as (gateway, _):
        await gateway.complete(calls[0])  # the next run retries failures
    assert len(server.book) == 31


async def test_a_permission_that_led_to_no_call_is_not_counted_against_the_requests_a_minute() -> (
    None
):
    limiter = Limiter(1, Budget(None, None), rpm=0.001)  # one call now, and no other today
    async with asyncio.timeout(60):
        for _ in range(3):
            limiter.release(await limiter.acquire(Admission("a")))
