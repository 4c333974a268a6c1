"""Calls by the batch: handed in once, looked after across runs, their replies merged into the ledger."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tasks.llm.batch_api import BatchApi, BatchState, Result
from tasks.llm.budget import Budget, BudgetSpent, Usage
from tasks.llm.entries import Entry, as_text
from tasks.llm.failures import Failure, failure_of, failure_of_status, is_final
from tasks.llm.ledger import Ledger
from tasks.llm.library import litellm
from tasks.llm.permits import Outcome
from tasks.llm.prices import batch_prices_of, cost_usd, most_of
from tasks.llm.replies import Reply, from_chat
from tasks.llm.submissions import Submission, Submissions, SubmittedCall
from tasks.llm.targets import Call, Target
from tasks.rules.errors import PipelineError

_MOST_REQUESTS, _MOST_BYTES = 20_000, 100 << 20
"""Half of what OpenAI takes in one batch."""
_FIRST_POLL_S, _LONGEST_POLL_S = 0.5, 60.0


@dataclass
class Merged:
    """What a look after batches brought: replies by status, requests that are still with the provider, and notes."""

    replies: list[Reply] = field(default_factory=list)
    waiting: int = 0
    handed_in: int = 0
    notes: list[str] = field(default_factory=list)


class Batching:
    """The batches of one target."""

    def __init__(self, target: Target, ledger: Ledger, budget: Budget, run_id: str) -> None:
        self._target, self._ledger, self._budget, self._run_id = target, ledger, budget, run_id
        self._reserved: dict[str, Usage] = {}
        self._api = BatchApi(target)
        self._submissions = Submissions(ledger)

    async def look_after(self, calls: Sequence[Call], wait_s: float) -> Merged:
        """Hand in the calls that neither an answer nor a batch is there for, and wait for batches to end.

        Raises:
            PipelineError: the provider's batch interface cannot be used.
        """
        merged = Merged()
        try:
            await self._find_lost()
            held_back = await self._hand_in(calls, merged)
            await self._wait(merged, wait_s)
            while held_back and not merged.waiting and not self._budget.is_spent:
                # What ended has given back what was set aside for it.
                held_back = await self._hand_in(calls, merged)
                await self._wait(merged, wait_s)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{self._target.lane}: batches: {failure_of(error).error}") from error
        return merged

    async def _find_lost(self) -> None:
        """Find out what became of batches that a crash kept from being written down."""
        for submission in self._submissions.open(self._target.lane):
            if submission.batch_id is None:
                batch_id = await self._api.find(submission.name)
                if batch_id is None:
                    await self._submissions.ended(submission)
                else:
                    await self._submissions.handed_in(submission, batch_id)

    async def _hand_in(self, calls: Sequence[Call], merged: Merged) -> int:
        """Hand in what is not answered or away already; tells how many calls the cap has no room for just now."""
        held_back = 0
        away = {call.call_key for open_ in self._submissions.open(self._target.lane) for call in open_.calls}
        lines: dict[str, tuple[SubmittedCall, str]] = {}
        for call in calls:
            parameters = call.parameters(call.target.parameters)
            key = call.key(parameters)
            history = self._ledger.history(key)
            if key in away or key in lines or history.answer_for(call.cell) is not None or history.has_failed:
                continue
            if not self._is_affordable(key, call, parameters):
                held_back += 1
                continue
            line = self._api.line(key, call.messages, parameters)
            lines[key] = (SubmittedCall(key, call.cell, as_text(parameters)), line)
        rest = iter(lines.values())
        while chunk := _chunk(rest):
            submission = await self._submissions.begin(self._target.lane, [call for call, _ in chunk])
            batch_id = await self._api.hand_in(submission.name, [line for _, line in chunk])
            await self._submissions.handed_in(submission, batch_id)
            merged.handed_in += len(chunk)
        return held_back

    def _is_affordable(self, key: str, call: Call, parameters: Mapping[str, Any]) -> bool:
        most = most_of(call, parameters)
        try:
            is_reserved = self._budget.reserve(most)
        except BudgetSpent:
            return False
        if is_reserved:
            self._reserved[key] = most
        return is_reserved

    async def _wait(self, merged: Merged, wait_s: float) -> None:
        until_s, poll_s = time.monotonic() + wait_s, _FIRST_POLL_S
        while True:
            open_ = self._submissions.open(self._target.lane)
            running = [each for each in open_ if not await self._merge(each, merged)]
            merged.waiting = sum(len(each.calls) for each in running)
            left_s = until_s - time.monotonic()
            if not running or left_s <= 0:
                merged.notes += [f"batch {each.batch_id} goes on with {len(each.calls)} calls" for each in running]
                return
            await asyncio.sleep(min(poll_s, left_s))
            poll_s = min(_LONGEST_POLL_S, 2 * poll_s)

    async def _merge(self, submission: Submission, merged: Merged) -> bool:
        """Take in a batch that has ended; False while it goes on."""
        assert submission.batch_id is not None
        state = await self._api.state(submission.batch_id)
        if state.is_running:
            return False
        by_key = {call.call_key: call for call in submission.calls}
        for file_id in state.result_files:
            found = await self._api.results(file_id)
            results = [result for result in found if result.custom_id in by_key and not result.is_unprocessed]
            # One commit for many: `record` of calls that wait at once is one write to the disk.
            merged.replies += await asyncio.gather(*(self._record(by_key.pop(r.custom_id), r) for r in results))
        await self._submissions.ended(submission)
        if by_key or state.status != "completed":
            merged.notes.append(_shortfall(submission, state, len(by_key)))
        return True

    async def _record(self, call: SubmittedCall, result: Result) -> Reply:
        reply, failure = self._read(result)
        number = self._ledger.history(call.call_key).next_attempt
        where = (self._target.name, self._target.endpoint)
        is_answer = is_final(reply.status, failure)
        entry = Entry(call.call_key, number, call.cell, self._run_id, *where, call.parameters, reply, is_answer)
        await self._ledger.record(entry)
        if call.call_key in self._reserved:
            self._budget.settle(self._reserved.pop(call.call_key), Outcome.of(reply, failure).used)
        return reply

    def _read(self, result: Result) -> tuple[Reply, Failure | None]:
        if result.status != 200:
            failure = failure_of_status(result.status, as_text(result.body))
            return Reply(failure.status, error=failure.error), failure
        try:
            reply = from_chat(litellm().ModelResponse(**result.body))
        except Exception as error:  # noqa: BLE001 - a body that is no completion becomes its state, with the cause
            failure = failure_of(error)
            return Reply(failure.status, error=failure.error), failure
        prices = batch_prices_of(self._target)
        cost = cost_usd(prices, reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
        return replace(reply, prices=prices, cost_usd=cost), None


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


def _shortfall(submission: Submission, state: BatchState, missing: int) -> str:
    why = f": {state.error}" if state.error else ""
    of = len(submission.calls)
    return f"batch {submission.batch_id} ended as {state.status}, {missing} of {of} calls have no result{why}"
