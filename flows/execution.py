"""One run: the lock, its row in `runs`, and its result."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.run.outcomes import (
    DONE,
    ENDINGS,
    FAILED,
    INTERRUPTED,
    RUNNING,
    no_call_was_served,
    outcome_of,
)
from flows.run.record import mark_killed, run_row
from tasks.alerts.message import Message
from tasks.config.job import Job
from tasks.console import notice, working
from tasks.llm.litellm_setup import collect_seldom
from tasks.llm.redaction import guard_logs
from tasks.maintain.spend import repair_ledger, store_calls
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from warehouse import Warehouse, lines_on, pop_notices


@dataclass
class Execution:
    """The result of a run.

    `message` is about all `alerts`. `flow` names the flow of a run that a command started, and is
    empty for other work; `seconds` is how long it took.
    """

    job: Job
    outcome: str = DONE
    reports: list[StageReport] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    message: Message | None = None
    flow: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return ENDINGS[self.outcome].exit_code

    @property
    def was_interrupted(self) -> bool:
        """True if somebody stopped the run."""
        return self.outcome == INTERRUPTED

    @property
    def has_no_scores(self) -> bool:
        """True if the run failed because no call succeeded: it has no new score to show."""
        return self.outcome == FAILED and no_call_was_served(self.reports)

    @property
    def database(self) -> Path:
        """The published database."""
        return Warehouse(self.job.warehouse).database

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines."""
        document = {
            "run_id": self.job.run_id,
            "outcome": self.outcome,
            "database": str(self.database),
            "stages": list(map(vars, self.reports)),
        }
        if self.job.night:
            document["night"] = self.job.night
            document["alerts"] = self.alerts
        return document


def execute(
    job: Job,
    work: Callable[[], Sequence[StageReport]],
    *,
    is_verified: bool = False,
    verifies_calls: bool = False,
) -> Execution:
    """Do work on a warehouse as a run, whose row in `runs` gets its outcome at the end.

    Stored data is verified first, unless it has just been; each call in the ledger only with
    `verifies_calls`. Work finished before an error or an interruption is stored and published.
    """
    warehouse = Warehouse(job.warehouse)
    execution = Execution(job)
    started_at = datetime.now(UTC)
    sigterm_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warehouse.writing(notice), warehouse.living(job.run_id):
            if not is_verified:
                warehouse.verify()
            with suppress(PipelineError):  # whatever needs the ledger reports the problem
                repair_ledger(job, verifies_calls=verifies_calls)
            if job.replace_lost:
                warehouse.accept_losses()
            _do_work(execution, work, started_at)
    except (KeyboardInterrupt, asyncio.CancelledError):
        execution.outcome = INTERRUPTED
        notice("interrupted: finished work is kept; run the same command again to continue")
    finally:
        signal.signal(signal.SIGTERM, sigterm_handler)
    return execution


def _do_work(
    execution: Execution,
    work: Callable[[], Sequence[StageReport]],
    started_at: datetime,
) -> None:
    """Do the work of a run, and record its outcome, also that of work that raises."""
    job = execution.job
    try:
        _record(execution, RUNNING, started_at)
        mark_killed(job)
        execution.reports = [*work(), *damage_reports(job)]
        _record(execution, outcome_of(execution.reports), started_at)
    except BaseException as error:
        was_stopped = isinstance(error, (KeyboardInterrupt, asyncio.CancelledError))
        # Users need the error that ended the run, such as a full disk.
        with suppress(Exception):
            _record(execution, INTERRUPTED if was_stopped else FAILED, started_at)
        raise


def _record(execution: Execution, outcome: str, started_at: datetime) -> None:
    """Write the row of a run and publish it.

    The row of a run that begins is published with its first results, except that of a night: others
    ask whether the night is in progress.
    """
    job = execution.job
    ended_at = None
    if outcome != RUNNING:
        execution.outcome = outcome
        store_calls(job)
        ended_at = datetime.now(UTC)
    warehouse = Warehouse(job.warehouse)
    warehouse.write("runs", [run_row(job, execution.reports, started_at, ended_at, outcome)])
    if ended_at is not None or job.night is not None:
        with working("publishing the database", is_quiet=job.is_quiet):
            warehouse.publish()


def damage_reports(job: Job) -> list[StageReport]:
    """Print the notices on repaired and lost files, and return a report on them, if any."""
    notices = pop_notices()
    losses = Warehouse(job.warehouse).losses()
    lines = [*(damage.line for damage in notices), *lines_on(losses)]
    if not lines:
        return []
    for line in lines:
        notice(line)
    is_repaired = not losses and all(damage.is_repaired for damage in notices)
    return [StageReport("warehouse", warnings=lines, is_below_bar=not is_repaired)]


_QUIET = {
    # No library sends usage data.
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    # The command reports failures itself: in one line, or in full with -v.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # Prefect's services log every event and log line that they cannot send; the command reports a
    # lost server once.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    # Standard error shows control characters as text, so colours would be noise.
    "PREFECT_LOGGING_COLORS": "false",
}
_VERBOSE = _QUIET | {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "ERROR",
}


def silence_libraries(*, is_verbose: bool) -> None:
    """Silence the libraries of a command; `is_verbose` shows Prefect's own logs."""
    for name, value in (_VERBOSE if is_verbose else _QUIET).items():
        os.environ.setdefault(name, value)
    collect_seldom()
    guard_logs()
