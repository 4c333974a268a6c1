"""The ledger's memory of provider batches: what was handed in, and what became of it.

What is about to be handed in is written down first, so that a crash between the two is found out and nothing is handed
in twice. States are only ever added; the last one counts.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.llm.ledger import Ledger

HANDING_IN, HANDED_IN, ENDED = "handing in", "handed in", "ended"
_SCHEMA = """
    create table if not exists submissions (submission text primary key, lane text);
    create table if not exists submitted_calls (
        submission text, call_key text, cell text, parameters text, primary key (submission, call_key)
    );
    create table if not exists submission_states (submission text, state text, batch_id text, at_s real);
"""


@dataclass(frozen=True)
class SubmittedCall:
    """A call in a batch: its key, the row that it is for, and what is sent beside the messages."""

    call_key: str
    cell: str
    parameters: str


@dataclass(frozen=True)
class Submission:
    """A batch that has not ended; `batch_id` is None when it is not known whether it was handed in."""

    name: str
    batch_id: str | None
    calls: tuple[SubmittedCall, ...]


class Submissions:
    """The batches of a warehouse."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        ledger.add_tables(_SCHEMA)

    def open(self, lane: str) -> list[Submission]:
        """The batches of one model at one endpoint that have not ended, oldest first."""
        states: dict[str, tuple[float, str, str | None]] = {}
        for name, state, batch_id, at_s in self._ledger.rows(
            "select submission, state, batch_id, at_s from submission_states"
        ):
            states[name] = max(states.get(name, (0.0, "", None)), (at_s, state, batch_id), key=lambda known: known[0])
        names = [name for (name,) in self._ledger.rows("select submission from submissions where lane = ?", lane)]
        names = sorted({name for name in names if states[name][1] != ENDED}, key=lambda name: states[name][0])
        return [Submission(name, states[name][2], self._calls(name)) for name in names]

    async def begin(self, lane: str, calls: Sequence[SubmittedCall]) -> Submission:
        """Write down what is about to be handed in."""
        name = uuid.uuid4().hex
        await self._ledger.write(
            ("insert into submissions values (?, ?)", [(name, lane)]),
            ("insert into submitted_calls values (?, ?, ?, ?)", [
                (name, call.call_key, call.cell, call.parameters) for call in calls
            ]),
            _state(name, HANDING_IN, None),
        )  # fmt: skip
        return Submission(name, None, tuple(calls))

    async def handed_in(self, submission: Submission, batch_id: str) -> Submission:
        """The provider has it."""
        await self._ledger.write(_state(submission.name, HANDED_IN, batch_id))
        return Submission(submission.name, batch_id, submission.calls)

    async def ended(self, submission: Submission) -> None:
        """Its results are in the ledger, or there are none."""
        await self._ledger.write(_state(submission.name, ENDED, submission.batch_id))

    def _calls(self, name: str) -> tuple[SubmittedCall, ...]:
        rows = self._ledger.rows(
            "select call_key, cell, parameters from submitted_calls where submission = ? order by rowid", name
        )
        return tuple(SubmittedCall(*row) for row in rows)


def _state(name: str, state: str, batch_id: str | None) -> tuple[str, list[tuple[str, str, str | None, float]]]:
    return "insert into submission_states values (?, ?, ?, ?)", [(name, state, batch_id, time.time())]
