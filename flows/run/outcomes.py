"""How a run ends: its outcome in `runs`, the exit code of the command, and the name of its state in Prefect's UI."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tasks.run import StageReport

RUNNING, KILLED = "running", "killed"
DONE, BELOW_BAR, SKIPPED, MISSED = "done", "below_bar", "skipped", "missed"
STOPPED_AT_BUDGET, STOPPED_AT_TIME = "stopped_at_budget", "stopped_at_time"
FAILED, INTERRUPTED = "failed", "interrupted"


class Ending(NamedTuple):
    """The exit code of the command, and the type and name of the run's state in Prefect.

    What was cut short or is below a bar did what it could, and a retry would not help, so its type is COMPLETED. Its
    name differs: Prefect's automations listen for the name (`prefect.flow-run.Below the bar`), so one that waits for
    `prefect.flow-run.Completed` is not met by such a run, and one of its own can be.
    """

    exit_code: int
    state_type: str
    state_name: str


ENDINGS = {
    DONE: Ending(0, "COMPLETED", "Completed"),
    BELOW_BAR: Ending(3, "COMPLETED", "Below the bar"),
    STOPPED_AT_BUDGET: Ending(4, "COMPLETED", "Stopped at the budget"),
    STOPPED_AT_TIME: Ending(4, "COMPLETED", "Stopped at the stop time"),
    SKIPPED: Ending(0, "COMPLETED", "Skipped"),
    MISSED: Ending(0, "COMPLETED", "Missed"),
    INTERRUPTED: Ending(130, "CANCELLED", "Cancelled"),
    FAILED: Ending(1, "FAILED", "Failed"),
}
"""By outcome. A night is skipped when another one is at work, and missed when the next one has begun."""


def any_failed(reports: Iterable[StageReport]) -> bool:
    """Whether something went wrong in a stage."""
    return any(report.has_failed for report in reports)


def outcome_of(reports: Sequence[StageReport]) -> str:
    """The outcome that stages amount to; of several that apply, the first as the exit codes are ordered (4, 1, 3)."""
    if any(report.is_at_budget for report in reports):
        return STOPPED_AT_BUDGET
    if any(report.is_at_stop_time for report in reports):
        return STOPPED_AT_TIME
    if any_failed(reports):
        return FAILED
    return BELOW_BAR if any(report.is_below_bar for report in reports) else DONE
