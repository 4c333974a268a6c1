"""The provider's book: every request that arrived, what became of it, whether it has to be paid."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.answers import is_judging
from tests.faults.content import Request, TakenRequest


@dataclass
class Entry:
    """A request and what became of it; the server's thread writes it, any thread may read it."""

    number: int
    """How many requests of the same content came before."""
    path: str
    request: Request
    headers: dict[str, str]
    """By lower-case name."""
    digest: str
    arrived_at_s: float
    """When the whole request was here; seconds of the monotonic clock, which all processes of a machine share."""
    answered_at_s: float | None = None
    """When the server was through with it, whether that went well or not; None while it is in hand."""
    status: int | None = None
    """The status that was sent; None when nothing was sent."""
    is_paid: bool = False
    """A completion was made for it, so it is on the bill, even if nobody received it."""
    is_delivered: bool = False
    """The operating system took the whole answer for a client that was still there."""

    def facts(self) -> dict[str, Any]:
        """All but the texts and the headers, for a file."""
        return {
            "digest": self.digest, "number": self.number, "path": self.path, "model": self.request.get("model"),
            "is_judging": is_judging(self.request), "status": self.status, "is_paid": self.is_paid,
            "is_delivered": self.is_delivered, "arrived_at_s": self.arrived_at_s, "answered_at_s": self.answered_at_s,
        }  # fmt: skip


@dataclass
class Book:
    """All entries in order of arrival. With `keeps` off only the counts are kept, for runs of very many requests."""

    keeps: bool = True
    on_answered: Callable[[Entry], None] | None = None
    """Told of every entry at the moment it is answered."""
    requests: list[Request] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    in_hand: int = 0
    most_in_hand: int = 0
    _seen: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, path: str, request: TakenRequest, headers: dict[str, str], *, in_batch: bool = False) -> Entry:
        """A new entry for a request that just arrived. In a batch it is not in hand: nobody waits for its answer."""
        with self._lock:
            number = self._seen.get(request.digest, 0)
            self._seen[request.digest] = number + 1
            entry = Entry(number, path, request, headers, request.digest, time.monotonic())
            if self.keeps:
                self.requests.append(request)
                self.entries.append(entry)
            if not in_batch:
                self.in_hand += 1
                self.most_in_hand = max(self.most_in_hand, self.in_hand)
        return entry

    def close(self, entry: Entry, *, in_batch: bool = False) -> None:
        """Tell that the server is through with a request."""
        entry.answered_at_s = time.monotonic()
        with self._lock:
            if not in_batch:
                self.in_hand -= 1
        if self.on_answered is not None:
            self.on_answered(entry)

    def paid(self) -> list[Entry]:
        """The entries on the bill."""
        return [entry for entry in self.entries if entry.is_paid]
