"""The content of the ledger: its tables, a call and its derived values, and the spend.

The spend is the sum over all attempts, including discarded ones; it stays when entries are deleted.
"""

import hashlib
import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasks.llm.replies import OK, Logprobs, Reply
from tasks.llm.request import Prices
from tasks.rules.identity import digest

_REPLY = (
    "text",
    "finish_reason",
    "served_model",
    "served_fingerprint",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_usd",
    "latency_s",
    "error",
)
_OWN = ("call_key", "attempt", "cell", "run_id", "finished_at_s", "model", "endpoint", "parameters")
COLUMNS = (*_OWN, "status", "is_final", *_REPLY, *Prices._fields)
SPEND_KEY = ("run_id", "day", "purpose", "called_model")
_COUNTS = (
    "calls",
    "failed_calls",
    "unpriced_calls",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
)
SPEND_COLUMNS = (*SPEND_KEY, *_COUNTS, "cost_usd")
ATTEMPT_COLUMNS = (
    "attempt_id",
    "run_id",
    "purpose",
    "called_model",
    "row_id",
    "attempt",
    "status",
    "http_status",
    "latency_s",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_usd",
    "finished_at_s",
)
Statement = tuple[str, Sequence[tuple[Any, ...]]]
"""An SQL statement and its rows of values."""
SEALED = {
    "spent": ("call_key", "attempt"),
    "logprobs": ("call_key", "attempt", "tokens"),
    "spend": SPEND_COLUMNS,
    "submitted_calls": ("submission", "call_key", "cell", "parameters"),
}
"""Table -> its columns before the last one, which is the checksum of all others."""
TABLES = {
    "calls": (
        f"create table calls ({', '.join(COLUMNS)}, checksum, primary key (call_key, attempt))"
    ),
    "spent": "create table spent (call_key text primary key, attempt integer not null, checksum)",
    "logprobs": (
        """create table logprobs (
        call_key text, attempt integer, tokens text, checksum, primary key (call_key, attempt)
    )"""
    ),
    "spend": (
        f"create table spend ({', '.join(SPEND_COLUMNS)}, checksum, primary key"
        f" ({', '.join(SPEND_KEY)}))"
    ),
    "submissions": "create table submissions (submission text primary key, lane text)",
    "submitted_calls": (
        """create table submitted_calls (
        submission text, call_key text, cell text, parameters text, checksum, primary key (submission, call_key)
    )"""
    ),
    "submission_states": (
        "create table submission_states (submission text, state text, batch_id text, at_s real)"
    ),
    "attempts": f"create table if not exists attempts ({', '.join(ATTEMPT_COLUMNS)})",
}
"""The tables of the ledger's file, created in this order; `attempts` holds those not stored
elsewhere.
"""
SUBMITTING = "handing in"
SUBMITTED = "handed in"
ENDED = "ended"
"""The states of a batch as they are stored."""


def inserting(table: str) -> str:
    """Return the statement that inserts a row of a sealed table, from the values before its
    checksum.
    """
    values = ", ".join(f"?{number}" for number, _ in enumerate(SEALED[table], start=1))
    return f"insert into {table} values ({values}, checksum_of({values}))"


def _updating(table: str, changes: Mapping[str, str]) -> str:
    """Return the end of `inserting` for a row that exists: it applies `changes` (column ->
    expression).

    A damaged row stays damaged: its new checksum is NULL.
    """
    before = ", ".join(SEALED[table])
    after = ", ".join(changes.get(column, column) for column in SEALED[table])
    assignments = ", ".join(f"{column} = {expression}" for column, expression in changes.items())
    seal = f"case when checksum = checksum_of({before}) then checksum_of({after}) end"
    return f" on conflict do update set {assignments}, checksum = {seal}"


SPENT = inserting("spent") + _updating("spent", {"attempt": "max(attempt, excluded.attempt)"})
"""Its values: a call key, and the number of the last attempt that is spent."""
_SUMS = (*_COUNTS, "cost_usd")
ADD_SPEND = inserting("spend") + _updating(
    "spend", {name: f"{name} + excluded.{name}" for name in _SUMS}
)
"""Its values: those of `spend_of`."""
LOST_SPEND = f"""
    insert into spend
    with others as (
        select coalesce(sum(calls), 0) as calls, coalesce(sum(failed_calls), 0) as failed_calls
        from spend where run_id = ?1 and day = ?2 and purpose <> ?3 and called_model = ?4
    ),
    recorded as (
        select max(count(*) - others.calls, 1) as calls,
            max(count(nullif(status, '{OK}')) - others.failed_calls, 0) as failed_calls
        from others
        left join calls on run_id = ?1 and date(finished_at_s, 'unixepoch') = ?2 and model = ?4
    ),
    known as (
        select ?1 as run_id, ?2 as day, ?3 as purpose, ?4 as called_model, calls, failed_calls,
            calls as unpriced_calls, null as prompt_tokens, null as cached_tokens,
            null as completion_tokens, null as cost_usd
        from recorded
    )
    select {", ".join(SPEND_COLUMNS)}, checksum_of({", ".join(SPEND_COLUMNS)}) from known
"""
"""Its values: a key of `spend` whose sums are lost. The calls that are still there, but for those
in sums of other purposes, count as unpriced.
"""
SPEND_KEYS = "select distinct run_id, date(finished_at_s, 'unixepoch'), 'unknown', model from calls"
"""The keys of a damaged file's spend, if all of them are lost; calls do not store their purpose."""


@dataclass(frozen=True)
class Entry:
    """A finished attempt: the request's identity, the sent parameters, and the result.

    `cell` is the row that it was made for; `is_final` is false for a temporary failure, which does
    not end the call. `purpose` (sample, judge or drift) is only for the spend, and not stored with
    the entry. `is_late` is true for an entry that was read, if any process has made it since the
    run began.
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
    is_late: bool = False

    @property
    def values(self) -> tuple[Any, ...]:
        """The entry's values in the order of `COLUMNS`."""
        reply = (
            self.reply
            if self.reply.text is not None
            else replace(self.reply, text=self.reply.unaccepted_text)
        )
        return (
            *(getattr(self, name) for name in _OWN),
            reply.status,
            int(self.is_final),
            *(getattr(reply, name) for name in _REPLY),
            *reply.prices,
        )

    @classmethod
    def of(cls, row: Sequence[Any], logprobs: Any, is_late: bool) -> "Entry | None":
        """Return the entry of a row of the table, with its log-probabilities from another table.

        None if the row is damaged.
        """
        if not is_as_written(row):
            return None
        named = dict(zip(COLUMNS, row, strict=False))
        prices = Prices(**{name: named[name] for name in Prices._fields})
        of_reply = {name: named[name] for name in _REPLY}
        if named["status"] != OK:
            of_reply["unaccepted_text"] = of_reply.pop("text")
        reply = Reply(named["status"], **of_reply, prices=prices, logprobs=_logprobs_of(logprobs))
        own = {name: named[name] for name in _OWN}
        return cls(
            **own,
            reply=reply,
            is_final=bool(named["is_final"]),
            is_late=bool(is_late),
        )


def checksum_of(values: Sequence[Any]) -> str:
    """Return the checksum of a row of the ledger (its other values in order), which shows
    damage.
    """
    # SQLite has no NaN: it stores NULL.
    kept = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    return hashlib.blake2b(json.dumps(kept, default=repr).encode(), digest_size=8).hexdigest()


def is_as_written(row: Sequence[Any]) -> bool:
    """Return whether a row of a table with checksums is unchanged since it was written, by its last
    value.
    """
    return bool(row[-1] == checksum_of(row[:-1]))


def _logprobs_row(entry: Entry) -> tuple[Any, ...]:
    tokens = json.dumps(entry.reply.logprobs, ensure_ascii=False, separators=(",", ":"))
    values = (entry.call_key, entry.attempt, tokens)
    return (*values, checksum_of(values))


def _logprobs_of(text: Any) -> Logprobs | None:
    """Return the log-probabilities that `recorded` wrote; None if there are none, or they are
    damaged.
    """
    try:
        return (
            tuple((str(token), float(logprob)) for token, logprob in json.loads(text))
            if text
            else None
        )
    except (ValueError, TypeError):
        return None


def as_text(parameters: Any) -> str:
    """Return parameters as the ledger stores them."""
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False)


class History(NamedTuple):
    """All attempts of one call, oldest first. Attempts up to number `spent` ended in a failed row.

    Late ones count even if they are spent: their row was missing when the run was planned, so
    another run has tried it meanwhile.
    """

    entries: tuple[Entry, ...] = ()
    spent: int = 0

    @property
    def open(self) -> list[Entry]:
        """The attempts that count."""
        return [entry for entry in self.entries if entry.attempt > self.spent or entry.is_late]

    def after(self, attempt: int, moment_s: float | None = None) -> "History":
        """Return the history after an attempt and a moment; of earlier entries it keeps only the
        last number.
        """
        before = (
            each.attempt
            for each in self.entries
            if moment_s is not None and each.finished_at_s <= moment_s
        )
        last = max([attempt, *before])
        return History(
            tuple(entry for entry in self.entries if entry.attempt > last), max(self.spent, last)
        )

    def accepting(self, ends_ok: Collection[str]) -> "History":
        """Return the history in which replies that ended with one of these words are complete.

        Those count even if they are spent: the failed rows that were made of them are made again,
        without a call.
        """
        if not ends_ok:
            return self
        entries = []
        for entry in self.entries:
            reply = entry.reply.accepted(ends_ok)
            is_new = reply is not entry.reply
            entries.append(
                replace(
                    entry,
                    reply=reply,
                    is_final=True,
                    is_late=True,
                )
                if is_new
                else entry
            )
        return self._replace(entries=tuple(entries))

    @property
    def next_attempt(self) -> int:
        """The number of the next attempt."""
        return max([self.spent, *(entry.attempt for entry in self.entries)]) + 1

    def failed_for(self, cell: str) -> list[Reply]:
        """Return the temporary failures for a row that is not written yet."""
        failed = [entry for entry in self.open if entry.cell == cell and not entry.is_final]
        return [replace(entry.reply, paid=((entry.call_key, entry.attempt),)) for entry in failed]

    def reply_for(self, cell: str) -> Reply | None:
        """Return the reply to a call that was already made; a successful one is preferred to a
        permanent failure.

        The cost is on the row that the call was made for; for any other row the reply is free.
        """
        final = [entry for entry in self.open if entry.is_final]
        if not final:
            return None
        best = max(final, key=lambda entry: (entry.reply.status == OK, entry.attempt))
        reply = replace(best.reply, attempts=len(self.open), paid=((best.call_key, best.attempt),))
        if best.cell == cell:
            return replace(
                reply,
                cost_usd=total_usd([entry.reply for entry in self.open if entry.cell == cell]),
            )
        free = None if reply.cost_usd is None else 0.0
        return replace(
            reply,
            prompt_tokens=0,
            cached_tokens=0,
            completion_tokens=0,
            reasoning_tokens=0,
            cost_usd=free,
        )


def total_usd(replies: Sequence[Reply]) -> float | None:
    """Return the known cost of some attempts; None if none of it is known."""
    known = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    return sum(known) if known else None


def spend_of(entry: Entry) -> tuple[Any, ...]:
    """Return the spend of one attempt, in the order of `SPEND_COLUMNS`; its day is the one on which
    it ended, in UTC.

    An attempt is failed unless it returned a text, and unpriced if its cost is unknown: without a
    price, or without a report of its usage. An attempt that the server rejected before any work
    cost nothing.
    """
    reply = entry.reply
    is_unpaid = entry.reply.failure is not None and entry.reply.failure.is_unpaid
    day = datetime.fromtimestamp(entry.finished_at_s, UTC).date().isoformat()
    return (
        entry.run_id,
        day,
        entry.purpose,
        entry.model,
        1,
        int(reply.status != OK),
        int(reply.cost_usd is None and not is_unpaid),
        reply.prompt_tokens or 0,
        reply.cached_tokens or 0,
        reply.completion_tokens or 0,
        reply.cost_usd or 0.0,
    )


def attempt_of(entry: Entry) -> tuple[Any, ...]:
    """Return an attempt without texts, in the order of `ATTEMPT_COLUMNS`; a rejected one is
    free.
    """
    reply = entry.reply
    cost_usd = reply.cost_usd
    if cost_usd is None and reply.failure is not None and reply.failure.is_unpaid:
        cost_usd = 0.0
    return (
        digest(entry.call_key, entry.attempt),
        entry.run_id,
        entry.purpose,
        entry.model,
        entry.cell,
        entry.attempt,
        reply.status,
        reply.failure.http_status if reply.failure is not None else None,
        reply.latency_s,
        reply.prompt_tokens,
        reply.cached_tokens,
        reply.completion_tokens,
        reply.reasoning_tokens,
        cost_usd,
        entry.finished_at_s,
    )


def replaced(entry: Entry) -> tuple[Statement, ...]:
    """Return the statements that replace the outcome of a call, whose cost is already recorded."""
    calls, _, _, attempts = recorded([entry])
    return calls, attempts


def recorded(entries: Sequence[Entry]) -> tuple[Statement, ...]:
    """Return the statements that record finished calls, with their costs."""
    calls = [(*entry.values, checksum_of(entry.values)) for entry in entries]
    logprobs = [_logprobs_row(entry) for entry in entries if entry.reply.logprobs is not None]
    insert = f"insert or replace into calls values ({', '.join('?' * len(COLUMNS))}, ?)"
    keep = "insert or replace into logprobs values (?, ?, ?, ?)"
    add_attempt = f"insert into attempts values ({', '.join('?' * len(ATTEMPT_COLUMNS))})"
    return (
        (insert, calls),
        (ADD_SPEND, [spend_of(entry) for entry in entries]),
        (keep, logprobs),
        (add_attempt, [attempt_of(entry) for entry in entries]),
    )
