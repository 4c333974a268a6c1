"""What the ledger holds of a call, and what it follows from that."""

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tasks.llm.replies import OK, Logprobs, Reply
from tasks.llm.request import Prices

_REPLY = (
    "text", "finish_reason", "served_model", "served_fingerprint", "prompt_tokens", "cached_tokens",
    "completion_tokens", "reasoning_tokens", "cost_usd", "latency_s", "error",
)  # fmt: skip
_PRICES = ("input_usd_per_mtok", "cached_usd_per_mtok", "output_usd_per_mtok", "price_table")
COLUMNS = (
    "call_key", "attempt", "cell", "run_id", "finished_at_s", "model", "endpoint", "parameters", "status", "is_final",
    *_REPLY, *_PRICES,
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One finished attempt: the request's identity, what was really sent, and what came of it.

    `cell` is the row that it was made for, `is_final` whether it answers the call or only says why it failed once.
    `purpose` (sample, judge or drift) and `is_unpaid` (the server said no before it worked on it) are for what is spent
    and no part of the row in the ledger.
    """

    call_key: str
    attempt: int
    cell: str
    run_id: str
    model: str
    endpoint: str
    parameters: str
    reply: Reply
    is_final: bool
    finished_at_s: float = field(default_factory=time.time)
    purpose: str = "unknown"
    is_unpaid: bool = False

    @property
    def values(self) -> tuple[Any, ...]:
        """The entry in the order of `COLUMNS`."""
        reply = self.reply
        return (
            self.call_key, self.attempt, self.cell, self.run_id, self.finished_at_s, self.model, self.endpoint,
            self.parameters, reply.status, int(self.is_final),
            *(getattr(reply, name) for name in _REPLY), *(getattr(reply.prices, name) for name in _PRICES),
        )  # fmt: skip

    @classmethod
    def of(cls, row: Sequence[Any], logprobs: Any = None) -> "Entry":
        """The entry that a row of the table is, with the log-probabilities that are kept beside it."""
        named = dict(zip(COLUMNS, row, strict=True))
        reply = Reply(
            named["status"], **{name: named[name] for name in _REPLY},
            prices=Prices(*(named[name] for name in _PRICES)), logprobs=_logprobs_of(logprobs),
        )  # fmt: skip
        return cls(
            named["call_key"], named["attempt"], named["cell"], named["run_id"], named["model"], named["endpoint"],
            named["parameters"], reply, bool(named["is_final"]), named["finished_at_s"],
        )  # fmt: skip


def checksum_of(values: Sequence[Any]) -> str:
    """The checksum of a row of the ledger (its values in the order of `COLUMNS`), which shows damage."""
    # SQLite has no NaN: it keeps NULL.
    kept = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    text = json.dumps(kept, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def is_as_written(values: Sequence[Any], checksum: Any) -> bool:
    """Whether a row is what was written."""
    return bool(checksum == checksum_of(values))


def logprobs_as_text(logprobs: Logprobs) -> str:
    """Log-probabilities as they stand in the ledger."""
    return json.dumps(logprobs, ensure_ascii=False, separators=(",", ":"))


def _logprobs_of(text: Any) -> Logprobs | None:
    """What `logprobs_as_text` gave; None for nothing, and for what damage left of it."""
    try:
        return tuple((str(token), float(logprob)) for token, logprob in json.loads(text)) if text else None
    except (ValueError, TypeError):
        return None


def as_text(parameters: Any) -> str:
    """Parameters as they stand in the ledger."""
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class History:
    """All attempts of one call, oldest first, up to which of them they are spent: have become a failed row.

    `late` are the numbers of those that came since the run began, whoever made them. Their row was not there when the
    run was planned, so they stand for it even if they are spent: another run that was at work on it has tried.
    """

    entries: tuple[Entry, ...] = ()
    spent: int = 0
    late: frozenset[int] = frozenset()

    @property
    def _open(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.attempt > self.spent or entry.attempt in self.late)

    def since(self, moment_s: float | None) -> "History":
        """What came after a moment; of what came before, only the number of the last attempt counts."""
        if moment_s is None:
            return self
        entries = tuple(entry for entry in self.entries if entry.finished_at_s > moment_s)
        before = [entry.attempt for entry in self.entries if entry.finished_at_s <= moment_s]
        return History(entries, max([self.spent, *before]), self.late - set(before))

    @property
    def next_attempt(self) -> int:
        """The number of the next attempt."""
        return max([self.spent, *(entry.attempt for entry in self.entries)]) + 1

    def failed_for(self, cell: str) -> tuple[Entry, ...]:
        """Attempts for a row that is not written yet that did not answer."""
        return tuple(entry for entry in self._open if entry.cell == cell and not entry.is_final)

    def was_made_for(self, cell: str) -> bool:
        """Whether an attempt was made for a row that is not written yet."""
        return any(entry.cell == cell for entry in self._open)

    def answer_for(self, cell: str) -> Reply | None:
        """The reply to a call that was made already; a decided one stands before any that failed for good.

        What it cost stands on the row that it was made for; for any other row it was free.
        """
        final = [entry for entry in self._open if entry.is_final]
        if not final:
            return None
        found = max(final, key=lambda entry: (entry.reply.status == OK, entry.attempt))
        reply = replace(found.reply, attempts=len(self._open), paid=((found.call_key, found.attempt),))
        if found.cell != cell:
            free = 0.0 if reply.cost_usd is not None else None
            return replace(
                reply, prompt_tokens=0, cached_tokens=0, completion_tokens=0, reasoning_tokens=0, cost_usd=free
            )
        return replace(reply, cost_usd=total_usd([entry.reply for entry in self._open if entry.cell == cell]))


def total_usd(replies: Sequence[Reply]) -> float | None:
    """The cost of some attempts as far as it is known; None where it is known of none."""
    known = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    return sum(known) if known else None
