"""What provider batches may use, set aside in the budget that live calls share with them."""

import asyncio
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager

from tasks.llm.limits.budget import Budget, BudgetSpent
from tasks.llm.usage import NOTHING, UNKNOWN, Usage


class SetAside:
    """What is set aside for the calls in batches, by their keys."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._most: dict[str, Usage] = {}

    def has_room(self, key: str, most: Usage) -> bool:
        """Set aside the most that a call may use; False where the cap has no room for it, or none just now."""
        if key in self._most:
            return True
        try:
            fits = self._budget.reserve(most)
        except BudgetSpent:
            return False
        if fits:
            self._most[key] = most
        return fits

    def settle(self, key: str, used: Usage) -> None:
        """Count what a call used, if anything was set aside for it."""
        if key in self._most:
            self._budget.settle(self._most.pop(key), used)

    def give_back(self, keys: Container[str]) -> None:
        """Calls that were not made after all."""
        for key in [key for key in self._most if key in keys]:
            self.settle(key, NOTHING)

    def count_as_used(self) -> None:
        """Count all that is still set aside as used: nobody else could give it back, and live calls would wait."""
        for key in list(self._most):
            self.settle(key, UNKNOWN)

    @contextmanager
    def room(self) -> Iterator[asyncio.Event]:
        """Set as soon as anybody gives back what was set aside."""
        has_room = asyncio.Event()
        self._budget.when_settled.append(has_room.set)
        try:
            yield has_room
        finally:
            self._budget.when_settled.remove(has_room.set)

    def exhaust_without_room(self, held_back: Sequence[Usage]) -> None:
        """The budget is spent if it has no room, even later, for one of the calls that were held back."""
        for most in held_back:
            try:
                if self._budget.reserve(most):
                    self._budget.settle(most, NOTHING)
            except BudgetSpent:
                return


async def happens(event: asyncio.Event, within_s: float) -> bool:
    """Wait for an event; False if it has not come in time."""
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
