"""Limits that several processes share: permission over a real socket pair, between loops and between processes."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tasks.llm.channel import Channel
from tasks.llm.failures import Failure, Kind
from tasks.llm.leases import ACQUIRE, GRANT, RELEASE, LeasedPermits, Lessor
from tasks.llm.limits.admission import Ask, Lease, Outcome
from tasks.llm.limits.budget import Budget, BudgetSpent, Usage
from tasks.llm.limits.limiter import Limiter, ModelStopped

ROOT = Path(__file__).parents[2]


async def serve_leases(limiter: Limiter, end: socket.socket) -> None:
    """What a run does for one worker."""
    channel = await Channel.over(end)
    lessor = Lessor({"judge": limiter}, channel)
    async for kind, *rest in channel.messages():
        if kind == ACQUIRE:
            lessor.ask(*rest)
        elif kind == RELEASE:
            lessor.release(*rest)
    lessor.take_all_back()
    channel.close()


async def worker(end: socket.socket) -> tuple[LeasedPermits, Channel, "asyncio.Task[None]"]:
    """What a worker does with its end."""
    channel = await Channel.over(end)
    permits = LeasedPermits("judge", channel)

    async def listen() -> None:
        async for kind, _role, number, lease in channel.messages():
            assert kind == GRANT
            permits.granted(number, lease)

    return permits, channel, asyncio.create_task(listen())


def with_workers(limiter: Limiter, number: int, work: Callable[[list[LeasedPermits]], Awaitable[None]]) -> None:
    async def run() -> None:
        pairs = [socket.socketpair() for _ in range(number)]
        serving = [asyncio.create_task(serve_leases(limiter, ours)) for ours, _ in pairs]
        workers = [await worker(theirs) for _, theirs in pairs]
        async with asyncio.timeout(20):
            await work([permits for permits, _, _ in workers])
        for _, channel, _ in workers:
            channel.close()
        await asyncio.gather(*serving, *(listening for _, _, listening in workers))

    asyncio.run(run())


def test_all_workers_together_keep_the_limit_and_the_order() -> None:
    limiter, went, at_once = Limiter(3, Budget(None, None)), list[int](), list[int]()
    under_way = 0

    async def one(permits: LeasedPermits, place: int) -> None:
        nonlocal under_way
        lease = await permits.acquire(Ask("a", f"key {place}", (place,), likely_tokens=500))
        under_way += 1
        at_once.append(under_way)
        went.append(place)
        await asyncio.sleep(0.01)
        under_way -= 1
        permits.release(lease, Outcome(is_answered=True, prompt_tokens=1, completion_tokens=2))

    async def work(all_permits: list[LeasedPermits]) -> None:
        first = [asyncio.create_task(one(permits, place)) for place, permits in enumerate(all_permits)]
        await asyncio.sleep(0.005)
        rest = [one(all_permits[place % 3], place) for place in range(20, 3, -1)]
        await asyncio.gather(*first, *rest)

    with_workers(limiter, 3, work)
    assert max(at_once) == 3
    late = went[6:]
    assert late == sorted(late)
    assert (limiter.totals.calls, limiter.totals.completion_tokens) == (20, 40)


def test_refusals_and_ends_of_calls_reach_the_other_side() -> None:
    limiter = Limiter(4, Budget(None, 100))

    async def work(all_permits: list[LeasedPermits]) -> None:
        one, other = all_permits
        lease = await one.acquire(Ask("a", "k1", most=Usage(None, 60)))
        one.release(lease, Outcome(failure=Failure("provider_error", Kind.FATAL, "wrong key", is_unpaid=True)))
        with pytest.raises(ModelStopped, match="a: wrong key"):
            await other.acquire(Ask("a", "k2", most=Usage(None, 60)))
        lease = await other.acquire(Ask("b", "k3", most=Usage(None, 60)))
        other.release(lease, Outcome(is_answered=True, prompt_tokens=30, completion_tokens=30))
        with pytest.raises(BudgetSpent, match="60 of 100 tokens"):
            await one.acquire(Ask("b", "k4", most=Usage(None, 60)))

    with_workers(limiter, 2, work)


def test_an_ask_that_is_given_up_before_it_is_granted_comes_back() -> None:
    limiter = Limiter(1, Budget(None, None))

    async def work(all_permits: list[LeasedPermits]) -> None:
        (permits,) = all_permits
        lease = await permits.acquire(Ask("a", "k1"))
        waiting = asyncio.create_task(permits.acquire(Ask("a", "k2")))
        await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.sleep(0)
        permits.release(lease, Outcome())
        permits.release(await permits.acquire(Ask("a", "k3")), Outcome())

    with_workers(limiter, 1, work)
    assert limiter.lanes["a"].in_hand == 0


HOLDER = """
import asyncio, json, socket, sys
from tasks.llm.channel import Channel
from tasks.llm.leases import LeasedPermits
from tasks.llm.limits.limiter import Ask

async def main(number):
    channel = await Channel.over(socket.socket(fileno=number))
    permits = LeasedPermits("judge", channel)
    async def hold(place):
        await permits.acquire(Ask("a", f"held {place}"))
        print(json.dumps(place), flush=True)
    tasks = [asyncio.create_task(hold(place)) for place in range(5)]
    async for _, _, asked, lease in channel.messages():
        permits.granted(asked, lease)

asyncio.run(main(int(sys.argv[1])))
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_dies_gives_back_what_it_held_and_what_it_waited_for(end: signal.Signals) -> None:
    limiter = Limiter(3, Budget(None, None))

    async def run() -> Lease:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-c", HOLDER, str(theirs.fileno())], cwd=ROOT, pass_fds=[theirs.fileno()],
                stdout=subprocess.PIPE,
            )  # fmt: skip
        serving = asyncio.create_task(serve_leases(limiter, ours))
        assert process.stdout is not None
        held = [json.loads(await asyncio.to_thread(process.stdout.readline)) for _ in range(3)]
        assert held == [0, 1, 2]
        assert limiter.lanes["a"].in_hand == 3
        mine = asyncio.create_task(limiter.acquire(Ask("a", "mine", priority=(9,))))
        await asyncio.sleep(0.05)
        assert not mine.done()
        os.kill(process.pid, end)
        async with asyncio.timeout(20):
            lease = await mine
            await serving
        assert limiter.lanes["a"].in_hand == 1
        await asyncio.to_thread(process.wait)
        process.stdout.close()
        return lease

    assert asyncio.run(run()).ask.key == "mine"


def test_calls_under_way_in_a_worker_that_dies_count_as_what_was_set_aside() -> None:
    budget = Budget(None, 1000)
    limiter = Limiter(3, budget)

    async def run() -> None:
        ours, theirs = socket.socketpair()
        serving = asyncio.create_task(serve_leases(limiter, ours))
        permits, channel, _ = await worker(theirs)
        await permits.acquire(Ask("a", "k", most=Usage(None, 100)))
        channel.close()
        await serving

    asyncio.run(run())
    assert budget.used_tokens == 100


def test_messages_arrive_whole_and_in_order_whatever_their_size() -> None:
    sent = [("x" * size, size) for size in (0, 1, 70_000, 3_000_000, 5)]

    async def run() -> list[tuple[object, ...]]:
        ours, theirs = socket.socketpair()
        here, there = await Channel.over(ours), await Channel.over(theirs)
        for message in sent:
            here.send(*message)
        here.finish()
        got = [message async for message in there.messages()]
        here.close()
        there.send("nobody hears this")
        there.close()
        return got

    assert asyncio.run(run()) == sent
