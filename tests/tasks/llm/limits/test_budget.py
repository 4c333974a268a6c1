"""One cap on tokens and dollars for live calls and batches: no call starts that could exceed it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.endpoint_health import Admission
from tasks.llm.limiter import Budget, BudgetSpent, Limiter, NotCalled, Reservations
from tasks.llm.replies import Reply
from tasks.llm.request import Call, Prices, Usage
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import (
    call_to,
    failed,
    first_request_at,
    prompts_at,
    responding_with,
    wait_until,
)

# The event loop's own time limits do not end a blocked process.
pytestmark = pytest.mark.timeout(300)


def test_fractions_of_a_dollar_leave_nothing_behind_when_all_is_released():
    budget = Budget(2.58, None)
    for usd in (0.15, 0.57, 0.86):
        budget.reserve(Usage(usd, 1))

    for usd in (0.57, 0.86, 0.15):
        budget.release(Usage(usd, 1), Usage(0.0, 0))

    assert budget.reserve(Usage(2.58, 1)), (
        "no call is left that could release the rest"
    )


@pytest.mark.parametrize(
    ("budget", "highest_usage"),
    [(Budget(1.0, None), Usage(None, 5)), (Budget(None, 100), Usage(0.0, None))],
    ids=["USD", "tokens"],
)
def test_a_call_of_unbounded_usage_does_not_start_under_a_cap(budget, highest_usage):
    with pytest.raises(BudgetSpent):
        budget.reserve(highest_usage)


def test_a_call_of_unbounded_usage_starts_without_a_cap():
    assert Budget(None, None).reserve(Usage(None, None))


def test_the_refusal_of_a_call_says_what_to_do():
    advice = (
        "could exceed the cap: raise it, or set a lower `max_tokens` for the model"
    )

    with pytest.raises(BudgetSpent, match=rf"^0.0000 of 1 USD used, .* {advice}"):
        Budget(1.0, None).reserve(Usage(1.2903, 9_000))


def test_a_free_call_reserves_no_money():
    budget = Budget(0.5, None)

    assert budget.reserve(Usage(0.0, 1))
    assert budget.reserve(Usage(0.5, 1))


def usage_of(n_prompt: int, n_completion: int) -> dict[str, int]:
    """Return a report of usage."""
    return {
        "prompt_tokens": n_prompt,
        "completion_tokens": n_completion,
        "total_tokens": n_prompt + n_completion,
    }


def most_expensive(request, _number: int) -> HttpResponse:
    """Reply with as many tokens as allowed, and count a prompt token for each byte."""
    usage = usage_of(len(prompt_of(request).encode()), request["max_tokens"])
    return HttpResponse("x", usage=usage, delay_s=0.02)


@pytest.mark.parametrize("cap", [{"max_usd": 0.5}, {"max_tokens": 3000}], ids=str)
@pytest.mark.parametrize("concurrency", [1, 8])
def test_calls_to_the_most_expensive_provider_stop_before_the_cap(
    concurrency,
    cap,
    calling,
    serve,
):
    server = serve(most_expensive)
    calling = replace(calling, concurrency=concurrency, **cap)
    target = {
        "prices": Prices(100.0, None, 1000.0, "a list"),
        "parameters": {"max_tokens": 50},
    }
    prompts = ["täglich" + "ü" * number for number in range(60)]

    replies = calling.call_at_once(
        *(call_to(server, prompt, **target) for prompt in prompts)
    )

    n_calls = len(server.book)
    n_prompt_tokens = len("".join(prompts_at(server)).encode())
    n_reply_tokens = 50 * n_calls
    assert sum(isinstance(reply, Reply) for reply in replies) == n_calls
    assert sum(isinstance(reply, BudgetSpent) for reply in replies) == 60 - n_calls
    if "max_tokens" in cap:
        assert 1000 < n_prompt_tokens + n_reply_tokens <= 3000
    else:
        assert 0.3 < (100 * n_prompt_tokens + 1000 * n_reply_tokens) / 1e6 <= 0.5


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("http_response", "timeout_s", "n_attempts"),
    [
        # Of 600 tokens, each attempt reserves 121.
        (HttpResponse("", usage=usage_of(10, 90)), 30.0, 5),
        (HttpResponse("", usage=None), 30.0, 4),
        (HttpResponse("late", delay_s=9), 0.1, 4),
        (HttpResponse("word " * 99, cuts_body=True), 30.0, 4),
    ],
    ids=["discarded", "without usage", "late", "cut"],
)
def test_an_attempt_counts_by_its_reported_usage_or_else_in_full(
    http_response,
    timeout_s,
    n_attempts,
    calling,
    serve,
):
    server = serve(http_response)
    calling.max_tokens = 600
    calling.attempts = 50
    call = call_to(server, timeout_s=timeout_s, parameters={"max_tokens": 90})

    reply = calling(call)

    assert reply.attempts == n_attempts


@pytest.mark.usefixtures("hurried")
def test_refused_attempts_cost_nothing(calling, serve):
    server = serve(
        responding_with(*[failed(429)] * 5, HttpResponse("now", usage=usage_of(1, 1)))
    )
    calling.attempts = 7
    calling.max_tokens = 150

    reply = calling(call_to(server, "q", parameters={"max_tokens": 90}))

    assert reply.text == "now"
    assert calling.limiter.budget.used_tokens == 2


def test_a_reply_from_the_ledger_costs_nothing(calling, serve):
    call = call_to(serve(HttpResponse("now", usage=usage_of(1, 1))))
    calling(call)
    calling.max_tokens = 0

    reply = calling(call)

    assert reply.text == "now"
    assert calling.limiter.budget.used_tokens == 0


def test_a_call_that_is_cancelled_under_way_counts_as_its_reservation(calling, serve):
    server = serve(HttpResponse("x", delay_s=30))
    calling.max_tokens = 1000
    call = call_to(server, parameters={"max_tokens": 90})

    async def cancel_under_way(gateway, _):
        completing = asyncio.create_task(gateway.complete(call))
        await first_request_at(server)
        completing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await completing

    calling.run(cancel_under_way)

    assert len(server.book) == 1
    assert calling.limiter.budget.used_tokens >= 90


# live calls and batches with the same cap


LIVE = Admission("live", highest_usage=Usage(None, 80))


def batched_calls(server: FaultServer) -> list[Call]:
    """One call for a batch, of at most 100 tokens."""
    return [
        call_to(server, "q" * 36, name="openai/judge", parameters={"max_tokens": 48})
    ]


async def test_an_open_batch_counts_as_used_and_a_live_call_without_room_stops(
    calling,
    serve,
):
    server = serve(HttpResponse("x"))
    server.polls_until_done = 10**9  # it never ends
    budget = Budget(None, 150)

    batching = await calling.batched(batched_calls(server), budget, wait_s=0.0)

    assert batching.n_submitted == 1
    assert budget.used_tokens == 100
    with pytest.raises(NotCalled, match="100 of 150 tokens used"):
        await Limiter(4, budget).acquire(LIVE)
    assert budget.is_spent


@pytest.mark.usefixtures("hurried")
async def test_a_live_call_goes_when_a_batch_releases_its_reservation(calling, serve):
    server = serve(HttpResponse("x", usage=usage_of(3, 4)))
    server.polls_until_done = 2
    budget = Budget(None, 150)

    collecting = asyncio.create_task(calling.batched(batched_calls(server), budget))
    await first_request_at(server)
    await Limiter(4, budget).acquire(LIVE)
    batching = await collecting

    assert len(batching.replies) == 1
    assert budget.used_tokens == 7


@pytest.mark.usefixtures("hurried")
async def test_a_batch_waits_for_the_room_that_a_live_call_holds(calling, serve):
    server = serve(HttpResponse("x"))
    budget = Budget(None, 150)
    limiter = Limiter(4, budget)
    admission = await limiter.acquire(LIVE)

    with mock.patch.object(budget, "reserve", wraps=budget.reserve) as reserve:
        collecting = asyncio.create_task(
            calling.batched(batched_calls(server), budget)
        )
        await wait_until(lambda: reserve.called)
        limiter.release(admission)
        batching = await collecting

    assert len(batching.replies) == 1
    assert reserve.call_count > 1


async def test_a_batch_that_finds_no_room_in_time_is_not_submitted_and_ends_no_budget(
    calling,
    serve,
):
    server = serve(HttpResponse("x"))
    budget = Budget(None, 150)
    await Limiter(4, budget).acquire(LIVE)

    batching = await calling.batched(batched_calls(server), budget, wait_s=0.2)

    note = "1 calls were not submitted, because they could exceed the budget"
    assert batching.replies == []
    assert batching.notes == [note]
    assert not budget.is_spent, "the batch fits once the other call ends"


@pytest.mark.parametrize("end", ["failed", "expired"])
async def test_the_requests_that_a_batch_did_not_reach_are_free(end, calling, serve):
    server = serve(HttpResponse("x"))
    server.batch_end = end
    budget = Budget(None, 1000)

    await calling.batched(batched_calls(server), budget)

    assert budget.used_tokens == 0
    assert budget.reserve(Usage(None, 1000))


# calls in any order


Move = tuple[int, int, float, bool]
"""The most tokens that a call may use, its turns of the event loop, the used share, and whether
usage is reported.
"""
MOVES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 4), st.floats(0, 1), st.booleans()),
    max_size=12,
)


@dataclass
class Simulation:
    """Live calls of two limiters, and batches, with the same cap."""

    cap: int
    concurrency: int
    n_reserved: int = 0

    def __post_init__(self):
        self.budget = Budget(None, self.cap)
        self.limiters = [Limiter(self.concurrency, self.budget) for _ in range(2)]

    async def hold(self, n_tokens: int, n_turns: int):
        self.n_reserved += n_tokens
        for _ in range(n_turns + 1):
            assert self.budget.used_tokens + self.n_reserved <= self.cap
            await asyncio.sleep(0)
        self.n_reserved -= n_tokens

    async def call_live(self, number: int, move: Move):
        n_tokens, n_turns, share, is_known = move
        limiter = self.limiters[number % 2]
        request = Admission(
            f"endpoint-{number % 3}", highest_usage=Usage(None, n_tokens)
        )
        reply = None
        if is_known:
            reply = Reply(
                "ok",
                prompt_tokens=int(n_tokens * share),
                completion_tokens=0,
            )
        with suppress(NotCalled):
            admission = await limiter.acquire(request)
            await self.hold(n_tokens, n_turns)
            limiter.release(admission, reply, is_lost=not is_known)

    async def call_batched(self, n_turns_before: int, move: Move):
        n_tokens, n_turns, share, ends = move
        reservations = Reservations(self.budget)
        await self.hold(0, n_turns_before)
        while not reservations.reserve("key", Usage(None, n_tokens)):
            if self.budget.is_spent:
                return
            await asyncio.sleep(0)
        await self.hold(n_tokens, n_turns)
        if ends:
            reservations.release("key", Usage(None, int(n_tokens * share)))
        reservations.count_as_used()


@given(
    cap=st.integers(0, 150),
    live_moves=MOVES,
    batched_moves=MOVES,
    concurrency=st.integers(1, 4),
    n_turns_before=st.integers(0, 9),
)
def test_calls_in_any_order_keep_to_the_cap(
    cap,
    live_moves,
    batched_moves,
    concurrency,
    n_turns_before,
):
    async def run():
        world = Simulation(cap, concurrency)
        calls = [
            world.call_live(number, move) for number, move in enumerate(live_moves)
        ]
        calls += [world.call_batched(n_turns_before, move) for move in batched_moves]
        async with asyncio.timeout(60):
            await asyncio.gather(*calls)
        return world.budget

    budget = asyncio.run(run())

    # A call that could never fit has ended the budget; otherwise nothing is left reserved.
    assert budget.is_spent or budget.reserve(Usage(None, cap - budget.used_tokens))
