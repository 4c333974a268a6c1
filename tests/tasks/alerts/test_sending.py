"""Webhooks, Slack, mail and the dead-man's switch, against real servers with all kinds of
failures.
"""

import asyncio
import logging
import socket
import threading
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
import requests
from pydantic import ValidationError

from tasks.alerts.findings import Alert, alert_id
from tasks.alerts.message import night_message
from tasks.alerts.sending import Delivery, History, deliver, ping
from tasks.llm.exchange import Redirected
from tasks.llm.transport import watched
from tests.faults.anything import Plain
from tests.tasks.alerts.conftest import DRIFT, DROP, NIGHT, alerts_to
from tests.tasks.alerts.servers import (
    PASSWORD,
    USER,
    Hook,
    Mailbox,
    dripping,
    serving_mail,
)

UNTRUSTED = "unable to get local issuer certificate"
MISMATCH = "certificate is not valid for 'localhost'"


def sent_to(address: str, kind: str = "webhook", **settings: Any) -> Delivery:
    """Send one alert to a webhook and return the delivery."""
    [delivery] = deliver(
        alerts_to({kind: address}, **settings),
        [DROP],
        NIGHT,
    )
    return delivery


def test_a_webhook_gets_one_request_with_all_alerts_of_the_night(hook):
    deliveries = deliver(
        alerts_to({"webhook": f"{hook.address}%2Fa?channel=a%20b"}),
        [DROP, DRIFT],
        NIGHT,
    )

    assert deliveries == [Delivery("webhook 1", "sent", 1, None, 2)]
    [call] = hook.seen
    assert call.method == "POST"
    assert call.headers["content-type"] == "application/json"
    assert call.path == "/hooks/a-secret-path%2Fa?channel=a%20b"
    message = night_message(NIGHT, [DROP, DRIFT])
    assert call.json == {
        "night": "2026-11-22",
        "run_id": "a-run",
        "benchmark": "prbench",
        "warehouse": "warehouse/data",
        "report": None,
        "title": message.title,
        "message": message.body,
        "lines": list(message.lines),
        "results": None,
        "alerts": [vars(DRIFT), vars(DROP)],
    }


def test_slack_gets_one_text_without_links_and_mentions(hook, monkeypatch):
    # Env files often add such a line break.
    monkeypatch.setenv("SLACK", f"{hook.address}\n")
    alerts = [DROP, Alert("failure", "", "<!channel> @here failed")]

    deliveries = deliver(
        alerts_to({"slack": "${SLACK}"}),
        alerts,
        NIGHT,
    )

    assert deliveries == [Delivery("slack 1", "sent", 1, None, 2)]
    [call] = hook.seen
    assert call.json == {"text": night_message(NIGHT, alerts).as_chat}
    assert "&lt;!channel&gt; @\u200bhere failed" in call.json["text"]


def test_a_url_of_apprise_in_the_environment_is_a_receiver(hook, monkeypatch):
    monkeypatch.setenv("ANY_SERVICE", hook.address.replace("http://", "form://"))

    delivery = sent_to("${ANY_SERVICE}", "apprise")

    assert delivery == Delivery("apprise 1", "sent", 1, None, 1)
    assert b"fell+by+0.043" in hook.seen[0].body


def test_an_unknown_service_of_apprise_is_a_failure(monkeypatch):
    monkeypatch.setenv("UNKNOWN", "no-such-service://a-secret-token")

    delivery = sent_to("${UNKNOWN}", "apprise")

    error = "Apprise does not know such an address, or lacks a package for it"
    assert delivery == Delivery("apprise 1", "failed", 1, error, 1)


def test_a_receiver_gets_only_alerts_that_it_did_not_get_before(hook):
    settings = alerts_to({"webhook": hook.address}, {"webhook": hook.address})
    drop_id = alert_id(NIGHT, DROP)
    drift_id = alert_id(NIGHT, DRIFT)
    sent = {("webhook 1", drop_id), ("webhook 1", drift_id), ("webhook 2", drop_id)}

    [delivery] = deliver(
        settings,
        [DROP, DRIFT],
        NIGHT,
        history=History(frozenset(sent)),
    )

    assert delivery.receiver == "webhook 2"
    assert delivery.alert_ids == (drift_id,)


def test_no_receiver_is_called_without_an_alert(hook):
    assert deliver(alerts_to({"webhook": hook.address}), [], NIGHT) == []
    assert hook.seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "kind", ["webhook", "slack", "apprise json", "apprise slack", "ping"]
)
def test_no_redirect_is_followed(hook, status, kind, monkeypatch):
    from apprise.plugins.slack import NotifySlack

    monkeypatch.setattr(NotifySlack, "webhook_url", hook.address)
    slack_token = "T1JJ3T3L2/A1BRTD4JD/aaaaaaaaaaaaaaaaaaaaaaaa"
    urls = {
        "apprise json": f"{hook.address.replace('http', 'json')}?redirect=yes",
        "apprise slack": f"https://hooks.slack.com/services/{slack_token}?redirect=yes",
    }
    monkeypatch.setenv("ADDRESS", urls.get(kind, hook.address))
    with Hook() as elsewhere:
        hook.plan = [Plain(status, {"Location": elsewhere.address})]
        if kind == "ping":
            delivery = ping(alerts_to(ping=hook.address))
        else:
            delivery = sent_to("${ADDRESS}", kind.partition(" ")[0])

    assert elsewhere.seen == []
    assert len(hook.seen) == 1
    assert delivery.status == "failed"
    assert delivery.attempts == 1
    hosts = [server.address.split("/")[2] for server in (hook, elsewhere)]
    refusal = f"HTTP {status}: {' redirects to '.join(hosts)}, which is not followed"
    assert refusal in str(delivery.error)
    assert "secret" not in str(delivery.error)


def test_a_server_that_drips_a_reply_cannot_stretch_the_time_limit():
    with dripping(b"HTTP/1.1 200 OK\r\nX-Long: ") as port:
        delivery = sent_to(f"http://127.0.0.1:{port}/", timeout_s=0.3, attempts=2)

    assert delivery == Delivery(
        "webhook 1", "failed", 2, "no response within 0.3 s", 1
    )


def test_a_server_of_another_protocol_is_a_failure():
    with dripping(b"SSH-2.0-something\r\n\r\n") as port:
        delivery = sent_to(f"http://127.0.0.1:{port}/")

    assert delivery.error == "failed: ConnectionError"


@pytest.mark.parametrize(
    ("address", "attempts", "cause"),
    [
        ("http://127.0.0.1:1/a-secret-path", 3, "no connection: Connection refused"),
        ("ftp://127.0.0.1/a-secret-path", 1, "failed: InvalidSchema"),
        ("http://127.0.0.1:a-secret-port", 1, "failed: InvalidURL"),
        (
            "${NO_SUCH_VARIABLE}",
            1,
            (
                "${NO_SUCH_VARIABLE} in the configuration: the environment variable"
                " NO_SUCH_VARIABLE is not set"
            ),
        ),
    ],
    ids=["nobody listens", "another scheme", "no port", "not set"],
)
def test_an_unreachable_address_is_reported_in_one_line(address, attempts, cause):
    assert sent_to(address) == Delivery("webhook 1", "failed", attempts, cause, 1)


def test_an_unknown_host_is_reported_in_one_line(monkeypatch):
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=error))

    delivery = sent_to("http://no-such-host.invalid/a-secret-path")

    cause = "no connection: Name or service not known"
    assert delivery == Delivery("webhook 1", "failed", 3, cause, 1)


def test_all_are_called_at_the_same_time_and_one_that_fails_stops_nobody(hook):
    with Hook() as second_hook:
        hook.meeting = threading.Barrier(2)
        second_hook.meeting = hook.meeting
        settings = alerts_to(
            {"webhook": hook.address},
            {"webhook": "http://127.0.0.1:1/"},
            {"webhook": second_hook.address},
        )
        deliveries = deliver(settings, [DROP], NIGHT)

    statuses = {delivery.receiver: delivery.status for delivery in deliveries}
    assert statuses == {
        "webhook 1": "sent",
        "webhook 2": "failed",
        "webhook 3": "sent",
    }


def test_no_library_logs_an_address(hook, monkeypatch, caplog):
    monkeypatch.setenv("WHERE_TO", hook.address.replace("http", "json"))
    monkeypatch.setattr(
        logging.getLogger("apprise"),
        "level",
        logging.DEBUG,
    )
    hook.plan = [
        Plain(500),
        Plain(400, body=lambda: [b"a-secret-path is unknown"]),
        Plain(404),
    ]

    with caplog.at_level(logging.DEBUG):
        apprise_delivery = sent_to("${WHERE_TO}", "apprise")
        webhook_delivery = sent_to(hook.address)

    assert apprise_delivery.status == "failed"
    assert webhook_delivery.status == "failed"
    assert caplog.records
    assert "a-secret-path" not in caplog.text
    assert "127.0.0.1" not in caplog.text


def test_a_server_with_an_untrusted_certificate_gets_nothing(trust, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with Hook(trust.server) as hook:
        delivery = sent_to(hook.address)

    assert hook.seen == []
    assert delivery.attempts == 1
    assert UNTRUSTED in str(delivery.error)


def test_a_certificate_is_trusted_only_for_its_own_host(trust, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
    with Hook(trust.server) as hook:
        delivery = sent_to(hook.address)
        mismatch = sent_to(hook.address.replace("127.0.0.1", "localhost"))

    assert delivery.status == "sent"
    assert mismatch.attempts == 1
    assert MISMATCH in str(mismatch.error)


def test_no_library_behind_a_service_follows_a_redirect(hook):
    async def post():
        async with aiohttp.ClientSession() as session:
            await session.post(hook.address)

    hook.plan = [Plain(307, {"Location": f"{hook.address}/elsewhere"})] * 2

    with watched(), pytest.raises(Redirected):
        asyncio.run(post())
    with watched(), pytest.raises(Redirected):
        requests.post(hook.address, timeout=30)

    assert len(hook.seen) == 2


def mailed(port: int, *alerts: Alert, **email: Any) -> Delivery:
    """Send alerts by mail and return the delivery; the connection is encrypted only if `security`
    says so.
    """
    usual = {
        "to": ["evals@example.org"],
        "sender": "prbench@example.org",
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
    }
    [delivery] = deliver(
        alerts_to({"email": usual | email}),
        alerts,
        NIGHT,
    )
    return delivery


def test_each_address_gets_a_mail_with_all_alerts_whose_subject_says_which():
    addresses = ["Evals <evals@example.org>", "lead@example.org"]
    with serving_mail() as mailbox:
        delivery = mailed(mailbox.port, DROP, DRIFT, to=addresses)

    assert delivery == Delivery("email 1", "sent", 1, None, 2)
    assert mailbox.recipients == [["evals@example.org"], ["lead@example.org"]]
    assert [mail["To"] for mail in mailbox.mails] == addresses
    mail = mailbox.mails[0]
    assert mail["Subject"] == night_message(NIGHT, [DROP, DRIFT]).title
    assert mail["From"] == "prbench@example.org"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"]
    assert mail["Message-ID"]
    assert mail.get_content_type() == "text/plain"
    assert DROP.line in mail.get_content()
    assert DRIFT.line in mail.get_content()


def login_over_tls(
    mailbox: Mailbox,
    security: str,
    host: str = "127.0.0.1",
) -> Delivery:
    return mailed(
        mailbox.port,
        DROP,
        security=security,
        host=host,
        user=USER,
        password="${MAIL_PASSWORD}",
    )


# A warning of aiosmtpd, for TLS from the start.
@pytest.mark.filterwarnings("ignore:Requiring AUTH")
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_password_is_sent_only_to_a_trusted_server(security, trust, monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    contexts = {security: trust.server}
    with serving_mail(asks_login=True, **contexts) as mailbox:
        untrusted_delivery = login_over_tls(mailbox, security)
        monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
        mismatch_delivery = login_over_tls(mailbox, security, "localhost")
        delivery = login_over_tls(mailbox, security)

    assert untrusted_delivery.attempts == 1
    assert UNTRUSTED in str(untrusted_delivery.error)
    assert mismatch_delivery.attempts == 1
    assert MISMATCH in str(mismatch_delivery.error)
    assert delivery == Delivery("email 1", "sent", 1, None, 1)
    assert mailbox.logins == [(USER.encode(), PASSWORD.encode())]
    assert mailbox.were_encrypted == [True]


def test_a_wrong_password_is_tried_once(trust, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(logging.getLogger("apprise"), "level", 1)
    monkeypatch.setenv("MAIL_PASSWORD", "a-wrong-password")
    monkeypatch.setenv("SSL_CERT_FILE", str(trust.authority))
    with serving_mail(asks_login=True, starttls=trust.server) as mailbox:
        delivery = login_over_tls(mailbox, "starttls")

    error = "the server refused the mail: 535"
    assert delivery == Delivery("email 1", "failed", 1, error, 1)
    assert mailbox.mails == []
    assert "a-wrong-password" not in caplog.text
    assert USER not in caplog.text


def test_names_with_line_breaks_add_no_header():
    hostile = "a-model\r\nBcc: thief@example.org\r\n\r\nA body of its own"
    with serving_mail() as mailbox:
        mailed(mailbox.port, Alert("score_drop", hostile, f"{hostile} fell"))

    [mail] = mailbox.mails
    assert mail["Bcc"] is None
    assert mailbox.recipients == [["evals@example.org"]]


@pytest.mark.parametrize(
    "address",
    ["evals", "a@b.org, c@d.org", "evals@example.org\r\nBcc: thief@example.org"],
)
def test_what_is_not_one_address_is_refused_in_the_configuration(address):
    with pytest.raises(ValidationError, match=r"to\.0\.email\.to\.0"):
        mailed(25, to=[address])


CLOSED = Plain(403, body=lambda: [b"No, a-secret-path is not open"])


@pytest.mark.parametrize(
    ("plan", "n_attempts", "error"),
    [
        ([Plain(503), Plain(429)], 3, None),
        ([Plain(500)] * 9, 3, "the server responded with status 500"),
        ([CLOSED] * 9, 1, "the server responded with status 403"),
    ],
)
def test_what_may_pass_is_tried_again_and_the_cause_shows_nothing_of_the_address(
    hook,
    plan,
    n_attempts,
    error,
):
    hook.plan = list(plan)

    delivery = sent_to(hook.address)

    assert delivery.error == error
    assert delivery.attempts == n_attempts
    assert len(hook.seen) == n_attempts


def test_the_dead_mans_switch_is_called_until_it_succeeds(hook):
    hook.plan = [Plain(502)]

    delivery = ping(alerts_to(ping=hook.address))

    assert delivery == Delivery("ping", "sent", 2, None, 0)
    assert [call.method for call in hook.seen] == ["GET", "GET"]
    assert [call.body for call in hook.seen] == [b"", b""]


def test_without_a_dead_mans_switch_nothing_is_called():
    assert ping(alerts_to()) is None


@pytest.mark.parametrize(
    ("plan", "security", "attempts", "n_mails", "error"),
    [
        (["451 4.3.0 try again later"] * 2, "none", 3, 1, None),
        (
            ["554 5.7.1 evals@example.org may not be written to"] * 3,
            "none",
            1,
            0,
            "the server refused the mail: 554",
        ),
        ([], "starttls", 1, 0, "failed: SMTPNotSupportedError"),
    ],
)
def test_only_a_mail_put_off_is_sent_again(plan, security, attempts, n_mails, error):
    with serving_mail() as mailbox:
        mailbox.plan = plan
        delivery = mailed(mailbox.port, DROP, security=security)

    assert delivery.error == error
    assert delivery.attempts == attempts
    assert len(mailbox.mails) == n_mails


def test_a_mail_that_one_address_refuses_has_failed_and_the_others_get_it_once():
    with serving_mail() as mailbox:
        mailbox.unknown = {"gone@example.org"}
        delivery = mailed(
            mailbox.port,
            DROP,
            to=["gone@example.org", "evals@example.org"],
        )

    error = "1 of 2 addresses: the server refused the mail: 550"
    assert delivery == Delivery("email 1", "failed", 1, error, 1)
    assert mailbox.recipients == [["evals@example.org"]]
