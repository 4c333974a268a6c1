"""A judge's call, and the rows of verdicts and evidence: made, written and counted, failed ones too."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tasks.config.job import Job
from tasks.console import advance
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import OK, Reply
from tasks.llm.request import Call, Target
from tasks.rules import evidence
from tasks.rules.cascades.rules import confidence_of
from tasks.rules.identity import BASE_VINTAGE, verdict_id
from tasks.rules.verdict import Verdict, parse_verdict, reminder, reply_format
from tasks.run.asking import Question
from tasks.run.judgings import Judging
from tasks.run.missing_work import WantedTasks
from tasks.run.writing import PartWriter, StageReport, usage_columns
from warehouse import Warehouse

Criterion = Mapping[str, Any]
Evidence = tuple[str, ...]


@dataclass
class PendingVerdict:
    """A criterion of one response whose verdict is missing, with the calls that were made for it before its last one.

    `found` is the evidence of each chunk of a long answer that was searched for it.
    """

    criterion: Criterion
    verdict_id: str
    replies: list[Reply] = field(default_factory=list)
    found: list[Evidence] = field(default_factory=list)


def verdict_question(judging: Judging) -> Question[Verdict]:
    """What is asked about a criterion: a verdict."""
    grading = judging.grading
    shape = reply_format(judging.judge.explanation_chars, grading)
    read = partial(parse_verdict, grading=grading, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, reminder(grading))


def evidence_question(judging: Judging) -> Question[Evidence]:
    """What is asked about a chunk of a long answer: the evidence in it."""
    shape = evidence.evidence_format(is_bounded=judging.judge.explanation_chars is not None)
    read = partial(evidence.parse_evidence, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, evidence.REMINDER)


def judge_call(
    judging: Judging, target: Target, prompt: str, cell: str, priority: tuple[int, ...] = (),
    vintage: str = BASE_VINTAGE, question: Question[Any] | None = None,
) -> Call:  # fmt: skip
    """The call that asks a judge, for a verdict unless another question is given."""
    setting = judging.judge.structured_output
    wants_shape = target.can_follow_schema if setting is None else setting
    shape = (question or verdict_question(judging)).shape if wants_shape else None
    messages = [{"role": "user", "content": prompt}]
    judge = judging.judge
    return Call(
        target, messages, cell, shape, judging.judge_trial, vintage, priority, judge.mode == "batch", judge.allow_live
    )


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
            **self.wanted.key, **usage_columns(reply),
            **{name: pending.criterion[name] for name in ("response_id", "task_id", "criterion_id")},
            "verdict_id": pending.verdict_id, "round": chunk.round_, "chunk_number": chunk.number,
            "n_chunks": chunk.n_chunks, "first_char": chunk.first_char, "n_chars": len(chunk.text),
            "status": reply.status if evidence is None else OK,
            "evidence": None if evidence is None else list(evidence), "run_id": self.job.run_id,
            "created_at": datetime.now(UTC),
        }  # fmt: skip
        self.evidence.add(row, reply, is_failure=evidence is None)


@dataclass(frozen=True)
class Said:
    """What a judge of a cascade said about a criterion: the reply, and the verdict, None where it failed."""

    pending: PendingVerdict
    reply: Reply
    verdict: Verdict | None

    @property
    def value(self) -> float | None:
        """The verdict's value; None where it failed."""
        return None if self.verdict is None else self.verdict.value


@dataclass(frozen=True)
class Collected:
    """Takes what one judge of a cascade says about criteria of a response, by criterion; nothing is written."""

    judging: Judging
    said: dict[str, Said] = field(default_factory=dict)
    evidence: list[tuple[PendingVerdict, Chunk, Reply, Sequence[str] | None]] = field(default_factory=list)

    def settle(self, pending: PendingVerdict, reply: Reply, verdict: Verdict | None) -> None:
        """Keep a verdict, or the failure that replaces it."""
        self.said[pending.criterion["criterion_id"]] = Said(pending, reply, verdict)

    def skip(self) -> None:
        """Keep nothing: the criterion is the one that nothing is known of."""

    def add_evidence(self, pending: PendingVerdict, chunk: Chunk, reply: Reply, evidence: Sequence[str] | None) -> None:
        """Keep what was found in a chunk of a long answer."""
        self.evidence.append((pending, chunk, reply, evidence))


TakesVerdicts = VerdictRows | Collected
"""What takes what a judge decided and found; its `judging` is whose verdicts they are."""


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
    return verdict_id(
        criterion["response_id"], criterion["text"], criterion["criterion_id"], criterion["criterion_hash"],
        *(*judging.columns.values(), judge_vintage),
    )  # fmt: skip


def verdict_columns(
    job: Job, wanted: WantedTasks, judging: Judging, criterion: Criterion, identity: str | None, reply: Reply,
    verdict: Verdict | None,
) -> dict[str, Any]:  # fmt: skip
    """The columns of a verdict, or of the failure that replaces it."""
    return {
        **wanted.key, **judging.columns, **usage_columns(reply),
        **{name: criterion[name] for name in ("response_id", "task_id", "criterion_id", "criterion_hash")},
        **{name: criterion[name] for name in ("model", "trial", "vintage")}, "verdict_id": identity,
        "status": verdict.status if verdict else reply.status, "value": verdict.value if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "confidence": confidence_of(reply.logprobs, judging.grading) if verdict and reply.logprobs else None,
        **NO_CASCADE, "run_id": job.run_id, "created_at": datetime.now(UTC),
    }  # fmt: skip
