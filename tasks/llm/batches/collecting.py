"""Results of provider batches: written to the ledger once, as each batch ends."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tasks.llm.batches.api import BatchApi, BatchState, Result
from tasks.llm.batches.results import read_result, shortfall
from tasks.llm.failures import is_final
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.ledger.submissions import Submission, Submissions, SubmittedCall
from tasks.llm.limits.admission import Outcome
from tasks.llm.limits.set_aside import SetAside
from tasks.llm.replies import Reply
from tasks.llm.request import Target
from tasks.llm.usage import Usage


@dataclass
class BatchOutcome:
    """What submitting and collecting batches brought: the replies, counts of calls, and notes.

    `waiting` are still with the provider, `too_late` were not submitted since the time was up, `n_failed` have failed
    in a way that may pass.
    """

    replies: list[Reply] = field(default_factory=list)
    waiting: int = 0
    n_submitted: int = 0
    n_failed: int = 0
    too_late: int = 0
    notes: list[str] = field(default_factory=list)


class Collector:
    """Takes in the results of one target's batches; of all processes at work on the warehouse, one does for each."""

    def __init__(
        self, target: Target, ledger: Ledger, api: BatchApi, set_aside: SetAside, run_id: str, purpose: str
    ) -> None:
        self._target, self._ledger, self._api, self._set_aside = target, ledger, api, set_aside
        self._run_id, self._purpose = run_id, purpose
        self._submissions = Submissions(ledger)

    async def take_in(self, submission: Submission, outcome: BatchOutcome) -> bool:
        """Write down the results of a batch that has ended; False while it goes on."""
        assert submission.batch_id is not None
        state = await self._api.state(submission.batch_id)
        if state.is_running:
            return False
        with self._ledger.call_locks.holding(f"results of {submission.name}") as is_ours:
            if not is_ours:
                return False  # another process takes them in just now
            if self._submissions.has_ended(submission):
                return True
            await self._record(submission, state, outcome)
        return True

    async def _record(self, submission: Submission, state: BatchState, outcome: BatchOutcome) -> None:
        by_key = {call.call_key: call for call in submission.calls}
        batch_id, has_all = str(submission.batch_id), state.status == "completed"
        results = [each for file in state.result_files for each in await self._api.results(batch_id, file, by_key)]
        taken = [self._entry(by_key.pop(key), each) for key, each in _matched(results, by_key, has_all=has_all)]
        await self._submissions.ended(submission, [entry for entry, _ in taken])
        for entry, used in taken:
            self._set_aside.settle(entry.call_key, used)
        if not has_all:  # it was cut short and did not come to the others
            self._set_aside.give_back(by_key)
        outcome.replies += [entry.reply for entry, _ in taken]
        outcome.n_failed += sum(not entry.is_final for entry, _ in taken)
        if by_key or not has_all:
            outcome.notes.append(shortfall(submission, state, len(by_key)))

    def _entry(self, call: SubmittedCall, result: Result) -> tuple[Entry, Usage]:
        """A result as it stands in the ledger, and what it used."""
        reply, failure = read_result(self._target, result)
        outcome = Outcome(reply, failure)
        return Entry(
            call.call_key, self._ledger.history(call.call_key).next_attempt, call.cell, self._run_id,
            self._target.name, self._target.endpoint, call.parameters, reply, is_final(reply.status, failure),
            purpose=self._purpose, is_unpaid=outcome.is_free,
        ), outcome.used  # fmt: skip


def _matched(results: Sequence[Result], left: Mapping[str, object], *, has_all: bool) -> Iterator[tuple[str, Result]]:
    """The results of the calls that are left, which are taken out meanwhile; `has_all`: each call has a result."""
    for result in results:
        if result.custom_id in left and not result.is_unprocessed:
            yield result.custom_id, result
    if has_all:  # lines that do not show their call are those of the calls without one
        yield from zip(list(left), (each for each in results if not each.custom_id), strict=False)
