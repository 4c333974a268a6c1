"""The cap on what a run may use: nothing starts that could pass it."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from tasks.llm.request import NOTHING, UNKNOWN, Usage


class NotCalled(Exception):
    """A call that was not made, with the reason; its cell stays missing."""


class BudgetSpent(NotCalled):
    """The cap leaves no room for the call."""


class Budget:
    """USD and tokens of one run, used and set aside for calls that are under way.

    Whoever waits for room is woken by `when_settled`. Nobody who waits may hold anything that was set aside, and
    whoever holds something gives it back in the end: so nobody waits for ever.
    """

    def __init__(self, max_usd: float | None, max_tokens: int | None) -> None:
        self._max_usd, self._max_tokens = max_usd, max_tokens
        self.used_usd, self.used_tokens = 0.0, 0
        self._reserved_usd, self._reserved_tokens, self._reserved = 0.0, 0, 0
        self.is_spent = False
        self._refused = Usage(None, None)
        self.when_settled: list[Callable[[], None]] = []

    def reserve(self, most: Usage) -> bool:
        """Set aside the most that a call may use; False when it has to wait for others to give back.

        Raises:
            BudgetSpent: there is no room for it, or what it may use is not known; from then on, for no call.
        """
        if not self.is_spent and self._fits(most, self._reserved_usd, self._reserved_tokens):
            self._reserved_usd += most.usd or 0.0
            self._reserved_tokens += most.tokens or 0
            self._reserved += 1
            return True
        if not self.is_spent and self._fits(most, 0.0, 0):
            return False
        if not self.is_spent:
            self._refused = most
        self.is_spent = True
        raise BudgetSpent(self.line)

    def settle(self, most: Usage, used: Usage) -> None:
        """Give back what was set aside, and count what was used; where that is not known, all that was set aside."""
        self._reserved -= 1
        # Without anything set aside it is exactly nothing, whatever rounding has left.
        self._reserved_usd = self._reserved_usd - (most.usd or 0.0) if self._reserved else 0.0
        self._reserved_tokens -= most.tokens or 0
        self.used_usd += (most.usd or 0.0) if used.usd is None else used.usd
        self.used_tokens += (most.tokens or 0) if used.tokens is None else used.tokens
        for wake in list(self.when_settled):
            wake()

    @property
    def line(self) -> str:
        """How it stands, for people."""
        usd = f"{self.used_usd:.4f} of {self._max_usd:g} USD" if self._max_usd is not None else ""
        tokens = f"{self.used_tokens:,} of {self._max_tokens:,} tokens" if self._max_tokens is not None else ""
        return " and ".join(part for part in (usd, tokens) if part) + " used" + self._refused_line

    @property
    def _refused_line(self) -> str:
        """What the first call could have used that the cap left no room for."""
        usd = f"{self._refused.usd:.4f} USD" if self._max_usd is not None and self._refused.usd else ""
        tokens = f"{self._refused.tokens:,} tokens" if self._max_tokens is not None and self._refused.tokens else ""
        most = " and ".join(part for part in (usd, tokens) if part)
        is_first = not (self.used_usd or self.used_tokens)
        advice = ": raise the cap, or set a lower `max_tokens` for the model" if is_first else ""
        return f", and the next call could use up to {most}{advice}" if most else ""

    def _fits(self, most: Usage, reserved_usd: float, reserved_tokens: int) -> bool:
        return _is_below(self._max_usd, self.used_usd + reserved_usd, most.usd) and _is_below(
            self._max_tokens, self.used_tokens + reserved_tokens, most.tokens
        )


def _is_below(cap: float | None, used: float, most: float | None) -> bool:
    """Whether a cap holds if as much as possible is used; what may be any amount passes every cap."""
    return cap is None or (most is not None and used + most <= cap)


class SetAside:
    """What is set aside for the calls in batches, by their keys."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._most: dict[str, Usage] = {}

    def has_room(self, key: str, most: Usage) -> bool:
        """Set aside the most that a call may use; False where the cap has no room for it, or none just now."""
        with suppress(BudgetSpent):
            if key not in self._most and self._budget.reserve(most):
                self._most[key] = most
        return key in self._most

    def settle(self, key: str, used: Usage) -> None:
        """Count what a call used, if anything was set aside for it."""
        if key in self._most:
            self._budget.settle(self._most.pop(key), used)

    def give_back(self, keys: Iterable[str]) -> None:
        """Calls that were not made after all."""
        for key in keys:
            self.settle(key, NOTHING)

    def count_as_used(self) -> None:
        """Count all that is still set aside as used: nobody else could give it back, and live calls would wait."""
        for key in list(self._most):
            self.settle(key, UNKNOWN)

    def exhaust_without_room(self, held_back: Sequence[Usage]) -> None:
        """The budget is spent if it has no room, even later, for one of the calls that were held back."""
        with suppress(BudgetSpent):
            for most in held_back:
                if self._budget.reserve(most):
                    self._budget.settle(most, NOTHING)
