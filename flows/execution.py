"""One run: the lock, interruptions, its row in `runs`, and its result."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from flows.run.outcomes import DONE, ENDINGS, FAILED, INTERRUPTED, RUNNING, SKIPPED, no_call_succeeded, outcome_of
from flows.run.run_record import mark_killed, run_row
from flows.run.signals import run_interruptibly
from flows.run.validation import refuse_every_vintage, refuse_unknown_names
from flows.server.project_server import server_of
from tasks.config import Job
from tasks.console import guard_log_records, notice
from tasks.llm import collect_seldom, guard_logs
from tasks.maintain import store_spend
from tasks.run import StageReport, refuse_uninstalled, refuse_unready
from warehouse import Warehouse, lines_on, take_notices


@dataclass
class Execution:
    """The result of a run."""

    job: Job
    outcome: str = DONE
    reports: list[StageReport] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return ENDINGS[self.outcome].exit_code

    @property
    def was_interrupted(self) -> bool:
        """Whether somebody stopped the run."""
        return self.outcome == INTERRUPTED

    @property
    def was_skipped(self) -> bool:
        """Whether it was skipped because another one was in progress."""
        return self.outcome == SKIPPED

    @property
    def has_nothing(self) -> bool:
        """Whether it failed because no call succeeded, so that a leaderboard would show nothing new."""
        return self.outcome == FAILED and no_call_succeeded(self.reports)

    @property
    def database(self) -> Path:
        """The published database."""
        return Warehouse(self.job.warehouse).database

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            "run_id": self.job.run_id,
            "outcome": self.outcome,
            "database": str(self.database),
            "stages": [vars(report) | {"failures": dict(report.failures)} for report in self.reports],
            **({"night": self.job.night, "alerts": self.alerts} if self.job.night else {}),
        }


def execute(job: Job, work: Callable[[], Sequence[StageReport]], *, replace_lost: bool = False) -> Execution:
    """Do work on a warehouse, and record it in `runs`.

    What is stored is verified first. Work that was finished before an error or an interruption is stored and published.
    With `replace_lost`, calls whose rows were lost by damage are made again.
    """
    warehouse, execution, started_at = Warehouse(job.warehouse), Execution(job), datetime.now(UTC)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warehouse.writing(notice), warehouse.living(job.run_id):
            _make_ready(job, replace_lost)
            _execute(execution, work, started_at)
    except (KeyboardInterrupt, asyncio.CancelledError):
        execution.outcome = INTERRUPTED
        notice("interrupted: finished work is kept; run the same command again to continue")
    finally:
        signal.signal(signal.SIGTERM, before)
    return execution


def _make_ready(job: Job, replace_lost: bool) -> None:
    warehouse = Warehouse(job.warehouse)
    warehouse.verify()
    if replace_lost:
        warehouse.accept_losses()


def _execute(execution: Execution, work: Callable[[], Sequence[StageReport]], started_at: datetime) -> None:
    """Do the work, with a row in `runs` from its beginning, which says at the end what came of it."""
    job, warehouse = execution.job, Warehouse(execution.job.warehouse)
    try:
        warehouse.write("runs", [run_row(job, [], started_at, None, RUNNING)])
        warehouse.publish()
        mark_killed(job)
        execution.reports = [*work(), *damage_reports(job)]
        execution.outcome = outcome_of(execution.reports)
    except BaseException as error:
        was_stopped = isinstance(error, (KeyboardInterrupt, asyncio.CancelledError))
        execution.outcome = INTERRUPTED if was_stopped else FAILED
        with suppress(Exception):  # what ended the run, such as a full disk, is what people have to know
            _record_end(execution, started_at)
        raise
    _record_end(execution, started_at)


def _record_end(execution: Execution, started_at: datetime) -> None:
    job, warehouse = execution.job, Warehouse(execution.job.warehouse)
    store_spend(job)
    warehouse.write("runs", [run_row(job, execution.reports, started_at, datetime.now(UTC), execution.outcome)])
    warehouse.publish()


def damage_reports(job: Job) -> list[StageReport]:
    """A report on damaged files, if there are any: what was repaired, and what is lost."""
    warehouse = Warehouse(job.warehouse)
    notices, losses = take_notices(warehouse.root), warehouse.losses()
    lines = [*(notice.line for notice in notices), *lines_on(losses)]
    for line in lines:
        notice(line)
    is_grave = bool(losses) or not all(notice.is_mended for notice in notices)
    return [StageReport("warehouse", warnings=lines, is_below_bar=is_grave)] if lines else []


def execute_flow(
    job: Job, name: str, *, is_verbose: bool, replace_lost: bool = False, retry_failed: bool = False
) -> Execution:
    """Run one of the flows of `flows.work` as the work of an execution."""
    from flows.work import FLOWS

    refuse_every_vintage(job)
    calls = FLOWS[name].calls
    if calls:
        refuse_unknown_names(job)
        refuse_uninstalled(job)
        refuse_unready(job, calls, retry_failed=retry_failed)
    prepare(is_verbose=is_verbose)
    return execute(job, partial(_run, job, name, retry_failed), replace_lost=replace_lost)


def _run(job: Job, name: str, retry_failed: bool) -> list[StageReport]:
    """Run a flow if it has work: recorded by Prefect where a server is there, else as the function that it is."""
    from flows.work import FLOWS, has_work, without_work

    if not has_work(job, name, retry_failed=retry_failed):
        return without_work(job, name)
    server = server_of(job)  # one that has to be started is, while the libraries are loaded
    flow = resolve_name(FLOWS[name].path)
    from flows.recorded import UNRECORDED, run_recorded

    if server is not None and not server.is_ready():
        notice("no Prefect server answered within a minute; this run is not recorded")
        server = None
    options = {"retry_failed": True} if retry_failed else {}
    if server is None:
        UNRECORDED.set()
        found = run_interruptibly(lambda: flow.fn(job, **options))
    else:
        UNRECORDED.clear()
        if not job.is_quiet:
            notice(f"Prefect records this run: {server.place}")
        found = run_interruptibly(lambda: run_recorded(flow, job, **options))
    return found if isinstance(found, list) else [found]


_QUIET = {
    # Of the libraries of a command, nothing is reported to anyone.
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    # The command reports failures itself, in one line; with -v in full.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # Prefect's services log every event and log line that they cannot send; that the server is gone is said once.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    # Colours are commands to a terminal, which standard error shows and does not pass on.
    "PREFECT_LOGGING_COLORS": "false",
}


def prepare(*, is_verbose: bool = False) -> None:
    """Have the libraries that a command uses say nothing; with `is_verbose` Prefect's own logs are shown."""
    shown = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO", "PREFECT_LOGGING_INTERNAL_LEVEL": "ERROR"}
    for name, value in (_QUIET | (shown if is_verbose else {})).items():
        os.environ.setdefault(name, value)
    collect_seldom()
    guard_logs()
    guard_log_records()
