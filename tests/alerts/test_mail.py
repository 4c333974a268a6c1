"""Alerts by mail, against a real mail server."""

import asyncio
import smtplib
import socket
import time
from typing import Any

import pytest

from tasks.alerts import Alert, Delivery, deliver
from tests.alerts.conftest import DRIFT, DROP, NIGHT, QUICK, Trust, alerts_to
from tests.alerts.servers import PASSWORD, USER, Mailbox, closed_port, dripping, serving_mail


def mailed(port: int, *, alerts: tuple[Alert, ...] = (DROP, DRIFT), timeout_s: float = 5.0, **email: Any) -> Delivery:
    """What became of alerts by mail, over a line that is not encrypted unless `security` says so."""
    given = {"to": ["evals@example.org"], "sender": "prbench@example.org", "host": "127.0.0.1", "port": port}
    settings = alerts_to({"email": {**given, "security": "none", **email}}, timeout_s=timeout_s)
    [delivery] = asyncio.run(deliver(settings, alerts, NIGHT, backoff=QUICK))
    return delivery


def test_a_mail_holds_all_alerts_and_says_in_its_subject_which() -> None:
    with serving_mail() as mailbox:
        delivery = mailed(mailbox.port, to=["Evals <evals@example.org>", "lead@example.org"])

    assert Delivery("email 1", "sent", 1, None, 2) == delivery
    [mail] = mailbox.mails
    assert [["evals@example.org", "lead@example.org"]] == mailbox.recipients
    assert "prbench, night 2026-11-22: judge drift (1), score drop (1)" == mail["Subject"]
    assert ("prbench@example.org", "Evals <evals@example.org>, lead@example.org") == (mail["From"], mail["To"])
    assert all(alert.line in mail.get_content() for alert in (DROP, DRIFT))
    assert all(mail[name] for name in ("Date", "Message-ID"))


def test_a_mail_that_is_put_off_is_handed_in_again_under_the_same_id() -> None:
    with serving_mail() as mailbox:
        mailbox.plan = ["451 4.3.0 try again later"] * 2
        delivery = mailed(mailbox.port)

    assert Delivery("email 1", "sent", 3, None, 2) == delivery
    assert 1 == len(mailbox.mails)


def test_a_mail_that_is_refused_is_not_handed_in_again_and_nothing_of_the_answer_but_its_codes_is_kept() -> None:
    with serving_mail() as mailbox:
        mailbox.plan = ["554 5.7.1 evals@example.org may not be written to"] * 3
        delivery = mailed(mailbox.port)

    assert Delivery("email 1", "failed", 1, "the server refused the mail: 554 5.7.1", 2) == delivery


def test_where_some_recipients_are_refused_the_others_get_the_mail_once_and_the_delivery_has_failed() -> None:
    with serving_mail() as mailbox:
        mailbox.unknown = {"gone@example.org"}
        some = mailed(mailbox.port, to=["gone@example.org", "evals@example.org"])
        none = mailed(mailbox.port, to=["gone@example.org"])

    assert Delivery("email 1", "failed", 1, "the server refused 1 of 2 recipients", 2) == some
    assert Delivery("email 1", "failed", 1, "the server refused every recipient: 550 5.1.1", 2) == none
    assert [["evals@example.org"]] == mailbox.recipients


def login_over_tls(mailbox: Mailbox, security: str, host: str = "127.0.0.1") -> Delivery:
    return mailed(mailbox.port, security=security, host=host, user=USER, password="${MAIL_PASSWORD}")


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # the server's own, of a line that is encrypted from the start
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_password_is_sent_only_over_a_line_to_a_server_that_can_be_trusted(
    security: str, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    how: Any = {security: trust.server}
    with serving_mail(asks_login=True, **how) as mailbox:
        unknown = login_over_tls(mailbox, security)
        monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
        elsewhere = login_over_tls(mailbox, security, "localhost")
        assert [] == mailbox.logins
        trusted = login_over_tls(mailbox, security)

    error = "the server's certificate is not signed by anyone trusted here"
    assert Delivery("email 1", "failed", 1, error, 2) == unknown
    assert Delivery("email 1", "failed", 1, "the server's certificate is for another name", 2) == elsewhere
    assert Delivery("email 1", "sent", 1, None, 2) == trusted
    assert [(USER.encode(), PASSWORD.encode())] == mailbox.logins
    assert [True] == mailbox.were_encrypted


def test_a_wrong_password_is_told_and_not_tried_again(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "a-wrong-password")
    monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
    with serving_mail(asks_login=True, starttls=trust.server) as mailbox:
        delivery = login_over_tls(mailbox, "starttls")

    assert Delivery("email 1", "failed", 1, "the server refused the login: 535 5.7.8", 2) == delivery
    assert [] == mailbox.mails


def test_a_server_without_encryption_gets_no_mail_that_asks_for_it() -> None:
    with serving_mail() as mailbox:
        delivery = mailed(mailbox.port, security="starttls")

    error = "the server does not offer what is needed (see `security`, `user`)"
    assert Delivery("email 1", "failed", 1, error, 2) == delivery
    assert [] == mailbox.mails


def test_names_with_line_breaks_add_no_header() -> None:
    hostile = "a-model\r\nBcc: thief@example.org\r\n\r\nA body of its own"
    with serving_mail() as mailbox:
        sent = mailed(mailbox.port, alerts=(Alert("score_drop", hostile, f"{hostile} fell"),))
        refused = mailed(mailbox.port, to=["evals@example.org\r\nBcc: thief@example.org"])

    [mail] = mailbox.mails
    assert ("sent", None) == (sent.status, mail["Bcc"])
    assert [["evals@example.org"]] == mailbox.recipients
    error = "an address in `email` is none, or holds a line break"
    assert Delivery("email 1", "failed", 1, error, 2) == refused


def test_a_server_that_is_not_there_is_tried_as_often_as_configured() -> None:
    assert Delivery("email 1", "failed", 3, "no connection: Connection refused", 2) == mailed(closed_port())


def test_a_server_that_drips_its_greeting_is_cut_off_at_the_time_limit() -> None:
    with dripping(b"220-welcome\r\n220-") as port:
        started_s = time.monotonic()
        delivery = mailed(port, timeout_s=0.4)  # which ends only when its threads have ended

    assert time.monotonic() - started_s < 8
    assert Delivery("email 1", "failed", 3, "no answer within 0.4 s", 2) == delivery


def test_a_connection_that_comes_about_after_the_time_limit_carries_no_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def slowly(*given: Any, **named: Any) -> socket.socket:
        time.sleep(0.6)  # as where the first of a host's addresses does not answer
        return connect(*given, **named)

    monkeypatch.setattr(smtplib.socket, "create_connection", slowly)  # type: ignore[attr-defined]
    with serving_mail() as mailbox:
        delivery = mailed(mailbox.port, timeout_s=0.2)

    assert ("failed", []) == (delivery.status, mailbox.mails)
