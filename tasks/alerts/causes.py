"""Why a message did not go out, in words that hold no address and no secret, and whether trying again may help.

What libraries and servers say may repeat the address or the password, so none of their text is kept.
"""

import os
import socket
import ssl
from collections.abc import Iterator

_CERTIFICATE = {10: "has expired", 18: "is self-signed", 62: "is for another name", 64: "is for another address"}
"""OpenSSL's codes for what is wrong with a certificate."""


class NotDelivered(Exception):
    """An attempt failed.

    Attributes:
        cause: why, in one line without any secret.
        may_pass: whether the same attempt may succeed later.
        retry_after_s: how long the receiver asks to be left alone; None if it does not ask.
    """

    def __init__(self, cause: str, *, may_pass: bool, retry_after_s: float | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.may_pass = may_pass
        self.retry_after_s = retry_after_s


def of_connection(error: BaseException) -> NotDelivered:
    """Why no conversation with a server came about, or why it ended, told from an error or those that led to it."""
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            flaw = _CERTIFICATE.get(each.verify_code, "is not signed by anyone trusted here")
            return NotDelivered(f"the server's certificate {flaw}", may_pass=False)
    for each in chain:
        if isinstance(each, ssl.SSLError):
            return NotDelivered("no encrypted connection came about", may_pass=True)
        if isinstance(each, socket.gaierror):
            return NotDelivered("the host's name is not known", may_pass=True)
        if isinstance(each, TimeoutError):
            return NotDelivered("no answer in time", may_pass=True)
        if isinstance(each, OSError) and each.errno is not None:
            return NotDelivered(f"no connection: {os.strerror(each.errno)}", may_pass=True)
    return NotDelivered("the connection broke off", may_pass=True)


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
