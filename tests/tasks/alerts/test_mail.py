"""Alerts by mail, against a real mail server."""

import logging
import time
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.alerts.findings import Alert
from tasks.alerts.sending import Delivery, deliver
from tests.tasks.alerts.conftest import DRIFT, DROP, NIGHT, WAIT_S, Trust, alerts_to
from tests.tasks.alerts.servers import PASSWORD, USER, Mailbox, closed_port, dripping, serving_mail


def mailed(port: int, *, alerts: tuple[Alert, ...] = (DROP, DRIFT), timeout_s: float = 60.0, **email: Any) -> Delivery:
    """What became of alerts by mail, over a line that is not encrypted unless `security` says so."""
    given = {"to": ["evals@example.org"], "sender": "prbench@example.org", "host": "127.0.0.1", "port": port}
    settings = alerts_to({"email": {**given, "security": "none", **email}}, timeout_s=timeout_s)
    [delivery] = deliver(settings, alerts, NIGHT, first_wait_s=WAIT_S)
    return delivery


def test_each_address_gets_a_mail_with_all_alerts_whose_subject_says_which() -> None:
    with serving_mail() as mailbox:
        delivery = mailed(mailbox.port, to=["Evals <evals@example.org>", "lead@example.org"])

    assert Delivery("email 1", "sent", 1, None, 2) == delivery
    assert [["evals@example.org"], ["lead@example.org"]] == mailbox.recipients
    for mail, to in zip(mailbox.mails, ["Evals <evals@example.org>", "lead@example.org"], strict=True):
        assert "prbench, night 2026-11-22: judge drift (1), score drop (1)" == mail["Subject"]
        assert ("prbench@example.org", to) == (mail["From"], mail["To"])
        assert ("text/plain", "auto-generated") == (mail.get_content_type(), mail["Auto-Submitted"])
        assert all(alert.line in mail.get_content() for alert in (DROP, DRIFT))
        assert all(mail[name] for name in ("Date", "Message-ID"))


def test_a_mail_that_is_put_off_is_handed_in_again() -> None:
    with serving_mail() as mailbox:
        mailbox.plan = ["451 4.3.0 try again later"] * 2
        delivery = mailed(mailbox.port)

    assert Delivery("email 1", "sent", 3, None, 2) == delivery
    assert 1 == len(mailbox.mails)


def test_a_mail_that_is_refused_is_not_handed_in_again_and_only_the_codes_of_the_answer_are_kept() -> None:
    with serving_mail() as mailbox:
        mailbox.plan = ["554 5.7.1 evals@example.org may not be written to"] * 3
        delivery = mailed(mailbox.port)

    assert Delivery("email 1", "failed", 1, "the server refused the mail: 554", 2) == delivery


def test_where_one_address_is_refused_the_others_get_the_mail_once_and_the_delivery_has_failed() -> None:
    with serving_mail() as mailbox:
        mailbox.unknown = {"gone@example.org"}
        delivery = mailed(mailbox.port, to=["gone@example.org", "evals@example.org"])

    error = "1 of 2 addresses: the server refused the mail: 550"
    assert Delivery("email 1", "failed", 1, error, 2) == delivery
    assert [["evals@example.org"]] == mailbox.recipients


def login_over_tls(mailbox: Mailbox, security: str, host: str = "127.0.0.1") -> Delivery:
    return mailed(mailbox.port, security=security, host=host, user=USER, password="${MAIL_PASSWORD}")


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # the server's own, of a line that is encrypted from the start
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_password_is_sent_only_over_a_line_to_a_server_that_can_be_trusted(
    security: str, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
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


def test_a_wrong_password_is_reported_and_not_tried_again_and_nowhere_logged(
    trust: Trust, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(logging.getLogger("apprise"), "level", 1)
    monkeypatch.setenv("MAIL_PASSWORD", "a-wrong-password")
    monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
    with serving_mail(asks_login=True, starttls=trust.server) as mailbox:
        delivery = login_over_tls(mailbox, "starttls")

    assert Delivery("email 1", "failed", 1, "the server refused the mail: 535", 2) == delivery
    assert [] == mailbox.mails
    assert "a-wrong-password" not in caplog.text
    assert USER not in caplog.text


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

    [mail] = mailbox.mails
    assert ("sent", None) == (sent.status, mail["Bcc"])
    assert [["evals@example.org"]] == mailbox.recipients


@pytest.mark.parametrize("address", ["evals", "a@b.org, c@d.org", "evals@example.org\r\nBcc: thief@example.org"])
def test_what_is_not_one_address_is_refused_in_the_configuration(address: str) -> None:
    with pytest.raises(ValidationError, match=r"to\.0\.email\.to\.0"):
        mailed(25, to=[address])


def test_a_server_that_is_not_there_is_tried_as_often_as_configured() -> None:
    assert Delivery("email 1", "failed", 3, "no connection: Connection refused", 2) == mailed(closed_port())


def test_a_server_that_drips_its_greeting_is_cut_off_at_the_time_limit() -> None:
    with dripping(b"220-welcome\r\n220-") as port:
        started_s = time.monotonic()
        delivery = mailed(port, timeout_s=0.4)  # which ends only when its threads have ended

    assert time.monotonic() - started_s < 8
    assert Delivery("email 1", "failed", 3, "no answer within 0.4 s", 2) == delivery
