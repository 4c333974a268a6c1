"""Sending a message to every receiver, and what became of it; a receiver that fails stops nothing else."""

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from tasks.alerts.alert import Alert
from tasks.alerts.attempt import Send, attempt
from tasks.alerts.causes import NotDelivered
from tasks.alerts.message import Message, Night
from tasks.alerts.receivers import call, sends
from tasks.config.operations import Alerts
from tasks.llm import safe
from tasks.rules.errors import UsageError

PING = "ping"
"""The name of the dead-man's switch among the receivers."""
FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message to one receiver.

    Attributes:
        receiver: its kind and its place in the configuration, from 1, such as `slack 2`; never its address.
        attempts: how often it was tried; of a mail, the most for one address.
        error: why it failed, in one line without a secret.
        n_alerts: how many alerts the message held.
        alert_ids: which ones.
    """

    receiver: str
    status: Literal["sent", "failed"]
    attempts: int
    error: str | None
    n_alerts: int
    alert_ids: tuple[str, ...] = field(default=(), compare=False)


def deliver(
    settings: Alerts, alerts: Sequence[Alert], night: Night, *,
    delivered: Collection[tuple[str, str]] = (), first_wait_s: float = FIRST_WAIT_S,
) -> list[Delivery]:  # fmt: skip
    """Send each receiver one message with all alerts, all at the same time; no alert, no message.

    Alerts that were `delivered` before (receiver and id) are not sent to that receiver again.

    A message may arrive twice: its receiver accepted it too late, or its answer was lost. The wait before the next
    attempt doubles from `first_wait_s` up to 30 s.
    """
    due = []
    for place, to in enumerate(settings.to, start=1):
        receiver = f"{to.kind} {place}"
        new = [alert for alert in alerts if (receiver, night.id_of(alert)) not in delivered]
        due += [(receiver, sends(to, Message.about(night, new), settings.timeout_s), new)] if new else []
    with ThreadPoolExecutor(len(settings.to) or None) as pool:
        deliveries = [
            pool.submit(
                copy_context().run, _delivery, receiver, targets, settings, tuple(map(night.id_of, new)), first_wait_s
            )
            for receiver, targets, new in due
        ]
        return [delivery.result() for delivery in deliveries]


def ping(settings: Alerts, *, first_wait_s: float = FIRST_WAIT_S) -> Delivery | None:
    """Call the dead-man's switch; None where none is configured."""
    if settings.ping is None:
        return None
    return _delivery(PING, [partial(call, settings.ping, settings.timeout_s)], settings, (), first_wait_s)


def _delivery(
    receiver: str, targets: list[Send], settings: Alerts, alert_ids: tuple[str, ...], first_wait_s: float
) -> Delivery:
    tried = [_attempts(target, settings, first_wait_s) for target in targets]
    attempts = max(count for count, _ in tried)
    errors = [error for _, error in tried if error is not None]
    if not errors:
        return Delivery(receiver, "sent", attempts, None, len(alert_ids), alert_ids)
    some = f"{len(errors)} of {len(targets)} addresses: " if len(targets) > 1 else ""
    return Delivery(receiver, "failed", attempts, safe(some + errors[0]), len(alert_ids), alert_ids)


def _attempts(send: Send, settings: Alerts, first_wait_s: float) -> tuple[int, str | None]:
    """Send until it succeeds, cannot succeed, or was tried often enough: how often, and the last error."""
    for made in range(1, settings.attempts + 1):
        try:
            attempt(send, settings.timeout_s)
        except UsageError as error:
            return 0, str(error)
        except NotDelivered as error:
            if not error.may_pass or made == settings.attempts:
                return made, error.cause
        else:
            return made, None
        time.sleep(min(_LONGEST_WAIT_S, first_wait_s * 2 ** (made - 1)))
    raise AssertionError("a receiver is tried at least once")
