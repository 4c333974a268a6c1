"""The flows that a Prefect server, a schedule, or a notebook starts.

Their parameters are JSON, and a form in Prefect's UI. Each does what the command of the same name
does: it builds the job, takes the lock, and writes the row in `runs`. `flow.serve`, `prefect
deploy` and `prbench serve` use them.
"""

import atexit
import fcntl
import os
import signal
import threading
import time
from datetime import UTC, datetime
from typing import Annotated, Any

from prefect import State, flow
from prefect.runtime import deployment, flow_run
from pydantic import Field

from flows.execution import Execution
from flows.nightly import as_night, run_night, skip_night
from flows.recorded import state_of
from flows.run.arguments import Arguments
from flows.run.config import load_job
from flows.run.nights import NIGHT, STOP_TIME, is_over, night_of
from flows.run.outcomes import INTERRUPTED, INTERRUPTED_MESSAGE, MISSED, message_of
from flows.work import execute_flow
from tasks.config.job import Job

RUNS_LOCK = "PRBENCH_RUNS_LOCK"
"""The environment variable with the path of a lock that all runs of one `prbench serve` share."""
WORKING_FOLDER = "PRBENCH_FOLDER"
"""The environment variable with the folder of a served run, in which relative paths of the
configuration begin.
"""
AUTO_SCHEDULED = "auto-scheduled"
"""Prefect's tag of the runs that a schedule started."""
_RUNNER_CHECK_S = 1.0
# Prefect checks these, and converts lists to tuples, before a run begins.
NightText = Annotated[str, Field(pattern=NIGHT)]
StopTime = Annotated[str, Field(pattern=STOP_TIME)]
PositiveFloat = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(ge=1)]
Names = tuple[str, ...]


def _name() -> str:
    """Return the name of a run: the flow, its data, and the night or the scheduled time."""
    flow_name = flow_run.flow_name.removeprefix("prbench-")
    data_names = sorted(set(flow_run.tags) - {AUTO_SCHEDULED})
    label = flow_run.parameters.get("night") or f"{flow_run.scheduled_start_time:%Y-%m-%d %H:%M}"
    return " ".join([flow_name, *data_names, str(label)])


# Each flow passes on its parameters as `locals()`: no other variable may be set before that.


@flow(name="prbench-run", flow_run_name=_name)
def run(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    models: Names | None = None,
    judges: Names | None = None,
    splits: Names | None = None,
    limit: PositiveInt | None = None,
    stop_at: StopTime | None = None,
    max_usd: PositiveFloat | None = None,
    retry_failed: bool = False,
) -> State[Any]:
    """Run the full pipeline; only missing work is done.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        models: Labels of the models to evaluate. Empty: all configured ones.
        judges: Labels of the judges to ask. Empty: all configured ones.
        splits: Splits of the data set. Empty: the configured ones.
        limit: Use only so many tasks, drawn from the splits in turn. Empty: all.
        stop_at: No call starts after this time, such as 06:30.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    return _run("evaluate", **locals())  # the flow of `prbench run`


@flow(name="prbench-nightly", flow_run_name=_name)
def nightly(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    night: NightText | None = None,
    stop_at: StopTime | None = None,
    max_usd: PositiveFloat | None = None,
    retry_failed: bool = False,
) -> State[Any]:
    """Run one night: resample nightly models, judge, compare with the last night, send alerts.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        night: Date of an earlier night to run again. Empty: the latest night of the schedule.
        stop_at: No call starts after this time, such as 06:30. Empty: the configured time.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    job = _job(**locals())
    if night is not None:
        return _state(run_night(job, is_verbose=False))
    schedule = job.settings.nightly
    # Prefect may start a run some seconds early, when the night before is still the current one.
    scheduled_at = flow_run.scheduled_start_time
    night_job = as_night(job, scheduled_at)
    present = datetime.now(UTC)
    if is_over(schedule, scheduled_at, present):
        reason = f"it was missed, and the night of {night_of(schedule, present)} has started"
        return _state(skip_night(night_job, reason, outcome=MISSED))
    if AUTO_SCHEDULED not in flow_run.tags:
        # A person started it, so only the label is that of the scheduled time: without a stop time,
        # `run_night` gives the job the next one.
        night_job = job.model_copy(update={"night": night_job.night})
    return _state(run_night(night_job, is_verbose=False))


@flow(name="prbench-backfill", flow_run_name=_name)
def backfill(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    models: Names | None = None,
    judges: Names | None = None,
    trials: tuple[PositiveInt, ...] | None = None,
    splits: Names | None = None,
    tasks: Names | None = None,
    night: NightText | None = None,
    stop_at: StopTime | None = None,
    max_usd: PositiveFloat | None = None,
    retry_failed: bool = False,
) -> State[Any]:
    """Fill in missing responses and verdicts of models, judges, trials or splits; nothing else
    changes.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
        models: Labels of the models to fill in. Empty: all configured ones.
        judges: Labels of the judges to ask. Empty: all configured ones.
        trials: Numbers of the trials to fill in. Empty: all configured ones.
        splits: Splits of the data set. Empty: the configured ones.
        tasks: Ids of the tasks to fill in. Empty: all admitted ones.
        night: Date of the night whose responses to fill in. Empty: the pinned vintage, also of
            nightly models.
        stop_at: No call starts after this time, such as 06:30.
        max_usd: Cap on the cost of the run in US dollars. Empty: the configured cap.
        retry_failed: Retry permanent failures too.
    """
    return _run("backfill", **locals())


@flow(name="prbench-check", flow_run_name=_name)
def check(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
) -> State[Any]:
    """Check the quality of the stored data.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
    """
    return _run("check", **locals())


@flow(name="prbench-compact", flow_run_name=_name)
def compact(config: str | None = None, warehouse: str | None = None) -> State[Any]:
    """Merge small files into large ones, and delete old raw replies.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
    """
    return _run("compact", **locals())


_ARGUMENT_NAMES = {
    "models": "named_models",
    "judges": "named_judges",
    "tasks": "named_tasks",
    "trials": "named_trials",
}
"""Parameter of a flow -> its field in `Arguments`, if that has another name."""


def _run(flow_name: str, **parameters: Any) -> State[Any]:
    """Run a flow of `work.FLOWS` on the job for these parameters, and return its Prefect state."""
    return _state(execute_flow(_job(**parameters), flow_name, is_verbose=False))


def _job(**parameters: Any) -> Job:
    """Prepare the process, and return the job for a flow's parameters.

    An empty parameter counts as not given.
    """
    _begin_served_run()
    arguments = {}
    for name, value in parameters.items():
        if value:
            arguments[_ARGUMENT_NAMES.get(name, name)] = value
    return load_job(Arguments(**arguments, is_quiet=not os.isatty(2)))


def _begin_served_run() -> None:
    """Prepare the process of a run that Prefect started.

    It goes to the run's folder, ends when its runner is gone, and ignores Ctrl-C: in a terminal
    that reaches this process too, and the runner then sends it SIGTERM once.
    """
    if deployment.id is None:
        return
    # Hide the lines that DuckDB's binding prints at exit about objects that Prefect's threads still
    # hold.
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
    lock = os.environ.get(RUNS_LOCK)
    if lock:
        # Shared until the process ends: `prbench serve` may wait for that.
        fcntl.flock(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_SH)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = os.environ.get(WORKING_FOLDER)
    if folder:
        os.chdir(folder)
    runner_id = os.getppid()

    def end_with_runner() -> None:
        while os.getppid() == runner_id:
            time.sleep(_RUNNER_CHECK_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_runner, daemon=True).start()


def _state(execution: Execution) -> State[Any]:
    """Return the Prefect state of a run that has ended."""
    if execution.was_interrupted:
        return state_of(INTERRUPTED, INTERRUPTED_MESSAGE)
    headlines = []
    if execution.message is not None:
        headlines = [execution.message.title, *execution.message.lines]
    message = message_of(execution.reports, execution.outcome, headlines)
    return state_of(execution.outcome, message)
