"""The health of one endpoint (a model at an address) during a run: adaptive concurrency and a circuit breaker."""

import heapq
import itertools
from typing import Any

from tasks.llm.replies import TIMEOUT, Failure, Kind

FIRST_PAUSE_S = 0.5


class EndpointHealth:
    """The adaptive concurrency and the circuit breaker of an endpoint, and the reasons to stop it.

    The number of calls at once falls by a factor after a 429 or a timeout, at most once a second, and rises by one
        after every round of successful calls. After some failures in a row no call is made for a pause, which doubles;
        then one call tests the endpoint. After `outage_s` without a reply the endpoint is stopped for the run.
    """

    def __init__(self, name: str, concurrency: int, outage_s: float, now_s: float) -> None:
        self.name = name
        self._most = concurrency
        self.limit = float(concurrency)
        self._outage_s = outage_s
        self._silent_since_s = now_s
        self._pause_s = FIRST_PAUSE_S
        self._last_reply_s = self._cut_at_s = self.closed_until_s = float("-inf")
        self._failures = self._n_replies = self._bad_requests = self.in_hand = 0
        self.stopped: str | None = None
        self.waiting: list[Any] = []
        self._numbers = itertools.count()

    def push(self, priority: tuple[int, ...], item: Any) -> None:
        """Queue an item: the lowest priority number is first, then the earliest."""
        heapq.heappush(self.waiting, (priority, next(self._numbers), item))

    def pop(self) -> Any:
        """Return and remove the next item."""
        return heapq.heappop(self.waiting)[-1]

    def wait_s(self, now_s: float) -> float | None:
        """Return the seconds until a call may start: 0 for now, None if that depends on another call's end."""
        if self.closed_until_s > now_s:
            return self.closed_until_s - now_s
        most = 1 if self._is_open else max(1, int(self.limit))
        return 0.0 if self.in_hand < most else None

    @property
    def _is_open(self) -> bool:
        """True if the breaker is open: only one call at a time is made, as a test."""
        return self._failures >= 5

    def succeeded(self, now_s: float) -> None:
        """Note that a call has succeeded."""
        self._is_there(now_s)
        self._n_replies += 1
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def failed(self, failure: Failure, now_s: float, latency_s: float) -> None:
        """Note that a call has failed after `latency_s`."""
        if failure.kind is Kind.FATAL:
            self._stop(failure.error)
        elif failure.kind is Kind.BUSY:
            self._slow_down(now_s)
            self._is_there(now_s)
        elif failure.kind is Kind.DOWN:
            self._is_silent(failure, now_s, latency_s)
        elif failure.kind is not Kind.LOST:
            self._is_there(now_s)
            self._bad_requests += failure.kind is Kind.BAD_REQUEST
            self._n_replies += failure.kind is not Kind.BAD_REQUEST
            if self._n_replies == 0 and self._bad_requests >= 5:
                self._stop(f"its first {self._bad_requests} calls were all bad requests, the last: {failure.error}")
        if (wait_s := failure.retry_after_s) is not None and failure.passes:
            if wait_s > 600.0:
                self._stop(f"it asks for a wait of {wait_s:.0f} s: {failure.error}")
            self.closed_until_s = max(self.closed_until_s, now_s + wait_s)

    def _is_there(self, now_s: float) -> None:
        self._failures, self._pause_s, self._last_reply_s = 0, FIRST_PAUSE_S, now_s

    def _slow_down(self, now_s: float) -> None:
        if now_s - self._cut_at_s >= 1.0:
            self._cut_at_s = now_s
            self.limit = max(1.0, 0.7 * self.limit)

    def _is_silent(self, failure: Failure, now_s: float, latency_s: float) -> None:
        has_waited = failure.status == TIMEOUT
        if has_waited:
            self._slow_down(now_s)
        if self._failures == 0:
            # A timeout marks the start of an outage, unless another call succeeded meanwhile.
            self._silent_since_s = max(self._last_reply_s, now_s - (latency_s if has_waited else 0.0))
        self._failures += 1
        silence_s = now_s - self._silent_since_s
        if self._is_open and silence_s >= self._outage_s:
            self._stop(f"no reply for {silence_s:.0f} s, the last failure: {failure.error}")
        elif self._is_open and self.closed_until_s <= now_s:
            self.closed_until_s = now_s + self._pause_s
            self._pause_s = min(15.0, 2 * self._pause_s)

    def _stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason
