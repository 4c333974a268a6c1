"""The health of an endpoint: how many calls it gets at once, and when it is paused or stopped."""

import asyncio
import heapq
import itertools
import math
import time
from dataclasses import dataclass, field

from tasks.llm.replies import TIMEOUT, Failure, Kind
from tasks.llm.request import UNKNOWN_USAGE, Usage

NO_REPLY = "no successful reply for"
"""The beginning of the reason why an endpoint without one was stopped."""
_DECREASE = 0.7
_SHORTEST_BETWEEN_CUTS_S = 1.0
_FAILURES_UNTIL_PAUSE = 5
_BAD_REQUESTS_UNTIL_STOP = 5
FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
BETWEEN_HARMLESS_S = 5.0
"""The shortest time between two harmless requests ("Hi", for one token), which show whether every
request is refused. Most refusals need none, because another call succeeds meanwhile.
"""
_REFUSALS_UNTIL_HARMLESS = 10
"""After so many refusals in a row, a harmless request does not wait."""
_REFUSALS_UNTIL_STOP = 10


@dataclass(eq=False)
class Admission:
    """Permission to make one call, once it is `granted`."""

    endpoint: str
    priority: tuple[int, ...] = ()
    highest_usage: Usage = UNKNOWN_USAGE
    likely_tokens: int = 0
    tokens: int = 0
    """The tokens that count for the minute until the call's usage is known."""
    goes_first: bool = False
    """True for a harmless request, or one that is repeated; its priority is empty."""
    began_s: float = 0.0
    """The monotonic time at which it was granted."""
    granted: "asyncio.Future[None]" = field(init=False)


@dataclass
class EndpointHealth:
    """The adaptive concurrency and the circuit breaker of an endpoint, and the reasons to stop it.

    The number of calls at once falls by a factor after a 429 or a timeout, at most once a second,
    and rises by one after every round of successful calls. After some failures in a row no call is
    made for a pause, which doubles; then one call tests the endpoint. After `outage_s` without a
    successful reply the endpoint is stopped for the run. `limit` is the present number of calls at
    once, of which the whole part counts, and `concurrency` the highest one.

    If every request may be refused, the endpoint is stopped only if a harmless request is refused
    too. `accepted_s` is when the last call that the endpoint accepted began, `probed_s` when the
    last harmless request began, which ended with `probe_failure`. `probe_lock` allows one harmless
    request at a time. An endpoint that refuses all its first calls is stopped, too.

    `paused_until_s` is the end of the pause, `in_hand` the number of calls in flight. `has_served`
    is true once a call has succeeded that is neither harmless nor a repetition. `stopped` is the
    reason; None: it is not stopped. All times are monotonic.
    """

    name: str
    concurrency: int
    outage_s: float
    paused_until_s: float = -math.inf
    in_hand: int = 0
    accepted_s: float = -math.inf
    probed_s: float = -math.inf
    probe_failure: Failure | None = None
    has_served: bool = False
    stopped: str | None = None

    def __post_init__(self) -> None:
        self.limit = float(self.concurrency)
        self.probe_lock = asyncio.Lock()
        self.waiting: list[tuple[tuple[int, ...], int, Admission]] = []
        self._numbers = itertools.count(1)
        self._silent_since_s = -math.inf
        self._pause_s = FIRST_PAUSE_S
        self._last_reply_s = -math.inf
        self._cut_at_s = -math.inf
        self._n_failures_in_a_row = 0
        self._n_replies = 0
        self._n_bad_requests = 0
        self._n_refusals_in_a_row = 0
        self._n_first_refusals = 0

    def push(self, admission: Admission) -> None:
        """Queue an admission: the lowest priority number is first, then the earliest."""
        number = next(self._numbers)
        if admission.goes_first:
            number = -number
        heapq.heappush(self.waiting, (admission.priority, number, admission))

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until a call may start: 0 for now, infinite if that depends on another
        call's end.
        """
        if self.paused_until_s > now_s:
            return self.paused_until_s - now_s
        most_calls = 1 if self._is_failing else int(self.limit)
        return 0.0 if self.in_hand < most_calls else math.inf

    @property
    def _is_failing(self) -> bool:
        """True after several failures in a row: only one call at a time is made, as a test."""
        return self._n_failures_in_a_row >= _FAILURES_UNTIL_PAUSE

    def count_success(self, now_s: float) -> None:
        """Count a call that has succeeded."""
        self._end_silence(now_s)
        self._n_refusals_in_a_row = 0
        self._n_replies += 1
        self.limit = min(self.concurrency, self.limit + 1 / self.limit)

    def count_failure(self, failure: Failure, now_s: float, latency_s: float) -> None:
        """Count a call that has failed after `latency_s`."""
        if failure.kind is Kind.BUSY:
            self._slow_down(now_s)
            self._end_silence(now_s)
        elif failure.kind is Kind.DOWN:
            self._count_silence(failure, now_s, latency_s)
        elif failure.kind is not Kind.LOST:
            self._end_silence(now_s)
            self._n_bad_requests += failure.kind is Kind.BAD_REQUEST
            self._n_replies += failure.kind is Kind.DECLINED
            if self.may_refuse_all(failure) and failure.request_fault is None:
                self.stop(failure)
        if failure.retry_after_s is not None and failure.may_pass:
            self.paused_until_s = max(self.paused_until_s, now_s + failure.retry_after_s)

    def may_refuse_all(self, failure: Failure) -> bool:
        """Return whether every request may fail like this: it is a refusal, or a bad request like
        all calls before it.
        """
        are_all_bad = self._n_replies == 0 and self._n_bad_requests >= _BAD_REQUESTS_UNTIL_STOP
        return failure.kind is Kind.FATAL or (failure.kind is Kind.BAD_REQUEST and are_all_bad)

    def is_settled(self, refused_s: float) -> bool:
        """Return whether a refusal at a moment needs no harmless request any more.

        That is so if the endpoint is stopped, or if since then another call was accepted or a
        harmless request made.
        """
        return self.stopped is not None or max(self.accepted_s, self.probed_s) >= refused_s

    async def wait_for_turn(self, refused_s: float) -> None:
        """Wait until a refusal is settled by another call, or another harmless request may be
        made.
        """
        while not self.is_settled(refused_s):
            is_urgent = self._n_refusals_in_a_row >= _REFUSALS_UNTIL_HARMLESS
            if is_urgent or time.monotonic() >= self.probed_s + BETWEEN_HARMLESS_S:
                break
            await asyncio.sleep(0.02)

    def count_refusal(self) -> None:
        """Count a refused request; its repetition does not count."""
        self._n_refusals_in_a_row += 1
        self._n_first_refusals += not self.has_served

    def note_probe(self, began_s: float, failure: Failure | None) -> None:
        """Note that a harmless request has ended, which began at this time."""
        self.probed_s = began_s
        self.probe_failure = failure
        self._n_refusals_in_a_row = 0

    async def wait_for_success(self, failure: Failure, refused_s: float) -> None:
        """Wait until the endpoint has served a call (`has_served`), is stopped, or has none left.

        The endpoint is stopped if it refuses all its first calls. It is also stopped if no call is
        left and either it accepted none since the refusal, or the refusal may be about money, the
        key or the model.
        """
        while not self.has_served and self.stopped is None:
            if self._n_first_refusals >= _REFUSALS_UNTIL_STOP:
                self._stop(
                    f"its first {self._n_first_refusals} calls were all refused, the last:"
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
                f"its first {self._n_bad_requests} calls were all bad requests, the last: {reason}"
            )
        if harmless is not None:
            reason += '; a harmless request ("Hi") was refused '
            if harmless.error == failure.error:
                reason += "with the same error"
            else:
                reason += f"too: {harmless.error}"
        self._stop(reason)

    def _end_silence(self, now_s: float) -> None:
        self._n_failures_in_a_row = 0
        self._pause_s = FIRST_PAUSE_S
        self._last_reply_s = now_s

    def _slow_down(self, now_s: float) -> None:
        if now_s - self._cut_at_s >= _SHORTEST_BETWEEN_CUTS_S:
            self._cut_at_s = now_s
            self.limit = max(1.0, self.limit * _DECREASE)

    def _count_silence(self, failure: Failure, now_s: float, latency_s: float) -> None:
        began_s = now_s
        if failure.status == TIMEOUT:
            self._slow_down(now_s)
            began_s = now_s - latency_s
        if self._n_failures_in_a_row == 0:
            # A timeout marks the start of an outage, unless another call succeeded meanwhile.
            self._silent_since_s = max(self._last_reply_s, began_s)
        self._n_failures_in_a_row += 1
        silence_s = now_s - self._silent_since_s
        if self._is_failing and silence_s >= self.outage_s:
            self._stop(f"{NO_REPLY} {silence_s:.0f} s, the last failure: {failure.error}")
        elif self._is_failing and self.paused_until_s <= now_s:
            self.paused_until_s = now_s + self._pause_s
            self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)

    def _stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason
