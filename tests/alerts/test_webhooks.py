"""Webhooks, Slack's and the dead-man's switch, against a real server that fails in every way."""

import asyncio
import logging
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tenacity import AsyncRetrying, RetryCallState

from tasks.alerts import Backoff, Delivery, deliver, ping
from tasks.llm.redaction import guard_logs
from tests.alerts.conftest import DRIFT, DROP, NIGHT, QUICK, Trust, alerts_to
from tests.alerts.servers import Hook, Reply, closed_port, dripping, serving_hook


def sent_to(address: str, *, backoff: Backoff = QUICK, **settings: Any) -> Delivery:
    """What became of one alert to a webhook."""
    [delivery] = asyncio.run(deliver(alerts_to({"webhook": address}, **settings), [DROP], NIGHT, backoff=backoff))
    return delivery


def test_a_webhook_gets_one_request_with_all_alerts_of_the_night(hook: Hook) -> None:
    deliveries = asyncio.run(deliver(alerts_to({"webhook": hook.address}), [DROP, DRIFT], NIGHT))

    assert [Delivery("webhook 1", "sent", 1, None, 2)] == deliveries
    [call] = hook.calls
    assert ("POST", "application/json") == (call.method, call.headers["Content-Type"])
    assert {
        "night": "2026-11-22",
        "run_id": "a-run",
        "benchmark": "prbench",
        "warehouse": "warehouse/data",
        "report": None,
        "title": "prbench, night 2026-11-22: judge drift (1), score drop (1)",
        "alerts": [DRIFT.as_json, DROP.as_json],
    } == call.json


def test_slack_gets_text_and_blocks(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK", f"{hook.address}\n")  # as a file with an environment often has it

    [delivery] = asyncio.run(deliver(alerts_to({"slack": "${SLACK}"}), [DROP], NIGHT))

    assert ("slack 1", "sent") == (delivery.receiver, delivery.status)
    [call] = hook.calls
    assert {"text", "blocks"} == set(call.json)
    assert f"*score drop*: {DROP.line}" in call.json["text"].splitlines()


def test_without_an_alert_nobody_is_called(hook: Hook) -> None:
    assert [] == asyncio.run(deliver(alerts_to({"webhook": hook.address}), [], NIGHT))
    assert [] == hook.calls


@pytest.mark.parametrize("statuses", [[500], [503, 502], [429, 504]])
def test_a_server_that_is_down_for_a_while_is_called_again(hook: Hook, statuses: list[int]) -> None:
    hook.plan = [Reply(status) for status in statuses]

    assert Delivery("webhook 1", "sent", len(statuses) + 1, None, 1) == sent_to(hook.address)
    assert len(statuses) + 1 == len(hook.calls)


def test_a_server_that_stays_down_is_given_up_after_the_configured_attempts(hook: Hook) -> None:
    hook.plan = [Reply(500)] * 9

    delivery = sent_to(hook.address, attempts=2)

    assert Delivery("webhook 1", "failed", 2, "the server answered 500 (Internal Server Error)", 1) == delivery
    assert 2 == len(hook.calls)


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (Reply(404), "the server answered 404 (Not Found)"),
        (Reply(400, b"invalid_blocks"), "the server answered 400 (Bad Request): invalid_blocks"),
        (Reply(403, b"No, a-secret-path is not open"), "the server answered 403 (Forbidden)"),
        (Reply(410, b"hooks"), "the server answered 410 (Gone)"),
        (Reply(799), "the server answered 799"),
        (
            Reply(308, headers={"Location": "/elsewhere"}),
            "the server answered 308 (Permanent Redirect); redirects are not followed, configure where this one leads",
        ),
    ],
)
def test_a_message_that_is_not_taken_is_not_sent_again_and_the_cause_shows_nothing_of_the_address(
    hook: Hook, reply: Reply, cause: str
) -> None:
    hook.plan = [reply] * (9 if reply.status < 500 else 1)

    delivery = sent_to(hook.address, attempts=1 if reply.status > 500 else 3)

    assert Delivery("webhook 1", "failed", 1, cause, 1) == delivery


def test_a_server_that_asks_for_time_is_given_it(hook: Hook) -> None:
    hook.plan = [Reply(429, headers={"Retry-After": "1"})]

    assert "sent" == sent_to(hook.address).status
    assert 1.0 <= hook.calls[1].at_s - hook.calls[0].at_s < 20.0


@pytest.mark.parametrize(
    "asked",
    ["3600", format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)],
    ids=["in seconds", "as a date"],
)
def test_a_server_that_asks_for_an_hour_is_not_given_it(hook: Hook, asked: str) -> None:
    hook.plan = [Reply(503, headers={"Retry-After": asked})]

    assert "sent" == sent_to(hook.address, backoff=Backoff(first_s=0.01, longest_asked_s=0.3)).status
    assert 0.3 <= hook.calls[1].at_s - hook.calls[0].at_s < 20.0


def test_waits_double_up_to_a_longest_one_and_differ_by_chance() -> None:
    backoff = Backoff(first_s=0.1, longest_s=0.5)
    for attempt, full_s in enumerate([0.1, 0.2, 0.4, 0.5, 0.5], start=1):
        state = RetryCallState(AsyncRetrying(), None, (), {})
        state.attempt_number = attempt
        drawn_s = [backoff(state) for _ in range(200)]

        assert full_s / 2 <= min(drawn_s) < full_s * 0.6 < full_s * 0.9 < max(drawn_s) <= full_s


def test_a_server_that_hangs_is_left_at_the_time_limit_and_called_again(hook: Hook) -> None:
    hook.plan = [Reply(delay_s=30)]
    started_s = time.monotonic()

    delivery = sent_to(hook.address, timeout_s=0.4)

    assert Delivery("webhook 1", "sent", 2, None, 1) == delivery
    assert time.monotonic() - started_s < 5


def test_a_server_that_drips_an_answer_cannot_stretch_the_time_limit() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nX-Long: ") as port:
        started_s = time.monotonic()
        delivery = sent_to(f"http://127.0.0.1:{port}/", timeout_s=0.3, attempts=2)

    assert Delivery("webhook 1", "failed", 2, "no answer within 0.3 s", 1) == delivery
    assert time.monotonic() - started_s < 5


@pytest.mark.parametrize(
    ("address", "attempts", "cause"),
    [
        (f"http://127.0.0.1:{closed_port()}/a-secret-path", 3, "no connection: Connection refused"),
        ("http://no-such-host.invalid/a-secret-path", 3, "the host's name is not known"),
        ("ftp://127.0.0.1/a-secret-path", 1, "its address is none that begins with http:// or https://"),
        ("http://127.0.0.1:a-secret-port", 1, "its address is none that begins with http:// or https://"),
        ("${NO_SUCH_VARIABLE}", 0,
         "${NO_SUCH_VARIABLE} in the configuration: the environment variable NO_SUCH_VARIABLE is not set"),
    ],
    ids=["nobody listens", "no such host", "another scheme", "no port", "not set"],
)  # fmt: skip
def test_an_address_where_nobody_answers_is_told_in_one_line(address: str, attempts: int, cause: str) -> None:
    assert Delivery("webhook 1", "failed", attempts, cause, 1) == sent_to(address)


def test_an_answer_that_is_not_http_is_a_broken_connection() -> None:
    with dripping(b"SSH-2.0-something\r\n\r\n") as port:
        assert "the connection broke off" == sent_to(f"http://127.0.0.1:{port}/").error


def test_all_are_told_at_the_same_time_and_one_that_cannot_be_told_stops_nobody(hook: Hook) -> None:
    with serving_hook() as other:
        hook.meeting = other.meeting = threading.Barrier(2)
        settings = alerts_to(
            {"webhook": hook.address}, {"webhook": f"http://127.0.0.1:{closed_port()}/"}, {"webhook": other.address}
        )
        deliveries = asyncio.run(deliver(settings, [DROP], NIGHT, backoff=QUICK))

    assert [("webhook 1", "sent"), ("webhook 2", "failed"), ("webhook 3", "sent")] == [
        (delivery.receiver, delivery.status) for delivery in deliveries
    ]


def test_an_address_from_the_environment_stays_out_of_the_log(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WHERE_TO", hook.address)
    guard_logs()
    hook.plan = [Reply(500)]

    with caplog.at_level(logging.DEBUG):
        assert "sent" == sent_to("${WHERE_TO}").status

    assert caplog.records
    assert "a-secret-path" not in caplog.text


def test_a_server_whose_certificate_nobody_trusted_has_signed_gets_nothing(
    trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_hook(trust.server) as hook:
        refused = sent_to(hook.address)
        assert [] == hook.calls
        monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
        taken = sent_to(hook.address)
        elsewhere = sent_to(hook.address.replace("127.0.0.1", "localhost"))

    error = "the server's certificate is not signed by anyone trusted here"
    assert Delivery("webhook 1", "failed", 1, error, 1) == refused
    assert Delivery("webhook 1", "sent", 1, None, 1) == taken
    assert Delivery("webhook 1", "failed", 1, "the server's certificate is for another name", 1) == elsewhere


def test_the_dead_mans_switch_is_called_until_it_answers(hook: Hook) -> None:
    hook.plan = [Reply(502)]

    delivery = asyncio.run(ping(alerts_to(ping=hook.address), backoff=QUICK))

    assert Delivery("ping", "sent", 2, None, 0) == delivery
    assert [("GET", b"")] * 2 == [(call.method, call.body) for call in hook.calls]


def test_without_a_dead_mans_switch_none_is_called() -> None:
    assert asyncio.run(ping(alerts_to())) is None
