"""One cap on tokens and dollars over live calls and batches, which no call that starts could pass."""

import asyncio
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.calls.batches import Batching, BatchOutcome
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import AdmissionRequest, Budget, BudgetSpent, Limiter, NotCalled, Outcome, Reservations
from tasks.llm.replies import Reply
from tasks.llm.request import Prices, Usage
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import Calling, Serve, call_to, failed, then

pytestmark = pytest.mark.timeout(120)  # a process that is frozen hears no time limit of the event loop

orders = st.lists(st.tuples(st.booleans(), st.integers(0, 50), st.integers(0, 20), st.floats(0, 1)), max_size=40)


@given(cap=st.integers(0, 120), order=orders)
def test_what_was_used_and_is_set_aside_never_pass_the_cap(cap: int, order: list[tuple[bool, int, int, float]]) -> None:
    """Tokens and dollars are the same numbers here; the oracle counts for itself."""
    budget = Budget(float(cap), cap)
    open_: list[int] = []
    used = 0
    for starts, most, which, share in order:
        if starts:
            try:
                has_begun = budget.reserve(Usage(float(most), most))
            except BudgetSpent:
                assert used + most > cap or budget.is_spent
                continue
            assert has_begun == (used + sum(open_) + most <= cap)
            if has_begun:
                open_.append(most)
        elif open_:
            ended = open_.pop(which % len(open_))
            spent = int(ended * share)
            budget.release(Usage(float(ended), ended), Usage(float(spent), spent))
            used += spent
        assert (budget.used_tokens, budget.used_usd) == (used, used)
        assert used + sum(open_) <= cap


def test_fractions_of_a_dollar_leave_nothing_behind_when_all_is_given_back() -> None:
    budget = Budget(2.58, None)
    for usd in (0.15, 0.57, 0.86):
        assert budget.reserve(Usage(usd, 1))
    for usd in (0.57, 0.86, 0.15):
        budget.release(Usage(usd, 1), Usage(0.0, 0))
    assert budget.reserve(Usage(2.58, 1)), "nothing is under way that could give back what this call waits for"


def test_a_call_that_may_use_any_amount_does_not_start_under_a_cap() -> None:
    with pytest.raises(BudgetSpent):
        Budget(1.0, None).reserve(Usage(None, 5))
    with pytest.raises(BudgetSpent):
        Budget(None, 100).reserve(Usage(0.0, None))
    assert Budget(None, None).reserve(Usage(None, None))


def test_what_is_not_known_counts_as_what_was_set_aside() -> None:
    budget = Budget(10.0, 100)
    assert budget.reserve(Usage(4.0, 40))
    budget.release(Usage(4.0, 40), Usage(None, None))
    assert (4.0, 40) == (budget.used_usd, budget.used_tokens)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_real_calls_stop_before_the_cap_on_dollars(concurrency: int, calling: Calling, serve: Serve) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 100, "total_tokens": 110}
    server = serve(HttpResponse("x", usage=usage))
    calling.max_usd, calling.concurrency = 0.5, concurrency
    target: dict[str, Any] = {"prices": Prices(100.0, None, 1000.0, "a list"), "parameters": {"max_tokens": 100}}
    replies = calling.at_once(*(call_to(server, f"q{n}", **target) for n in range(30)))
    kinds = Counter(type(reply).__name__ for reply in replies)
    assert kinds == {"Reply": len(server.book), "BudgetSpent": 30 - len(server.book)}
    assert 0.3 < len(server.book) * 0.101 <= 0.5


def test_what_the_server_would_bill_at_most_fits_even_when_it_bills_that(calling: Calling, serve: Serve) -> None:
    """A token a byte, and as many reply tokens as allowed: the dearest that a provider can be."""

    def dearest(request: dict[str, Any], _number: int) -> HttpResponse:
        prompt = sum(len(message["content"].encode()) for message in request["messages"])
        most = request["max_tokens"]
        usage = {"prompt_tokens": prompt, "completion_tokens": most, "total_tokens": prompt + most}
        return HttpResponse("x", usage=usage, delay_s=0.02)

    server = serve(dearest)
    calling.max_tokens, calling.concurrency = 3000, 8
    calling.at_once(*(call_to(server, f"täglich {'ü' * n}", parameters={"max_tokens": 50}) for n in range(60)))
    billed = sum(len(r["messages"][0]["content"].encode()) + 50 for r in server.book)
    assert 1000 < billed <= 3000


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    "http_response",
    [
        HttpResponse("", usage={"prompt_tokens": 10, "completion_tokens": 90, "total_tokens": 100}),
        HttpResponse("", usage=None),
        HttpResponse("late", delay_s=9), HttpResponse("word " * 99, cuts_body=True)
    ],
    ids=["discarded", "without usage", "late", "cut"]
)  # fmt: skip
def test_attempts_count_what_they_used_and_where_nobody_knows_what_was_set_aside(
    http_response: HttpResponse, calling: Calling, serve: Serve
) -> None:
    server, calling.max_tokens, calling.attempts = serve(http_response), 600, 50
    calling(call_to(server, timeout_s=0.1 if http_response.delay_s else 30.0, parameters={"max_tokens": 90}))
    assert 2 <= len(server.book) <= 600 // 90


@pytest.mark.usefixtures("hurried")
def test_attempts_that_the_server_refused_cost_nothing(calling: Calling, serve: Serve) -> None:
    server = serve(then(*[failed(429)] * 5, HttpResponse("now", usage={"prompt_tokens": 1, "completion_tokens": 1})))
    calling.max_tokens, calling.attempts = 150, 7
    assert "now" == calling(call_to(server, "q", parameters={"max_tokens": 90})).text
    assert 2 == calling.limiter.budget.used_tokens


def test_a_call_that_is_cancelled_under_way_counts_as_what_was_set_aside(calling: Calling, serve: Serve) -> None:
    server, calling.max_tokens, calling.patience_s = serve(HttpResponse("x", delay_s=5)), 1000, 0.5
    with pytest.raises(TimeoutError):
        calling(call_to(server, parameters={"max_tokens": 90}))
    assert 1 == len(server.book)
    assert calling.limiter.budget.used_tokens >= 90


def test_a_reply_from_the_ledger_costs_nothing(calling: Calling, serve: Serve) -> None:
    server, calling.max_tokens = serve(HttpResponse("x")), 1000
    call = call_to(server, parameters={"max_tokens": 90})
    calling(call)
    calling.max_tokens = 0
    assert ("x", 0) == (calling(call).text, calling.limiter.budget.used_tokens)


def test_a_cap_with_no_room_for_one_call_says_what_a_call_could_use() -> None:
    budget = Budget(1.0, None)
    with pytest.raises(BudgetSpent) as refused:
        budget.reserve(Usage(1.2903, 9_000))
    assert str(refused.value) == (
        "0.0000 of 1 USD used, and the next call could use up to 1.2903 USD: raise the cap, "
        "or set a lower `max_tokens` for the model"
    )


OPEN = 10**9
"""Polls until a batch is done that never is."""
LIVE = AdmissionRequest("live", "a live call", most=Usage(None, 80))


async def looked_after(folder: Path, server: FaultServer, budget: Budget, wait_s: float = 30.0) -> BatchOutcome:
    """A call of 100 tokens at most, by the batch."""
    call = call_to(server, "q" * 36, name="openai/judge", parameters={"max_tokens": 48})
    with closing(Ledger(folder)) as ledger:
        return await Batching(call.target, ledger, budget, "a-run").submit_and_collect([call], wait_s)


async def test_a_batch_that_goes_on_counts_as_used_and_a_live_call_without_room_stops_at_the_budget(
    tmp_path: Path, serve: Serve
) -> None:
    server, budget = serve(HttpResponse("x")), Budget(None, 150)
    server.polls_until_done = OPEN
    merged = await looked_after(tmp_path, server, budget, wait_s=0.0)
    assert (1, 1, 100) == (merged.n_submitted, merged.waiting, budget.used_tokens)
    with pytest.raises(NotCalled, match="100 of 150 tokens used"):
        await Limiter(4, budget).acquire(LIVE)
    assert budget.is_spent


async def test_a_live_call_goes_when_a_batch_gives_back_what_was_set_aside(tmp_path: Path, serve: Serve) -> None:
    server = serve(HttpResponse("x", usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}))
    server.polls_until_done, budget = 2, Budget(None, 150)
    looking = asyncio.create_task(looked_after(tmp_path, server, budget))
    while not budget._reserved:  # noqa: ASYNC110 - a budget tells only when something is given back
        await asyncio.sleep(0.01)
    await Limiter(4, budget).acquire(LIVE)
    assert (1, 7) == (len((await looking).replies), budget.used_tokens)


async def test_calls_by_the_batch_wait_for_the_room_that_a_live_call_holds_but_no_longer_than_for_batches(
    tmp_path: Path, serve: Serve
) -> None:
    server, budget = serve(HttpResponse("x")), Budget(None, 150)
    limiter = Limiter(4, budget)
    admission = await limiter.acquire(LIVE)
    merged = await looked_after(tmp_path, server, budget, wait_s=0.2)
    note = "1 calls were not submitted, because they could exceed the budget"
    assert (merged.replies, merged.notes, budget.is_spent) == ([], [note], False)  # there is room when the other ends
    looking = asyncio.create_task(looked_after(tmp_path, server, budget))
    await asyncio.sleep(0.2)
    assert not looking.done()
    limiter.release(admission, Outcome())
    assert 1 == len((await looking).replies)


@pytest.mark.parametrize("end", ["failed", "expired"])
async def test_what_a_batch_that_was_cut_short_did_not_come_to_costs_nothing(
    end: Any, tmp_path: Path, serve: Serve
) -> None:
    server, budget = serve(HttpResponse("x")), Budget(None, 1000)
    server.batch_end, server.responses_before_end = end, 0
    await looked_after(tmp_path, server, budget)
    assert 0 == budget.used_tokens
    assert budget.reserve(Usage(None, 1000))


Move = tuple[int, int, float, bool]
"""What a call may use at most, the turns that it takes, the share that it uses, whether that is told."""
moves = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), st.floats(0, 1), st.booleans()), max_size=12)


class Simulation:
    """Live calls of two limiters, and batches, under one cap."""

    def __init__(self, cap: int, concurrency: int) -> None:
        self.cap, self.budget = cap, Budget(None, cap)
        self.limiters = [Limiter(concurrency, self.budget), Limiter(concurrency, self.budget)]

    async def turned(self, turns: int) -> None:
        assert self.budget.used_tokens + self.budget._reserved_tokens <= self.cap
        for _ in range(turns):
            await asyncio.sleep(0)

    async def live(self, number: int, move: Move) -> None:
        most, turns, share, is_known = move
        limiter = self.limiters[number % 2]
        request = AdmissionRequest(f"endpoint-{number % 3}", f"key-{number}", most=Usage(None, most))
        try:
            admission = await limiter.acquire(request)
        except NotCalled:
            return
        await self.turned(turns)
        used = int(most * share)
        reply = Reply("ok", prompt_tokens=used, completion_tokens=0) if is_known else None
        limiter.release(admission, Outcome(reply, is_lost=not is_known))
        await self.turned(0)

    async def batch(self, begins: int, move: Move) -> None:
        most, turns, share, ends = move
        reservations = Reservations(self.budget)
        await self.turned(begins + 1)
        while not reservations.has_room("key", Usage(None, most)):
            if self.budget.is_spent:
                return
            await self.turned(1)
        await self.turned(turns)
        if ends:
            reservations.release("key", Usage(None, int(most * share)))
        reservations.count_as_used()
        await self.turned(0)


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
        assert 0 == world.budget._reserved_tokens

    asyncio.run(run())
