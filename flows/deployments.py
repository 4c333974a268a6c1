"""The flows that a Prefect server, a schedule, or a notebook starts: run, nightly, backfill, check, compact.

Their parameters are JSON, and a form in Prefect's UI. Each does what the command of the same name does: it builds the
job, takes the lock, and writes the row in `runs`. `flow.serve`, `prefect deploy` and `prbench serve` use them.
"""

import atexit
import fcntl
import os
import signal
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from prefect import State, flow
from prefect.runtime import deployment, flow_run
from pydantic import Field

from flows.execution import Execution, execute_flow
from flows.nightly import run_night, skip_night
from flows.recorded import STOPPED, message_of, state_of
from flows.run.arguments import Arguments as Given
from flows.run.config import NIGHT, STOP_TIME, load_job, night_of
from flows.run.outcomes import INTERRUPTED, MISSED
from tasks.config.job import Job

RUNS_LOCK = "PRBENCH_RUNS_LOCK"
"""The variable that names a lock, which runs share that `prbench serve` starts."""
_LOOK_EVERY_S = 1.0
# Prefect refuses other values before a run begins.
Night = Annotated[str, Field(pattern=NIGHT)]
StopTime = Annotated[str, Field(pattern=STOP_TIME)]
NotNegative = Annotated[float, Field(ge=0)]
Trial = Annotated[int, Field(ge=1)]


def _name() -> str:
    """The name of a run: the flow, the warehouse and the benchmark, and the night or the scheduled time."""
    label = flow_run.parameters.get("night") or f"{flow_run.scheduled_start_time:%Y-%m-%d %H:%M}"
    where = sorted(set(flow_run.tags) - {"auto-scheduled"})
    return " ".join([flow_run.flow_name.removeprefix("prbench-"), *where, str(label)])


@flow(name="prbench-run", flow_run_name=_name)
def run(
    config: str | None = None, warehouse: str | None = None, benchmark: str | None = None,
    models: list[str] | None = None, judges: list[str] | None = None, splits: list[str] | None = None,
    limit: Trial | None = None, stop_at: StopTime | None = None, max_usd: NotNegative | None = None,
    retry_failed: bool = False,
) -> State[Any]:  # fmt: skip
    """Run the full pipeline; only what is missing is done.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        models: Labels of the models to evaluate. Empty: all configured ones.
        judges: Labels of the judges to ask. Empty: all configured ones.
        splits: Splits of the data set. Empty: the configured ones.
        limit: Only so many tasks, the first ones. Empty: all.
        stop_at: No call starts after this time, such as 06:30.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    given = Given(
        benchmark=benchmark, models=tuple(models or ()), judges=tuple(judges or ()), splits=tuple(splits or ()),
        limit=limit, stop_at=stop_at, max_usd=max_usd,
    )  # fmt: skip
    return _done(_job(config, warehouse, given), "evaluate", retry_failed=retry_failed)


@flow(name="prbench-nightly", flow_run_name=_name)
def nightly(
    config: str | None = None, warehouse: str | None = None, benchmark: str | None = None, night: Night | None = None,
    stop_at: StopTime | None = None, max_usd: NotNegative | None = None, retry_failed: bool = False,
) -> State[Any]:  # fmt: skip
    """Run one night: resample nightly models, judge, compare with the last night, send alerts.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        night: Date of an earlier night to run again. Empty: the latest night of the schedule.
        stop_at: No call starts after this time, such as 06:30. Empty: the configured time.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    job = _job(config, warehouse, Given(benchmark=benchmark, night=night, stop_at=stop_at, max_usd=max_usd))
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
    config: str | None = None, warehouse: str | None = None, benchmark: str | None = None,
    models: list[str] | None = None, judges: list[str] | None = None, trials: list[Trial] | None = None,
    splits: list[str] | None = None, tasks: list[str] | None = None, night: Night | None = None,
    stop_at: StopTime | None = None, max_usd: NotNegative | None = None, retry_failed: bool = False,
) -> State[Any]:  # fmt: skip
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
        night: Date of the night whose responses to fill in. Empty: the pinned vintage, also of nightly models.
        stop_at: No call starts after this time, such as 06:30.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    arguments = Given(
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
    return _done(_job(config, warehouse, Given(benchmark=benchmark)), "check")


@flow(name="prbench-compact", flow_run_name=_name)
def compact(config: str | None = None, warehouse: str | None = None) -> State[Any]:
    """Merge small files into large ones, and delete old raw replies.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE, else warehouse/data
            beside the configuration file.
    """
    return _done(_job(config, warehouse, Given()), "compact")


def _end_with_runner() -> None:
    """Have a run that Prefect started end in order when the process that started it is gone, and not on Ctrl-C.

    Ctrl-C in a terminal reaches this process too; its runner then ends it by SIGTERM, once.
    """
    if deployment.id is None:
        return
    atexit.register(_mute)
    if lock := os.environ.get(RUNS_LOCK):
        fcntl.flock(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_SH)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = os.getppid()

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(_LOOK_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="runner", daemon=True).start()


def _mute() -> None:
    """Silence what DuckDB's binding prints at the end of a process about objects that Prefect's threads still hold."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _job(config: str | None, warehouse: str | None, arguments: Given) -> Job:
    _end_with_runner()
    given = {name: Path(path) for name, path in (("config", config), ("warehouse", warehouse)) if path}
    return load_job(Given(**{**vars(arguments), **given, "is_quiet": not os.isatty(2)}))


def _done(job: Job, flow_name: str, **options: bool) -> State[Any]:
    return _state(execute_flow(job, flow_name, is_verbose=False, **options))


def _state(execution: Execution) -> State[Any]:
    """The state in Prefect of a run that has ended."""
    alerts = [alert["line"] for alert in execution.alerts]
    if execution.was_interrupted:
        return state_of(INTERRUPTED, STOPPED)
    message = message_of(execution.reports, execution.outcome, alerts)
    return state_of(execution.outcome, message)
