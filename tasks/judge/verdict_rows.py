"""The rows of verdicts and evidence: made, written and counted, failed ones too."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from tasks.config import Job
from tasks.console import advance
from tasks.judge.judge_call import Criterion, PendingVerdict
from tasks.llm import OK, Ledger, Reply
from tasks.rules.cascades.rules import confidence_of
from tasks.rules.identity import BASE_VINTAGE, verdict_id
from tasks.rules.verdict import Verdict
from tasks.run import Judging, PartWriter, StageReport, WantedTasks, usage_columns
from warehouse import Warehouse

NO_CASCADE: Mapping[str, Any] = {"decided_by": None, "escalated_because": None}
"""The columns that only a cascade fills, as other judges leave them."""


@dataclass(frozen=True)
class Chunk:
    """A piece of a long answer that is searched: its round and number, and where it begins, in characters."""

    text: str
    round_: int
    number: int
    n_chunks: int
    first_char: int

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"chunk {self.number} of {self.n_chunks}" + (f" in round {self.round_}" if self.round_ > 1 else "")


class TakesVerdicts(Protocol):
    """What takes what a judge decided and found; `judging` is whose verdicts they are."""

    @property
    def judging(self) -> Judging:
        """The judging that the verdicts are of."""

    def settle(self, pending: PendingVerdict, reply: Reply, verdict: Verdict | None) -> None:
        """Take a verdict, or the failure that replaces it."""

    def skip(self) -> None:
        """Take note of a verdict whose calls were not made."""

    def add_evidence(self, pending: PendingVerdict, chunk: Chunk, reply: Reply, evidence: Sequence[str] | None) -> None:
        """Take what was found in a chunk of a long answer, or the failure that replaces it."""


@dataclass(frozen=True)
class VerdictRows:
    """Takes what a judge decided and found, and writes it as rows.

    `own_columns` are those that only the table of these verdicts has; `report` counts the rows, and its stage names the
    work to those who show it.
    """

    job: Job
    wanted: WantedTasks
    judging: Judging
    report: StageReport
    verdicts: PartWriter
    evidence: PartWriter
    own_columns: Mapping[str, Any]

    def settle(
        self, pending: PendingVerdict, reply: Reply, verdict: Verdict | None, decision: Mapping[str, Any] = NO_CASCADE
    ) -> None:
        """Write a verdict, or the failure that replaces it; `decision` are the columns that only a cascade fills."""
        row = verdict_columns(
            self.job, self.wanted, self.judging, pending.criterion, pending.verdict_id, reply, verdict
        ) | {**decision, **self.own_columns}
        is_failure = row["value"] is None
        self.verdicts.add(row, reply, is_failure=is_failure)
        self.report.count(row["status"], row["cost_usd"], is_failure=is_failure)
        advance(self.report.stage, pending.criterion["model"], succeeded=not is_failure)

    def skip(self) -> None:
        """Count a verdict whose calls were not made."""
        self.report.skipped += 1

    def add_evidence(self, pending: PendingVerdict, chunk: Chunk, reply: Reply, evidence: Sequence[str] | None) -> None:
        """Write what was found in a chunk of a long answer, or the failure that replaces it."""
        row = {
            **self.wanted.key,
            **usage_columns(reply),
            **{name: pending.criterion[name] for name in ("response_id", "task_id", "criterion_id")},
            "verdict_id": pending.verdict_id,
            "round": chunk.round_,
            "chunk_number": chunk.number,
            "n_chunks": chunk.n_chunks,
            "first_char": chunk.first_char,
            "n_chars": len(chunk.text),
            "status": reply.status if evidence is None else OK,
            "evidence": None if evidence is None else list(evidence),
            "run_id": self.job.run_id,
            "created_at": datetime.now(UTC),
        }
        self.evidence.add(row, reply, is_failure=evidence is None)


@contextmanager
def writing_verdicts(
    job: Job, wanted: WantedTasks, judging: Judging, ledger: Ledger, report: StageReport, table_name: str,
    own_columns: Mapping[str, Any],
) -> Iterator[VerdictRows]:  # fmt: skip
    """Write verdicts to a table while the block lasts, and the evidence that they rest on before them."""
    warehouse = Warehouse(job.warehouse)
    with (
        PartWriter(warehouse, "evidence", ledger) as evidence,
        PartWriter(warehouse, table_name, ledger, evidence) as verdicts,
    ):
        yield VerdictRows(job, wanted, judging, report, verdicts, evidence, own_columns)


def verdict_id_of(judging: Judging, criterion: Criterion, judge_vintage: str = BASE_VINTAGE) -> str:
    """The identity of a judging's verdict on a criterion."""
    columns = judging.columns
    return verdict_id(
        criterion["response_id"], criterion["text"], criterion["criterion_id"], criterion["criterion_hash"],
        columns["judge"], columns["judge_config_hash"], columns["template_hash"], columns["grading"],
        columns["judge_trial"], judge_vintage,
    )  # fmt: skip


def verdict_columns(
    job: Job, wanted: WantedTasks, judging: Judging, criterion: Criterion, identity: str | None, reply: Reply,
    verdict: Verdict | None,
) -> dict[str, Any]:  # fmt: skip
    """The columns of a verdict, or of the failure that replaces it."""
    return {
        **wanted.key,
        **judging.columns,
        **usage_columns(reply),
        **{name: criterion[name] for name in ("response_id", "task_id", "criterion_id", "criterion_hash")},
        **{name: criterion[name] for name in ("model", "trial", "vintage")},
        "verdict_id": identity,
        "status": verdict.status if verdict else reply.status,
        "value": verdict.value if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "confidence": confidence_of(reply.logprobs, judging.grading) if verdict and reply.logprobs else None,
        **NO_CASCADE,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
