"""Telling everybody who is to know, with what became of it; a receiver that cannot be told fails nothing else."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from tasks.alerts import blocks, mail, web
from tasks.alerts.alert import Alert
from tasks.alerts.causes import NotDelivered
from tasks.alerts.message import Message, Night
from tasks.config.operations import Alerts, Receiver
from tasks.llm.redaction import safe
from tasks.rules.errors import UsageError

PING = "ping"
"""How the dead-man's switch is called among the receivers."""
Send = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message to one receiver.

    Attributes:
        receiver: its kind and its place in the configuration, from 1, such as `slack 2`; never its address.
        attempts: how often it was tried.
        error: why it failed, in one line without a secret.
        n_alerts: how many alerts the message held.
    """

    receiver: str
    status: Literal["sent", "failed"]
    attempts: int
    error: str | None
    n_alerts: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before the next attempt.

    The wait doubles from `first_s` up to `longest_s`, half of it by chance so that receivers are not all called at one
    moment. A receiver that asks to be left alone for longer gets that, up to `longest_asked_s`.
    """

    first_s: float = 1.0
    longest_s: float = 30.0
    longest_asked_s: float = 60.0

    def __call__(self, state: RetryCallState) -> float:
        """The wait after a failed attempt, in seconds."""
        own_s = min(self.longest_s, self.first_s * 2.0 ** (state.attempt_number - 1)) * random.uniform(0.5, 1.0)
        error = state.outcome.exception() if state.outcome else None
        asked_s = error.retry_after_s if isinstance(error, NotDelivered) else None
        return max(own_s, min(asked_s or 0.0, self.longest_asked_s))


async def deliver(
    settings: Alerts, alerts: Sequence[Alert], night: Night, *, backoff: Backoff = Backoff()
) -> list[Delivery]:
    """Send each receiver one message with all alerts, all at the same time; no alert, no message.

    A message may arrive twice, when a receiver took it and its answer was lost.
    """
    if not alerts:
        return []
    message = Message.about(night, alerts)
    return await asyncio.gather(
        *(
            _delivery(f"{to.kind} {place}", _sending(to, message, settings.timeout_s), settings, len(alerts), backoff)
            for place, to in enumerate(settings.to, start=1)
        )
    )


async def ping(settings: Alerts, *, backoff: Backoff = Backoff()) -> Delivery | None:
    """Call the dead-man's switch; None where none is configured."""
    if settings.ping is None:
        return None
    address = settings.ping
    return await _delivery(PING, lambda: web.get(address), settings, 0, backoff)


def _sending(receiver: Receiver, message: Message, timeout_s: float) -> Send:
    """What sends a message to a receiver, once."""
    if receiver.email is not None:
        return mail.sending(receiver.email, message, timeout_s)
    if receiver.prefect is not None:
        name = receiver.prefect
        return lambda: blocks.notify(name, message.body, message.title)
    if receiver.slack is not None:
        address = receiver.slack
        return lambda: web.post(address, message.as_slack)
    hook = receiver.webhook or ""
    return lambda: web.post(hook, message.as_json)


async def _delivery(receiver: str, send: Send, settings: Alerts, n_alerts: int, backoff: Backoff) -> Delivery:
    """Send until it succeeds, cannot succeed, or has been tried often enough."""
    attempts, error = 0, None
    try:
        async for attempt in AsyncRetrying(
            stop=stop_after_attempt(settings.attempts), wait=backoff, retry=retry_if_exception(_may_pass), reraise=True
        ):
            with attempt:
                attempts += 1
                await _attempt(send, settings.timeout_s)
    except NotDelivered as failure:
        error = failure.cause
    except UsageError as failure:
        attempts, error = 0, str(failure)
    except Exception as failure:  # noqa: BLE001 - whatever is wrong with one receiver becomes its state
        error = f"failed with {type(failure).__name__}, whose text is not shown as it may hold the address"
    status: Literal["sent", "failed"] = "sent" if error is None else "failed"
    return Delivery(receiver, status, attempts, None if error is None else safe(error), n_alerts)


async def _attempt(send: Send, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await send()
    except TimeoutError as error:
        raise NotDelivered(f"no answer within {timeout_s:g} s", may_pass=True) from error


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, NotDelivered) and error.may_pass
