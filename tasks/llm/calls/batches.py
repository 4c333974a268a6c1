"""Calls by provider batches: submitted once, followed across runs, their replies written to the
ledger.

The interface is OpenAI's files and batches, at any endpoint that supports them, through LiteLLM. A
submission is recorded before it is sent, so that a crash in between is detected and no call is
submitted twice. States are only added, never changed; the one that is furthest in their order is
current.
"""

import asyncio
import io
import json
import os
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tasks.console import notice
from tasks.llm.calls.sending import chat_arguments
from tasks.llm.environment import filled_in, safe
from tasks.llm.failures import failure_of, failure_of_status, status_of_error, with_hints
from tasks.llm.ledger.entries import (
    ENDED,
    SUBMITTED,
    SUBMITTING,
    Entry,
    as_text,
    inserting,
    is_as_written,
    recorded,
)
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import BudgetSpent, Limiter, Reservations, usage_of
from tasks.llm.litellm_setup import litellm
from tasks.llm.reading import from_result
from tasks.llm.replies import Reply
from tasks.llm.request import NOTHING, Call, Messages, Target, most_of, prices_of
from tasks.llm.transport import MOST_BYTES, Body, Exchange, ReplyTooLarge, cleaned, watched
from tasks.rules.errors import PipelineError

_URL = "/v1/chat/completions"
_SUBMISSION = "submission"


class NotNow(PipelineError):
    """A temporary failure: the provider did not respond, or may accept the same request later."""


class BatchApi:
    """The batch interface at a target's endpoint."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._provider, _, self._model = target.name.partition("/")

    def line(self, custom_id: str, messages: Messages, parameters: Mapping[str, Any]) -> str:
        """Return a request as a line of a batch's file, with the parameters as they are sent."""
        beside = {"extra_headers", "api_key"}
        arguments = {
            name: value for name, value in chat_arguments(parameters).items() if name not in beside
        }
        extra = arguments.pop("extra_body", {})
        wire = litellm().get_optional_params(
            model=self._model, custom_llm_provider=self._provider, **arguments
        )
        wire.pop("stream", None)
        own = wire.pop("extra_body", {})
        body = {
            "model": self._model,
            "messages": list(messages),
            **wire,
            **own,
            **extra,
        }
        return json.dumps(
            {
                "custom_id": custom_id,
                "method": "POST",
                "url": _URL,
                "body": body,
            }
        )

    async def submit(self, submission: str, lines: Iterable[str]) -> str:
        """Upload the requests, start the batch, and return its id."""
        content = ("\n".join(lines) + "\n").encode()
        file = await self._request(
            "acreate_file", file=(f"{submission}.jsonl", content), purpose="batch"
        )
        batch = await self._request(
            "acreate_batch",
            completion_window="24h",
            endpoint=_URL,
            input_file_id=file.id,
            metadata={_SUBMISSION: submission},
        )
        return str(batch.id)

    async def find(self, submission: str) -> str | None:
        """Return the id of a submission's batch, which may not be recorded here; None if the
        provider has none.
        """
        after = None
        while True:
            page = await self._request("alist_batches", after=after, limit=100)
            for batch in page.data:
                if (batch.metadata or {}).get(_SUBMISSION) == submission:
                    return str(batch.id)
            if not getattr(page, "has_more", False) or not page.data:
                return None
            after = page.data[-1].id

    async def ended(self, batch_id: str) -> Any:
        """Return a batch that has ended, as LiteLLM returns it; None while it is running."""
        batch = await self._request("aretrieve_batch", batch_id=batch_id)
        return (
            None
            if batch.status in {"validating", "in_progress", "finalizing", "cancelling"}
            else batch
        )

    async def replies(
        self, batch_id: str, file_id: str, custom_ids: Iterable[str]
    ) -> list[tuple[str, Reply]]:
        """Return the replies in one of a batch's files, for requests with these ids.

        The id is empty if a line does not show it. A reply beyond the size limit, and all replies
        after it, count as too large. Requests whose turn had not come when the batch ended have
        none.
        """
        left = set(custom_ids)
        replies = list[tuple[str, Reply]]()
        reply: Reply | None
        exchange = Exchange(n_results=len(left))
        content = await self._request("afile_content", exchange, file_id=file_id)
        is_cut = exchange.body.is_over
        too_large = failure_of(ReplyTooLarge(MOST_BYTES)).reply
        for number, line in enumerate(io.BytesIO(content.content), start=1):
            if len(line) >= MOST_BYTES or (is_cut and not line.endswith(b"\n")):
                custom_id = _id_in(line)
                reply = too_large
            elif line.strip():
                try:
                    custom_id, reply = self._read(json.loads(line))
                except (
                    ValueError,
                    TypeError,
                    LookupError,
                    AttributeError,
                    RecursionError,
                ) as error:
                    what = (
                        f"batch {batch_id}, {file_id}, line {number}: cannot be read"
                        f" ({type(error).__name__})"
                    )
                    custom_id = _id_in(line)
                    reply = failure_of(ValueError(what)).reply
            else:
                continue
            left.discard(custom_id)
            if reply is not None:
                replies.append((custom_id, reply))
        return [
            *replies,
            *((custom_id, too_large) for custom_id in (sorted(left) if is_cut else ())),
        ]

    def _read(self, line: Mapping[str, Any]) -> tuple[str, Reply | None]:
        """Return a request's id and its reply, with the prices of a batch; None if the batch ended
        before its turn.

        A failure is also a reply, with its status and cause.
        """
        response = line.get("response") or {}
        body = response.get("body") or {"error": line.get("error")}
        body = body if isinstance(body, Mapping) else {"error": body}
        custom_id = str(line["custom_id"])
        status = int(response.get("status_code") or 500)
        fault = body.get("error")
        if isinstance(fault, Mapping) and fault.get("code") in {"batch_expired", "batch_cancelled"}:
            return custom_id, None
        if status == 200 and fault and not body.get("choices"):
            status = status_of_error(fault)
        if status != 200:
            return (
                custom_id,
                with_hints(failure_of_status(status, as_text(body)), self._target).reply,
            )
        try:
            received = Body(0)
            received.look_at(body)
            reply = from_result(None, litellm().ModelResponse(**cleaned(body)), received)
            reply = reply.accepted(self._target.ends_ok)
        except Exception as error:  # noqa: BLE001 - a body that is not a completion becomes a failure with the cause
            return custom_id, failure_of(error).reply
        return custom_id, reply.priced(prices_of(self._target, of_batch=True))

    async def _request(self, name: str, exchange: Exchange | None = None, **arguments: Any) -> Any:
        """Call a function of LiteLLM for this endpoint."""
        request = getattr(litellm(), name)(**arguments, **self._common)
        with watched(exchange) as under_way:
            try:
                return await request
            except Exception as error:
                failure = failure_of(
                    under_way.fault or error
                )  # libraries may hide the original error
                kind = NotNow if failure.passes else PipelineError
                raise kind(f"{self._target.endpoint_name}: batches: {failure.error}") from error

    @property
    def _common(self) -> dict[str, Any]:
        # Always OpenAI's route: for some other routes of single calls, LiteLLM runs batches itself,
        # call by call.
        address = {"api_base": filled_in(self._target.api_base)} if self._target.api_base else {}
        key = {"api_key": os.environ.get(f"{self._provider.upper()}_API_KEY") or "none"}
        if "api_key" in self._target.parameters:
            key = {"api_key": filled_in(self._target.parameters["api_key"])}
        elif self._provider == "openai":
            key = {}
        return {
            "custom_llm_provider": "openai",
            "timeout": self._target.timeout_s,
            "max_retries": 0,
            **address,
            **key,
            **chat_arguments(self._target.sent_along),
        }


def _id_in(line: bytes) -> str:
    """Return the id of the request of an unreadable line; empty if its beginning does not show
    it.
    """
    match = re.search(rb'"custom_id"\s*:\s*"(\w+)"', line[:1000])
    return "" if match is None else match[1].decode()


_FIRST_POLL_S = 0.5


class SubmittedCall(NamedTuple):
    """A call in a batch: its key, the id of its row, and the parameters that are sent with the
    messages.
    """

    call_key: str
    cell: str
    parameters: str


class Submission(NamedTuple):
    """A batch that has not ended; `batch_id` is None if it may not have been submitted."""

    name: str
    batch_id: str | None
    calls: tuple[SubmittedCall, ...]


class Submissions:
    """The batches of one model at one endpoint."""

    def __init__(self, ledger: Ledger, endpoint: str) -> None:
        self._ledger = ledger
        self._endpoint = endpoint

    def open(self) -> list[Submission]:
        """Return the batches that have not ended, the oldest first."""
        # Ordered by progress, not by time: clocks may go backwards.
        query = f"""
            select submission, batch_id, at_s,
                max(case state when '{SUBMITTING}' then 0 when '{SUBMITTED}' then 1 else 2 end) as progress
            from submissions inner join submission_states using (submission) where lane = ?
            group by submission having progress < 2 order by at_s, submission
        """
        return [
            Submission(name, batch_id, self._calls_of(name))
            for name, batch_id, *_ in self._ledger.rows(query, self._endpoint)
        ]

    def _calls_of(self, submission: str) -> tuple[SubmittedCall, ...]:
        """Return the calls of a batch; a damaged one is left out, and made again."""
        query = "select * from submitted_calls where submission = ? order by rowid"
        rows = self._ledger.rows(query, submission)
        return tuple(
            SubmittedCall(*row[1:-1]) for row in rows if row[0] == submission and is_as_written(row)
        )

    def has_ended(self, submission: Submission) -> bool:
        """Return whether any process has recorded the end of a batch."""
        query = "select 1 from submission_states where submission = ? and state = ?"
        return bool(self._ledger.rows(query, submission.name, ENDED))

    async def begin(self, calls: Sequence[SubmittedCall]) -> Submission:
        """Record calls before their submission."""
        name = uuid.uuid4().hex
        await self._ledger.write(
            ("insert into submissions values (?, ?)", [(name, self._endpoint)]),
            (inserting("submitted_calls"), [(name, *call) for call in calls]),
            _state(name, SUBMITTING, None),
        )
        return Submission(name, None, tuple(calls))

    async def submitted(self, submission: Submission, batch_id: str) -> None:
        """Record that the provider has the batch."""
        await self._ledger.write(_state(submission.name, SUBMITTED, batch_id))

    async def ended(self, submission: Submission, results: Sequence[Entry] = ()) -> None:
        """Record the results and the end of a batch in one transaction, so that no result is stored
        twice.
        """
        await self._ledger.write(
            *recorded(results), _state(submission.name, ENDED, submission.batch_id)
        )


def _state(
    name: str, state: str, batch_id: str | None
) -> tuple[str, list[tuple[str, str, str | None, float]]]:
    return "insert into submission_states values (?, ?, ?, ?)", [
        (name, state, batch_id, time.time())
    ]


@dataclass
class Batching:
    """The batches of one target, and what has come of them: replies, the number of submitted calls,
    and notes.

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
            with suppress(BudgetSpent):  # marks the budget as spent if one could never fit
                for most in (most_of(call, call.parameters()) for call in held_back):
                    if self.limiter.budget.reserve(most):
                        self.limiter.budget.release(most, NOTHING)

    async def _collect(self, calls: Sequence[Call], wait_s: float) -> Sequence[Call]:
        """Submit calls and wait for batches to end; submit those held back as soon as others
        release reservations.

        Returns:
            The calls that did not fit into the budget.
        """
        until_s = time.monotonic() + self._left_s(wait_s)
        poll_s = _FIRST_POLL_S
        while True:
            n_before = self.n_submitted
            calls = await self._submit_alone(calls)
            running = list(
                filter(None, [await self._poll(each) for each in self._submissions.open()])
            )
            if not running:
                # of calls without a result, or collected elsewhere
                self._reservations.count_as_used()
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not (running or (calls and not self.limiter.budget.is_spent)):
                self.notes += running
                return calls
            await asyncio.sleep(min(poll_s, left_s))
            poll_s = _FIRST_POLL_S if self.n_submitted > n_before else min(60.0, 2 * poll_s)

    async def _submit_alone(self, calls: Sequence[Call]) -> list[Call]:
        """Find lost batches and submit missing calls, while no other process does so for this
        target.

        Retry temporary failures: a batch that was submitted in spite of an error is then found.
        """
        locks = self.ledger.call_locks
        name = f"submitting batches to {self.target.endpoint_name}"
        pause_s = _FIRST_POLL_S
        while True:
            await locks.released(name)
            with locks.holding(name) as is_ours:
                if not is_ours:
                    continue
                try:
                    await self._find_lost()
                    return await self._submit(calls)
                except NotNow as error:
                    if 2 * pause_s > self._left_s(self.limiter.outage_s):  # all pauses until then
                        raise
                    notice(f"{error}; submitting again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _find_lost(self) -> None:
        """Record batches whose submission was not recorded because of a crash."""
        for submission in self._submissions.open():
            if submission.batch_id is None:
                batch_id = await self._api.find(submission.name)
                if batch_id is None:
                    await self._submissions.ended(submission)
                else:
                    await self._submissions.submitted(submission, batch_id)

    async def _submit(self, calls: Sequence[Call]) -> list[Call]:
        """Submit the calls without a reply or a batch; return those that do not fit into the
        budget.
        """
        held_back: list[Call] = []
        away = {call.call_key for open_ in self._submissions.open() for call in open_.calls}
        lines: dict[str, tuple[SubmittedCall, str]] = {}
        for call in calls:
            parameters = call.parameters()
            key = call.key(parameters)
            stored = self.ledger.history_of(call, parameters)
            history = stored.after(call.after_attempt).accepting(call.target.ends_ok)
            is_tried = history.reply_for(call.cell) or history.failed_for(call.cell)
            # If the lock of a call is held, another run is making that call.
            if key in away or key in lines or is_tried or self.ledger.call_locks.is_held(key):
                continue
            if self._left_s(1.0) <= 0:
                self.limiter.too_late += 1
            elif self._reservations.has_room(key, most_of(call, parameters)):
                submitted = SubmittedCall(key, call.cell, as_text(parameters))
                lines[key] = submitted, self._api.line(key, call.messages, parameters)
            else:
                held_back.append(call)
        for chunk in _chunks(lines.values()):
            submission = await self._submissions.begin([call for call, _ in chunk])
            batch_id = await self._api.submit(submission.name, [line for _, line in chunk])
            await self._submissions.submitted(submission, batch_id)
            self.n_submitted += len(chunk)
        return held_back

    async def _poll(self, submission: Submission) -> str | None:
        """Record the results of a batch if it has ended; return a note if it is still running."""
        goes_on = (
            f"batch {submission.batch_id} is still running, with {len(submission.calls)} calls"
        )
        try:
            batch = await self._api.ended(str(submission.batch_id))
            if batch is None:
                return goes_on
            with self.ledger.call_locks.holding(f"results of {submission.name}") as is_ours:
                if not is_ours:  # another process is recording them now
                    return goes_on
                if not self._submissions.has_ended(submission):
                    await self._record(submission, batch)
        except NotNow as error:
            return f"{goes_on}, as far as is known ({error})"
        return None

    async def _record(self, submission: Submission, batch: Any) -> None:
        """Record the results of a batch that has ended."""
        by_key = {call.call_key: call for call in submission.calls}
        batch_id = str(submission.batch_id)
        has_all = batch.status == "completed"
        files = [str(file) for file in (batch.output_file_id, batch.error_file_id) if file]
        replies = [
            each for file in files for each in await self._api.replies(batch_id, file, by_key)
        ]
        # Only the first reply to each call.
        taken = [
            self._entry(by_key.pop(custom_id), reply)
            for custom_id, reply in replies
            if custom_id in by_key
        ]
        if has_all:  # lines without an id belong to the calls without a line
            unnamed = [reply for custom_id, reply in replies if not custom_id]
            taken += [
                self._entry(by_key.pop(key), reply)
                for key, reply in zip(list(by_key), unnamed, strict=False)
            ]
        await self._submissions.ended(submission, taken)
        for entry in taken:
            self._reservations.release(entry.call_key, usage_of(entry.reply))
        if not has_all:  # the batch ended before it made the other calls
            for key in by_key:
                self._reservations.release(key, NOTHING)
        self.replies += [entry.reply for entry in taken]
        if by_key or not has_all:
            ended = (
                f"batch {batch_id} ended as {batch.status}, {len(by_key)} of"
                f" {len(submission.calls)} calls"
            )
            errors = getattr(batch.errors, "data", None) or ()
            error = safe("; ".join(str(getattr(each, "message", each)) for each in errors))
            self.notes.append(f"{ended} have no result{f': {error}' if error else ''}")

    def _entry(self, call: SubmittedCall, reply: Reply) -> Entry:
        """Return the ledger entry of a reply."""
        return Entry(
            call.call_key,
            self.ledger.history(call.call_key).next_attempt,
            call.cell,
            self.run_id,
            self.target.name,
            self.target.endpoint,
            call.parameters,
            reply,
            reply.is_final,
            purpose=self.purpose,
        )

    def _left_s(self, wait_s: float) -> float:
        return min(wait_s, self.limiter.left_s)


def _chunks(lines: Iterable[tuple[SubmittedCall, str]]) -> list[list[tuple[SubmittedCall, str]]]:
    """Return the calls in groups that fit into one batch."""
    chunks = list[list[tuple[SubmittedCall, str]]]()
    size = 0
    for call, line in lines:
        if (
            not chunks or len(chunks[-1]) >= 20_000 or size >= 100 << 20
        ):  # half of OpenAI's limits for one batch
            chunks.append([])
            size = 0
        chunks[-1].append((call, line))
        size += len(line)
    return chunks
