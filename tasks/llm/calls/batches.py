"""Calls by provider batches: submitted once, followed across runs, their replies written to the
ledger.

A submission is recorded before it is sent, so that a crash in between is detected and no call is
submitted twice. States are only added, never changed; the one that is furthest in their order is
current.
"""

import asyncio
import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tasks.console import notice
from tasks.llm.calls.batch_api import TOO_LARGE_REPLY, BatchApi, NotNow
from tasks.llm.failures import failure_of
from tasks.llm.ledger.entries import (
    ENDED,
    SUBMITTED,
    SUBMITTING,
    Entry,
    Statement,
    as_text,
    insert_statement,
    is_as_written,
    statements_recording,
)
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import BudgetSpent, Limiter, Reservations, usage_of
from tasks.llm.redaction import safe
from tasks.llm.replies import Reply
from tasks.llm.request import NO_USAGE, Call, Parameters, Target, highest_usage_of
from tasks.rules.errors import PipelineError

_FIRST_POLL_S = 0.5


class SubmittedCall(NamedTuple):
    """A call in a batch: its key, the id of its row, and the parameters that are sent with the
    messages.
    """

    call_key: str
    cell: str
    parameters: str


class Request(NamedTuple):
    """A call to submit, and its line in the batch's file."""

    call: SubmittedCall
    line: str


class Submission(NamedTuple):
    """A batch that has not ended; `batch_id` is None if it may not have been submitted."""

    name: str
    batch_id: str | None
    calls: tuple[SubmittedCall, ...]


@dataclass
class Submissions:
    """The batches of one model at one endpoint."""

    _ledger: Ledger
    _endpoint: str

    def open_submissions(self) -> list[Submission]:
        """Return the batches that have not ended, the oldest first."""
        # By progress, not by time: clocks may go backwards. With `max`, SQLite takes the other
        # columns from the row of the largest value.
        query = f"""
            select submission, batch_id, at_s,
                max(case state
                    when '{SUBMITTING}' then 0 when '{SUBMITTED}' then 1 else 2
                end) as progress
            from submissions inner join submission_states using (submission)
            where lane = ?
            group by submission
            having progress < 2
            order by at_s, submission
        """
        rows = self._ledger.rows(query, self._endpoint)
        return [Submission(name, batch_id, self._calls_of(name)) for name, batch_id, *_ in rows]

    def _calls_of(self, submission: str) -> tuple[SubmittedCall, ...]:
        """Return the calls of a batch; a damaged one is left out, and made again."""
        query = "select * from submitted_calls where submission = ? order by rowid"
        calls = []
        for row in self._ledger.rows(query, submission):
            name, *values, _ = row
            if name == submission and is_as_written(row):
                calls.append(SubmittedCall(*values))
        return tuple(calls)

    def has_ended(self, submission: Submission) -> bool:
        """Return whether any process has recorded the end of a batch."""
        query = "select 1 from submission_states where submission = ? and state = ?"
        return bool(self._ledger.rows(query, submission.name, ENDED))

    async def begin(self, calls: Sequence[SubmittedCall]) -> Submission:
        """Record calls before their submission."""
        name = uuid.uuid4().hex
        await self._ledger.write(
            ("insert into submissions values (?, ?)", [(name, self._endpoint)]),
            (insert_statement("submitted_calls"), [(name, *call) for call in calls]),
            _insert_state(name, SUBMITTING, None),
        )
        return Submission(name, None, tuple(calls))

    async def record_submitted(self, submission: Submission, batch_id: str) -> None:
        """Record that the provider has the batch."""
        await self._ledger.write(_insert_state(submission.name, SUBMITTED, batch_id))

    async def record_ended(self, submission: Submission, results: Sequence[Entry] = ()) -> None:
        """Record the results and the end of a batch in one transaction, so that no result is stored
        twice.
        """
        await self._ledger.write(
            *statements_recording(results),
            _insert_state(submission.name, ENDED, submission.batch_id),
        )


def _insert_state(name: str, state: str, batch_id: str | None) -> Statement:
    values = (name, state, batch_id, time.time())
    return "insert into submission_states values (?, ?, ?, ?)", [values]


@dataclass
class Batching:
    """The batches of one target, and their results: replies, the number of submitted calls, and
    notes.

    Only one process of the warehouse submits missing calls at a time. After the limiter's stop time
    no batch is submitted or waited for. Submission is given up when it fails for the limiter's
    `outage_s`.
    """

    target: Target
    ledger: Ledger
    limiter: Limiter
    run_id: str
    purpose: str
    replies: list[Reply] = field(default_factory=list)
    n_submitted: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._reservations = Reservations(self.limiter.budget)
        self._api = BatchApi(self.target)
        self._submissions = Submissions(self.ledger, self.target.endpoint_name)

    async def submit_and_collect(self, calls: Sequence[Call], wait_s: float) -> None:
        """Submit the calls that have neither a reply nor a batch, and wait for batches to end.

        The amount reserved for a batch that is running when the wait ends counts as used: it may
        still be spent.

        Raises:
            PipelineError: the provider's batch interface cannot be used.
        """
        try:
            held_back = await self._collect(calls, wait_s)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(
                f"{self.target.endpoint_name}: batches: {failure_of(error).error}"
            ) from error
        finally:
            self._reservations.count_as_used()
        if held_back:
            self.notes.append(
                f"{len(held_back)} calls were not submitted, because they could exceed the budget"
            )
            self._mark_budget(held_back)

    def _mark_budget(self, calls: Sequence[Call]) -> None:
        """Mark the budget as spent if one of the calls could never fit."""
        budget = self.limiter.budget
        with suppress(BudgetSpent):
            for call in calls:
                highest_usage = highest_usage_of(call, call.parameters())
                if budget.reserve(highest_usage):
                    budget.release(highest_usage, NO_USAGE)

    async def _collect(self, calls: Sequence[Call], wait_s: float) -> Sequence[Call]:
        """Submit calls and wait for batches to end; submit those held back as soon as others
        release reservations.

        Returns:
            The calls that did not fit into the budget.
        """
        until_s = time.monotonic() + min(wait_s, self.limiter.left_s)
        poll_s = _FIRST_POLL_S
        while True:
            n_submitted_before = self.n_submitted
            calls = await self._submit_alone(calls)
            notes_on_running = []
            for submission in self._submissions.open_submissions():
                note = await self._poll(submission)
                if note is not None:
                    notes_on_running.append(note)
            if not notes_on_running:
                # What is still reserved is for calls without a result, or with one elsewhere.
                self._reservations.count_as_used()
            may_submit = bool(calls) and not self.limiter.budget.is_spent
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not (notes_on_running or may_submit):
                self.notes += notes_on_running
                return calls
            await asyncio.sleep(min(poll_s, left_s))
            poll_s = min(60.0, 2 * poll_s)
            if self.n_submitted > n_submitted_before:
                poll_s = _FIRST_POLL_S

    async def _submit_alone(self, calls: Sequence[Call]) -> list[Call]:
        """Find lost batches and submit missing calls, while no other process does so for this
        target.

        Retry temporary failures: a batch that was submitted in spite of an error is then found.
        """
        locks = self.ledger.call_locks
        name = f"submitting batches to {self.target.endpoint_name}"
        pause_s = _FIRST_POLL_S
        while True:
            await locks.wait_until_released(name)
            with locks.holding(name) as is_ours:
                if not is_ours:
                    continue
                try:
                    await self._find_lost()
                    return await self._submit(calls)
                except NotNow as error:
                    all_pauses_s = 2 * pause_s  # each is twice as long as the one before
                    if all_pauses_s > min(self.limiter.outage_s, self.limiter.left_s):
                        raise
                    notice(f"{error}; submitting again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _find_lost(self) -> None:
        """Find the batches whose submission a crash left unrecorded: each is recorded as submitted,
        or as ended if the provider does not have it.
        """
        for submission in self._submissions.open_submissions():
            if submission.batch_id is None:
                batch_id = await self._api.find(submission.name)
                if batch_id is None:
                    await self._submissions.record_ended(submission)
                else:
                    await self._submissions.record_submitted(submission, batch_id)

    async def _submit(self, calls: Sequence[Call]) -> list[Call]:
        """Submit the calls without a reply or a batch; return those that do not fit into the
        budget.
        """
        held_back = []
        keys: set[str] = set()
        for submission in self._submissions.open_submissions():
            keys.update(call.call_key for call in submission.calls)
        requests = []
        for call in calls:
            parameters = call.parameters()
            key = call.key(parameters)
            # If the lock of a call is held, another run is making that call.
            is_elsewhere = self.ledger.call_locks.is_held(key)
            if key in keys or is_elsewhere or await self._is_tried(call, parameters):
                continue
            if self.limiter.left_s <= 0:
                self.limiter.n_too_late += 1
            elif self._reservations.reserve(key, highest_usage_of(call, parameters)):
                keys.add(key)
                requests.append(
                    Request(
                        SubmittedCall(key, call.cell, as_text(parameters)),
                        self._api.line(key, call.messages, parameters),
                    )
                )
            else:
                held_back.append(call)
        for chunk in _chunks(requests):
            submission = await self._submissions.begin([request.call for request in chunk])
            lines = [request.line for request in chunk]
            batch_id = await self._api.submit(submission.name, lines)
            await self._submissions.record_submitted(submission, batch_id)
            self.n_submitted += len(chunk)
        return held_back

    async def _is_tried(self, call: Call, parameters: Parameters) -> bool:
        """Return whether the ledger has a reply or a failure for a call."""
        history = await self.ledger.history_of(call, parameters)
        return history.reply_for(call.cell) is not None or bool(history.failed_for(call.cell))

    async def _poll(self, submission: Submission) -> str | None:
        """Record the results of a batch if it has ended; return a note if it is still running."""
        note = f"batch {submission.batch_id} is still running, with {len(submission.calls)} calls"
        try:
            batch = await self._api.ended_batch(str(submission.batch_id))
            if batch is None:
                return note
            with self.ledger.call_locks.holding(f"results of {submission.name}") as is_ours:
                if not is_ours:  # another process is recording them now
                    return note
                if not self._submissions.has_ended(submission):
                    await self._record(submission, batch)
        except NotNow as error:
            return f"{note}, as far as is known ({error})"
        return None

    async def _record(self, submission: Submission, batch: Any) -> None:
        """Record the results of a batch that has ended."""
        missing_calls = {call.call_key: call for call in submission.calls}
        entries = await self._take_results(submission, batch, missing_calls)
        await self._submissions.record_ended(submission, entries)
        for entry in entries:
            self._reservations.release(entry.call_key, usage_of(entry.reply))
        self.replies += [entry.reply for entry in entries]
        is_completed = batch.status == "completed"
        if not is_completed:  # the batch ended before it made the other calls
            for key in missing_calls:
                self._reservations.release(key, NO_USAGE)
        if missing_calls or not is_completed:
            self._add_note(submission, batch, len(missing_calls))

    async def _replies(
        self,
        batch: Any,
        custom_ids: Collection[str],
    ) -> list[tuple[str, Reply | None]]:
        """Return the replies in all of a batch's files; if a file was cut, the replies of requests
        that no file names are too large.
        """
        replies = []
        is_cut = False
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            file_replies, is_file_cut = await self._api.replies(batch.id, file_id, len(custom_ids))
            replies += file_replies
            is_cut |= is_file_cut
        if is_cut:
            unnamed_ids = set(custom_ids) - dict(replies).keys()
            replies += [(custom_id, TOO_LARGE_REPLY) for custom_id in sorted(unnamed_ids)]
        return replies

    async def _take_results(
        self,
        submission: Submission,
        batch: Any,
        missing_calls: dict[str, SubmittedCall],
    ) -> list[Entry]:
        """Return the entries of a batch's results, and remove their calls from the missing ones."""
        entries = []
        unnamed_replies = []
        for custom_id, reply in await self._replies(batch, missing_calls.keys()):
            if reply is None:
                continue
            if custom_id in missing_calls:  # the first reply to a call counts
                entries.append(self._entry(missing_calls.pop(custom_id), reply))
            elif not custom_id:
                unnamed_replies.append(reply)
        if batch.status == "completed":  # lines without an id belong to the calls without a line
            for key, reply in zip(list(missing_calls), unnamed_replies, strict=False):
                entries.append(self._entry(missing_calls.pop(key), reply))
        return entries

    def _add_note(self, submission: Submission, batch: Any, n_missing: int) -> None:
        errors = getattr(batch.errors, "data", None) or ()
        messages = [str(getattr(error, "message", error)) for error in errors]
        cause = safe("; ".join(messages))
        note = (
            f"batch {submission.batch_id} ended as {batch.status}, {n_missing} of"
            f" {len(submission.calls)} calls have no result"
        )
        self.notes.append(f"{note}: {cause}" if cause else note)

    def _entry(self, call: SubmittedCall, reply: Reply) -> Entry:
        """Return the ledger entry of a reply."""
        return Entry(
            call_key=call.call_key,
            attempt=self.ledger.history(call.call_key).next_attempt,
            cell=call.cell,
            run_id=self.run_id,
            model=self.target.name,
            endpoint=self.target.endpoint,
            parameters=call.parameters,
            reply=reply,
            is_final=reply.is_final,
            purpose=self.purpose,
        )


_MOST_CALLS = 20_000
_MOST_FILE_BYTES = 100 << 20
"""At most half of OpenAI's limits for one batch: 50,000 calls, and a file of 200 MB."""


def _chunks(requests: Sequence[Request]) -> list[list[Request]]:
    """Return the requests in groups that fit into one batch."""
    chunks: list[list[Request]] = []
    n_bytes = 0
    for request in requests:
        if not chunks or len(chunks[-1]) >= _MOST_CALLS or n_bytes >= _MOST_FILE_BYTES:
            chunks.append([])
            n_bytes = 0
        chunks[-1].append(request)
        n_bytes += len(request.line)
    return chunks
