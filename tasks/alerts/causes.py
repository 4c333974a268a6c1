"""Why a message was not delivered, in words that contain no address and no secret, and whether to try again.

Libraries and servers may repeat an address or a password in their messages, so none of their text is kept.
"""

import os
import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

_CERTIFICATE = {10: "has expired", 18: "is self-signed", 62: "is for another name", 64: "is for another address"}
"""OpenSSL's codes for what is wrong with a certificate."""
_ENHANCED = re.compile(rb"[245]\.\d{1,3}\.\d{1,3}")
"""A mail server's status by RFC 3463: more precise than the reply code, and without names."""


class NotDelivered(Exception):
    """An attempt failed.

    Attributes:
        cause: why, in one line without any secret.
        may_pass: whether the same attempt may succeed later.
    """

    def __init__(self, cause: str, *, may_pass: bool) -> None:
        super().__init__(cause)
        self.cause = cause
        self.may_pass = may_pass


def of_status(status: int) -> NotDelivered:
    """The cause where an HTTP server answered with an error."""
    phrase = f" ({HTTPStatus(status).phrase})" if status in set(HTTPStatus) else ""
    return NotDelivered(f"the server answered {status}{phrase}", may_pass=status == 429 or status >= 500)


def of_error(error: BaseException) -> NotDelivered:
    """The cause where an error was raised."""
    from requests.exceptions import InvalidSchema, InvalidURL

    if isinstance(error, smtplib.SMTPException):
        return _of_mail(error)
    chain = list(_chain(error))
    if any(isinstance(each, InvalidURL | InvalidSchema) for each in chain):
        return NotDelivered("it has no valid address that begins with http:// or https://", may_pass=False)
    if any(isinstance(each, OSError) for each in chain):
        return _of_connection(chain)
    return NotDelivered(f"failed with {type(error).__name__}, whose text may contain the address", may_pass=True)


def _of_connection(chain: list[BaseException]) -> NotDelivered:
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            flaw = _CERTIFICATE.get(each.verify_code, "is not signed by anyone trusted here")
            return NotDelivered(f"the server's certificate {flaw}", may_pass=False)
    for each in chain:
        if isinstance(each, ssl.SSLError):
            return NotDelivered("no encrypted connection was possible", may_pass=True)
        if isinstance(each, socket.gaierror):
            return NotDelivered("the host name is unknown", may_pass=True)
        if isinstance(each, TimeoutError):
            return NotDelivered("no answer in time", may_pass=True)
        if isinstance(each, OSError) and each.errno is not None:
            return NotDelivered(f"no connection: {os.strerror(each.errno)}", may_pass=True)
    return NotDelivered("the connection was lost", may_pass=True)


def _of_mail(error: smtplib.SMTPException) -> NotDelivered:
    """Only the codes of a mail server's answer are kept; 4xx may pass, 5xx does not."""
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return NotDelivered("the server does not offer what is needed (see `security`, `user`)", may_pass=False)
    code: int
    text: bytes | str
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
    elif isinstance(error, smtplib.SMTPResponseException):
        code, text = error.smtp_code, error.smtp_error
    else:
        return NotDelivered("the server ended the conversation", may_pass=True)
    status = _ENHANCED.match(text if isinstance(text, bytes) else text.encode())
    codes = " ".join([str(code), *([status.group().decode()] if status else [])])
    return NotDelivered(f"the server refused the mail: {codes}", may_pass=code < 500)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that led to it, groups taken apart."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        waiting += [*inner, each.__cause__, each.__context__]
