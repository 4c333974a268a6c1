"""The content of the ledger: its tables, a call and its derived values, and the spend.

The spend is the sum over all attempts, including discarded ones; it stays when entries are deleted.
"""

import hashlib
import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasks.llm.replies import OK, LedgerKey, Logprobs, Reply
from tasks.llm.request import Prices
from tasks.rules.identity import digest

_REPLY_FIELDS = (
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
_ENTRY_FIELDS = (
    "call_key",
    "attempt",
    "cell",
    "run_id",
    "finished_at_s",
    "model",
    "endpoint",
    "parameters",
)
COLUMNS = (*_ENTRY_FIELDS, "status", "is_final", "text", *_REPLY_FIELDS, *Prices._fields)
SPEND_KEY = ("run_id", "day", "purpose", "called_model")
_SUMS = (
    "calls",
    "failed_calls",
    "unpriced_calls",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "cost_usd",
)
SPEND_COLUMNS = (*SPEND_KEY, *_SUMS)
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
Values = tuple[Any, ...]
Statement = tuple[str, Sequence[Values]]
"""An SQL statement and its rows of values."""
SEALED = {
    "spent": ("call_key", "attempt"),
    "logprobs": ("call_key", "attempt", "tokens"),
    "spend": SPEND_COLUMNS,
    "submitted_calls": ("submission", "call_key", "cell", "parameters"),
}
"""Table -> its columns before the last one, which is the checksum of all others. `calls` has had
checksums since an earlier version, so it is not among these tables.
"""
TABLES = {
    "calls": f"create table calls ({', '.join(COLUMNS)}, checksum,"
    " primary key (call_key, attempt))",
    "spent": "create table spent (call_key text primary key, attempt integer not null, checksum)",
    "logprobs": """create table logprobs (
        call_key text, attempt integer, tokens text, checksum, primary key (call_key, attempt)
    )""",
    "spend": f"create table spend ({', '.join(SPEND_COLUMNS)}, checksum, primary key"
    f" ({', '.join(SPEND_KEY)}))",
    "submissions": "create table submissions (submission text primary key, lane text)",
    "submitted_calls": """create table submitted_calls (
        submission text, call_key text, cell text, parameters text, checksum,
        primary key (submission, call_key)
    )""",
    "submission_states": """create table submission_states (
        submission text, state text, batch_id text, at_s real
    )""",
    "attempts": f"create table if not exists attempts ({', '.join(ATTEMPT_COLUMNS)})",
}
"""The tables of the ledger's file, created in this order.

`spend` is the money by run, `spent` the attempts of calls that ended in failed rows. `attempts`
holds those that the warehouse does not have yet. The `lane` of a submission is the name of its
endpoint.
"""
SUBMITTING = "handing in"
SUBMITTED = "handed in"
ENDED = "ended"
"""The states of a batch as they are stored."""


def insert_statement(table: str, verb: str = "insert") -> str:
    """Return the statement that inserts a row of a table with checksums, from its other values."""
    columns = SEALED.get(table, COLUMNS)
    values = ", ".join(f"?{number}" for number in range(1, len(columns) + 1))
    return f"{verb} into {table} values ({values}, checksum_of({values}))"


def _update_clause(table: str, changes: Mapping[str, str]) -> str:
    """Return the end of `insert_statement` for a row that exists: it applies `changes` (column ->
    expression).

    A damaged row stays damaged: its new checksum is NULL.
    """
    earlier_values = ", ".join(SEALED[table])
    changed_values = ", ".join(changes.get(column, column) for column in SEALED[table])
    assignments = ", ".join(f"{column} = {expression}" for column, expression in changes.items())
    return (
        f" on conflict do update set {assignments}, checksum = case"
        f" when checksum = checksum_of({earlier_values}) then checksum_of({changed_values}) end"
    )


_INSERT_CALL = insert_statement("calls", "insert or replace")
_INSERT_LOGPROBS = insert_statement("logprobs", "insert or replace")
_INSERT_ATTEMPT = f"insert into attempts values ({', '.join('?' * len(ATTEMPT_COLUMNS))})"
MARK_SPENT = insert_statement("spent") + _update_clause(
    "spent", {"attempt": "max(attempt, excluded.attempt)"}
)
"""Marks the attempts of a call as spent; its values: a call key, and the number of the last one."""
ADD_SPEND = insert_statement("spend") + _update_clause(
    "spend", {column: f"{column} + excluded.{column}" for column in _SUMS}
)
"""Adds an attempt to the spend; its values: those of `spend_of`."""
ADD_LOST_SPEND = f"""
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
"""Adds a row of `spend` whose sums are lost; its values: the key. The calls that are still stored
count as unpriced, except those in the sums of other purposes.
"""
SPEND_KEYS_OF_CALLS = (
    "select distinct run_id, date(finished_at_s, 'unixepoch'), 'unknown', model from calls"
)
"""The keys of a damaged file's spend, if all of them are lost; calls do not store their purpose."""


@dataclass(frozen=True)
class Entry:
    """A finished attempt: the request's identity, the sent parameters, and the result.

    `cell` is the id of the row that it was made for; `is_final` is false for a temporary failure,
    which does not end the call. `purpose` (the name of a stage) is only for the spend, and not
    stored with the entry. `is_late` is true for an entry that was read, if any process has made it
    since the run began.
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
    def key(self) -> LedgerKey:
        """The key of the entry in the ledger."""
        return self.call_key, self.attempt

    @property
    def values(self) -> Values:
        """The entry's values in the order of `COLUMNS`."""
        reply = self.reply
        text = reply.unaccepted_text if reply.text is None else reply.text
        return (
            *(getattr(self, name) for name in _ENTRY_FIELDS),
            reply.status,
            int(self.is_final),
            text,
            *(getattr(reply, name) for name in _REPLY_FIELDS),
            *reply.prices,
        )

    @classmethod
    def of(cls, row: Sequence[Any], logprobs: str | None, is_late: bool) -> "Entry | None":
        """Return the entry of a row of the table, with its log-probabilities from another table.

        None if the row is damaged.
        """
        if not is_as_written(row):
            return None
        values = dict(zip(COLUMNS, row, strict=False))  # without the checksum, which is last
        status = values["status"]
        name_of_text = "text" if status == OK else "unaccepted_text"
        reply_values = {name: values[name] for name in _REPLY_FIELDS}
        reply_values[name_of_text] = values["text"]
        reply = Reply(
            status=status,
            **reply_values,
            prices=Prices(*[values[name] for name in Prices._fields]),
            logprobs=_logprobs_of(logprobs),
        )
        entry_values = {name: values[name] for name in _ENTRY_FIELDS}
        return cls(
            **entry_values,
            reply=reply,
            is_final=bool(values["is_final"]),
            is_late=is_late,
        )


def checksum_of(values: Sequence[Any]) -> str:
    """Return the checksum of a row of the ledger (its other values in order), which shows
    damage.
    """
    text = json.dumps(values, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def is_as_written(row: Sequence[Any]) -> bool:
    """Return whether a row of a table with checksums is unchanged since it was written, by its last
    value.
    """
    return bool(row[-1] == checksum_of(row[:-1]))


def _logprobs_of(text: str | None) -> Logprobs | None:
    """Return the log-probabilities that `statements_recording` stores; None if there are none, or
    they are damaged.
    """
    if not text:
        return None
    try:
        return tuple((str(token), float(logprob)) for token, logprob in json.loads(text))
    except (ValueError, TypeError):
        return None


def as_text(parameters: Any) -> str:
    """Return parameters as the ledger stores them."""
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False)


class History(NamedTuple):
    """All attempts of one call, oldest first.

    Attempts up to number `spent` ended in a failed row, and count no more. Late ones count even
    then: their row was missing when the run was planned, so another run has tried it meanwhile.
    """

    entries: tuple[Entry, ...] = ()
    spent: int = 0

    @property
    def counting_entries(self) -> list[Entry]:
        """The attempts that count."""
        return [entry for entry in self.entries if entry.attempt > self.spent or entry.is_late]

    def after(self, attempt: int, moment_s: float | None) -> "History":
        """Return the history without the entries up to an attempt, and up to a moment (wall-clock
        time) if there is one; their numbers are spent.
        """
        last_attempt = attempt
        for entry in self.entries:
            if moment_s is not None and entry.finished_at_s <= moment_s:
                last_attempt = max(last_attempt, entry.attempt)
        later_entries = tuple(entry for entry in self.entries if entry.attempt > last_attempt)
        return History(later_entries, max(self.spent, last_attempt))

    def accepting(self, ends_ok: Collection[str]) -> "History":
        """Return the history in which replies that ended with one of these words are complete.

        Those count even if they are spent: the failed rows that were made of them are made again,
        without a call.
        """
        entries = []
        for entry in self.entries:
            reply = entry.reply.accepted(ends_ok)
            if reply is entry.reply:  # unchanged
                entries.append(entry)
            else:
                entries.append(replace(entry, reply=reply, is_final=True, is_late=True))
        return self._replace(entries=tuple(entries))

    @property
    def next_attempt(self) -> int:
        """The number of the next attempt."""
        return max([self.spent, *(entry.attempt for entry in self.entries)]) + 1

    def failed_for(self, cell: str) -> list[Reply]:
        """Return the temporary failures for a row that is not written yet."""
        replies = []
        for entry in self.counting_entries:
            if entry.cell == cell and not entry.is_final:
                replies.append(replace(entry.reply, ledger_keys=(entry.key,)))
        return replies

    def reply_for(self, cell: str) -> Reply | None:
        """Return the reply to a call that was already made; a successful one is preferred to a
        permanent failure.

        The cost is on the row that the call was made for; for any other row the reply is free.
        """
        entries = self.counting_entries
        final_entries = [entry for entry in entries if entry.is_final]
        if not final_entries:
            return None
        best = max(final_entries, key=lambda entry: (entry.reply.status == OK, entry.attempt))
        reply = replace(best.reply, attempts=len(entries), ledger_keys=(best.key,))
        if best.cell == cell:
            attempts_of_cell = [entry.reply for entry in entries if entry.cell == cell]
            return replace(reply, cost_usd=total_usd(attempts_of_cell))
        return replace(
            reply,
            prompt_tokens=0,
            cached_tokens=0,
            completion_tokens=0,
            reasoning_tokens=0,
            cost_usd=None if reply.cost_usd is None else 0.0,
        )


def total_usd(replies: Sequence[Reply]) -> float | None:
    """Return the known cost of some attempts; None if none of it is known."""
    known_costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    return sum(known_costs) if known_costs else None


def spend_of(reply: Reply, run_id: str, purpose: str, model: str, finished_at_s: float) -> Values:
    """Return the spend of one attempt, in the order of `SPEND_COLUMNS`; its day is the one on which
    it ended, in UTC.

    An attempt is failed unless it returned a text, and unpriced if its cost is unknown: without a
    price, or without a report of its usage. An attempt that the server rejected before any work
    cost nothing.
    """
    is_unpaid = reply.failure is not None and reply.failure.is_unpaid
    day = datetime.fromtimestamp(finished_at_s, UTC).date().isoformat()
    return (
        run_id,
        day,
        purpose,
        model,
        1,
        int(reply.status != OK),
        int(reply.cost_usd is None and not is_unpaid),
        reply.prompt_tokens or 0,
        reply.cached_tokens or 0,
        reply.completion_tokens or 0,
        reply.cost_usd or 0.0,
    )


def attempt_of(entry: Entry) -> Values:
    """Return an attempt without texts, in the order of `ATTEMPT_COLUMNS`; a rejected one is
    free.
    """
    reply = entry.reply
    cost_usd = reply.cost_usd
    http_status = None
    if reply.failure is not None:
        http_status = reply.failure.http_status
        if cost_usd is None and reply.failure.is_unpaid:
            cost_usd = 0.0
    return (
        digest(*entry.key),
        entry.run_id,
        entry.purpose,
        entry.model,
        entry.cell,
        entry.attempt,
        reply.status,
        http_status,
        reply.latency_s,
        reply.prompt_tokens,
        reply.cached_tokens,
        reply.completion_tokens,
        reply.reasoning_tokens,
        cost_usd,
        entry.finished_at_s,
    )


def statements_replacing(entry: Entry) -> tuple[Statement, ...]:
    """Return the statements that replace the outcome of a call, whose cost is already recorded."""
    add_calls, _, _, add_attempts = statements_recording([entry])
    return add_calls, add_attempts


def statements_recording(entries: Sequence[Entry]) -> tuple[Statement, ...]:
    """Return four statements that record finished calls: calls, spend, log-probabilities and
    attempts, in this order.
    """
    calls = []
    spend = []
    logprobs = []
    attempts = []
    for entry in entries:
        reply = entry.reply
        calls.append(entry.values)
        spend.append(spend_of(reply, entry.run_id, entry.purpose, entry.model, entry.finished_at_s))
        if reply.logprobs is not None:
            tokens = json.dumps(reply.logprobs, ensure_ascii=False, separators=(",", ":"))
            logprobs.append((*entry.key, tokens))
        attempts.append(attempt_of(entry))
    return (
        (_INSERT_CALL, calls),
        (ADD_SPEND, spend),
        (_INSERT_LOGPROBS, logprobs),
        (_INSERT_ATTEMPT, attempts),
    )
