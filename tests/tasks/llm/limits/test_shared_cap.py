"""One cap over live calls and provider batches: nobody waits for ever, nothing freezes, the cap is never passed."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.budget import Budget, NotCalled, SetAside
from tasks.llm.calls.batches import Batching, BatchOutcome
from tasks.llm.calls.gateway import Gateway, Tries
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import AdmissionRequest, Limiter, Outcome
from tasks.llm.replies import Reply
from tasks.llm.request import Usage
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import call_to

Serve = Callable[[Behaviour | Answer], FaultServer]
OPEN = 10**9
"""Polls until a batch is done that never is."""
LIVE = AdmissionRequest("live", "a live call", most=Usage(None, 80))


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """A process that is frozen, where no time limit of the event loop would be heard, fails after a minute."""

    def frozen(*_: object) -> None:
        raise TimeoutError("the process is frozen")

    before = signal.signal(signal.SIGALRM, frozen)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


async def looked_after(
    server: FaultServer, ledger: Ledger, budget: Budget, n_calls: int = 1, wait_s: float = 30.0, **limits: Any
) -> BatchOutcome:
    """Calls of 100 tokens at most each, by the batch."""
    question = "q" * 34
    calls = [
        call_to(server, f"{question}{n:02}", name="openai/judge", parameters={"max_tokens": 48}, **limits)
        for n in range(n_calls)
    ]
    return await Batching(calls[0].target, ledger, budget, "a-run").submit_and_collect(calls, wait_s)


def in_run(folder: Path, work: Callable[[Ledger], Any]) -> Any:
    async def run() -> Any:
        ledger = Ledger(folder)
        try:
            return await work(ledger)
        finally:
            ledger.close()

    return asyncio.run(run())


def test_a_batch_that_goes_on_counts_as_used_and_a_live_call_without_room_stops_at_the_budget(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(Answer("x"))
    server.polls_until_done = OPEN

    async def work(ledger: Ledger) -> None:
        budget = Budget(None, 150)
        merged = await looked_after(server, ledger, budget, wait_s=0.0)
        assert (merged.n_submitted, merged.waiting) == (1, 1)
        assert budget.used_tokens == 100
        with pytest.raises(NotCalled, match="100 of 150 tokens used"):
            await Limiter(4, budget).acquire(LIVE)
        assert budget.is_spent

    in_run(tmp_path, work)


def test_a_live_call_goes_when_a_batch_gives_back_what_was_set_aside(tmp_path: Path, serve: Serve) -> None:
    server = serve(Answer("x", usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}))
    server.polls_until_done = 2

    async def work(ledger: Ledger) -> None:
        budget = Budget(None, 150)
        looking = asyncio.create_task(looked_after(server, ledger, budget))
        while not budget._reserved:  # noqa: ASYNC110 - a budget tells only when something is given back
            await asyncio.sleep(0.01)
        admission = await Limiter(4, budget).acquire(LIVE)
        assert len((await looking).replies) == 1
        assert (budget.used_tokens, admission.request) == (7, LIVE)

    in_run(tmp_path, work)


def test_calls_by_the_batch_wait_for_the_room_that_a_live_call_holds_without_freezing_the_process(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(Answer("x"))

    async def work(ledger: Ledger) -> None:
        budget = Budget(None, 150)
        limiter = Limiter(4, budget)
        admission = await limiter.acquire(LIVE)
        looking = asyncio.create_task(looked_after(server, ledger, budget))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not looking.done()
        limiter.release(admission, Outcome())
        assert len((await looking).replies) == 1

    in_run(tmp_path, work)


def test_calls_by_the_batch_wait_no_longer_than_for_batches_and_are_told_of(tmp_path: Path, serve: Serve) -> None:
    server = serve(Answer("x"))

    async def work(ledger: Ledger) -> None:
        budget = Budget(None, 150)
        await Limiter(4, budget).acquire(LIVE)
        merged = await looked_after(server, ledger, budget, wait_s=0.2)
        note = "1 calls were not submitted, since they could exceed the budget"
        assert (merged.replies, merged.notes) == ([], [note])
        assert not budget.is_spent  # there is room when the live call ends

    in_run(tmp_path, work)


@pytest.mark.parametrize("end", ["failed", "expired"])
def test_what_a_batch_that_was_cut_short_did_not_come_to_costs_nothing(end: Any, tmp_path: Path, serve: Serve) -> None:
    server = serve(Answer("x"))
    server.batch_end, server.answered_before_end = end, 0

    async def work(ledger: Ledger) -> None:
        budget = Budget(None, 1000)
        await looked_after(server, ledger, budget, n_calls=3)
        assert budget.used_tokens == 0
        assert budget.reserve(Usage(None, 1000))

    in_run(tmp_path, work)


def test_two_judges_one_live_and_one_by_the_batch_end_under_one_cap(tmp_path: Path, serve: Serve) -> None:
    """Side by side, with a batch that stays open: what fits is paid for, and the cap is kept."""
    usage = {"prompt_tokens": 10, "completion_tokens": 50, "total_tokens": 60}
    server = serve(Answer("x", usage=usage))
    server.polls_until_done = OPEN

    async def work(ledger: Ledger) -> None:
        budget = Budget(None, 1000)
        gateway = Gateway(Limiter(2, budget), ledger, "a-run", Tries(1))
        live = [call_to(server, f"live {n}", parameters={"max_tokens": 50}) for n in range(30)]
        (merged, *replies) = await asyncio.gather(
            looked_after(server, ledger, budget, n_calls=4, wait_s=1.0),
            *map(gateway.complete, live),
            return_exceptions=True,
        )
        answered = [reply for reply in replies if not isinstance(reply, BaseException)]
        assert isinstance(merged, BatchOutcome)
        assert {type(reply).__name__ for reply in replies} <= {"Reply", "BudgetSpent"}
        assert 0 < len(answered) < 30
        assert 60 * len(answered) + 100 * merged.n_submitted == budget.used_tokens <= 1000
        assert budget.is_spent

    in_run(tmp_path, work)


Move = tuple[int, int, float, bool]
"""What a call may use at most, the turns that it takes, the share that it uses, whether that is told."""
moves = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), st.floats(0, 1), st.booleans()), max_size=12)


class Simulation:
    """Live calls of two limiters, and batches, under one cap."""

    def __init__(self, cap: int, concurrency: int) -> None:
        self.cap, self.budget = cap, Budget(None, cap)
        self.limiters = [Limiter(concurrency, self.budget), Limiter(concurrency, self.budget)]

    def check(self) -> None:
        assert self.budget.used_tokens + self.budget._reserved_tokens <= self.cap

    async def live(self, number: int, move: Move) -> None:
        most, turns, share, is_known = move
        limiter = self.limiters[number % 2]
        try:
            admission = await limiter.acquire(
                AdmissionRequest(f"endpoint-{number % 3}", f"key-{number}", most=Usage(None, most))
            )
        except NotCalled:
            return
        self.check()
        await turned(turns)
        used = int(most * share) if is_known else None
        reply = Reply("ok", prompt_tokens=used, completion_tokens=0) if is_known else None
        limiter.release(admission, Outcome(reply, is_lost=not is_known))
        self.check()

    async def batch(self, begins: int, move: Move) -> None:
        most, turns, share, ends = move
        set_aside = SetAside(self.budget)
        await turned(begins)
        while not await self._handed_in(set_aside, most):
            if self.budget.is_spent:
                return
        self.check()
        await turned(turns)
        if ends:
            set_aside.settle("key", Usage(None, int(most * share)))
        set_aside.count_as_used()
        self.check()

    async def _handed_in(self, set_aside: SetAside, most: int) -> bool:
        await asyncio.sleep(0)
        return set_aside.has_room("key", Usage(None, most))


async def turned(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


@given(cap=st.integers(0, 150), live=moves, batched=moves, concurrency=st.integers(1, 4), begins=st.integers(0, 9))
def test_whatever_comes_in_whatever_order_ends_and_never_passes_the_cap(
    cap: int, live: list[Move], batched: list[Move], concurrency: int, begins: int
) -> None:
    async def run() -> None:
        world = Simulation(cap, concurrency)
        async with asyncio.timeout(30):
            await asyncio.gather(
                *(world.live(number, move) for number, move in enumerate(live)),
                *(world.batch(begins, move) for move in batched),
            )
        assert world.budget._reserved_tokens == 0

    asyncio.run(run())
