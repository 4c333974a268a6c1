"""One attempt to send: no redirect is followed, no library logs a line, and it ends in time."""

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from threading import Thread

from tasks.alerts.causes import NotDelivered, of_error, of_status
from tasks.console import rewrite_log_records
from tasks.llm import Exchange, watched
from tasks.rules.errors import UsageError

Send = Callable[[], bool]
"""Sends something once; False if it was not accepted."""
_ERRORS: ContextVar[list[BaseException] | None] = ContextVar("errors", default=None)
"""What libraries caught while something is sent; None at any other time."""


def attempt(send: Send, timeout_s: float) -> None:
    """Send once; what takes too long is left to end by itself.

    Raises:
        NotDelivered: it was not accepted, or not in time.
        UsageError: a variable that an address refers to is not set.
    """
    outcome: list[Exception | None] = []
    # A thread of its own: libraries bound each read, which a server that answers byte by byte can stretch for ever.
    context = copy_context()
    thread = Thread(target=lambda: outcome.append(context.run(_outcome, send)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not outcome:
        raise NotDelivered(f"no answer within {timeout_s:g} s", may_pass=True)
    if outcome[0] is not None:
        raise outcome[0]


def _outcome(send: Send) -> Exception | None:
    rewrite_log_records("is_silent_while_sending", _unless_sending)
    apprise = logging.getLogger("apprise")
    apprise.propagate = False
    apprise.addHandler(logging.NullHandler())
    errors: list[BaseException] = []
    _ERRORS.set(errors)
    with watched() as exchange:
        try:
            return None if send() else _cause(exchange, errors)
        except (NotDelivered, UsageError) as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one receiver becomes its state
            return _cause(exchange, [*errors, error])


def _unless_sending(text: str) -> str:
    """A log line, unless a library writes it while something is sent: it may contain the address.

    Apprise catches errors and logs them, so this is where they are seen.
    """
    errors = _ERRORS.get()
    if errors is None or not text:
        return text
    if (error := sys.exc_info()[1]) is not None:
        errors.append(error)
    return "(not shown: written while an alert was sent)"


def _cause(exchange: Exchange, errors: list[BaseException]) -> NotDelivered:
    if exchange.fault is not None:
        return NotDelivered(str(exchange.fault), may_pass=False)
    if exchange.status is not None and exchange.status >= 400:
        return of_status(exchange.status)
    return of_error(errors[0]) if errors else NotDelivered("the service did not accept it", may_pass=True)
