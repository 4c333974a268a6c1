"""Admission of calls: budget of a run, requests and tokens per minute, order, stop time, and health
of endpoints.
"""

import asyncio
import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tasks.llm.replies import TIMEOUT, Failure, Kind, Reply
from tasks.llm.request import NOTHING, UNKNOWN, Usage, cost_usd

NO_REPLY = "no reply for"
"""The beginning of the reason why a silent endpoint was stopped."""
_DECREASE = 0.7
_SHORTEST_BETWEEN_CUTS_S = 1.0
_FAILURES_UNTIL_OPEN = 5
_BAD_REQUESTS_UNTIL_STOP = 5
FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
BETWEEN_HARMLESS_S = 5.0
_REFUSALS_UNTIL_HARMLESS = 10
_REFUSALS_UNTIL_STOP = 10
"""The time between two harmless requests, unless so many refusals follow each other: most refusals
are settled by the next call that succeeds.
"""


class EndpointHealth:
    """The adaptive concurrency and the circuit breaker of an endpoint, and the reasons to stop it.

    The number of calls at once falls by a factor after a 429 or a timeout, at most once a second,
    and rises by one after every round of successful calls. After some failures in a row no call is
    made for a pause, which doubles; then one call tests the endpoint. After `outage_s` without a
    reply the endpoint is stopped for the run.

    A refusal that may be that of every request stops it only if a harmless request is refused too.
    `accepted_s` is when the last call that the endpoint accepted began, `probed_s` when the last
    harmless request did, which ended with `probe_failure`. `asking` allows one at a time. An
    endpoint that refuses all its first calls is stopped, too.
    """

    def __init__(self, name: str, concurrency: int, outage_s: float, now_s: float) -> None:
        self.name = name
        self._concurrency = concurrency
        self.limit = float(concurrency)
        self._outage_s = outage_s
        self._silent_since_s = now_s
        self._pause_s = FIRST_PAUSE_S
        self._last_reply_s = -math.inf
        self._cut_at_s = -math.inf
        self.closed_until_s = -math.inf
        self._failures = 0
        self._n_replies = 0
        self._bad_requests = 0
        self.in_hand = 0
        self.accepted_s = -math.inf
        self.probed_s = -math.inf
        self.probe_failure: Failure | None = None
        self.has_served = False
        self._refusals = 0
        self._first_refusals = 0
        self.asking = asyncio.Lock()
        self.stopped: str | None = None
        self.waiting: list[Any] = []
        self._numbers = itertools.count(1)

    def push(self, admission: "Admission") -> None:
        """Queue an admission: the lowest priority number is first, then the earliest."""
        number = next(self._numbers)
        if admission.goes_first:
            number = -number
        heapq.heappush(self.waiting, (admission.priority, number, admission))

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until a call may start: 0 for now, infinite if that depends on another
        call's end.
        """
        if self.closed_until_s > now_s:
            return self.closed_until_s - now_s
        most_calls = 1 if self._is_open else max(1, int(self.limit))
        return 0.0 if self.in_hand < most_calls else math.inf

    @property
    def _is_open(self) -> bool:
        """True if the breaker is open: only one call at a time is made, as a test."""
        return self._failures >= _FAILURES_UNTIL_OPEN

    def succeeded(self, now_s: float) -> None:
        """Note that a call has succeeded."""
        self._is_there(now_s)
        self._refusals = 0
        self._n_replies += 1
        self.limit = min(self._concurrency, self.limit + 1 / self.limit)

    def failed(self, failure: Failure, now_s: float, latency_s: float) -> None:
        """Note that a call has failed after `latency_s`."""
        if failure.kind is Kind.BUSY:
            self._slow_down(now_s)
            self._is_there(now_s)
        elif failure.kind is Kind.DOWN:
            self._is_silent(failure, now_s, latency_s)
        elif failure.kind is not Kind.LOST:
            self._is_there(now_s)
            self._bad_requests += failure.kind is Kind.BAD_REQUEST
            self._n_replies += failure.kind is Kind.DECLINED
            if self.is_doubtful(failure) and failure.alone is None:
                self.stop(failure)
        if failure.retry_after_s is not None and failure.passes:
            self.closed_until_s = max(self.closed_until_s, now_s + failure.retry_after_s)

    def is_doubtful(self, failure: Failure) -> bool:
        """Return whether a failure may be that of every request: a refusal, or the last of bad
        requests alone.
        """
        are_all_bad = self._n_replies == 0 and self._bad_requests >= _BAD_REQUESTS_UNTIL_STOP
        return failure.kind is Kind.FATAL or (failure.kind is Kind.BAD_REQUEST and are_all_bad)

    def is_settled(self, refused_s: float) -> bool:
        """Return whether it is known by now what a refusal at a moment means, or that nobody
        knows.
        """
        return self.stopped is not None or max(self.accepted_s, self.probed_s) >= refused_s

    async def wait_for_turn(self, refused_s: float) -> None:
        """Wait until a refusal is settled by another call, or another harmless request may be
        made.
        """
        while not self.is_settled(refused_s) and self._refusals < _REFUSALS_UNTIL_HARMLESS:
            if time.monotonic() >= self.probed_s + BETWEEN_HARMLESS_S:
                break
            await asyncio.sleep(0.02)

    def refused(self) -> None:
        """Note that a request was refused for the first time."""
        self._refusals += 1
        self._first_refusals += not self.has_served

    def probed(self, began_s: float, failure: Failure | None) -> None:
        """Note that a harmless request has ended, which began at this time."""
        self.probed_s = began_s
        self.probe_failure = failure
        self._refusals = 0

    async def wait_for_success(self, failure: Failure, refused_s: float) -> None:
        """Wait until a call has succeeded that is not harmless, or none is left.

        The endpoint is stopped if it refuses all its first calls, or if nothing shows that it
        accepts any that the account allows.
        """
        while not self.has_served and self.stopped is None:
            if self._first_refusals >= _REFUSALS_UNTIL_STOP:
                self._stop(
                    f"its first {self._first_refusals} calls were all refused, the last:"
                    f" {failure.error}"
                )
            elif self._has_work:
                await asyncio.sleep(0.02)
            elif self.accepted_s < refused_s or failure.of_this_request.kind is Kind.FATAL:
                self.stop(failure, self.probe_failure)
            else:
                break

    @property
    def _has_work(self) -> bool:
        return self.in_hand > 0 or any(
            not admission.granted.done() for *_, admission in self.waiting
        )

    def stop(self, failure: Failure, harmless: Failure | None = None) -> None:
        """Stop the endpoint for the run because of a failure, and that of a `harmless` request
        after it.
        """
        reason = failure.error
        if failure.kind is Kind.BAD_REQUEST:
            reason = (
                f"its first {self._bad_requests} calls were all bad requests, the last: {reason}"
            )
        if harmless is not None:
            reason += '; a harmless request ("Hi") was refused '
            if harmless.error == failure.error:
                reason += "with the same error"
            else:
                reason += f"too: {harmless.error}"
        self._stop(reason)

    def _is_there(self, now_s: float) -> None:
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._last_reply_s = now_s

    def _slow_down(self, now_s: float) -> None:
        if now_s - self._cut_at_s >= _SHORTEST_BETWEEN_CUTS_S:
            self._cut_at_s = now_s
            self.limit = max(1.0, self.limit * _DECREASE)

    def _is_silent(self, failure: Failure, now_s: float, latency_s: float) -> None:
        began_s = now_s
        if failure.status == TIMEOUT:
            self._slow_down(now_s)
            began_s = now_s - latency_s
        if self._failures == 0:
            # A timeout marks the start of an outage, unless another call succeeded meanwhile.
            self._silent_since_s = max(self._last_reply_s, began_s)
        self._failures += 1
        silence_s = now_s - self._silent_since_s
        if self._is_open and silence_s >= self._outage_s:
            self._stop(f"{NO_REPLY} {silence_s:.0f} s, the last failure: {failure.error}")
        elif self._is_open and self.closed_until_s <= now_s:
            self.closed_until_s = now_s + self._pause_s
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)

    def _stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason


_BURST_S = 1.0


class NotCalled(Exception):
    """A call was not made, for this reason; its cell stays missing."""


class BudgetSpent(NotCalled):
    """The call does not fit into the budget."""


class Budget:
    """USD and tokens of one run: used, and reserved for calls in flight.

    `when_released` wakes waiting callers. A waiting caller holds no reservation, and every
    reservation is released in the end, so nobody waits for ever.
    """

    def __init__(self, max_usd: float | None, max_tokens: int | None) -> None:
        self._max_usd = max_usd
        self._max_tokens = max_tokens
        self.used_usd = 0.0
        self.used_tokens = 0
        self._reserved_usd = 0.0
        self._reserved_tokens = 0
        self._n_reservations = 0
        self.is_spent = False
        self._refused = UNKNOWN
        self.when_released: list[Callable[[], None]] = []

    def reserve(self, highest_usage: Usage) -> bool:
        """Reserve the highest possible usage of a call; False if it has to wait for other calls to
        release theirs.

        Raises:
            BudgetSpent: the call can never fit, or its usage is unbounded; after that, every call
                raises it.
        """
        if self.is_spent:
            raise BudgetSpent(self.line)
        if self._fits(highest_usage, self._reserved_usd, self._reserved_tokens):
            self._reserved_usd += highest_usage.usd or 0.0
            self._reserved_tokens += highest_usage.tokens or 0
            self._n_reservations += 1
            return True
        if self._fits(highest_usage, 0.0, 0):
            return False
        self.is_spent = True
        self._refused = highest_usage
        raise BudgetSpent(self.line)

    def release(self, highest_usage: Usage, usage: Usage) -> None:
        """Release a reservation, and count the usage; if that is unknown, count the whole
        reservation.
        """
        reserved_usd = highest_usage.usd or 0.0
        reserved_tokens = highest_usage.tokens or 0
        self._n_reservations -= 1
        self._reserved_usd -= reserved_usd
        self._reserved_tokens -= reserved_tokens
        if self._n_reservations == 0:
            self._reserved_usd = 0.0  # whatever rounding has left
        self.used_usd += reserved_usd if usage.usd is None else usage.usd
        self.used_tokens += reserved_tokens if usage.tokens is None else usage.tokens
        for wake in list(self.when_released):
            wake()

    @property
    def line(self) -> str:
        """A line for people: the usage, what the refused call needs, and what to do."""
        usages = []
        needs = []
        if self._max_usd is not None:
            usages.append(f"{self.used_usd:.4f} of {self._max_usd:g} USD")
            usd = self._refused.usd
            needs.append("an unknown sum" if usd is None else f"up to {usd:.4f} USD")
        if self._max_tokens is not None:
            usages.append(f"{self.used_tokens:,} of {self._max_tokens:,} tokens")
            n_tokens = self._refused.tokens
            needs.append(
                "any number of tokens" if n_tokens is None else f"up to {n_tokens:,} tokens"
            )
        return (
            f"{' and '.join(usages)} used, and the next call, which needs {' and '.join(needs)},"
            " could exceed the cap: raise it, or set a lower `max_tokens` for the model"
        )

    def _fits(self, highest_usage: Usage, reserved_usd: float, reserved_tokens: int) -> bool:
        """Return whether the highest possible usage is within the caps."""
        fits_usd = _is_within(self._max_usd, self.used_usd + reserved_usd, highest_usage.usd)
        n_tokens = self.used_tokens + reserved_tokens
        return fits_usd and _is_within(self._max_tokens, n_tokens, highest_usage.tokens)


def _is_within(cap: float | None, amount: float, increase: float | None) -> bool:
    """Return whether an increased amount is within a cap; an unbounded increase (None) never is."""
    if cap is None:
        return True
    return increase is not None and amount + increase <= cap


class Reservations:
    """The amounts that are reserved for calls in batches, by the keys of the calls."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._reservations: dict[str, Usage] = {}

    def has_room(self, key: str, highest_usage: Usage) -> bool:
        """Reserve the highest possible usage of a call; False if it does not fit, or not now."""
        with suppress(BudgetSpent):
            if key not in self._reservations and self._budget.reserve(highest_usage):
                self._reservations[key] = highest_usage
        return key in self._reservations

    def release(self, key: str, usage: Usage) -> None:
        """Count the usage of a call, if it has a reservation."""
        if key in self._reservations:
            self._budget.release(self._reservations.pop(key), usage)

    def count_as_used(self) -> None:
        """Count all remaining reservations as used: nobody else could release them, and live calls
        would wait.
        """
        for key in list(self._reservations):
            self.release(key, UNKNOWN)


class TokenBucket:
    """A bucket that refills evenly. It may go below zero, and is then closed until it has refilled.

    So a request larger than the bucket is granted, with a longer pause after it. Within any minute,
    only the last grant may exceed the limit. Without a limit it refills faster than anything is
    taken.
    """

    def __init__(self, per_minute: float | None, now_s: float) -> None:
        if per_minute is None:
            per_minute = 1e15
        # A full bucket allows a burst in addition to the refill; their sum stays below the limit.
        self._rate = per_minute / (60.0 + _BURST_S)
        self._capacity = max(1.0, self._rate * _BURST_S)
        self._level = self._capacity
        self._refilled_at_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the bucket is open."""
        self._refill(now_s)
        return max(0.0, (1.0 - self._level) / self._rate)

    def consume(self, amount: float, now_s: float) -> None:
        """Take an amount; a negative amount returns an unused part of an advance."""
        self._refill(now_s)
        self._level = min(self._capacity, self._level - amount)

    def _refill(self, now_s: float) -> None:
        gain = (now_s - self._refilled_at_s) * self._rate
        self._level = min(self._capacity, self._level + gain)
        self._refilled_at_s = now_s


@dataclass(eq=False)
class Admission:
    """Permission to make one call, once it is `granted`: its endpoint, its priority, and its
    highest possible usage.

    `tokens` are counted per minute until its usage is known. One that `goes_first` (a harmless
    request, or one that is repeated) has an empty priority. It `began_s` (monotonic time) when it
    was granted.
    """

    endpoint: str
    priority: tuple[int, ...] = ()
    highest_usage: Usage = UNKNOWN
    likely_tokens: int = 0
    tokens: int = 0
    goes_first: bool = False
    began_s: float = 0.0
    granted: "asyncio.Future[None]" = field(init=False)


def usage_of(reply: Reply) -> Usage:
    """Return the usage of a call, None if unknown; nothing if the server rejected it before work.

    A report that does not add up counts by its largest reading.
    """
    if reply.failure is not None and reply.failure.is_unpaid:
        return NOTHING
    if reply.largest_usage is not None:
        largest_prompt, largest_completion = reply.largest_usage
        largest_usd = cost_usd(reply.prices, largest_prompt, None, largest_completion)
        return Usage(largest_usd, largest_prompt + largest_completion)
    n_tokens = None
    if reply.prompt_tokens is not None and reply.completion_tokens is not None:
        n_tokens = reply.prompt_tokens + reply.completion_tokens
    return Usage(reply.cost_usd, n_tokens)


class ModelStopped(NotCalled):
    """The model was stopped for this run."""


class TimeIsUp(NotCalled):
    """The stop time of the run has come."""


@dataclass
class Limiter:
    """The admission of calls by concurrency, requests and tokens per minute, health of endpoints,
    and budget.

    Calls wait by endpoint and priority; among open endpoints, the call with the lowest priority
    number is next. From `stop_at_s` (wall-clock time) no call is admitted, and waiting ones are
    refused; calls in flight finish. `too_late` counts the refused ones, `n_calls` the finished
    ones, `n_instead_of_batch` the live calls that were meant for provider batches.
    """

    concurrency: int
    budget: Budget
    rpm: float | None = None
    tpm: float | None = None
    outage_s: float = 60.0
    stop_at_s: float | None = None
    too_late: int = 0
    n_instead_of_batch: int = 0
    n_calls: int = 0
    endpoints: dict[str, EndpointHealth] = field(default_factory=dict)

    def __post_init__(self) -> None:
        now_s = time.monotonic()
        self._requests = TokenBucket(self.rpm, now_s)
        self._tokens = TokenBucket(self.tpm, now_s)
        self._timer: asyncio.TimerHandle | None = None
        self._tokens_guessed = 0
        self._tokens_used = 0
        self.budget.when_released.append(self._dispatch)

    async def acquire(self, admission: Admission) -> Admission:
        """Wait until a call may start, and return its admission.

        Raises:
            NotCalled: its model was stopped, the budget is spent, or the time is up.
        """
        if self.left_s <= 0:
            raise self._late()
        if admission.endpoint not in self.endpoints:
            self.endpoints[admission.endpoint] = EndpointHealth(
                admission.endpoint, self.concurrency, self.outage_s, time.monotonic()
            )
        granted = asyncio.get_running_loop().create_future()
        admission.granted = granted
        self.endpoints[admission.endpoint].push(admission)
        self._dispatch()
        try:
            async with asyncio.timeout(None if self.stop_at_s is None else self.left_s):
                await granted
        except (asyncio.CancelledError, TimeoutError) as error:
            if granted.done() and not granted.cancelled() and not granted.exception():
                self.release(admission)
            if isinstance(error, TimeoutError):
                raise self._late() from None
            raise
        return admission

    @property
    def left_s(self) -> float:
        """The seconds until the stop time; infinite without one."""
        return math.inf if self.stop_at_s is None else self.stop_at_s - time.time()

    def _late(self) -> TimeIsUp:
        self.too_late += 1
        stop_at = datetime.fromtimestamp(self.stop_at_s or 0, UTC)
        return TimeIsUp(f"no call begins after the stop time, {stop_at:%H:%M} UTC")

    def release(
        self, admission: Admission, reply: Reply | None = None, *, is_lost: bool = False
    ) -> None:
        """Return an admission, and update limits and health from the call's reply, which may be a
        failure.

        Without a reply, no call was made, or it `is_lost` with the process that made it.
        """
        endpoint = self.endpoints[admission.endpoint]
        endpoint.in_hand -= 1
        now_s = time.monotonic()
        usage = NOTHING
        if reply is not None:
            usage = usage_of(reply)
        elif is_lost:
            usage = UNKNOWN
        else:
            self._requests.consume(-1, now_s)
        if usage.tokens is not None:
            self._tokens.consume(usage.tokens - admission.tokens, now_s)
        if reply is not None:
            self.n_calls += 1
            self._count_reply(admission, reply, usage, now_s)
        self.budget.release(admission.highest_usage, usage)

    def _count_reply(self, admission: Admission, reply: Reply, usage: Usage, now_s: float) -> None:
        endpoint = self.endpoints[admission.endpoint]
        if reply.failure is not None:
            endpoint.failed(reply.failure, now_s, reply.latency_s or 0.0)
            return
        endpoint.succeeded(now_s)
        endpoint.accepted_s = max(endpoint.accepted_s, admission.began_s)
        endpoint.has_served = endpoint.has_served or not admission.goes_first
        if usage.tokens:
            self._tokens_guessed += admission.likely_tokens
            self._tokens_used += usage.tokens

    def _dispatch(self) -> None:
        """Admit all calls that may start, and set a timer for the next time when one may."""
        while True:
            endpoint = self._next_endpoint()
            if endpoint is None:
                break
            admission: Admission = heapq.heappop(endpoint.waiting)[-1]
            if admission.granted.done():
                continue  # its caller no longer waits
            if endpoint.stopped is not None:
                reason = f"{endpoint.name}: {endpoint.stopped}"
                admission.granted.set_exception(ModelStopped(reason))
            elif not self._grant(endpoint, admission):
                break

    def _grant(self, endpoint: EndpointHealth, admission: Admission) -> bool:
        """Grant an admission, or refuse it for good; False if it has to wait for the budget."""
        try:
            if not self.budget.reserve(admission.highest_usage):
                endpoint.push(admission)
                return False
        except BudgetSpent as error:
            admission.granted.set_exception(error)
            return True
        now_s = time.monotonic()
        ratio = 1.0
        if self._tokens_guessed and self._tokens_used:
            ratio = self._tokens_used / self._tokens_guessed
        admission.tokens = round(admission.likely_tokens * ratio)
        self._requests.consume(1, now_s)
        self._tokens.consume(admission.tokens, now_s)
        endpoint.in_hand += 1
        admission.began_s = now_s
        admission.granted.set_result(None)
        return True

    def _next_endpoint(self) -> EndpointHealth | None:
        """Return the endpoint whose turn it is; None while none may be called."""
        waiting_endpoints = []
        n_in_hand = 0
        for endpoint in self.endpoints.values():
            n_in_hand += endpoint.in_hand
            if endpoint.waiting:
                if endpoint.stopped is not None:
                    return endpoint
                waiting_endpoints.append(endpoint)
        if self.budget.is_spent and waiting_endpoints:
            return waiting_endpoints[0]
        # If tokens are limited, the first reply shows the usage of a call before the next ones
        # start.
        is_usage_unknown = self.tpm is not None and self.n_calls == 0
        if n_in_hand >= (1 if is_usage_unknown else self.concurrency):
            return None
        return self._open_endpoint(waiting_endpoints)

    def _open_endpoint(self, endpoints: Sequence[EndpointHealth]) -> EndpointHealth | None:
        """Return the endpoint that may be called now, by the priority of its first call; if there
        is none, set a timer for the first one that opens.
        """
        now_s = time.monotonic()
        shared_wait_s = max(self._requests.wait_s(now_s), self._tokens.wait_s(now_s))
        shortest_wait_s = math.inf
        open_endpoints = []
        for endpoint in endpoints:
            wait_s = max(shared_wait_s, endpoint.wait_s(now_s))
            shortest_wait_s = min(shortest_wait_s, wait_s)
            if wait_s == 0.0:
                open_endpoints.append(endpoint)
        if 0.0 < shortest_wait_s < math.inf:
            if self._timer is not None:
                self._timer.cancel()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(shortest_wait_s + 0.001, self._dispatch)
        return min(open_endpoints, key=lambda endpoint: endpoint.waiting[0][:2], default=None)
