"""Criteria of responses and what judges decide on them; the rows of verdicts and evidence, failed ones too."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from tasks.config.job import Job
from tasks.console import advance
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import OK, Reply
from tasks.rules import evidence
from tasks.rules.cascades.rules import confidence_of
from tasks.rules.identity import BASE_VINTAGE, verdict_id
from tasks.rules.verdict import Verdict, parse_verdict, reminder, reply_format
from tasks.run.asking import Question
from tasks.run.judgings import Judging
from tasks.run.missing_work import WantedTasks
from tasks.run.writing import PartWriter, StageReport, usage_columns
from warehouse import Warehouse

Evidence = tuple[str, ...]
NO_CASCADE: Mapping[str, Any] = {"decided_by": None, "escalated_because": None}
"""The columns that only a cascade fills, as other judges leave them."""


@dataclass(frozen=True)
class CriterionToJudge:
    """A criterion (its `title` is what it says) of one response (its `text`) that a judge is asked about."""

    response_id: str
    task_id: str
    model: str
    trial: int
    vintage: str
    text: str
    criterion_id: str
    criterion_hash: str
    title: str
    weight: float
    category: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """The criterion that a row with these columns, and others, is about."""
        return cls(**{each.name: row[each.name] for each in fields(cls)})


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


@dataclass
class Judged:
    """A criterion with what a judge came to; `reply` is None until it is decided or has failed, or if it is not called.

    `calls` were made before the last one, `found` is the evidence of each chunk that was searched in this round, and
    `searches` are all of them, with the replies and what they reported. `decision` are the columns of a cascade.
    """

    criterion: CriterionToJudge
    verdict_id: str
    calls: list[Reply] = field(default_factory=list)
    found: list[Evidence] = field(default_factory=list)
    searches: list[tuple[Chunk, Reply, Evidence | None]] = field(default_factory=list)
    reply: Reply | None = None
    verdict: Verdict | None = None
    decision: Mapping[str, Any] = field(default_factory=lambda: NO_CASCADE)


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

    def write(self, judged: Judged) -> None:
        """Write a verdict, or the failure that replaces it, and its evidence; count one whose calls were not made."""
        if judged.reply is None:
            self.report.skipped += 1
            return
        for search in judged.searches:
            self._write_evidence(judged, *search)
        criterion, reply, is_failure = judged.criterion, judged.reply, judged.verdict is None
        row = verdict_columns(
            self.job, self.wanted, self.judging, criterion, judged.verdict_id, reply, judged.verdict
        ) | {**judged.decision, **self.own_columns}
        self.verdicts.add(row, reply, is_failure=is_failure)
        self.report.count(row["status"], row["cost_usd"], is_failure=is_failure)
        advance(self.report.stage, criterion.model, succeeded=not is_failure)

    def _write_evidence(self, judged: Judged, chunk: Chunk, reply: Reply, evidence: Sequence[str] | None) -> None:
        criterion = judged.criterion
        row = {
            **self.wanted.key, **usage_columns(reply), "response_id": criterion.response_id,
            "task_id": criterion.task_id, "criterion_id": criterion.criterion_id, "verdict_id": judged.verdict_id,
            "round": chunk.round_, "chunk_number": chunk.number, "n_chunks": chunk.n_chunks,
            "first_char": chunk.first_char, "n_chars": len(chunk.text),
            "status": reply.status if evidence is None else OK,
            "evidence": None if evidence is None else list(evidence), "run_id": self.job.run_id,
            "created_at": datetime.now(UTC),
        }  # fmt: skip
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


def verdict_id_of(judging: Judging, criterion: CriterionToJudge, judge_vintage: str = BASE_VINTAGE) -> str:
    """The identity of a judging's verdict on a criterion."""
    return verdict_id(
        criterion.response_id, criterion.text, criterion.criterion_id, criterion.criterion_hash,
        *(*judging.columns.values(), judge_vintage),
    )  # fmt: skip


def verdict_columns(
    job: Job, wanted: WantedTasks, judging: Judging, criterion: CriterionToJudge, identity: str | None, reply: Reply,
    verdict: Verdict | None,
) -> dict[str, Any]:  # fmt: skip
    """The columns of a verdict, or of the failure that replaces it."""
    same = ("response_id", "task_id", "criterion_id", "criterion_hash", "model", "trial", "vintage")
    return {
        **wanted.key, **judging.columns, **usage_columns(reply), **{name: getattr(criterion, name) for name in same},
        "verdict_id": identity, "status": verdict.status if verdict else reply.status,
        "value": verdict.value if verdict else None, "explanation": verdict.explanation if verdict else None,
        "confidence": confidence_of(reply.logprobs, judging.grading) if verdict and reply.logprobs else None,
        **NO_CASCADE, "run_id": job.run_id, "created_at": datetime.now(UTC),
    }  # fmt: skip
