"""One run: the lock, interruptions, its row in `runs`, and its result."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from flows.run.outcomes import DONE, ENDINGS, FAILED, INTERRUPTED, RUNNING, SKIPPED, no_call_succeeded, outcome_of
from flows.run.recording import is_recorded, recording
from flows.run.run_record import mark_killed, run_row
from flows.run.signals import run_interruptibly
from flows.run.unknown_names import refuse_every_vintage, refuse_unknown_names
from flows.server.known_server import known_server, may_know_a_server
from flows.server.prefect_environment import follow_no_redirects, prepare
from tasks.config.job import Job
from tasks.console import notice
from tasks.maintain import store_spend
from tasks.run.keys import CALLED_BY, CALLED_ROLES
from tasks.run.run_context import refuse_uninstalled, refuse_unready
from tasks.run.writing import StageReport
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
    job: Job, flow_name: str, *, is_verbose: bool, replace_lost: bool = False, **options: bool
) -> Execution:
    """Run one of the flows of `flows.pipeline` or `flows.stages` as the work of an execution."""
    refuse_every_vintage(job)
    if flow_name in _CALLING_FLOWS:
        refuse_unknown_names(job)
        refuse_uninstalled(job)
        retry_failed = options.get("retry_failed", False)
        refuse_unready(job, CALLED_BY.get(flow_name, CALLED_ROLES), retry_failed=retry_failed)
    prepare(is_verbose=is_verbose)
    return execute(job, partial(_run, job, flow_name, options), replace_lost=replace_lost)


_WHOLE = {"evaluate", "night", "backfill", "judge", "sample"}
"""The flows of `flows.pipeline`."""
_CALLING_FLOWS = _WHOLE | {"derive", "capabilities"}
"""The flows that make calls."""


def _run(job: Job, flow_name: str, options: dict[str, bool]) -> list[StageReport]:
    """Run a flow, recorded by Prefect if a server is known and there is work to record."""
    from flows.pending import has_work

    retry_failed = options.get("retry_failed", False)
    must_record = may_know_a_server() and has_work(job, flow_name, retry_failed=retry_failed)
    server = known_server() if must_record else None
    if server and not job.is_quiet:
        notice(f"Prefect records this run: {server}")
    with recording(server is not None):
        try:
            return run_interruptibly(lambda: _reports_of(job, flow_name, options))
        finally:
            _send_the_rest()


def _send_the_rest() -> None:
    if is_recorded():
        from flows.recorded.patience import send_the_rest

        send_the_rest()


async def _reports_of(job: Job, flow_name: str, options: dict[str, bool]) -> list[StageReport]:
    from flows import pipeline, stages

    flow = getattr(pipeline, flow_name) if flow_name in _WHOLE else getattr(stages, f"{flow_name}_flow")
    with _tagged(job) if is_recorded() else nullcontext():
        found = await flow(job, **options)
    return found if isinstance(found, list) else [found]


def _tagged(job: Job) -> AbstractContextManager[object]:
    """Let Prefect show the runs of the block under the job's tags, and its clients and logs behave."""
    from prefect import tags

    from flows.recorded.artifacts import keep_logs_short
    from flows.recorded.names import tags_of
    from flows.recorded.patience import limit_waiting

    follow_no_redirects()
    limit_waiting()
    keep_logs_short()
    return tags(*tags_of(job))
