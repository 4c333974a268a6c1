"""The delivery of a message to every receiver; a failing receiver does not affect the others.

An attempt follows no redirect, lets no library log a line, and has a time limit. Libraries and
servers may repeat an address or a password in their errors, so causes are in this project's own
words.
"""

import json
import logging
import os
import smtplib
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from operator import call
from threading import Thread
from typing import Any, Literal
from urllib.parse import quote

from tasks.alerts.findings import Alert, Row, alert_id, is_unchanged
from tasks.alerts.message import Message, Results, night_message
from tasks.config.job import Job
from tasks.config.settings import Alerts, Email, Receiver
from tasks.console import rewrite_log_records
from tasks.llm.redaction import filled_in, safe
from tasks.llm.transport import watched
from tasks.rules.errors import UsageError, causes_of
from warehouse import Warehouse, WarehouseError

FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 30.0
_ERRORS: ContextVar[list[BaseException] | None] = ContextVar("errors", default=None)
"""Errors that libraries caught during sending; None at any other time."""
Send = Callable[[], bool]
"""Sends a message to one address once; False: not accepted."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery: the result of sending a message to one receiver.

    Attributes:
        receiver: its kind and its number in the configuration, from 1, such as `slack 2`; never its
            address.
        attempts: number of attempts; of a mail, the most for one address.
        error: the cause of a failure, in one line without a secret.
        n_alerts: number of alerts in the message.
        alert_ids: their ids.
    """

    receiver: str
    status: Literal["sent", "failed"]
    attempts: int
    error: str | None
    n_alerts: int
    alert_ids: tuple[str, ...] = field(default=(), compare=False)


class NotDelivered(Exception):
    """An error: an attempt failed, with the cause in one line without a secret.

    With `may_pass` a retry may succeed.
    """

    def __init__(self, cause: str, *, may_pass: bool) -> None:
        super().__init__(cause)
        self.may_pass = may_pass


@dataclass(frozen=True)
class History:
    """What receivers were sent before.

    Attributes:
        sent: pairs of a receiver and an alert's id, also of alerts that have not changed.
        notified: receivers of a message this night.
        reassured: receivers of a message without an alert this night.
    """

    sent: frozenset[tuple[str, str]] = frozenset()
    notified: frozenset[str] = frozenset()
    reassured: frozenset[str] = frozenset()

    def has_heard(self, receiver: str, alerts: Sequence[Alert]) -> bool:
        """Return whether a message without a new alert would tell a receiver nothing new.

        If the night has alerts, that is so after any message of it, else after one without an
        alert.
        """
        return receiver in (self.notified if alerts else self.reassured)


def deliver(
    settings: Alerts,
    alerts: Sequence[Alert],
    job: Job,
    results: Results | None = None,
    *,
    history: History | None = None,
) -> list[Delivery]:
    """Send one message with all new alerts to each receiver, in parallel.

    Without a new alert there is no message, unless `alerts.when` is `always` and the night came to
    its end: then there is one a night.

    A message may arrive twice, if its receiver accepted it too late or the reply was lost. The wait
    before the next attempt doubles from `FIRST_WAIT_S` up to 30 s.
    """
    history = history or History()
    is_sent_always = settings.when == "always" and results is not None
    delivery_calls = []
    for number, receiver_settings in enumerate(settings.to, start=1):
        receiver = f"{receiver_settings.kind} {number}"
        new_alerts = [
            alert for alert in alerts if (receiver, alert_id(job, alert)) not in history.sent
        ]
        if new_alerts or (is_sent_always and not history.has_heard(receiver, alerts)):
            standing = [] if new_alerts else alerts
            message = night_message(job, new_alerts, results, standing=standing)
            sends = _sends_to(receiver_settings, message, settings.timeout_s)
            alert_ids = tuple(dict.fromkeys(alert_id(job, alert) for alert in new_alerts))
            delivery_calls.append(partial(_deliver_to, receiver, sends, settings, alert_ids))
    with ThreadPoolExecutor(len(settings.to) or None) as pool:
        return list(pool.map(call, delivery_calls))


def ping(settings: Alerts) -> Delivery | None:
    """Call the dead-man's switch; None if none is configured."""
    if settings.ping is None:
        return None
    return _deliver_to(
        "ping", [partial(_send_request, settings.ping, settings.timeout_s)], settings, ()
    )


def _deliver_to(
    receiver: str,
    sends: list[Send],
    settings: Alerts,
    alert_ids: tuple[str, ...],
) -> Delivery:
    """Send a message to a receiver, with one of the functions for each of its addresses."""
    n_attempts = 0
    errors = []
    for send in sends:
        n_send_attempts, send_error = _send_with_retries(send, settings)
        n_attempts = max(n_attempts, n_send_attempts)
        if send_error is not None:
            errors.append(send_error)
    error = None
    if errors:
        extent = f"{len(errors)} of {len(sends)} addresses: " if len(sends) > 1 else ""
        error = safe(extent + errors[0])
    return Delivery(
        receiver=receiver,
        status="failed" if errors else "sent",
        attempts=n_attempts,
        error=error,
        n_alerts=len(alert_ids),
        alert_ids=alert_ids,
    )


def _send_with_retries(send: Send, settings: Alerts) -> tuple[int, str | None]:
    """Send until it succeeds or the error is permanent, at most `settings.attempts` times.

    Return the number of attempts, and the last error; None if the message was sent.
    """
    for attempt in range(1, settings.attempts + 1):
        error = _send_within(settings.timeout_s, send)
        may_pass = isinstance(error, NotDelivered) and error.may_pass
        if not may_pass or attempt == settings.attempts:
            break
        time.sleep(min(_LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)))
    return attempt, None if error is None else str(error)


def _send_within(timeout_s: float, send: Send) -> Exception | None:
    """Send once within a time limit, and return the error; None after success.

    It is sent in a thread, because libraries limit only the time of each read: a server could send
    byte by byte.
    """
    outcome: list[Exception | None] = []
    thread = Thread(target=lambda: outcome.append(_send_once(send)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if outcome:
        return outcome[0]
    return NotDelivered(f"no response within {timeout_s:g} s", may_pass=True)


def _send_once(send: Send) -> Exception | None:
    """Send once, and return the error; None after success."""
    rewrite_log_records("is_silent_while_sending", _hide_while_sending)
    apprise = logging.getLogger("apprise")
    apprise.propagate = False
    apprise.addHandler(logging.NullHandler())
    errors: list[BaseException] = []
    _ERRORS.set(errors)
    with watched() as exchange:
        try:
            if send():
                return None
        except (NotDelivered, UsageError) as error:
            return error
        except Exception as error:  # noqa: BLE001 - any error becomes the state of this receiver
            errors.append(error)
    if exchange.fault is not None:
        return NotDelivered(str(exchange.fault), may_pass=False)
    status = exchange.status
    if status is not None and status >= 400:
        return NotDelivered(
            f"the server responded with status {status}", may_pass=status == 429 or status >= 500
        )
    if errors:
        return _not_delivered(errors[0])
    return NotDelivered("the service did not accept it", may_pass=True)


def _hide_while_sending(text: str) -> str:
    """Return a log line unchanged, or a fixed text for one that a library writes during sending: it
    may contain the address.

    The error that is being handled then is added to `_ERRORS`: Apprise catches errors and logs
    them, so this is the only way to see them.
    """
    errors = _ERRORS.get()
    if errors is None or not text:
        return text
    error = sys.exc_info()[1]
    if error is not None:
        errors.append(error)
    return "(not shown: written while an alert was sent)"


def _not_delivered(error: BaseException) -> NotDelivered:
    """Return a library's error as a cause without addresses."""
    code = getattr(error, "smtp_code", None)
    refused_recipients = getattr(error, "recipients", {})
    if refused_recipients:
        code = next(iter(refused_recipients.values()))[0]
    if code is not None:  # 4xx may pass, 5xx does not
        return NotDelivered(f"the server refused the mail: {code}", may_pass=code < 500)
    # Errors of certificates and of invalid addresses are `ValueError`s too.
    permanent = (ValueError, smtplib.SMTPNotSupportedError)
    may_pass = not any(isinstance(cause, permanent) for cause in causes_of(error))
    for cause in causes_of(error):
        # System errors of connections and OpenSSL errors of certificates contain no address.
        if isinstance(cause, OSError) and cause.strerror:
            return NotDelivered(f"no connection: {cause.strerror}", may_pass=may_pass)
    return NotDelivered(f"failed: {type(error).__name__}", may_pass=may_pass)


def _sends_to(receiver: Receiver, message: Message, timeout_s: float) -> list[Send]:
    """Return the functions that send a message to a receiver.

    Mail is sent to each address separately, so that only failed ones are retried.
    """
    if receiver.email is not None:
        mails = [partial(_mail_plugin, receiver.email, address) for address in receiver.email.to]
        return [partial(_send_by_apprise, mail, message, timeout_s) for mail in mails]
    if receiver.apprise is not None:
        return [
            partial(_send_by_apprise, partial(_url_plugin, receiver.apprise), message, timeout_s)
        ]
    if receiver.slack is not None:
        return [partial(_send_request, receiver.slack, timeout_s, {"text": message.as_chat})]
    return [partial(_send_request, receiver.webhook or "", timeout_s, message.as_json)]


def _send_request(address: str, timeout_s: float, content: Row | None = None) -> bool:
    """Call an address, in which `${NAME}` is filled in; content is posted as JSON.

    The attempt ends before this time limit of each read (`_send_within`).
    """
    import requests

    with requests.request(
        "GET" if content is None else "POST",
        filled_in(address).strip(),
        json=content,
        timeout=2 * timeout_s,
        verify=os.environ.get("SSL_CERT_FILE") or True,
        stream=True,
        allow_redirects=False,
    ) as http_response:
        return http_response.status_code < 300


def _send_by_apprise(plugin_with: Callable[[Any], Any], message: Message, timeout_s: float) -> bool:
    """Send by a plugin of Apprise, which `plugin_with` makes with Apprise's settings."""
    from apprise import Apprise, AppriseAsset, NotifyFormat

    asset = AppriseAsset(
        app_id="prbench",
        app_desc="prbench",
        http_redirects=False,
        async_mode=False,
    )
    plugin = plugin_with(asset)
    if plugin is None:
        raise NotDelivered(
            "Apprise does not know such an address, or lacks a package for it", may_pass=False
        )
    plugin.redirects = False  # even if its address allows them
    plugin.optional = False  # so that a failure is reported
    # The attempt ends earlier.
    plugin.socket_connect_timeout = 2 * timeout_s
    plugin.socket_read_timeout = 2 * timeout_s
    if plugin.verify_certificate:
        plugin.verify_certificate = os.environ.get("SSL_CERT_FILE") or True
    apprise = Apprise(asset=asset)
    apprise.add(plugin)
    return apprise.notify(message.body, message.title, body_format=NotifyFormat.TEXT) is True


def _url_plugin(url: str, asset: Any) -> Any:
    from apprise import Apprise

    return Apprise.instantiate(filled_in(url).strip(), asset=asset)


_SECURE_MODES = {
    "starttls": "starttls",
    "tls": "ssl",
    "none": "insecure",
}
"""`security` of the configuration -> Apprise's word."""


def _mail_plugin(email: Email, address: str, asset: Any) -> Any:
    from apprise.plugins.email import NotifyEmail

    return NotifyEmail(  # type: ignore[no-untyped-call]  # Apprise's plugins have no types
        asset=asset,
        format="text",
        smtp_host=email.host,
        host=email.host,
        port=email.port,
        secure_mode=_SECURE_MODES[email.security],
        user=quote(filled_in(email.user or "")),
        password=quote(filled_in(email.password or "")),
        from_addr=email.sender,
        targets=address,
        headers={"Auto-Submitted": "auto-generated"},
    )


def history_of(job: Job, alerts: Sequence[Alert]) -> History:
    """Return what receivers were sent before of the alerts of a job's night.

    An alert counts as sent if it was sent in an earlier night, has not changed, and was there in
    all nights since.
    """
    deliveries = _stored_rows(
        job,
        "alert_deliveries",
        "receiver, night, n_alerts, alert_ids",
        status="sent",
    )
    sent: set[tuple[str, str]] = set()
    notified = set()
    reassured = set()
    for row in deliveries:
        receiver = row["receiver"]
        sent.update((receiver, sent_id) for sent_id in row["alert_ids"] or ())
        if row["night"] == job.night and receiver != "ping":
            notified.add(receiver)
            if row["n_alerts"] == 0:
                reassured.add(receiver)
    earlier_nights = _alerts_of_earlier_nights(job)
    for alert in alerts:
        unchanged_ids = _unchanged_since(alert, earlier_nights)
        receivers = {receiver for receiver, sent_id in sent if sent_id in unchanged_ids}
        sent |= {(receiver, alert_id(job, alert)) for receiver in receivers}
    return History(frozenset(sent), frozenset(notified), frozenset(reassured))


def _alerts_of_earlier_nights(job: Job) -> list[list[Row]]:
    """Return the stored alerts of each earlier night of the benchmark, the latest night first."""
    benchmark = job.benchmark
    alerts_by_night: dict[str, list[Row]] = {}
    runs = "(select night, config ->> 'benchmark' as benchmark from runs where night is not null)"
    for row in _stored_rows(job, runs, "distinct night", benchmark=benchmark):
        if row["night"] < (job.night or ""):
            alerts_by_night[row["night"]] = []
    columns = "night, alert_id, kind, subject, facts"
    for row in _stored_rows(job, "alerts", columns, benchmark=benchmark):
        if row["night"] in alerts_by_night:
            alerts_by_night[row["night"]].append(row)
    return [alerts_by_night[night] for night in sorted(alerts_by_night, reverse=True)]


def _unchanged_since(alert: Alert, nights: Sequence[Sequence[Row]]) -> list[str]:
    """Return the ids of an alert in earlier nights; the first night without it ends the search."""
    unchanged_ids = []
    for stored_alerts in nights:
        night_ids = [
            row["alert_id"]
            for row in stored_alerts
            if is_unchanged(row["kind"], row["subject"], json.loads(row["facts"]), alert)
        ]
        if not night_ids:
            break
        unchanged_ids += night_ids
    return unchanged_ids


def _stored_rows(job: Job, table: str, columns: str, **where: Any) -> Sequence[Row]:
    try:
        with Warehouse(job.warehouse).reader() as reader:
            return reader.select(table, columns, **where)
    except WarehouseError:  # nothing is published, or the disk fails: alerts are sent anyway
        return []


def store_alerts(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery] = ()) -> None:
    """Write deliveries, and alerts that are not stored yet; the next publication shows them."""
    shared_columns = {
        "run_id": job.run_id,
        "night": job.night,
        "created_at": datetime.now(UTC),
    }
    stored_ids = {row["alert_id"] for row in _stored_rows(job, "alerts", "alert_id")}
    rows = []
    for alert in alerts:
        row = {
            **shared_columns,
            "alert_id": alert_id(job, alert),
            "benchmark": job.benchmark,
            "kind": alert.kind,
            "subject": alert.subject,
            "detail": alert.line,
            "facts": json.dumps(alert.facts, sort_keys=True),
        }
        if row["alert_id"] not in stored_ids:
            rows.append(row)
    warehouse = Warehouse(job.warehouse)
    warehouse.write("alerts", rows)
    warehouse.write(
        "alert_deliveries", [shared_columns | asdict(delivery) for delivery in deliveries]
    )
