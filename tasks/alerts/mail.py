"""Mail over SMTP."""

import asyncio
import re
import smtplib
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from typing import Any

from tasks.alerts.causes import NotDelivered, of_connection
from tasks.alerts.message import Message
from tasks.config.operations import Email
from tasks.llm.redaction import filled_in

_ENHANCED = re.compile(rb"[245]\.\d{1,3}\.\d{1,3}")
"""A status of RFC 3463, which says more than the code, and nothing about anyone."""


def mail_of(email: Email, message: Message) -> EmailMessage:
    """A message as a mail; every attempt sends the same one, under one id.

    Raises:
        NotDelivered: an address cannot stand in a mail.
    """
    mail = EmailMessage()
    try:
        mail["From"], mail["To"] = email.sender, ", ".join(email.to)
        mail["Message-ID"] = make_msgid(domain=mail["From"].addresses[0].domain or "localhost")
    except (ValueError, IndexError) as error:
        raise NotDelivered("an address in `email` is none, or holds a line break", may_pass=False) from error
    mail["Subject"] = message.title
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.body)
    return mail


def sending(email: Email, message: Message, timeout_s: float) -> Callable[[], Awaitable[None]]:
    """What sends a message as a mail, once a call."""
    made: list[EmailMessage] = []

    async def once() -> None:
        if not made:
            made.append(mail_of(email, message))
        await send(email, made[0], timeout_s)

    return once


async def send(email: Email, mail: EmailMessage, timeout_s: float) -> None:
    """Hand a mail to the server; when it is cancelled, the connection is cut.

    Args:
        timeout_s: the longest wait for one answer of the server; the caller bounds the time of the whole.

    Raises:
        NotDelivered: the server did not take it, for one of those that it is to or for all.
        UsageError: a variable of the user or the password is not set.
    """
    login = None if email.user is None else (filled_in(email.user), filled_in(email.password or ""))
    line = _Line()
    try:
        await asyncio.to_thread(_hand_over, email, mail, login, timeout_s, line)
    except asyncio.CancelledError:
        line.cut()  # the thread cannot be cancelled; without its connection it ends
        raise


class _Line:
    """The line of an attempt, which can be cut from another thread at any moment, also before it stands."""

    def __init__(self) -> None:
        self.smtp: smtplib.SMTP | None = None
        self.is_cut = False

    def cut(self) -> None:
        """Let nothing more pass."""
        self.is_cut = True
        if self.smtp is not None and self.smtp.sock is not None:
            with suppress(OSError):
                self.smtp.sock.shutdown(socket.SHUT_RDWR)


class _Plain(smtplib.SMTP):
    """A client that its line knows before it connects."""

    def __init__(self, line: _Line, *given: Any, **named: Any) -> None:
        line.smtp = self
        super().__init__(*given, **named)


class _Encrypted(smtplib.SMTP_SSL):
    """The same, encrypted from the first byte."""

    def __init__(self, line: _Line, *given: Any, **named: Any) -> None:
        line.smtp = self
        super().__init__(*given, **named)


def _hand_over(email: Email, mail: EmailMessage, login: tuple[str, str] | None, timeout_s: float, line: _Line) -> None:
    try:
        with _connected(email, timeout_s, line) as smtp:
            if line.is_cut:  # before it stood
                return
            if email.security == "starttls":
                smtp.starttls(context=ssl.create_default_context())
            if login is not None:
                smtp.login(*login)
            refused = smtp.send_message(mail)
    except smtplib.SMTPException as error:
        raise _refusal(error) from error
    except OSError as error:
        raise of_connection(error) from error
    if refused:
        # Not tried again: the others have it.
        raise NotDelivered(f"the server refused {len(refused)} of {len(email.to)} recipients", may_pass=False)


def _connected(email: Email, timeout_s: float, line: _Line) -> smtplib.SMTP:
    if email.security == "tls":
        # Without a context of its own, smtplib does not verify whom it talks to.
        context = ssl.create_default_context()
        return _Encrypted(line, email.host, email.port, timeout=timeout_s, context=context)
    return _Plain(line, email.host, email.port, timeout=timeout_s)


def _refusal(error: smtplib.SMTPException) -> NotDelivered:
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return NotDelivered("the server does not offer what is needed (see `security`, `user`)", may_pass=False)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
        return _answered("the server refused every recipient", code, text)
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return _answered("the server refused the login", error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPResponseException):
        return _answered("the server refused the mail", error.smtp_code, error.smtp_error)
    return NotDelivered("the server broke off the conversation", may_pass=True)


def _answered(what: str, code: int, text: bytes | str) -> NotDelivered:
    """Of an answer its codes: 4xx passes, 5xx does not; none is a broken conversation."""
    said = text if isinstance(text, bytes) else text.encode()
    status = _ENHANCED.match(said)
    codes = " ".join([str(code), *([status.group().decode()] if status else [])])
    return NotDelivered(f"{what}: {codes}", may_pass=code < 500)
