"""One cap on tokens and dollars for live calls and batches: no call starts that could exceed it."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.endpoint_health import Admission
from tasks.llm.limiter import Budget, BudgetSpent, Limiter, NotCalled, Reservations
from tasks.llm.replies import Reply
from tasks.llm.request import Call, Prices, Usage
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import Calling, Serve, call_to, failed, then

pytestmark = pytest.mark.timeout(
    120
)  # the event loop's own time limits do not end a blocked process


def test_fractions_of_a_dollar_leave_nothing_behind_when_all_is_given_back() -> None:
    budget = Budget(2.58, None)
    for usd in (0.15, 0.57, 0.86):
        assert budget.reserve(Usage(usd, 1))
    for usd in (0.57, 0.86, 0.15):
        budget.release(Usage(usd, 1), Usage(0.0, 0))
    assert budget.reserve(Usage(2.58, 1)), (
        "nothing is under way that could give back what this call waits for"
    )


def test_a_call_that_may_use_any_amount_does_not_start_under_a_cap() -> None:
    for budget, most in (
        (Budget(1.0, None), Usage(None, 5)),
        (Budget(None, 100), Usage(0.0, None)),
    ):
        with pytest.raises(BudgetSpent):
            budget.reserve(most)
    assert Budget(None, None).reserve(Usage(None, None))
    advice = (
        r"^0.0000 of 1 USD used, .* could exceed the cap: raise it, or set a lower `max_tokens`"
        r" for the"
    )
    with pytest.raises(BudgetSpent, match=advice):
        Budget(1.0, None).reserve(Usage(1.2903, 9_000))


def test_a_free_call_reserves_no_money() -> None:
    budget = Budget(0.5, None)

    has_first = budget.reserve(Usage(0.0, 1))
    has_second = budget.reserve(Usage(0.5, 1))

    assert has_first
    assert has_second


@pytest.mark.parametrize("cap", [{"max_usd": 0.5}, {"max_tokens": 3000}], ids=str)
@pytest.mark.parametrize("at_once", [1, 8])
def test_calls_of_the_dearest_stop_before_the_cap(
    at_once: int, cap: Any, calling: Calling, serve: Serve
) -> None:
    """The most expensive provider: a token for each byte, and as many reply tokens as allowed."""

    def dearest(request: dict[str, Any], _number: int) -> HttpResponse:
        prompt = len(request["messages"][0]["content"].encode())
        most = request["max_tokens"]
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": most,
            "total_tokens": prompt + most,
        }
        return HttpResponse("x", usage=usage, delay_s=0.02)

    server = serve(dearest)
    calling = replace(calling, concurrency=at_once, **cap)
    target: dict[str, Any] = {
        "prices": Prices(100.0, None, 1000.0, "a list"),
        "parameters": {"max_tokens": 50},
    }
    replies = calling.at_once(*(call_to(server, f"täglich {'ü' * n}", **target) for n in range(60)))
    n_calls = len(server.book)
    prompts = [r["messages"][0]["content"].encode() for r in server.book]
    assert {"Reply": n_calls, "BudgetSpent": 60 - n_calls} == Counter(
        type(reply).__name__ for reply in replies
    )
    n_prompt_tokens = sum(map(len, prompts))
    used = n_prompt_tokens + 50 * n_calls, (100 * n_prompt_tokens + 1000 * 50 * n_calls) / 1e6
    assert 1000 < used[0] <= 3000 if "max_tokens" in cap else 0.3 < used[1] <= 0.5


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    "http_response",
    [
        HttpResponse(
            "",
            usage={
                "prompt_tokens": 10,
                "completion_tokens": 90,
                "total_tokens": 100,
            },
        ),
        HttpResponse("", usage=None),
        HttpResponse("late", delay_s=9),
        HttpResponse("word " * 99, cuts_body=True),
    ],
    ids=["discarded", "without usage", "late", "cut"],
)
def test_an_attempt_of_unknown_use_counts_in_full(
    http_response: HttpResponse, calling: Calling, serve: Serve
) -> None:
    server = serve(http_response)
    calling.max_tokens = 600
    calling.attempts = 50
    calling(
        call_to(
            server, timeout_s=0.1 if http_response.delay_s else 30.0, parameters={"max_tokens": 90}
        )
    )
    assert 2 <= len(server.book) <= 600 // 90


@pytest.mark.usefixtures("hurried")
def test_refused_attempts_and_replies_from_the_ledger_cost_nothing(
    calling: Calling, serve: Serve
) -> None:
    server = serve(
        then(
            *[failed(429)] * 5,
            HttpResponse("now", usage={"prompt_tokens": 1, "completion_tokens": 1}),
        )
    )
    calling.attempts = 7
    for cap, used in ((150, 2), (0, 0)):
        calling.max_tokens = cap
        assert calling(call_to(server, "q", parameters={"max_tokens": 90})).text == "now"
        assert used == calling.limiter.budget.used_tokens


def test_a_call_that_is_cancelled_under_way_counts_as_what_was_set_aside(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("x", delay_s=30))
    calling.max_tokens = 1000
    calling.patience_s = 2.0
    with pytest.raises(TimeoutError):
        calling(call_to(server, parameters={"max_tokens": 90}))
    assert len(server.book) == 1
    assert calling.limiter.budget.used_tokens >= 90


LIVE = Admission("live", highest_usage=Usage(None, 80))


def by_the_batch(server: FaultServer) -> list[Call]:
    """One call for a batch, of at most 100 tokens."""
    return [call_to(server, "q" * 36, name="openai/judge", parameters={"max_tokens": 48})]


async def test_an_open_batch_counts_as_used_and_a_live_call_without_room_stops(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("x"))
    budget = Budget(None, 150)
    server.polls_until_done = 10**9  # it never ends
    merged = await calling.batched(by_the_batch(server), budget, wait_s=0.0)
    assert merged.n_submitted == 1
    assert budget.used_tokens == 100
    with pytest.raises(NotCalled, match="100 of 150 tokens used"):
        await Limiter(4, budget).acquire(LIVE)
    assert budget.is_spent


async def test_a_live_call_goes_when_a_batch_gives_back_what_was_set_aside(
    calling: Calling, serve: Serve
) -> None:
    server = serve(
        HttpResponse(
            "x",
            usage={
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "total_tokens": 7,
            },
        )
    )
    server.polls_until_done = 2
    budget = Budget(None, 150)
    looking = asyncio.create_task(calling.batched(by_the_batch(server), budget))
    while not server.book:  # noqa: ASYNC110 - a budget tells only when something is given back
        await asyncio.sleep(0.01)
    await Limiter(4, budget).acquire(LIVE)
    assert len((await looking).replies) == 1
    assert budget.used_tokens == 7


async def test_a_batch_waits_for_the_room_that_a_live_call_holds_within_limits(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("x"))
    budget = Budget(None, 150)
    limiter = Limiter(4, budget)
    admission = await limiter.acquire(LIVE)
    merged = await calling.batched(by_the_batch(server), budget, wait_s=0.2)
    note = "1 calls were not submitted, because they could exceed the budget"
    assert ([], [note], False) == (
        merged.replies,
        merged.notes,
        budget.is_spent,
    )  # fits once the other call ends
    looking = asyncio.create_task(calling.batched(by_the_batch(server), budget))
    limiter.release(admission)
    assert len((await looking).replies) == 1


@pytest.mark.parametrize("end", ["failed", "expired"])
async def test_what_a_batch_that_was_cut_short_did_not_do_is_free(
    end: Any, calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("x"))
    budget = Budget(None, 1000)
    server.batch_end = end
    server.responses_before_end = 0
    await calling.batched(by_the_batch(server), budget)
    assert budget.used_tokens == 0
    assert budget.reserve(Usage(None, 1000))


Move = tuple[int, int, float, bool]
"""The most tokens that a call may use, its turns of the event loop, the used share, and whether
usage is reported.
"""
moves = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 4), st.floats(0, 1), st.booleans()), max_size=12
)


class Simulation:
    """Live calls of two limiters, and batches, with the same cap."""

    def __init__(self, cap: int, concurrency: int) -> None:
        self.cap = cap
        self.budget = Budget(None, cap)
        self.reserved = 0
        self.limiters = [Limiter(concurrency, self.budget), Limiter(concurrency, self.budget)]

    async def hold(self, most: int, turns: int) -> None:
        self.reserved += most
        for _ in range(turns + 1):
            assert self.budget.used_tokens + self.reserved <= self.cap
            await asyncio.sleep(0)
        self.reserved -= most

    async def live(self, number: int, move: Move) -> None:
        most, turns, share, is_known = move
        limiter = self.limiters[number % 2]
        with suppress(NotCalled):
            request = Admission(f"endpoint-{number % 3}", highest_usage=Usage(None, most))
            admission = await limiter.acquire(request)
            await self.hold(most, turns)
            reply = (
                Reply("ok", prompt_tokens=int(most * share), completion_tokens=0)
                if is_known
                else None
            )
            limiter.release(admission, reply, is_lost=not is_known)

    async def batch(self, begins: int, move: Move) -> None:
        most, turns, share, ends = move
        reservations = Reservations(self.budget)
        await self.hold(0, begins)
        while not reservations.has_room("key", Usage(None, most)):
            if self.budget.is_spent:
                return
            await asyncio.sleep(0)
        await self.hold(most, turns)
        if ends:
            reservations.release("key", Usage(None, int(most * share)))
        reservations.count_as_used()


@given(
    cap=st.integers(0, 150),
    live=moves,
    batched=moves,
    concurrency=st.integers(1, 4),
    begins=st.integers(0, 9),
)
def test_calls_in_any_order_keep_to_the_cap(
    cap: int, live: Any, batched: Any, concurrency: int, begins: int
) -> None:
    async def run() -> None:
        world = Simulation(cap, concurrency)
        of_live = [world.live(number, move) for number, move in enumerate(live)]
        async with asyncio.timeout(60):
            await asyncio.gather(*of_live, *(world.batch(begins, move) for move in batched))
        assert world.budget.is_spent or world.budget.reserve(
            Usage(None, cap - world.budget.used_tokens)
        )

    asyncio.run(run())
