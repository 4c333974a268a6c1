"""A sender as the driver sees it: the attempts that it has in hand, and what it sends back."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.llm.failures import Failure, Kind
from tasks.llm.replies import PROVIDER_ERROR, Reply
from tasks.llm.request import Call
from tasks.llm.senders.cluster import Node
from tasks.llm.senders.process import SILENCE_S, Attempt, Equipment, Outcome

_MESSAGE_AFTER_S = 0.002
"""So long attempts are collected for one message; each message costs the driver half a millisecond of its core."""
Made = tuple[Reply, Failure | None]


@dataclass(frozen=True)
class SenderState:
    """A sender as people see it: where it is, what it has made since it was ready, and what it is making."""

    node: str
    pid: int
    n_made: int
    n_in_hand: int
    calls_per_s: float


class RemoteSender:
    """A process that makes attempts, on a node."""

    def __init__(self, process: Any, node: Node, equipment: Equipment) -> None:
        self.node = node
        self.pid = equipment.pid
        self.lacking = equipment.lacking
        self.n_made = 0
        self._ready_s = time.monotonic()
        self._heard_at_s = equipment.at_s
        self._process = process
        self._in_hand: dict[int, asyncio.Future[Made]] = {}
        self._numbers = 0
        self._attempts: list[Attempt] = []
        self._cancelled: list[int] = []
        self._is_message_due = False

    @property
    def n_in_hand(self) -> int:
        """How many attempts it is making."""
        return len(self._in_hand)

    @property
    def state(self) -> SenderState:
        """How it is doing."""
        calls_per_s = self.n_made / max(time.monotonic() - self._ready_s, 1e-9)
        return SenderState(self.node.name, self.pid, self.n_made, self.n_in_hand, calls_per_s)

    async def make(self, call: Call, parameters: Mapping[str, Any]) -> Made:
        """Have it make an attempt; if it dies, that is the outcome."""
        self._numbers += 1
        number = self._numbers
        made: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        self._in_hand[number] = made
        self._attempts.append((number, call, parameters))
        self._send_soon()
        try:
            async with asyncio.timeout(call.target.timeout_s + SILENCE_S):
                return await made
        except TimeoutError:
            self._cancel(number)
            return self._lost("it does not answer")
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self._in_hand.pop(number, None)

    def _cancel(self, number: int) -> None:
        """Have an attempt ended, or not begun where it has not been sent."""
        waiting = [attempt for attempt in self._attempts if attempt[0] != number]
        if len(waiting) == len(self._attempts):
            self._cancelled.append(number)
            self._send_soon()
        self._attempts = waiting

    async def receive(self, on_reply: Callable[[], object]) -> None:
        """Take what it sends back, until it dies or falls silent.

        Raises:
            Exception: why it is gone.
        """
        while True:
            outcomes = await self._outcomes()
            for number, reply, failure in outcomes:
                made = self._in_hand.get(number)
                if made is not None and not made.done():
                    made.set_result((reply, failure))
            self.n_made += len(outcomes)
            if outcomes:
                on_reply()

    async def _outcomes(self) -> list[Outcome]:
        """What it sends next. It is waited for twice: the first wait may have passed while this process was stopped."""
        answer = _answer_to(self._process.outcomes.remote())
        for _ in range(2):
            if (await asyncio.wait([answer], timeout=SILENCE_S / 2))[0]:
                self._heard_at_s, outcomes = await answer
                return outcomes
        raise TimeoutError

    def give_up(self, why: str) -> None:
        """Fail the attempts that it has in hand: nobody knows what became of them."""
        for made in list(self._in_hand.values()):
            if not made.done():
                made.set_result(self._lost(why))

    def _lost(self, why: str) -> Made:
        failure = Failure(PROVIDER_ERROR, Kind.LOST, f"the sender on {self.node.name} is gone: {why}")
        return Reply(failure.status, error=failure.error), failure

    def _send_soon(self) -> None:
        if not self._is_message_due:
            self._is_message_due = True
            asyncio.get_running_loop().call_later(_MESSAGE_AFTER_S, self._send)

    def _send(self) -> None:
        attempts, cancelled = self._attempts, self._cancelled
        self._attempts, self._cancelled, self._is_message_due = [], [], False
        # If it is lost on its way, `receive` fails; if it cannot be read there, its attempts end at their time limit.
        if attempts or cancelled:
            self._process.start.remote(attempts, cancelled, self._heard_at_s)


def _answer_to(message: Any) -> "asyncio.Future[tuple[float, list[Outcome]]]":
    """What Ray will answer. It is never cancelled: Ray's client (`ray://`) then answers with a traceback."""
    answer: asyncio.Future[tuple[float, list[Outcome]]] = asyncio.wrap_future(message.future())
    answer.add_done_callback(lambda each: each.cancelled() or each.exception())  # also if nobody waits any more
    return answer
