"""One call over HTTP: its limits, and what a library may hide of it."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from tasks.llm.bodies import Body, EventBody, ReplyTooLarge
from tasks.rules.errors import PipelineError

MOST_BYTES = 32 << 20
"""Limit of one reply: 128,000 streamed tokens of 250 bytes each; in one piece, far more tokens."""


class Redirected(PipelineError):
    """The server responded with a redirect, which was not followed."""

    def __init__(self, status: int, address: str, location: str) -> None:
        super().__init__(
            f"HTTP {status}: {_host(address)} redirects to {_host(address, location)}, which is not"
            " followed; configure the address where it leads"
        )


@dataclass
class Exchange:
    """A call and its responses.

    `n_results` is the number of calls with a line in a batch's file. `status` is that of the last
    response. `fault` is the error that ended it: libraries replace it by other errors.
    """

    n_results: int | None = None
    status: int | None = None
    fault: Redirected | ReplyTooLarge | None = None
    body: Body = field(default_factory=Body)

    def refuse_redirect(self, response: Any) -> None:
        """Raise `Redirected` if the response, of any library, is a redirect."""
        status = getattr(response, "status", None) or response.status_code
        self.status = status
        if 300 <= status < 400:
            self.fault = Redirected(status, str(response.url), response.headers.get("location", ""))
            raise self.fault

    def begin(self, content_type: str, encoding: str, *, is_streamed_chat: bool) -> None:
        """Begin the next body; its content type and content encoding are from the headers."""
        # 32 KiB for each call of a batch are several times the size of a verdict.
        most_bytes = MOST_BYTES + (32 << 10) * (self.n_results or 0)
        may_be_cut = self.n_results is not None
        # Some servers name another type; a body without events is read as a whole reply.
        has_events = is_streamed_chat or content_type.startswith("text/event-stream")
        body_class = EventBody if has_events and not may_be_cut else Body
        self.body = body_class(
            most_bytes=most_bytes,
            encoding=encoding.strip().lower(),
            may_be_cut=may_be_cut,
            is_streamed_chat=is_streamed_chat,
        )

    def read(self, raw: bytes) -> bytes:
        """Return the bytes to pass on for a piece from the connection."""
        try:
            return self.body.feed(raw)
        except ReplyTooLarge as fault:
            self.fault = fault
            raise


def _host(address: str, location: str = "") -> str:
    """Return only the host and port of an address, or of a location that it names: the rest may
    hold secrets.
    """
    try:
        host = urlsplit(urljoin(address, location)).netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid address"
    return ascii(host)[1:-1][:100] or "no host"


CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
