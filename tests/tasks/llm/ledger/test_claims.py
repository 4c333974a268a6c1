"""Call locks: one process makes a call; the others wait for its reply and hold nothing
meanwhile.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tasks.llm.calls.gateway import Gateway
from tasks.llm.endpoint_health import Admission
from tasks.llm.ledger.call_locks import CallLocks
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Budget, Limiter
from tests.faults.behaviours import prompt_of
from tests.faults.server import HttpResponse
from tests.tasks.llm.conftest import call_to, calls_to

pytestmark = pytest.mark.usefixtures("hurried")


@pytest.fixture
def locks(tmp_path) -> Iterator[CallLocks]:
    with closing(CallLocks(tmp_path)) as locks:
        yield locks


@pytest.fixture
def other_locks(tmp_path) -> Iterator[CallLocks]:
    """The locks of the same warehouse, opened again, as by another process."""
    with closing(CallLocks(tmp_path)) as locks:
        yield locks


def test_a_locked_name_is_free_again_when_its_block_ends(locks, other_locks):
    with locks.holding("a") as is_locked, other_locks.holding("a") as is_locked_twice:
        assert is_locked
        assert not is_locked_twice

    with other_locks.holding("a") as is_locked:
        assert is_locked


def test_a_lock_is_that_of_one_name(locks, other_locks):
    with locks.holding("a"):
        assert locks.is_held("a")
        assert other_locks.is_held("a")
        assert not other_locks.is_held("b")


def test_a_block_without_the_lock_frees_nothing(locks, other_locks):
    with locks.holding("a"):
        with locks.holding("a") as is_locked_twice:
            assert not is_locked_twice

        assert other_locks.is_held("a")


def hold(folder: Path, is_locked: "Event"):
    """Lock a call for as long as this process lives."""
    with CallLocks(folder).holding("a call"):
        is_locked.set()
        time.sleep(600)


def test_the_locks_of_a_process_end_with_it(tmp_path, locks):
    spawning = get_context("spawn")
    is_locked = spawning.Event()
    process = spawning.Process(target=hold, args=(tmp_path, is_locked))
    process.start()
    assert is_locked.wait(60)
    assert locks.is_held("a call")

    process.kill()

    asyncio.run(asyncio.wait_for(locks.wait_until_released("a call"), 60))
    assert not locks.is_held("a call")


async def test_calls_that_another_process_makes_leave_the_slots_to_others(
    calling,
    serve,
):
    server = serve(HttpResponse("x"))
    calling.folder.mkdir()
    calling.concurrency = 2
    calls = calls_to(server, 6)

    with ExitStack() as held_locks:
        locks = held_locks.enter_context(closing(CallLocks(calling.folder)))
        for call in calls[:4]:
            held_locks.enter_context(locks.holding(call.key(call.parameters({}))))
        async with calling.opened() as (gateway, _):
            tasks = [asyncio.create_task(gateway.complete(call)) for call in calls]
            await asyncio.gather(*tasks[4:])
            await asyncio.sleep(0.1)
            are_done = [task.done() for task in tasks]
            [endpoint] = calling.limiter.endpoints.values()
            n_in_hand = endpoint.in_hand
            held_locks.close()
            replies = await asyncio.gather(*tasks)

    assert are_done == [False] * 4 + [True] * 2
    assert n_in_hand == 0
    assert [reply.status for reply in replies] == ["ok"] * 6
    assert [reply.attempts for reply in replies] == [1] * 6
    assert len(server.book) == 6


async def test_two_runs_with_the_same_calls_make_each_once_even_if_it_fails(
    calling,
    serve,
):
    def refuse_some(request, _number):
        if prompt_of(request).startswith("no"):
            return HttpResponse(None, refusal="no")
        return HttpResponse("yes")

    server = serve(refuse_some)
    calls = [call_to(server, prompt) for prompt in ("yes 1", "yes 2", "no 1", "no 2")]

    async def complete_all(gateway, ledger):
        """Make the calls, and mark the refused ones as failed rows on disk."""
        replies = [await gateway.complete(call) for call in calls]
        for reply in replies[2:]:
            ledger.mark_spent(reply.ledger_keys)
        return [reply.status for reply in replies]

    async with calling.opened() as (gateway, ledger):
        with closing(Ledger(calling.folder)) as other_ledger:
            # One run after the other, so that the failed rows of the first exist before the second
            # one begins.
            limiter = Limiter(4, Budget(None, None))
            other_gateway = Gateway(limiter, other_ledger, "another-run")
            statuses = await complete_all(gateway, ledger)
            other_statuses = await complete_all(other_gateway, other_ledger)
    n_requests = len(server.book)
    async with calling.opened() as (gateway, _):
        await gateway.complete(calls[-1])

    assert statuses == ["ok", "ok", "refused", "refused"]
    assert other_statuses == statuses
    assert n_requests == 4
    assert len(server.book) == 5, "the next run tries failures again"


async def test_an_admission_without_a_call_does_not_count_as_a_request_per_minute():
    one_call_today = 0.001
    limiter = Limiter(1, Budget(None, None), rpm=one_call_today)

    async with asyncio.timeout(60):
        for _ in range(3):
            limiter.release(await limiter.acquire(Admission("a")))
