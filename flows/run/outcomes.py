"""How a run ends: its outcome in `runs`, the exit code of the command, and the name of its state in Prefect's UI."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tasks.llm import PROVIDER_ERROR, REDIRECTED, TIMEOUT
from tasks.run.run_context import ROLES
from tasks.run.writing import StageReport

RUNNING, KILLED = "running", "killed"
UNANSWERED = (PROVIDER_ERROR, REDIRECTED, TIMEOUT)
"""States of rows whose calls brought no reply at all."""
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


def no_call_succeeded(reports: Iterable[StageReport]) -> bool:
    """Whether calls were made and none was answered."""
    called = [report for report in reports if report.stage in ROLES]
    n_unanswered = sum(report.failures[status] for report in called for status in UNANSWERED)
    return 0 < n_unanswered == sum(report.rows for report in called)


def outcome_of(reports: Sequence[StageReport]) -> str:
    """The outcome that stages amount to; of several that apply, the first as the exit codes are ordered (4, 1, 3)."""
    if any(report.is_at_budget for report in reports):
        return STOPPED_AT_BUDGET
    if any(report.is_at_stop_time for report in reports):
        return STOPPED_AT_TIME
    is_below = any(report.is_below_bar for report in reports)
    # The last few calls of a run that has all it needs may fail each time; a model that was stopped is never that.
    is_grave = is_below or any(report.stopped for report in reports)
    if any_failed(reports) or (is_grave and no_call_succeeded(reports)):
        return FAILED
    return BELOW_BAR if is_below else DONE
