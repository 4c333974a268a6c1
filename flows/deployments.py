"""What a Prefect server starts, by the clock or at the press of a button: nightly, backfill, check, compact.

Each is a flow whose parameters are a form in Prefect's UI. The work is that of the command of the same name.
"""

import atexit
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed

from flows.artifacts import keep_logs_short
from flows.execution import DONE, Execution, execute_flow
from flows.nightly import run_night, skip_night
from flows.run.arguments import Asked
from flows.run.cancellation import STOPPED
from flows.run.config import load_job
from flows.run.nightly_schedule import night_of
from flows.run.run_record import FAILED, INTERRUPTED
from tasks.config.settings import Job
from tasks.rules.errors import UsageError


def _mute() -> None:
    """Keep DuckDB's binding from printing pages about what Prefect's threads still hold when a process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _name() -> str:
    """Of the run: what it is, and of a night which."""
    label = flow_run.parameters.get("night") or f"{flow_run.scheduled_start_time:%Y-%m-%d %H:%M}"
    return f"{flow_run.flow_name.removeprefix('prbench-')} {label}"


@flow(name="prbench-nightly", flow_run_name=_name)
def nightly(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    night: str | None = None,
    stop_at: str | None = None,
    max_usd: float | None = None,
    retry_failed: bool = False,
) -> State[Any]:
    """A night: sample anew what is to be, judge, compare with the last night, send alerts.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the warehouse. Empty: the project's own.
        benchmark: Name of the benchmark. Empty: the configured one.
        night: Label of a night that is to be done again. Empty: the night that the schedule named last.
        stop_at: No call begins after this time, such as 06:30. Empty: what the configuration says.
        max_usd: Cap on the cost of the run in US dollars. Empty: what the configuration says.
        retry_failed: Also try failures again whose cause will hardly pass.
    """
    job = _job(config, warehouse, Asked(benchmark=benchmark, night=night, stop_at=stop_at, max_usd=max_usd))
    scheduled = flow_run.scheduled_start_time or datetime.now(UTC)
    if night is None:
        job = job.model_copy(update={"night": night_of(job.settings.nightly, scheduled)})
        current = night_of(job.settings.nightly, datetime.now(UTC))
        if job.night != current:
            why = f"it was missed, and that of {current} has begun"
            skip_night(job, why)
            return Completed(name="Missed", message=f"the night of {job.night}: {why}")
    begun_at = scheduled if night is None else None
    return _state(run_night(job, is_verbose=False, retry_failed=retry_failed, begun_at=begun_at))


@flow(name="prbench-backfill", flow_run_name=_name)
def backfill(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    models: list[str] | None = None,
    judges: list[str] | None = None,
    trials: list[int] | None = None,
    splits: list[str] | None = None,
    tasks: list[str] | None = None,
    night: str | None = None,
    stop_at: str | None = None,
    max_usd: float | None = None,
    retry_failed: bool = False,
) -> State[Any]:
    """Fill in what is missing of models, judges, trials or splits; everything else stays as it is.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the warehouse. Empty: the project's own.
        benchmark: Name of the benchmark. Empty: the configured one.
        models: Labels of the models to fill in. Empty: all configured ones.
        judges: Labels of the judges to ask. Empty: all configured ones.
        trials: Numbers of the trials to fill in. Empty: all configured ones.
        splits: Splits of the data set. Empty: the configured ones.
        tasks: Ids of the tasks to fill in. Empty: all admitted ones.
        night: Label of the night whose answers are to be filled in. Empty: the pinned sampling, also of models that are
            sampled nightly.
        stop_at: No call begins after this time, such as 06:30.
        max_usd: Cap on the cost of the run in US dollars. Empty: what the configuration says.
        retry_failed: Also try failures again whose cause will hardly pass.
    """
    asked = Asked(
        benchmark=benchmark, models=tuple(models or ()), judges=tuple(judges or ()), splits=tuple(splits or ()),
        tasks=tuple(tasks or ()), trial_numbers=tuple(trials or ()), night=night, stop_at=stop_at, max_usd=max_usd,
    )  # fmt: skip
    return _done(_job(config, warehouse, asked), "backfill", retry_failed=retry_failed)


@flow(name="prbench-check", flow_run_name=_name)
def check(config: str | None = None, warehouse: str | None = None, benchmark: str | None = None) -> State[Any]:
    """Run the data-quality suites on what is stored.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the warehouse. Empty: the project's own.
        benchmark: Name of the benchmark. Empty: the configured one.
    """
    return _done(_job(config, warehouse, Asked(benchmark=benchmark)), "check")


@flow(name="prbench-compact", flow_run_name=_name)
def compact(config: str | None = None, warehouse: str | None = None) -> State[Any]:
    """Merge small files into large ones, and let go of old raw replies.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the warehouse. Empty: the project's own.
    """
    return _done(_job(config, warehouse, Asked()), "compact")


def _job(config: str | None, warehouse: str | None, asked: Asked) -> Job:
    keep_logs_short()
    atexit.register(_mute)
    given = {name: Path(path) for name, path in (("config", config), ("warehouse", warehouse)) if path}
    if asked.trial_numbers and min(asked.trial_numbers) < 1:
        raise UsageError(f"trials: {min(asked.trial_numbers)} is not a trial; trials are numbered from 1")
    return load_job(Asked(**{**vars(asked), **given, "is_quiet": not os.isatty(2)}))


def _done(job: Job, flow_name: str, **options: bool) -> State[Any]:
    return _state(execute_flow(job, flow_name, is_verbose=False, **options))


def _state(execution: Execution) -> State[Any]:
    """The outcome of a run as Prefect shows it: what was below a bar or cut short has a name of its own."""
    warnings = [warning for report in execution.reports for warning in report.warnings]
    notes = [note for report in execution.reports for note in report.notes[:1] if report.stage in {"sample", "judge"}]
    alerts = [alert["line"] for alert in execution.alerts]
    message = "; ".join(alerts[:3] or warnings[:3] or notes) or execution.outcome.replace("_", " ")
    if execution.outcome == INTERRUPTED:
        return Cancelled(message=STOPPED)
    if execution.outcome == FAILED:
        return Failed(message=message)
    if execution.outcome == DONE:
        return Completed(message=message)
    return Completed(message=message, name=execution.outcome.replace("_", " ").capitalize())
