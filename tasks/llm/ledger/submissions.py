"""What the ledger knows of provider batches: what was submitted, and what became of it.

What is about to be submitted is written down first, so that a crash between the two is noticed and nothing is
submitted twice. States are only ever added; the last one in their order counts.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.llm.ledger.entries import ENDED, SUBMITTED, SUBMITTING, Entry
from tasks.llm.ledger.ledger import Ledger, recorded

_ORDER = (SUBMITTING, SUBMITTED, ENDED)


@dataclass(frozen=True)
class SubmittedCall:
    """A call in a batch: its key, the row that it is for, and what is sent beside the messages."""

    call_key: str
    cell: str
    parameters: str


@dataclass(frozen=True)
class Submission:
    """A batch that has not ended; `batch_id` is None when it is not known whether it was submitted."""

    name: str
    batch_id: str | None
    calls: tuple[SubmittedCall, ...]


class Submissions:
    """The batches of a warehouse."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def open(self, endpoint: str) -> list[Submission]:
        """The batches of one model at one endpoint that have not ended, those first that have stood longest."""
        states: dict[str, tuple[int, float, str | None]] = {}
        for name, state, batch_id, at_s in self._ledger.rows(
            "select submission, state, batch_id, at_s from submission_states"
        ):
            # By how far it came and not by the clock, which several processes and the years may set back.
            known = (_ORDER.index(state), at_s, batch_id)
            states[name] = max(states.get(name, known), known, key=lambda each: each[0])
        names = {name for (name,) in self._ledger.rows("select submission from submissions where lane = ?", endpoint)}
        open_ = sorted((states[name][1], name) for name in names if states[name][0] < _ORDER.index(ENDED))
        return [Submission(name, states[name][2], self._calls(name)) for _, name in open_]

    def has_ended(self, submission: Submission) -> bool:
        """Whether any process has written down that a batch has ended."""
        query = "select 1 from submission_states where submission = ? and state = ?"
        return bool(self._ledger.rows(query, submission.name, ENDED))

    async def begin(self, endpoint: str, calls: Sequence[SubmittedCall]) -> Submission:
        """Write down what is about to be submitted."""
        name = uuid.uuid4().hex
        await self._ledger.write(
            ("insert into submissions values (?, ?)", [(name, endpoint)]),
            ("insert into submitted_calls values (?, ?, ?, ?)", [
                (name, call.call_key, call.cell, call.parameters) for call in calls
            ]),
            _state(name, SUBMITTING, None),
        )  # fmt: skip
        return Submission(name, None, tuple(calls))

    async def submitted(self, submission: Submission, batch_id: str) -> Submission:
        """The provider has it."""
        await self._ledger.write(_state(submission.name, SUBMITTED, batch_id))
        return Submission(submission.name, batch_id, submission.calls)

    async def ended(self, submission: Submission, results: Sequence[Entry] = ()) -> None:
        """Write down its results and that it has ended, in one transaction, so that none is there twice."""
        await self._ledger.write(*recorded(results), _state(submission.name, ENDED, submission.batch_id))

    def _calls(self, name: str) -> tuple[SubmittedCall, ...]:
        query = "select call_key, cell, parameters from submitted_calls where submission = ? order by rowid"
        return tuple(SubmittedCall(*row) for row in self._ledger.rows(query, name))


def _state(name: str, state: str, batch_id: str | None) -> tuple[str, list[tuple[str, str, str | None, float]]]:
    return "insert into submission_states values (?, ?, ?, ?)", [(name, state, batch_id, time.time())]
