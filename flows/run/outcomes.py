"""The end of a run: its outcome in `runs`, exit code, state in Prefect's UI, and error message.

The command imports this before anything else, so it imports nothing large.
"""

import errno
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tasks.run.writing import StageReport

RUNNING = "running"
KILLED = "killed"
DONE = "done"
BELOW_BAR = "below_bar"
SKIPPED = "skipped"
MISSED = "missed"
STOPPED_AT_BUDGET = "stopped_at_budget"
STOPPED_AT_TIME = "stopped_at_time"
FAILED = "failed"
INTERRUPTED = "interrupted"


class Ending(NamedTuple):
    """The exit code of the command, and the type and name of the run's state in Prefect.

    A run that stopped at a limit or is below the bar has the type COMPLETED, since a retry would
    not help. Its name differs, so Prefect's automations can listen for it (`prefect.flow-run.Below
    the bar`), and those that listen for `prefect.flow-run.Completed` do not fire. A night without
    any work done has the type FAILED, so it is not green.
    """

    exit_code: int
    state_type: str
    state_name: str


ENDINGS = {
    DONE: Ending(0, "COMPLETED", "Completed"),
    BELOW_BAR: Ending(3, "COMPLETED", "Below the bar"),
    STOPPED_AT_BUDGET: Ending(4, "COMPLETED", "Stopped at the budget"),
    STOPPED_AT_TIME: Ending(4, "COMPLETED", "Stopped at the stop time"),
    SKIPPED: Ending(3, "FAILED", "Skipped"),
    MISSED: Ending(3, "FAILED", "Missed"),
    INTERRUPTED: Ending(130, "CANCELLED", "Cancelled"),
    FAILED: Ending(1, "FAILED", "Failed"),
    KILLED: Ending(1, "CRASHED", "Crashed"),
}
"""Outcome -> ending. A night is skipped if another one is in progress, and missed if the next one
has begun.
"""


INTERRUPTED_MESSAGE = "Stopped; finished work is kept, and the same run continues from here."
_MESSAGE_PARTS = 3

_EXIT_CODES = (2, 130, 4, 1, 3, 0)
"""Wrong usage, an interruption, a stop at a limit, a failure, below the bar, done: the first of
these counts.
"""


def first_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code that counts."""
    return min(codes, key=_EXIT_CODES.index)


def any_failed(reports: Iterable["StageReport"]) -> bool:
    """Return whether any stage has failed."""
    return any(report.has_failed for report in reports)


def no_call_was_served(reports: Iterable["StageReport"]) -> bool:
    """Return whether calls were made and endpoints served none of them (`NOT_SERVED`)."""
    from tasks.llm.replies import NOT_SERVED
    from tasks.run.writing import STAGES

    n_rows = 0
    n_not_served = 0
    for report in reports:
        if report.stage in STAGES:
            n_rows += report.rows
            n_not_served += sum(report.failures[status] for status in NOT_SERVED)
    return n_rows > 0 and n_not_served == n_rows


def outcome_of(reports: Sequence["StageReport"]) -> str:
    """Return the outcome of a run from the reports of its stages.

    If several apply, it is the first in the order of the exit codes (4, 1, 3).
    """
    if any(report.is_at_budget for report in reports):
        return STOPPED_AT_BUDGET
    if any(report.is_at_stop_time for report in reports):
        return STOPPED_AT_TIME
    is_below = any(report.is_below_bar for report in reports)
    # The last few calls of a nearly complete run may fail every time, so a run in which no call was
    # served is no failure if it is above the bar and no model was stopped.
    is_incomplete = is_below or any(report.stopped for report in reports)
    if any_failed(reports) or (is_incomplete and no_call_was_served(reports)):
        return FAILED
    return BELOW_BAR if is_below else DONE


def message_of(
    reports: Sequence["StageReport"],
    outcome: str,
    headlines: Sequence[str] = (),
) -> str:
    """Return the message of a run in Prefect.

    It consists of the first `headlines`, else of the first warnings, else of notes: of sampling and
    judging, or of the only stage.
    """
    warnings = dict.fromkeys(warning for report in reports for warning in report.warnings)
    notes = []
    for report in reports:
        is_described = len(reports) == 1 or report.stage in {"sample", "judge"}
        if is_described and report.notes:
            notes.append(report.notes[0])
    parts = headlines[:_MESSAGE_PARTS] or list(warnings)[:_MESSAGE_PARTS] or notes
    return "; ".join(parts) or ENDINGS[outcome].state_name


_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
"""Errors of a disk, which lack the file's name if the file was open."""


class Explanation(NamedTuple):
    """The exit code of an error, and a line about the problem and what to do."""

    exit_code: int
    line: str


def explained(error: BaseException) -> Explanation:
    """Return the exit code of an error, and a line for the user."""
    from tasks.llm.redaction import safe
    from tasks.rules.errors import PipelineError
    from warehouse import WarehouseError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    code = 1
    line = f"unexpected {type(error).__name__}: {safe(str(error))} (run it with -v to see where)"
    if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
        line = (
            f"{error.strerror}; allow more open files (`ulimit -n 4096`), or lower"
            " `limits.concurrency`"
        )
    elif isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_ERRORS):
        line = (
            f"{error.filename or 'a disk'}: {error.strerror}; check the path, its permissions and"
            " the space there"
        )
    elif isinstance(error, PipelineError | WarehouseError):
        code = getattr(error, "exit_code", 1)
        line = str(error)
    return Explanation(code, line)
