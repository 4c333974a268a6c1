"""Permission to call, from another process: the worker's side and the side of the run that holds the limits."""

import asyncio
import itertools
from collections.abc import Mapping

from tasks.llm.channel import Channel
from tasks.llm.limits.admission import Ask, Lease, Outcome, Permits
from tasks.llm.limits.budget import NotCalled

ACQUIRE, GRANT, RELEASE = "acquire", "grant", "release"


class LeasedPermits:
    """The permits of a worker process: it asks, and waits until it is granted."""

    def __init__(self, role: str, channel: Channel) -> None:
        self._role, self._channel = role, channel
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Lease]] = {}

    async def acquire(self, ask: Ask) -> Lease:
        """Wait for permission."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._channel.send(ACQUIRE, self._role, number, ask)
        return await self._waiting[number]

    def granted(self, number: int, lease: Lease | NotCalled) -> None:
        """Take in the answer to an ask."""
        waiting = self._waiting.pop(number)
        if not waiting.done():
            waiting.set_exception(lease) if isinstance(lease, NotCalled) else waiting.set_result(lease)
        elif isinstance(lease, Lease):
            self.release(lease, Outcome())

    def release(self, lease: Lease, outcome: Outcome) -> None:
        """Give it back, and tell how the call ended."""
        self._channel.send(RELEASE, self._role, lease, outcome)


class Lessor:
    """What one worker process holds of a run's permits; all of it comes back when the process ends."""

    def __init__(self, permits: Mapping[str, Permits], channel: Channel) -> None:
        self._permits, self._channel = permits, channel
        self._held: dict[tuple[str, int], Lease] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def ask(self, role: str, number: int, ask: Ask) -> None:
        """Let a worker's ask wait for its turn."""
        task = asyncio.get_running_loop().create_task(self._grant(role, number, ask))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _grant(self, role: str, number: int, ask: Ask) -> None:
        try:
            lease = await self._permits[role].acquire(ask)
        except NotCalled as error:
            self._channel.send(GRANT, role, number, error)
            return
        self._held[role, lease.number] = lease
        self._channel.send(GRANT, role, number, lease)

    def release(self, role: str, lease: Lease, outcome: Outcome) -> None:
        """Take one back."""
        held = self._held.pop((role, lease.number))
        self._permits[role].release(held, outcome)

    def take_all_back(self) -> None:
        """The worker has ended: nobody waits, and what it held is free again."""
        for task in self._asking:
            task.cancel()
        for (role, _), lease in self._held.items():
            self._permits[role].release(lease, Outcome(is_lost=True))
        self._held.clear()
