"""Calls by the batch: handed in once, looked after across runs, their replies merged into the ledger."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tasks.llm.batch_api import BatchApi, BatchState, Result
from tasks.llm.bodies import TooLarge, whole
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
from tasks.llm.wire import MOST_BYTES
from tasks.rules.errors import PipelineError

_MOST_REQUESTS, _MOST_BYTES = 20_000, 100 << 20
"""Half of what OpenAI takes in one batch."""
_FIRST_POLL_S, _LONGEST_POLL_S = 0.5, 60.0


@dataclass
class Merged:
    """What a look after batches brought: the replies, counts of calls, and notes.

    `waiting` are still with the provider, `too_late` were not handed in since the time was up.
    """

    replies: list[Reply] = field(default_factory=list)
    waiting: int = 0
    handed_in: int = 0
    too_late: int = 0
    notes: list[str] = field(default_factory=list)


class Batching:
    """The batches of one target.

    Of all processes at work on the warehouse, one at a time looks for what is not handed in yet and hands it in, and
    one takes in the results of a batch. Nothing is handed in after `stop_at_s` (wall-clock time), nor waited for.
    """

    def __init__(
        self,
        target: Target,
        ledger: Ledger,
        budget: Budget,
        run_id: str,
        purpose: str = "judge",
        stop_at_s: float | None = None,
    ) -> None:
        self._target, self._ledger, self._budget, self._run_id = target, ledger, budget, run_id
        self._purpose, self._stop_at_s = purpose, stop_at_s
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
            held_back = await self._handed_in_alone(calls, merged)
            await self._wait(merged, wait_s)
            while held_back and not merged.waiting and not self._budget.is_spent:
                # What ended has given back what was set aside for it.
                held_back = await self._handed_in_alone(calls, merged)
                await self._wait(merged, wait_s)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{self._target.lane}: batches: {failure_of(error).error}") from error
        return merged

    async def _handed_in_alone(self, calls: Sequence[Call], merged: Merged) -> int:
        """Find what was lost and hand in what is missing, while no other process does either for this target."""
        claims, name = self._ledger.claims, f"handing in batches to {self._target.lane}"
        while True:
            with claims.holding(name) as is_ours:
                if is_ours:
                    await self._find_lost()
                    return await self._hand_in(calls, merged)
            await claims.given_back(name)

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
            if self._ledger.claims.is_held(key):  # another run makes the call just now
                continue
            if self._stop_at_s is not None and time.time() >= self._stop_at_s:
                merged.too_late += 1
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
        if self._stop_at_s is not None:
            wait_s = min(wait_s, self._stop_at_s - time.time())
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
        with self._ledger.claims.holding(f"results of {submission.name}") as is_ours:
            if not is_ours:
                return False  # another process takes them in just now
            if self._submissions.has_ended(submission):
                return True
            await self._take_in(submission, state, merged)
        return True

    async def _take_in(self, submission: Submission, state: BatchState, merged: Merged) -> None:
        by_key = {call.call_key: call for call in submission.calls}
        taken: list[tuple[Entry, Usage]] = []
        for file_id in state.result_files:
            for result in await self._api.results(file_id, by_key):
                if result.custom_id in by_key and not result.is_unprocessed:
                    taken.append(self._entry(by_key.pop(result.custom_id), result))
        await self._submissions.ended(submission, [entry for entry, _ in taken])
        for entry, used in taken:
            if entry.call_key in self._reserved:
                self._budget.settle(self._reserved.pop(entry.call_key), used)
        merged.replies += [entry.reply for entry, _ in taken]
        if by_key or state.status != "completed":
            merged.notes.append(_shortfall(submission, state, len(by_key)))

    def _entry(self, call: SubmittedCall, result: Result) -> tuple[Entry, Usage]:
        """A result as it stands in the ledger, and what it used."""
        reply, failure = self._read(result)
        outcome = Outcome.of(reply, failure)
        return Entry(
            call.call_key, self._ledger.history(call.call_key).next_attempt, call.cell, self._run_id,
            self._target.name, self._target.endpoint, call.parameters, reply, is_final(reply.status, failure),
            purpose=self._purpose, is_unpaid=outcome.is_free,
        ), outcome.used  # fmt: skip

    def _read(self, result: Result) -> tuple[Reply, Failure | None]:
        if result.is_too_large:
            failure = failure_of(TooLarge(MOST_BYTES))
            return Reply(failure.status, error=failure.error), failure
        if result.status != 200:
            failure = failure_of_status(result.status, as_text(result.body))
            return Reply(failure.status, error=failure.error), failure
        try:
            content, body = whole(result.body)
            reply = from_chat(litellm().ModelResponse(**content), body)
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
