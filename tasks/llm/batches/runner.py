"""Calls by provider batches: submitted once, followed across runs, their replies written to the ledger."""

import asyncio
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from tasks.console import notice
from tasks.llm.batches.api import BatchApi, NotNow
from tasks.llm.batches.collecting import BatchOutcome, Collector
from tasks.llm.failures import failure_of
from tasks.llm.ledger.entries import as_text
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.ledger.submissions import Submission, Submissions, SubmittedCall
from tasks.llm.limits.budget import Budget
from tasks.llm.limits.set_aside import SetAside, happens
from tasks.llm.prices import most_of
from tasks.llm.request import Call, Target
from tasks.llm.usage import Usage
from tasks.rules.errors import PipelineError

_MOST_REQUESTS, _MOST_BYTES = 20_000, 100 << 20
"""Half of what OpenAI takes in one batch."""
_FIRST_POLL_S, _LONGEST_POLL_S = 0.5, 60.0


class Batching:
    """The batches of one target.

    Of all processes at work on the warehouse, one at a time submits what is not submitted yet. Nothing is submitted
    after `stop_at_s` (wall-clock time), nor waited for. Submitting is given up when that fails for `outage_s`.
    """

    def __init__(
        self,
        target: Target,
        ledger: Ledger,
        budget: Budget,
        run_id: str,
        purpose: str = "judge",
        stop_at_s: float | None = None,
        outage_s: float = 60.0,
    ) -> None:
        self._target, self._ledger, self._budget, self._stop_at_s = target, ledger, budget, stop_at_s
        self._outage_s = outage_s
        self._set_aside = SetAside(budget)
        self._api = BatchApi(target)
        self._submissions = Submissions(ledger)
        self._collector = Collector(target, ledger, self._api, self._set_aside, run_id, purpose)

    async def submit_and_collect(self, calls: Sequence[Call], wait_s: float) -> BatchOutcome:
        """Submit the calls that have neither an answer nor a batch, and wait for batches to end.

        What is set aside for a batch that goes on when the waiting ends counts as used: it may all be spent yet.

        Raises:
            PipelineError: the provider's batch interface cannot be used.
        """
        outcome = BatchOutcome()
        held_back: list[Usage] = []
        try:
            held_back = await self._submit_alone(calls, outcome)
            await self._wait(outcome, wait_s)
            if held_back and not outcome.waiting:
                held_back = await self._submit_when_there_is_room(calls, outcome, wait_s)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{self._target.endpoint_name}: batches: {failure_of(error).error}") from error
        finally:
            self._set_aside.count_as_used()
        if held_back:
            outcome.notes.append(f"{len(held_back)} calls were not submitted, since they could exceed the budget")
            self._set_aside.exhaust_without_room(held_back)
        return outcome

    async def _submit_when_there_is_room(
        self, calls: Sequence[Call], outcome: BatchOutcome, wait_s: float
    ) -> list[Usage]:
        """Submit what was held back as live calls and batches that end give back what was set aside for them."""
        until_s, poll_s = time.monotonic() + self._left_s(wait_s), _FIRST_POLL_S
        while True:
            with self._set_aside.room() as has_room:
                before = outcome.n_submitted
                held_back = await self._submit_alone(calls, outcome)
                if outcome.n_submitted > before:
                    await self._wait(outcome, wait_s)
                elif held_back and not self._budget.is_spent:
                    if not await happens(has_room, until_s - time.monotonic()):
                        return held_back
                    # More may be given back in a moment, and a look at all calls takes its time.
                    await asyncio.sleep(min(poll_s, max(0.0, until_s - time.monotonic())))
                    poll_s = min(_LONGEST_POLL_S, 2 * poll_s)
            if not held_back or outcome.waiting or self._budget.is_spent:
                return held_back

    async def _submit_alone(self, calls: Sequence[Call], outcome: BatchOutcome) -> list[Usage]:
        """Find lost batches and submit what is missing, while no other process does either for this target."""
        locks, name = self._ledger.call_locks, f"submitting batches to {self._target.endpoint_name}"
        while True:
            with locks.holding(name) as is_ours:
                if is_ours:
                    return await self._submit_in_time(calls, outcome)
            await locks.released(name)

    async def _submit_in_time(self, calls: Sequence[Call], outcome: BatchOutcome) -> list[Usage]:
        """Find and submit, again where that may help: what was submitted in spite of a failure is found then."""
        until_s, pause_s = time.monotonic() + self._left_s(self._outage_s), _FIRST_POLL_S
        while True:
            try:
                await self._find_lost()
                return await self._submit(calls, outcome)
            except NotNow as error:
                if time.monotonic() + pause_s >= until_s:
                    raise
                notice(f"{error}; submitting again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _find_lost(self) -> None:
        """Find out what became of batches that a crash kept from being written down."""
        for submission in self._submissions.open(self._target.endpoint_name):
            if submission.batch_id is None:
                batch_id = await self._api.find(submission.name)
                if batch_id is None:
                    await self._submissions.ended(submission)
                else:
                    await self._submissions.submitted(submission, batch_id)

    async def _submit(self, calls: Sequence[Call], outcome: BatchOutcome) -> list[Usage]:
        """Submit what is not answered or in a batch already; what the calls may use that the cap has no room for."""
        held_back: list[Usage] = []
        away = {call.call_key for open_ in self._submissions.open(self._target.endpoint_name) for call in open_.calls}
        lines: dict[str, tuple[SubmittedCall, str]] = {}
        for call in calls:
            parameters = call.parameters(call.target.parameters)
            key = call.key(parameters)
            history = self._ledger.history(key)
            if key in away or key in lines or history.answer_for(call.cell) or history.failed_for(call.cell):
                continue
            if self._ledger.call_locks.is_held(key):  # another run makes the call just now
                continue
            if self._stop_at_s is not None and time.time() >= self._stop_at_s:
                outcome.too_late += 1
                continue
            most = most_of(call, parameters)
            if not self._set_aside.has_room(key, most):
                held_back.append(most)
                continue
            line = self._api.line(key, call.messages, parameters)
            lines[key] = (SubmittedCall(key, call.cell, as_text(parameters)), line)
        rest = iter(lines.values())
        while chunk := _chunk(rest):
            submission = await self._submissions.begin(self._target.endpoint_name, [call for call, _ in chunk])
            batch_id = await self._api.submit(submission.name, [line for _, line in chunk])
            await self._submissions.submitted(submission, batch_id)
            outcome.n_submitted += len(chunk)
        return held_back

    async def _wait(self, outcome: BatchOutcome, wait_s: float) -> None:
        until_s, poll_s = time.monotonic() + self._left_s(wait_s), _FIRST_POLL_S
        while True:
            open_ = self._submissions.open(self._target.endpoint_name)
            running = {each.name: note for each in open_ if (note := await self._poll(each, outcome)) is not None}
            outcome.waiting = sum(len(each.calls) for each in open_ if each.name in running)
            left_s = until_s - time.monotonic()
            if not running:
                self._set_aside.count_as_used()  # what other processes took in, and what a batch did not bring
            if not running or left_s <= 0:
                outcome.notes += running.values()
                return
            await asyncio.sleep(min(poll_s, left_s))
            poll_s = min(_LONGEST_POLL_S, 2 * poll_s)

    async def _poll(self, submission: Submission, outcome: BatchOutcome) -> str | None:
        """Collect a batch if it has ended; what is to be said of one that goes on, as far as can be told."""
        try:
            if await self._collector.take_in(submission, outcome):
                return None
            why = ""
        except NotNow as error:
            why = f", as far as is known ({error})"
        return f"batch {submission.batch_id} goes on with {len(submission.calls)} calls{why}"

    def _left_s(self, wait_s: float) -> float:
        return wait_s if self._stop_at_s is None else min(wait_s, self._stop_at_s - time.time())


def _chunk(rest: Any) -> list[tuple[SubmittedCall, str]]:
    """As many of the rest as one batch takes."""
    chunk: list[tuple[SubmittedCall, str]] = []
    size = 0
    for call, line in islice(rest, _MOST_REQUESTS):
        chunk.append((call, line))
        size += len(line)
        if size >= _MOST_BYTES:
            break
    return chunk
