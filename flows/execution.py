"""One run: the lock, signals, its row in `runs`, and its result."""

import asyncio
import contextvars
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType
from typing import Any, TypeVar

import sql
from flows.run import outcomes
from flows.run.config import refuse_every_vintage, refuse_unknown_names
from flows.server import server_of
from tasks.alerts.message import Message
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.console import notice, working
from tasks.dataset.source import with_revision
from tasks.llm.environment import guard_logs
from tasks.llm.ledger.files import was_damaged_since
from tasks.llm.litellm_setup import collect_seldom
from tasks.maintain.upkeep import repair_ledger, run_total, store_calls
from tasks.rules.errors import PipelineError
from tasks.run.run_context import LEDGER, refuse_uninstalled, refuse_unready
from tasks.run.writing import StageReport
from warehouse import TABLES, Warehouse, lines_on, pop_notices


@dataclass
class Execution:
    """The result of a run.

    `flow` names the flow of a run that a command started, and is empty for other work; `seconds` is
    how long it took.
    """

    job: Job
    outcome: str = outcomes.DONE
    reports: list[StageReport] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    message: Message | None = None
    """About all alerts."""
    flow: str = ""
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return outcomes.ENDINGS[self.outcome].exit_code

    @property
    def was_interrupted(self) -> bool:
        """True if somebody stopped the run."""
        return self.outcome == outcomes.INTERRUPTED

    @property
    def has_nothing(self) -> bool:
        """True if the run failed because no call succeeded: a leaderboard would show nothing
        new.
        """
        return self.outcome == outcomes.FAILED and outcomes.no_call_succeeded(self.reports)

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
            "stages": [
                vars(report) | {"failures": dict(report.failures)} for report in self.reports
            ],
            **({"night": self.job.night, "alerts": self.alerts} if self.job.night else {}),
        }


def execute(
    job: Job, work: Callable[[], Sequence[StageReport]], *, verifies_calls: bool = False
) -> Execution:
    """Do work on a warehouse as a run: its row in `runs` is written at the start and gets its
    outcome at the end.

    Stored data is verified first; each call in the ledger only with `verifies_calls`. Work finished
    before an error or an interruption is stored and published.
    """
    warehouse = Warehouse(job.warehouse)
    execution = Execution(job)
    started_at = datetime.now(UTC)

    def record(outcome: str) -> None:
        ended_at = None
        if outcome != outcomes.RUNNING:
            execution.outcome = outcome
            store_calls(job)
            ended_at = datetime.now(UTC)
        warehouse.write("runs", [run_row(job, execution.reports, started_at, ended_at, outcome)])
        with working("publishing the database", is_quiet=job.is_quiet):
            warehouse.publish()

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with warehouse.writing(notice), warehouse.living(job.run_id):
            warehouse.verify()
            with suppress(PipelineError):  # whatever needs the ledger reports the problem
                repair_ledger(job, verifies_calls=verifies_calls)
            if job.replace_lost:
                warehouse.accept_losses()
            try:
                record(outcomes.RUNNING)
                mark_killed(job)
                execution.reports = [*work(), *damage_reports(job)]
            except BaseException as error:
                was_stopped = isinstance(error, (KeyboardInterrupt, asyncio.CancelledError))
                with suppress(
                    Exception
                ):  # users need the error that ended the run, such as a full disk
                    record(outcomes.INTERRUPTED if was_stopped else outcomes.FAILED)
                raise
            record(outcomes.outcome_of(execution.reports))
    except (KeyboardInterrupt, asyncio.CancelledError):
        execution.outcome = outcomes.INTERRUPTED
        notice("interrupted: finished work is kept; run the same command again to continue")
    finally:
        signal.signal(signal.SIGTERM, before)
    return execution


def damage_reports(job: Job) -> list[StageReport]:
    """Print the notices on repaired and lost files, and return a report on them, if there are
    any.
    """
    notices = pop_notices()
    losses = Warehouse(job.warehouse).losses()
    lines = [*(notice.line for notice in notices), *lines_on(losses)]
    for line in lines:
        notice(line)
    is_grave = bool(losses) or not all(notice.is_mended for notice in notices)
    return [StageReport("warehouse", warnings=lines, is_below_bar=is_grave)] if lines else []


def execute_flow(job: Job, name: str, *, is_verbose: bool) -> Execution:
    """Run one of the flows of `flows.work` as the work of an execution."""
    from flows.work import FLOWS

    started_s = time.monotonic()
    refuse_every_vintage(job)
    FLOWS[name].refuse(job)
    calls = FLOWS[name].calls
    if calls:
        refuse_unknown_names(job)
        refuse_uninstalled(job)
        refuse_unready(job, calls)
    prepare(is_verbose=is_verbose)
    # `aggregate` is the command that repairs.
    execution = execute(job, partial(_run, job, name), verifies_calls=name == "aggregate")
    execution.flow = name
    execution.seconds = time.monotonic() - started_s
    return execution


def _run(job: Job, name: str) -> list[StageReport]:
    """Run a flow if it has work: recorded if a Prefect server is reachable, else as a plain
    function.
    """
    from flows.work import FLOWS, has_work, without_work

    with working("looking for missing work", is_quiet=job.is_quiet):
        if not has_work(job, name):
            return without_work(job, name)
    with working("loading libraries", is_quiet=job.is_quiet):
        server = server_of(job)  # if the server must be started, it starts while the libraries load
        flow = resolve_name(FLOWS[name].path)
        from flows.recorded import UNRECORDED, run_recorded

        if server is not None and not server.is_ready():
            notice(
                f"no Prefect server responded at {server.host_and_port} within a minute; this run"
                " is not recorded"
            )
            server = None
    UNRECORDED.set() if server is None else UNRECORDED.clear()
    if server is not None and not job.is_quiet:
        notice(f"Prefect records this run: {server.host_and_port}")
    started = flow.fn if server is None else partial(run_recorded, flow)
    reports = run_interruptibly(partial(started, job))
    return reports if isinstance(reports, list) else [reports]


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


def prepare(*, is_verbose: bool = False) -> None:
    """Silence the libraries of a command; `is_verbose` shows Prefect's own logs."""
    shown = {
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
        "PREFECT_LOGGING_INTERNAL_LEVEL": "ERROR",
    }
    for name, value in (_QUIET | (shown if is_verbose else {})).items():
        os.environ.setdefault(name, value)
    collect_seldom()
    guard_logs()


SELECTION = {"limit", "vintage", "named_models", "named_judges", "named_tasks", "named_trials"}
"""Fields of a job, outside its settings, that narrow it."""


def mark_killed(job: Job) -> list[dict[str, Any]]:
    """Record unfinished runs without a living process as killed, and return their rows of
    `runs`.
    """
    warehouse = Warehouse(job.warehouse)
    unfinished = stored_runs(job, outcome=outcomes.RUNNING)
    living = {job.run_id, *warehouse.living_runs()}
    killed = [
        row | {"outcome": outcomes.KILLED} for row in unfinished if row["run_id"] not in living
    ]
    if killed:
        store_calls(job)
        killed = [row | {"cost_usd": _cost_usd_of_killed(job, row)} for row in killed]
        warehouse.write("runs", killed)
        warehouse.publish()
    for row in killed:
        when = f"{row['started_at']:%Y-%m-%d %H:%M}"
        notice(f"run {row['run_id']} of {when} UTC was killed; this run does its missing work")
    return killed


def _cost_usd_of_killed(job: Job, row: Mapping[str, Any]) -> float | None:
    """Return the cost of a killed run; None if all its calls may be lost with a damaged ledger."""
    cost_usd: float | None = run_total(job, row["run_id"])["cost_usd"]
    is_lost = not cost_usd and was_damaged_since(
        job.warehouse / LEDGER, row["started_at"].timestamp()
    )
    return None if is_lost else cost_usd


def stored_runs(job: Job, **of: Any) -> list[dict[str, Any]]:
    """Return the rows of runs; none if nothing is published yet."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return []
    runs = "(select *, config ->> 'benchmark' as benchmark from runs)"
    with warehouse.reader() as reader:
        return reader.select(runs, ", ".join(TABLES["runs"].columns), **of)


def runs_of_night(job: Job, **of: Any) -> list[dict[str, Any]]:
    """Return the rows of the runs of the job's night."""
    return stored_runs(job, night=job.night, benchmark=job.settings.benchmark, **of)


def is_in_progress(job: Job) -> bool:
    """Return whether a run of the job's night is in progress."""
    unfinished = runs_of_night(job, outcome=outcomes.RUNNING)
    living = Warehouse(job.warehouse).living_runs()
    return any(row["run_id"] in living for row in unfinished)


_NO_CALLS = {
    "calls": 0,
    "prompt_tokens": 0,
    "cached_tokens": None,
    "cached_share": None,
    "completion_tokens": 0,
    "cost_usd": 0.0,
}


def run_row(
    job: Job,
    reports: Sequence[StageReport],
    started_at: datetime,
    ended_at: datetime | None,
    outcome: str,
) -> dict[str, Any]:
    """Return the current row of a run.

    The numbers of responses and verdicts come from the stages' reports, or from the tables if the
    run was cut short.
    """
    runtime = sys.modules.get("prefect.runtime")
    deployed = (
        runtime.flow_run.name if runtime is not None and runtime.flow_run.id is not None else None
    )
    # The selection of the command has its own key.
    narrowed = job.model_dump(include=SELECTION, exclude_defaults=True)
    config = job.settings.model_dump(mode="json") | ({"selection": narrowed} if narrowed else {})
    row_counts = {
        column: sum(report.rows for report in reports if report.stage == stage)
        for column, stage in (("responses_made", "sample"), ("verdicts_made", "judge"))
    }
    if outcome in {outcomes.INTERRUPTED, outcomes.FAILED} or outcomes.any_failed(reports):
        Warehouse(job.warehouse).publish()
        with Warehouse(job.warehouse).reader() as reader:
            row_counts = reader.rows(sql.read("queries/run/rows_of_run"), {"run_id": job.run_id})[0]
    return {
        "run_id": job.run_id,
        "night": job.night,
        "outcome": outcome,
        "command": (
            f"prbench serve: {deployed}" if deployed else " ".join(["prbench", *sys.argv[1:]])
        ),
        "config": json.dumps(config, sort_keys=True),
        "git_commit": _git_commit(),
        "started_at": started_at,
        # The clock may have been set back during the run.
        "ended_at": ended_at and max(ended_at, started_at),
        **row_counts,
        **(_NO_CALLS if outcome == outcomes.RUNNING else run_total(job, job.run_id)),
    }


def job_of_run(job: Job, row: Mapping[str, Any]) -> Job:
    """Return the job that a row of `runs` records, on the warehouse of `job`; the same data set is
    not looked up again.

    Raises:
        ValueError: another version of the code wrote the row, or another program.
    """
    config = json.loads(row["config"])
    config.pop("alerts", None)  # addresses are not stored in full
    narrowed = config.pop("selection", {})
    settings = Settings.model_validate(config)
    own = job.settings
    of_run = Job(
        settings=settings,
        warehouse=job.warehouse,
        run_id=row["run_id"],
        night=row["night"],
        **narrowed,
    )
    # All splits share one revision. A run on all splits does not name them, so `job` must be on all
    # splits too.
    splits = settings.dataset.splits
    of_splits = own.dataset.model_copy(update={"splits": splits})
    if (own.benchmark, of_splits) == (settings.benchmark, settings.dataset) and (
        splits or not own.dataset.splits
    ):
        return of_run.looking_up(
            lambda: job.data.model_copy(update={"splits": splits or job.data.splits})
        )
    return with_revision(of_run)


def _git_commit() -> str | None:
    """Return the commit of the checkout that holds this code; None outside a checkout, or without
    git.
    """
    checkout = Path(__file__).parents[1]
    # An installed package may be inside the checkout of another project, whose commit is not its
    # version.
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


_ECHO_S = 1.0
"""`uv run` may pass on a Ctrl-C that the terminal sent to both processes: a second signal so soon
is the same one.
"""
Result = TypeVar("Result")


def run_interruptibly(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end; SIGINT, SIGTERM or SIGHUP cancels it, and a second signal ends
    the wait.

    It runs on an event loop in another thread. In the main thread, the handlers of Python and
    Prefect would raise at any point of the loop, where an exception can get lost or end up in a
    group. A signal that is ignored (`nohup`) stays ignored.

    Raises:
        asyncio.CancelledError: it was cancelled.
        KeyboardInterrupt: a second signal came before it had ended.
    """
    begun: Future[Callable[[], object]] = Future()
    ended: Future[Result] = Future()
    context = (
        contextvars.copy_context()
    )  # the context of this thread: it holds the parent flow run, if any
    stopped_s: float | None = None

    async def watched() -> Result:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        return await work()

    def run() -> None:
        try:
            ended.set_result(context.run(asyncio.run, watched()))
        except BaseException as error:  # noqa: BLE001 - the waiting thread raises it again
            ended.set_exception(error)

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped_s
        if stopped_s is None:
            stopped_s = time.monotonic()
            cancel()
        elif time.monotonic() - stopped_s > _ECHO_S:
            raise KeyboardInterrupt

    threading.Thread(
        target=run,
        name="flow",
        daemon=True,
    ).start()
    cancel = begun.result()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {
        each: signal.signal(each, stop)
        for each in signals
        if signal.getsignal(each) is not signal.SIG_IGN
    }
    try:
        return ended.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
