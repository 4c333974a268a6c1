"""The flows that a Prefect server starts, by schedule or from its UI: nightly, backfill, check, compact.

Their parameters are a form in the UI. Each does what the command of the same name does.
"""

import atexit
import os
import signal
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.runtime import deployment, flow_run

from flows.execution import Execution, execute_flow
from flows.nightly import run_night, skip_night
from flows.recorded.artifacts import keep_logs_short
from flows.recorded.runs import message_of, state_of
from flows.run.arguments import Arguments
from flows.run.cancellation import STOPPED
from flows.run.config import load_job
from flows.run.nightly_schedule import night_of
from flows.run.outcomes import INTERRUPTED, MISSED
from tasks.config import Job
from tasks.rules.errors import UsageError

_LOOK_EVERY_S = 1.0


def _mute() -> None:
    """Silence what DuckDB's binding prints at the end of a process about objects that Prefect's threads still hold."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _name() -> str:
    """The name of a run: the deployment, and the night or the scheduled time."""
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
    """Run one night: resample nightly models, judge, compare with the last night, send alerts.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        night: Label of an earlier night to run again. Empty: the latest night of the schedule.
        stop_at: No call starts after this time, such as 06:30. Empty: the configured time.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    job = _job(config, warehouse, Arguments(benchmark=benchmark, night=night, stop_at=stop_at, max_usd=max_usd))
    scheduled = flow_run.scheduled_start_time or datetime.now(UTC)
    if night is None:
        job = job.model_copy(update={"night": night_of(job.settings.nightly, scheduled)})
        current = night_of(job.settings.nightly, datetime.now(UTC))
        if job.night != current:
            why = f"it was missed, and the night of {current} has started"
            skip_night(job, why)
            return state_of(MISSED, f"the night of {job.night}: {why}")
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
    """Fill in what is missing of models, judges, trials or splits; nothing else changes.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        models: Labels of the models to fill in. Empty: all configured ones.
        judges: Labels of the judges to ask. Empty: all configured ones.
        trials: Numbers of the trials to fill in. Empty: all configured ones.
        splits: Splits of the data set. Empty: the configured ones.
        tasks: Ids of the tasks to fill in. Empty: all admitted ones.
        night: Label of the night whose responses to fill in. Empty: the pinned vintage, also of nightly models.
        stop_at: No call starts after this time, such as 06:30.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    arguments = Arguments(
        benchmark=benchmark, models=tuple(models or ()), judges=tuple(judges or ()), splits=tuple(splits or ()),
        tasks=tuple(tasks or ()), trial_numbers=tuple(trials or ()), night=night, stop_at=stop_at, max_usd=max_usd,
    )  # fmt: skip
    return _done(_job(config, warehouse, arguments), "backfill", retry_failed=retry_failed)


@flow(name="prbench-check", flow_run_name=_name)
def check(config: str | None = None, warehouse: str | None = None, benchmark: str | None = None) -> State[Any]:
    """Check the quality of the stored data.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
    """
    return _done(_job(config, warehouse, Arguments(benchmark=benchmark)), "check")


@flow(name="prbench-compact", flow_run_name=_name)
def compact(config: str | None = None, warehouse: str | None = None) -> State[Any]:
    """Merge small files into large ones, and delete old raw replies.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
    """
    return _done(_job(config, warehouse, Arguments()), "compact")


def _end_with_runner() -> None:
    """Have a run that Prefect started end in order when the process that started it is gone, and not on Ctrl-C.

    Ctrl-C in a terminal reaches this process too; its runner then ends it by SIGTERM, once.
    """
    if deployment.id is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = os.getppid()

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(_LOOK_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="runner", daemon=True).start()


def _job(config: str | None, warehouse: str | None, arguments: Arguments) -> Job:
    keep_logs_short()
    atexit.register(_mute)
    _end_with_runner()
    given = {name: Path(path) for name, path in (("config", config), ("warehouse", warehouse)) if path}
    if arguments.trial_numbers and min(arguments.trial_numbers) < 1:
        raise UsageError(f"trials: {min(arguments.trial_numbers)} is not a trial; trials are numbered from 1")
    return load_job(Arguments(**{**vars(arguments), **given, "is_quiet": not os.isatty(2)}))


def _done(job: Job, flow_name: str, **options: bool) -> State[Any]:
    return _state(execute_flow(job, flow_name, is_verbose=False, **options))


def _state(execution: Execution) -> State[Any]:
    """The state in Prefect of a run that has ended."""
    alerts = [alert["line"] for alert in execution.alerts]
    if execution.was_interrupted:
        return state_of(INTERRUPTED, STOPPED)
    return state_of(execution.outcome, message_of(execution.reports, execution.outcome, alerts))
