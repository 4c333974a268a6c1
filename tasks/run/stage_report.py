"""What a stage says when it has finished."""

from collections import Counter
from dataclasses import dataclass, field

LEFT_OUT = "are left out"
"""How a warning says that tasks are in quarantine."""


@dataclass
class StageReport:
    """Rows that a stage made, failures by status, cost (None if any price is unknown), and what people should know.

    `is_below_bar` is set when data quality or coverage fell below the configured bar, `is_at_budget` when the cap ended
    the work, `is_at_stop_time` when the time did, `has_failed` when a part of it ended with an error and the rest went
    on. `skipped` are cells that no call was made for, `stopped` says of which models no more calls were made, and why.
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

    def count(self, status: str, cost_usd: float | None, *, is_failure: bool) -> None:
        """Count one finished row."""
        self.rows += 1
        if is_failure:
            self.failures[status] += 1
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    def add(self, other: "StageReport") -> None:
        """Take in the report of a part of the same stage."""
        self.rows += other.rows
        self.failures += other.failures
        self.skipped += other.skipped
        self.cost_usd = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        self.adopt(other)

    def adopt(self, other: "StageReport") -> None:
        """Take over what another stage has to say about this one's rows, such as a check."""
        self.notes += other.notes
        self.warnings += other.warnings
        self.stopped += other.stopped
        self.is_below_bar |= other.is_below_bar

    @property
    def line(self) -> str:
        """The report in one line."""
        failed = ", ".join(f"{count} {status}" for status, count in sorted(self.failures.items()))
        time = f"{self.seconds:.1f} s" if self.seconds else ""
        parts = [*self.notes, f"failed: {failed}" if failed else "", time]
        return f"{self.stage}: " + "; ".join(part for part in parts if part)
