"""Who may call, and when: one limiter for a role (candidates or judges) of a run, shared by all its processes."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tasks.llm.limits.admission import Ask, Lease, Outcome, Totals
from tasks.llm.limits.budget import Budget, BudgetSpent, NotCalled
from tasks.llm.limits.endpoint_health import Lane
from tasks.llm.limits.token_bucket import Meter

_CLOCK_S = 30.0


class ModelStopped(NotCalled):
    """The model was stopped for this run."""


class TimeIsUp(NotCalled):
    """The run was to make no call after a moment that has come."""


@dataclass
class _Waiting:
    ask: Ask
    granted: "asyncio.Future[Lease]"


@dataclass
class Limiter:
    """Slots, requests and tokens a minute, lanes and the budget, in one place.

    Calls wait in their lane by priority; the lowest of all lanes that may go goes. A call whose key is under way waits
    for that one's end, so that the same request is never made twice at once. From `stop_at_s` (wall-clock time) on
    nothing is granted, and whoever waits is told so; what is under way goes on. `too_late` counts the refused.
    """

    concurrency: int
    budget: Budget
    rpm: float | None = None
    tpm: float | None = None
    outage_s: float = 60.0
    stop_at_s: float | None = None
    too_late: int = 0
    totals: Totals = field(default_factory=Totals)
    lanes: dict[str, Lane] = field(default_factory=dict)

    def __post_init__(self) -> None:
        now_s = time.monotonic()
        self._requests, self._tokens = Meter(self.rpm, now_s), Meter(self.tpm, now_s)
        self._in_hand = self._leases = 0
        self._keys: dict[str, list[_Waiting]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._tokens_guessed = self._tokens_used = 0
        self.budget.when_settled.append(self._dispatch)

    async def acquire(self, ask: Ask) -> Lease:
        """Wait for permission to make a call.

        Raises:
            NotCalled: its model was stopped, the budget is spent, or the time is up.
        """
        self._watch_the_clock()
        lane = self.lanes.setdefault(ask.lane, Lane(ask.lane, self.concurrency, self.outage_s, time.monotonic()))
        waiting = _Waiting(ask, asyncio.get_running_loop().create_future())
        lane.push(ask.priority, waiting)
        self._dispatch()
        try:
            return await waiting.granted
        except asyncio.CancelledError:
            if waiting.granted.done() and not waiting.granted.cancelled() and not waiting.granted.exception():
                self.release(waiting.granted.result(), Outcome())
            raise

    def release(self, lease: Lease, outcome: Outcome) -> None:
        """Give a permission back, and take in what the call's end says about its model."""
        ask, lane = lease.ask, self.lanes[lease.ask.lane]
        lane.ended()
        self._in_hand -= 1
        now_s = time.monotonic()
        if outcome.is_not_made:
            self._requests.take(-1, now_s)
        if outcome.used.tokens is not None:
            self._tokens.take(outcome.used.tokens - lease.tokens, now_s)
        if outcome.is_answered and outcome.used.tokens:
            self._tokens_guessed += ask.likely_tokens
            self._tokens_used += outcome.used.tokens
        self.totals.add(outcome)
        if outcome.failure is not None:
            lane.failed(outcome.failure, now_s, outcome.latency_s)
        elif outcome.is_answered:
            lane.succeeded(now_s, outcome.served)
        for waiting in self._keys.pop(ask.key):
            lane.push(waiting.ask.priority, waiting)
        self.budget.settle(ask.most, outcome.used)

    @property
    def is_time_up(self) -> bool:
        """Whether the moment has come from which on nothing is granted."""
        return self.stop_at_s is not None and time.time() >= self.stop_at_s

    def _watch_the_clock(self) -> None:
        """See to it that those who wait are told when the time is up."""
        if self.stop_at_s is not None and self._clock is None:
            # The wall clock may be set meanwhile; so it is looked at again before long.
            wait_s = min(_CLOCK_S, max(0.001, self.stop_at_s - time.time()))
            self._clock = asyncio.get_running_loop().call_later(wait_s, self._look_at_the_clock)

    def _look_at_the_clock(self) -> None:
        self._clock = None
        if self.is_time_up:
            self._refuse_all()
        else:
            self._watch_the_clock()

    def _refuse_all(self) -> None:
        for waiting in [w for lane in self.lanes.values() for w in lane.all_out()] + [
            waiting for waitings in self._keys.values() for waiting in waitings
        ]:
            if not waiting.granted.done():
                self.too_late += 1
                stopped_at = datetime.fromtimestamp(self.stop_at_s or 0.0, UTC)
                waiting.granted.set_exception(TimeIsUp(f"no call begins after {stopped_at:%H:%M} UTC, as asked"))

    def _dispatch(self) -> None:
        """Let go whatever may go, and look again when time will have changed something."""
        if self.is_time_up:
            self._refuse_all()
        while (lane := self._next_lane()) is not None:
            waiting: _Waiting = lane.pop()
            if waiting.granted.done():
                continue  # nobody waits for it any more
            if lane.stopped is not None:
                waiting.granted.set_exception(ModelStopped(f"{lane.name}: {lane.stopped}"))
            elif waiting.ask.key in self._keys:
                self._keys[waiting.ask.key].append(waiting)
            elif not self._grant(lane, waiting):
                break

    def _grant(self, lane: Lane, waiting: _Waiting) -> bool:
        ask = waiting.ask
        try:
            if not self.budget.reserve(ask.most):
                lane.push(ask.priority, waiting)
                return False
        except BudgetSpent as error:
            waiting.granted.set_exception(error)
            return True
        now_s = time.monotonic()
        ratio = self._tokens_used / self._tokens_guessed if self._tokens_guessed and self._tokens_used else 1.0
        tokens = round(ask.likely_tokens * ratio)
        self._requests.take(1, now_s)
        self._tokens.take(tokens, now_s)
        self._in_hand += 1
        self._leases += 1
        self._keys[ask.key] = []
        lane.began()
        waiting.granted.set_result(Lease(ask, self._leases, tokens))
        return True

    def _next_lane(self) -> Lane | None:
        """The lane whose turn it is; None while none may go."""
        with_asks = [lane for lane in self.lanes.values() if lane.waiting]
        if stopped := next((lane for lane in with_asks if lane.stopped is not None), None):
            return stopped
        if self.budget.is_spent and with_asks:
            return with_asks[0]
        # Where tokens are limited, the first reply tells how many a call takes before the next ones go.
        is_unmeasured = self.tpm is not None and self.totals.calls == 0
        if self._in_hand >= (1 if is_unmeasured else self.concurrency):
            return None
        waits = list(self._waits_s(with_asks, time.monotonic()))
        free = [lane for wait_s, lane in waits if wait_s == 0.0]
        if not free and waits:
            self._look_again_in(min(wait_s for wait_s, _ in waits))
        return min(free, key=lambda lane: lane.waiting[0][:2], default=None)

    def _waits_s(self, lanes: list[Lane], now_s: float) -> Iterator[tuple[float, Lane]]:
        shared_s = max(self._requests.wait_s(now_s), self._tokens.wait_s(now_s))
        for lane in lanes:
            own_s = lane.wait_s(now_s)
            if own_s is not None:
                yield max(shared_s, own_s), lane

    def _look_again_in(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(wait_s + 0.001, self._dispatch)
