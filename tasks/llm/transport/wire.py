"""What HTTP clients may do while a call is made: they follow no redirect, and read no more than a bound.

LiteLLM makes its clients itself, follows redirects with them and reads whatever comes; so do the libraries behind
Prefect's notification blocks. Their classes are changed once in a process (`clients`) to ask here first, while a call
is made (`watching`).
"""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urljoin, urlsplit

from tasks.llm.transport.bodies import Body, EventBody, LineBody, TooLarge, WholeBody
from tasks.rules.errors import PipelineError

MOST_BYTES = 32 << 20
"""What is read of one reply, decompressed: streamed, 128,000 tokens of 250 bytes each; in one piece, far more."""
_MOST_BYTES_A_RESULT = 32 << 10
"""What is read of a batch's file for each of its calls, beside the above: several times what verdicts have."""


class Redirected(PipelineError):
    """The server answered with a redirect, which was not followed."""

    def __init__(self, status: int, address: str, location: str) -> None:
        self.status = status
        super().__init__(
            f"HTTP {status}: {_host(address)} redirects to {_target(address, location)}, which is not followed; "
            "configure the address where it leads"
        )


@dataclass
class Exchange:
    """One call over HTTP: what it may read, and what was found out that a library may hide.

    `n_results` is given where a batch's file is read: how many calls have a line in it. `status` is that of the last
    answer.
    """

    n_results: int | None = None
    status: int | None = None
    fault: Redirected | TooLarge | None = None
    body: Body = field(default_factory=lambda: Body(0))

    def refuse_redirect(self, status: int, address: str, location: str) -> None:
        """Raise Redirected if a status is that of a redirect."""
        self.status = status
        if 300 <= status < 400:
            self.refuse(Redirected(status, address, location))

    def refuse(self, fault: Redirected | TooLarge) -> NoReturn:
        """End the exchange, and remember why: libraries make other errors of it."""
        self.fault = fault
        raise fault

    def begin(self, kind: str, encoding: str, length: str) -> Body:
        """The body that comes now, of a content type, a content encoding and a length as the headers say them."""
        encoding = encoding.strip().lower()
        if self.n_results is not None:
            most_bytes = MOST_BYTES + _MOST_BYTES_A_RESULT * self.n_results
            self.body = LineBody(most_bytes, encoding, most_line_bytes=MOST_BYTES)
            return self.body
        if length.isascii() and length.isdecimal() and int(length[:20]) > MOST_BYTES:
            self.refuse(TooLarge(MOST_BYTES))
        self.body = (EventBody if kind.startswith("text/event-stream") else WholeBody)(MOST_BYTES, encoding)
        return self.body

    def read(self, raw: bytes | None) -> Iterator[bytes]:
        """What a piece from the connection becomes; None stands for its end."""
        try:
            yield from self.body.end() if raw is None else self.body.feed(raw)
        except TooLarge as fault:
            self.refuse(fault)


CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""Set by `watching`."""


def current() -> Exchange | None:
    """The exchange that is under way here."""
    return CURRENT.get()


def _target(address: str, location: str) -> str:
    try:
        return _host(urljoin(address, location)) if location else "nowhere"
    except ValueError:
        return "an address that is none"


def _host(address: str) -> str:
    """The host of an address and its port, and nothing else: the rest may hold secrets."""
    host = urlsplit(address).netloc.rpartition("@")[2]
    return ascii(host)[1:-1][:100] or "no host"
