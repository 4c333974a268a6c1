"""Receivers of alerts on real sockets: an HTTP server and a mail server with planned replies; they
record all calls.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.faults.anything import AnyServer, Plain, Seen

USER = "a-user"
PASSWORD = "a-password-of-the-mail-server"


class Hook(AnyServer):
    """An HTTP server; `plan` holds its next replies, after which it replies 200."""

    def __init__(self, tls: ssl.SSLContext | None = None):
        super().__init__(self._next, tls=tls)
        self.address += "/hooks/a-secret-path"
        self.plan: list[Plain] = []
        self.meeting: threading.Barrier | None = None
        """Requests wait here until enough have arrived."""

    def _next(self, _: Seen) -> Plain:
        if self.meeting is not None:
            self.meeting.wait(timeout=30)
        return self.plan.pop(0) if self.plan else Plain()


@dataclass
class Mailbox:
    """A mail server; `plan` holds its next replies to a mail, after which it accepts mails."""

    port: int
    plan: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    """Recipients that are refused."""
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    were_encrypted: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - the name that aiosmtpd calls
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: Any,
    ) -> str:
        if address in self.unknown:
            return "550 5.1.1 there is no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        respond = self.plan.pop(0) if self.plan else "250 OK"
        if respond.startswith("250"):
            content = envelope.content
            assert isinstance(content, bytes)
            self.mails.append(message_from_bytes(content, policy=policy.default))
            self.recipients.append(list(envelope.rcpt_tos))
            assert server.transport is not None
            self.were_encrypted.append(
                server.transport.get_extra_info("ssl_object") is not None
            )
        return respond

    def authenticate(
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        mechanism: str,
        login: Any,
    ) -> AuthResult:
        assert isinstance(login, LoginPassword)
        self.logins.append((login.login, login.password))
        is_right = login == LoginPassword(USER.encode(), PASSWORD.encode())
        # If it is not handled, the server itself replies.
        return AuthResult(success=is_right, handled=is_right)


@contextmanager
def serving_mail(
    *,
    starttls: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
    asks_login: bool = False,
) -> Iterator[Mailbox]:
    listener = socket.create_server(("127.0.0.1", 0))
    mailbox = Mailbox(listener.getsockname()[1])
    loop = asyncio.new_event_loop()

    def client():
        return SMTP(
            mailbox,
            loop=loop,
            hostname="mail.example",
            tls_context=starttls,
            require_starttls=starttls is not None,
            auth_required=asks_login,
            auth_require_tls=tls is None,
            authenticator=mailbox.authenticate,
        )

    server = loop.run_until_complete(
        loop.create_server(client, sock=listener, ssl=tls)
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield mailbox
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def dripping(beginning: bytes) -> Iterator[int]:
    """A server that sends the beginning of a reply and then single bytes without end; yields its
    port.
    """

    class Handler(BaseRequestHandler):
        def handle(self):
            with suppress(OSError):
                self.request.sendall(beginning)
                while not ended.wait(0.05):
                    self.request.sendall(b"x")

    ended = threading.Event()
    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(
            target=server.serve_forever,
            args=(0.02,),
            daemon=True,
        ).start()
        yield server.server_address[1]
        ended.set()
        server.shutdown()
