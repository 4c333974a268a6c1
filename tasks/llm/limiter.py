"""Admission of calls: budget of a run, requests and tokens per minute, order, stop time, and health
of endpoints.
"""

import asyncio
import heapq
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tasks.llm.endpoint_health import Admission, EndpointHealth
from tasks.llm.replies import Reply
from tasks.llm.request import NO_USAGE, UNKNOWN_USAGE, Usage, cost_usd

_BURST_S = 1.0
"""A full bucket holds the amount of so many seconds."""


class NotCalled(Exception):
    """A call was not made, for this reason; its cell stays missing."""


class BudgetSpent(NotCalled):
    """The call does not fit into the budget."""


@dataclass
class Budget:
    """USD and tokens of one run: used, and reserved for calls in flight.

    Each release calls the functions in `when_released`, which admit waiting calls. A waiting call
    holds no reservation, and every reservation is released in the end, so none waits for ever.
    """

    max_usd: float | None
    max_tokens: int | None
    used_usd: float = 0.0
    used_tokens: int = 0
    is_spent: bool = False
    when_released: list[Callable[[], None]] = field(default_factory=list)
    _reserved_usd: float = 0.0
    _reserved_tokens: int = 0
    _n_reservations: int = 0
    _refused_usage: Usage = UNKNOWN_USAGE

    def reserve(self, highest_usage: Usage) -> bool:
        """Reserve the highest possible usage of a call; False if it has to wait until others are
        released.

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
        self._refused_usage = highest_usage
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
            self._reserved_usd = 0.0  # rounding may have left something
        self.used_usd += reserved_usd if usage.usd is None else usage.usd
        self.used_tokens += reserved_tokens if usage.tokens is None else usage.tokens
        for wake in list(self.when_released):
            wake()

    @property
    def line(self) -> str:
        """A line for people: the usage, what the refused call needs, and what to do."""
        usages = []
        needs = []
        if self.max_usd is not None:
            usages.append(f"{self.used_usd:.4f} of {self.max_usd:g} USD")
            usd = self._refused_usage.usd
            needs.append("an unknown sum" if usd is None else f"up to {usd:.4f} USD")
        if self.max_tokens is not None:
            usages.append(f"{self.used_tokens:,} of {self.max_tokens:,} tokens")
            n_tokens = self._refused_usage.tokens
            needs.append(
                "any number of tokens" if n_tokens is None else f"up to {n_tokens:,} tokens"
            )
        return (
            f"{' and '.join(usages)} used, and the next call, which needs {' and '.join(needs)},"
            " could exceed the cap: raise it, or set a lower `max_tokens` for the model"
        )

    def _fits(self, highest_usage: Usage, reserved_usd: float, reserved_tokens: int) -> bool:
        """Return whether the highest possible usage is within the caps."""
        fits_usd = _is_within(self.max_usd, self.used_usd + reserved_usd, highest_usage.usd)
        n_tokens = self.used_tokens + reserved_tokens
        return fits_usd and _is_within(self.max_tokens, n_tokens, highest_usage.tokens)


def _is_within(cap: float | None, amount: float, increase: float | None) -> bool:
    """Return whether an increased amount is within a cap; an unbounded increase (None) never is."""
    if cap is None:
        return True
    return increase is not None and amount + increase <= cap


@dataclass
class Reservations:
    """The amounts that are reserved for calls in batches, by the keys of the calls."""

    _budget: Budget
    _reservations: dict[str, Usage] = field(default_factory=dict)

    def reserve(self, key: str, highest_usage: Usage) -> bool:
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
            self.release(key, UNKNOWN_USAGE)


class TokenBucket:
    """A bucket that refills evenly. It may go below zero, and is then closed until it has refilled.

    So a request larger than the bucket is granted, with a longer pause after it. Within any minute,
    only the last grant may exceed the limit. Without a limit (`per_minute` None) it refills faster
    than anything is taken.
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


def usage_of(reply: Reply) -> Usage:
    """Return the usage of a call; none if the server rejected it before any work.

    A report that does not add up counts by its largest reading.
    """
    if reply.failure is not None and reply.failure.is_unpaid:
        return NO_USAGE
    if reply.largest_usage is not None:
        largest_prompt, largest_completion = reply.largest_usage
        largest_usd = cost_usd(reply.prices, largest_prompt, None, largest_completion)
        return Usage(largest_usd, largest_prompt + largest_completion)
    n_tokens = None
    if reply.prompt_tokens is not None and reply.completion_tokens is not None:
        n_tokens = reply.prompt_tokens + reply.completion_tokens
    return Usage(reply.cost_usd, n_tokens)


@dataclass
class Limiter:
    """The admission of calls by concurrency, requests and tokens per minute, health of endpoints,
    and budget.

    Calls wait by endpoint and priority; among open endpoints, the call with the lowest priority
    number is next. From `stop_at_s` (wall-clock time) no call is admitted, and waiting ones are
    refused; calls in flight finish. `n_too_late` is the number of refused ones, `n_calls` of
    finished ones, `n_instead_of_batch` of live calls that were meant for provider batches.

    Limits of tokens use the estimates of calls (`likely_tokens`), corrected by the ratio of used to
    guessed tokens so far.
    """

    concurrency: int
    budget: Budget
    rpm: float | None = None
    tpm: float | None = None
    outage_s: float = 60.0
    stop_at_s: float | None = None
    n_too_late: int = 0
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
            raise self._count_too_late()
        if admission.endpoint not in self.endpoints:
            self.endpoints[admission.endpoint] = EndpointHealth(
                admission.endpoint, self.concurrency, self.outage_s
            )
        granted = asyncio.get_running_loop().create_future()
        admission.granted = granted
        self.endpoints[admission.endpoint].push(admission)
        self._dispatch()
        try:
            async with asyncio.timeout(None if self.stop_at_s is None else self.left_s):
                await granted
        except (asyncio.CancelledError, TimeoutError) as error:
            # It may have been granted at the same moment.
            if granted.done() and not granted.cancelled() and not granted.exception():
                self.release(admission)
            if isinstance(error, TimeoutError):
                raise self._count_too_late() from None
            raise
        return admission

    @property
    def left_s(self) -> float:
        """The seconds until the stop time; infinite without one."""
        return math.inf if self.stop_at_s is None else self.stop_at_s - time.time()

    def _count_too_late(self) -> NotCalled:
        """Count a call that is refused at the stop time, and return the error."""
        self.n_too_late += 1
        stop_at = datetime.fromtimestamp(self.stop_at_s or 0, UTC)
        return NotCalled(f"no call begins after the stop time, {stop_at:%H:%M} UTC")

    def release(
        self,
        admission: Admission,
        reply: Reply | None = None,
        *,
        is_lost: bool = False,
    ) -> None:
        """Give an admission back, and update limits and health from the call's reply, which may be
        a failure.

        Without a reply, no call was made, or it `is_lost` with the process that made it.
        """
        endpoint = self.endpoints[admission.endpoint]
        endpoint.in_hand -= 1
        now_s = time.monotonic()
        usage = NO_USAGE
        if reply is not None:
            usage = usage_of(reply)
        elif is_lost:
            usage = UNKNOWN_USAGE
        else:
            self._requests.consume(-1, now_s)
        if usage.tokens is not None:
            self._tokens.consume(usage.tokens - admission.tokens, now_s)
        if reply is not None:
            self.n_calls += 1
            self._count_reply(admission, reply, usage, now_s)
        # This also admits waiting calls, by `Budget.when_released`.
        self.budget.release(admission.highest_usage, usage)

    def _count_reply(self, admission: Admission, reply: Reply, usage: Usage, now_s: float) -> None:
        endpoint = self.endpoints[admission.endpoint]
        if reply.failure is not None:
            endpoint.count_failure(reply.failure, now_s, reply.latency_s or 0.0)
            return
        endpoint.count_success(now_s)
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
            *_, admission = heapq.heappop(endpoint.waiting)
            if admission.granted.done():
                continue  # its caller no longer waits
            if endpoint.stopped is not None:
                reason = f"{endpoint.name}: {endpoint.stopped}"
                admission.granted.set_exception(NotCalled(reason))
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
        """Return the endpoint whose turn it is; None while none may be called.

        One that is stopped, or any once the budget is spent, is returned too: its waiting calls are
        then refused.
        """
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
        most_calls = 1 if is_usage_unknown else self.concurrency
        if n_in_hand >= most_calls:
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
