"""The stages that make calls, and their output: rows, written in parts as they arrive, and the
report of a stage.
"""

import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, Self

from tasks.config.job import Job
from tasks.console import advance
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import LedgerKey, Reply
from warehouse import DECIDED_STATUSES, Row, Warehouse

MODEL = "model"
JUDGE = "judge"
RUBRIC_WRITER = "rubric_writer"
ANNOTATOR = "annotator"
REVIEWER = "reviewer"
CAPABILITY_MODEL = "capability_model"
CAPABILITY_EMBEDDING = "capability_embedding"
CALLED_KINDS = (MODEL, JUDGE, RUBRIC_WRITER)
"""The kinds of models that a whole run calls."""
ANALYST_KINDS = (ANNOTATOR, REVIEWER, CAPABILITY_MODEL, CAPABILITY_EMBEDDING)
"""The kinds that analyses call; they are also keys of the settings."""


class Stage(NamedTuple):
    """A stage that makes calls.

    `calls` are the kinds of models that it calls, `makes` are its results in words, `tables` are
    the tables of its rows, each with the column of the called model (None: no such column, so lost
    rows may be of any). With `assumes_lengths` a plan assumes the length of calls that were never
    measured.
    """

    calls: tuple[str, ...]
    makes: str
    tables: dict[str, str | None]
    assumes_lengths: bool = True


STAGES = {
    "sample": Stage((MODEL,), "responses", {"responses": "model"}),
    "judge": Stage((JUDGE,), "verdicts", {"verdicts": "judge"}),
    "drift": Stage((JUDGE,), "control sets", {"control_verdicts": "judge"}, assumes_lengths=False),
    "neighbours": Stage(
        (JUDGE,),
        "verdicts in other arrangements",
        {"neighbour_verdicts": "judge"},
    ),
    "derive": Stage(
        (RUBRIC_WRITER,),
        "rewritten criteria",
        {"criterion_variants": "model"},
        assumes_lengths=False,
    ),
    "annotate": Stage((ANNOTATOR,), "labels of tasks", {"task_annotations": None}),
    "review": Stage((REVIEWER,), "reviews of criteria", {"model_reviews": None}),
    "capabilities": Stage(
        (CAPABILITY_MODEL, CAPABILITY_EMBEDDING),
        "capabilities",
        {
            "criterion_capabilities": None,
            "phrase_embeddings": None,
            "capability_names": None,
        },
    ),
}
"""By name. The calls of all stages except `sample` share the judges' limits."""

NO_CALL = Reply("", attempts=0)
"""Stands for the reply of a row that needs no call."""


def call_columns(job: Job, reply: Reply) -> Row:
    """Return the columns of a row that the call itself fills, with its run and the time."""
    return {
        "served_model": reply.served_model,
        "served_fingerprint": reply.served_fingerprint,
        "prompt_tokens": reply.prompt_tokens,
        "cached_tokens": reply.cached_tokens,
        "completion_tokens": reply.completion_tokens,
        "cost_usd": reply.cost_usd,
        "latency_s": reply.latency_s,
        "attempts": reply.attempts,
        "error": reply.error,
        **reply.prices._asdict(),
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


class PartWriter:
    """Collects finished rows of one table and writes them as parts: when there are 2,000, every
    minute, and at the end.

    They are also written when an interruption ends the block. When a failed row is on disk, its
    calls are spent: a later try does not use them. `report` counts the rows.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        table: str,
        ledger: Ledger,
        report: "StageReport | None" = None,
    ) -> None:
        self._warehouse = warehouse
        self._table = table
        self._ledger = ledger
        self._report = report
        self._rows: list[Row] = []
        self._spent_keys: list[LedgerKey] = []
        self._flushed_at_s = time.monotonic()

    def add(self, row: Row, reply: Reply, label: str = "") -> None:
        """Add a finished row with the reply that it was made from; its progress is shown under
        `label`.
        """
        self._rows.append(row)
        if row["status"] not in DECIDED_STATUSES:
            self._spent_keys += reply.ledger_keys
        if len(self._rows) >= 2_000 or time.monotonic() - self._flushed_at_s > 60:
            self.flush()
        if self._report is not None:
            self._report.count(row["status"], row["cost_usd"])
            advance(self._report.stage, label, succeeded=row["status"] in DECIDED_STATUSES)

    def flush(self) -> None:
        """Write the collected rows."""
        self._flushed_at_s = time.monotonic()
        self._warehouse.write(self._table, self._rows)
        # Clear them only now: rows that could not be written are tried again when the block ends.
        self._rows = []
        self._ledger.mark_spent(self._spent_keys)
        self._spent_keys = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


LEFT_OUT = "are left out"
"""The words by which an alert finds the warnings about tasks in quarantine."""


AT_BUDGET = "stopped at the budget"
"""The beginning of the warning of a stage that the cap ended."""


@dataclass
class StageReport:
    """Rows that a stage made, failures by status, cost (None if any price is unknown), and what
    people should know.

    `is_below_bar` is set when data quality or coverage fell below the configured bar,
    `is_at_budget` when the cap ended the work, `is_at_stop_time` when the stop time did,
    `has_failed` when a part of it ended with an error and the rest went on. `skipped` are cells
    without a call, `stopped` says for which models calls were stopped, and why.
    """

    stage: str
    rows: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    is_below_bar: bool = False
    is_at_budget: bool = False
    is_at_stop_time: bool = False
    has_failed: bool = False
    skipped: int = 0

    def count(self, status: str, cost_usd: float | None) -> None:
        """Count one finished row."""
        row = StageReport(self.stage, rows=1, cost_usd=cost_usd)
        if status not in DECIDED_STATUSES:
            row.failures[status] = 1
        self.add(row)

    async def count_skipped(self, work: Awaitable[None]) -> None:
        """Wait for the work on a cell, and count it as skipped if its call is not made."""
        try:
            await work
        except NotCalled:
            self.skipped += 1

    def add(self, part: "StageReport") -> None:
        """Add the report of a part of the same stage."""
        self.rows += part.rows
        self.failures += part.failures
        self.skipped += part.skipped
        if self.cost_usd is None or part.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += part.cost_usd
        self.add_messages(part)

    def add_messages(self, report: "StageReport") -> None:
        """Add the messages of another report on this one's rows, such as a check's report: notes,
        warnings, stopped models, and that it is below the bar.
        """
        self.notes += report.notes
        self.warnings += report.warnings
        self.stopped += report.stopped
        self.is_below_bar |= report.is_below_bar

    @property
    def line(self) -> str:
        """The report in one line."""
        parts = list(filter(None, self.notes))
        failures = ", ".join(f"{count} {status}" for status, count in sorted(self.failures.items()))
        if failures:
            parts.append(f"failed: {failures}")
        if self.seconds:
            parts.append(f"{self.seconds:.1f} s")
        return f"{self.stage}: {'; '.join(parts)}"
