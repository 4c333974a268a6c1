"""The flows that a Prefect server, a schedule, or a notebook starts: run, nightly, backfill, check,
compact.

Their parameters are JSON, and a form in Prefect's UI. Each does what the command of the same name
does: it builds the job, takes the lock, and writes the row in `runs`. `flow.serve`, `prefect
deploy` and `prbench serve` use them.
"""

import asyncio
import atexit
import fcntl
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import httpx
from cronsim import CronSim
from prefect import State, flow, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.runtime import deployment, flow_run
from prefect.schedules import Cron, Schedule
from prefect.types.entrypoint import EntrypointType
from pydantic import Field

from flows.execution import Execution
from flows.nightly import alert_crashed, as_night, run_night, skip_night
from flows.recorded import state_of
from flows.run.arguments import Arguments
from flows.run.config import config_file, load_job
from flows.run.nights import NIGHT, STOP_TIME, is_over, night_of
from flows.run.outcomes import INTERRUPTED, MISSED, STOPPED, message_of
from flows.run.signals import run_interruptibly
from flows.server import FOLDER, PrefectServer, named_server, own_server, secret_path
from flows.ui import warehouse_name
from flows.work import execute_flow
from tasks.config.job import Job
from tasks.config.settings import Nightly
from tasks.console import notice
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Warehouse
from warehouse.locks import file_lock

RUNS_LOCK = "PRBENCH_RUNS_LOCK"
"""The environment variable with the path of a lock that all runs of one `prbench serve` share."""
_WORKING_FOLDER = "PRBENCH_FOLDER"
"""The environment variable with the folder of a served run, in which relative paths of the
configuration begin.
"""
_CODE = Path(__file__).parents[1]
"""The folder of this project's packages.

Prefect starts runs in it, since it imports from the folder of a run first: a folder `flows` or a
file `json.py` of the user would take the place of a package. A run then goes to its folder.
"""
_LOOK_EVERY_S = 1.0
_AUTO_SCHEDULED = "auto-scheduled"
"""Prefect's tag of the runs that a schedule started."""
# Prefect checks these, and makes tuples of lists, before a run begins.
NightText = Annotated[str, Field(pattern=NIGHT)]
StopTime = Annotated[str, Field(pattern=STOP_TIME)]
Positive = Annotated[float, Field(gt=0)]
Trial = Annotated[int, Field(ge=1)]
Names = tuple[str, ...]


def _name() -> str:
    """Return the name of a run: the flow, the warehouse and the benchmark, and the night or the
    scheduled time.
    """
    label = flow_run.parameters.get("night") or f"{flow_run.scheduled_start_time:%Y-%m-%d %H:%M}"
    where = sorted(set(flow_run.tags) - {_AUTO_SCHEDULED})
    return " ".join([flow_run.flow_name.removeprefix("prbench-"), *where, str(label)])


@flow(name="prbench-run", flow_run_name=_name)
def run(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    models: Names | None = None,
    judges: Names | None = None,
    splits: Names | None = None,
    limit: Trial | None = None,
    stop_at: StopTime | None = None,
    max_usd: Positive | None = None,
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
    return _done("evaluate", **locals())


@flow(name="prbench-nightly", flow_run_name=_name)
def nightly(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    night: NightText | None = None,
    stop_at: StopTime | None = None,
    max_usd: Positive | None = None,
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
    of_night = as_night(job, scheduled_at)
    now = datetime.now(UTC)
    if is_over(schedule, scheduled_at, now):
        why = f"it was missed, and the night of {night_of(schedule, now)} has started"
        return _state(skip_night(of_night, why, outcome=MISSED))
    if _AUTO_SCHEDULED not in flow_run.tags:
        # A person started it, so the stop time is the next one.
        of_night = job.model_copy(update={"night": of_night.night})
    return _state(run_night(of_night, is_verbose=False))


@flow(name="prbench-backfill", flow_run_name=_name)
def backfill(
    config: str | None = None,
    warehouse: str | None = None,
    benchmark: str | None = None,
    models: Names | None = None,
    judges: Names | None = None,
    trials: tuple[Trial, ...] | None = None,
    splits: Names | None = None,
    tasks: Names | None = None,
    night: NightText | None = None,
    stop_at: StopTime | None = None,
    max_usd: Positive | None = None,
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
    return _done("backfill", **locals())


@flow(name="prbench-check", flow_run_name=_name)
def check(
    config: str | None = None, warehouse: str | None = None, benchmark: str | None = None
) -> State[Any]:
    """Check the quality of the stored data.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
        benchmark: Name of the benchmark. Empty: the configured one.
    """
    return _done("check", **locals())


@flow(name="prbench-compact", flow_run_name=_name)
def compact(config: str | None = None, warehouse: str | None = None) -> State[Any]:
    """Merge small files into large ones, and delete old raw replies.

    Args:
        config: Path of the configuration file. Empty: prbench.yaml in the working directory, else
            the embedded default.
        warehouse: Folder of the data. Empty: what the configuration says, else PRBENCH_WAREHOUSE,
            else warehouse/data beside the configuration file.
    """
    return _done("compact", **locals())


def _begin_served_run() -> None:
    """Go to the folder of a run that Prefect started, end it when its runner is gone, and ignore
    Ctrl-C.

    Ctrl-C in a terminal reaches this process too; the runner then sends it SIGTERM once.
    """
    if deployment.id is None:
        return
    # Hide the lines that DuckDB's binding prints at exit about objects that Prefect's threads still
    # hold.
    atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
    lock = os.environ.get(RUNS_LOCK)
    if lock:
        fcntl.flock(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_SH)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = os.environ.get(_WORKING_FOLDER)
    if folder:
        os.chdir(folder)
    runner = os.getppid()

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(_LOOK_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(
        target=watch,
        name="runner",
        daemon=True,
    ).start()


def _job(**given: Any) -> Job:
    """Return the job for a flow's parameters; an empty parameter counts as not given."""
    _begin_served_run()
    narrowing = {"models", "judges", "tasks", "trials"}
    named = {
        f"named_{name}" if name in narrowing else name: value
        for name, value in given.items()
        if value
    }
    return load_job(Arguments(**named, is_quiet=not os.isatty(2)))


def _done(flow_name: str, **given: Any) -> State[Any]:
    return _state(execute_flow(_job(**given), flow_name, is_verbose=False))


def _state(execution: Execution) -> State[Any]:
    """Return the Prefect state of a run that has ended."""
    if execution.was_interrupted:
        return state_of(INTERRUPTED, STOPPED)
    first = [] if execution.message is None else [execution.message.title, *execution.message.lines]
    return state_of(execution.outcome, message_of(execution.reports, execution.outcome, first))


# `prbench serve`: a Prefect server, the deployments that are registered with it, and their runs,
# which start here


def serve(
    job: Job,
    arguments: Arguments,
    *,
    port: int,
    name: str | None = None,
    work_pool: str | None = None,
) -> None:
    """Serve the deployments until interrupted, on the project's own Prefect server if none is
    configured.

    Runs in progress end first, then their runner; the server ends some time later. `name` is added
    to the names of the deployments, to distinguish several warehouses on one Prefect server. With a
    `work_pool` the deployments are registered for its workers, and this process serves nothing.

    Raises:
        UsageError: deployments of these names belong to another warehouse, or the port is taken.
        WarehouseBusy: these deployments are served already.
        PipelineError: no Prefect server responds, or it stopped responding.
    """
    named = named_server()
    if work_pool is not None:
        if not named:
            raise UsageError(
                "--work-pool: set PREFECT_API_URL to the Prefect server that has the work pool"
            )
        asyncio.run(_register(job, arguments, name, work_pool))
        return
    server = PrefectServer(named) if named else own_server(job, port)
    server.use()
    password = (
        f", the password is in {secret_path(job.warehouse.resolve() / FOLDER)}"
        if server.secret
        else ""
    )
    notice(f"Prefect: http://{server.host_and_port}{password}")
    if not server.is_ready():
        raise PipelineError(f"no Prefect server responds at {server.host_and_port}; run again")
    try:
        run_interruptibly(lambda: _serve(job, arguments, name))
    except (asyncio.CancelledError, KeyboardInterrupt):
        notice("stopped; the schedules stay active")


class ServingRunner(Runner):
    """Prefect's runner, but it lets runs finish when the server is lost; Prefect's own kills
    them.
    """

    async def __aexit__(self, *exc_info: Any) -> None:
        if isinstance(exc_info[1], Exception):
            notice(
                "Prefect's server is lost: no more runs will be started; runs in progress continue"
            )
            await asyncio.to_thread(file_lock(Path(os.environ[RUNS_LOCK]), wait=True).__enter__)
        await super().__aexit__(*exc_info)


async def _watch_crashes(deployment_ids: Sequence[UUID], report: Callable[[FlowRun], None]) -> None:
    """Report each run of these deployments that crashes from now on, until cancelled."""
    crashed = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=list(deployment_ids)),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CRASHED])),
    )
    async with get_client() as client:
        earlier = await client.read_flow_runs(
            flow_run_filter=crashed, sort=FlowRunSort.EXPECTED_START_TIME_DESC
        )
        known = {run.id for run in earlier}
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            # The runner says that the server is lost.
            with suppress(httpx.HTTPError):
                runs = await client.read_flow_runs(
                    flow_run_filter=crashed, sort=FlowRunSort.EXPECTED_START_TIME_DESC
                )
                for run in runs:
                    if run.id not in known:
                        known.add(run.id)
                        await asyncio.to_thread(report, run)


async def _serve(job: Job, arguments: Arguments, name: str | None) -> None:
    """Register the deployments with the configured Prefect server, and run them until cancelled."""
    deployments = await _deployments(job, arguments, name)
    first = deployments[0].name
    folder = job.warehouse / FOLDER
    schedule = job.settings.nightly
    names: dict[UUID | None, str] = {}

    def report_crash(run: FlowRun) -> None:
        name = names[run.deployment_id]
        message = run.state.message if run.state else ""
        why = f"{message} The log of the run {run.name} in Prefect may say more"
        notice(f"{name} of {run.expected_start_time:%Y-%m-%d %H:%M} UTC crashed: {why}")
        if name == first:
            night = job.model_copy(
                update={"night": run.parameters.get("night"), "run_id": str(run.id)}
            )
            alert_crashed(as_night(night, run.expected_start_time), why)

    with Warehouse(job.warehouse).only_one(f"serve-{first}", wait=False):
        folder.mkdir(mode=0o700, exist_ok=True)
        os.environ[RUNS_LOCK] = str(folder / f"{first}-runs.lock")
        os.environ[_WORKING_FOLDER] = str(Path.cwd())
        os.chdir(_CODE)
        # Schedules that are paused at shutdown would stay paused if the next start failed.
        runner = ServingRunner(pause_on_shutdown=False)
        deployment_ids = []
        for each in deployments:
            deployment_id = await runner.aadd_deployment(each)
            deployment_ids.append(deployment_id)
            names[deployment_id] = each.name
        notice(f"nights start at {schedule.cron!r} ({schedule.timezone})")
        serving = asyncio.create_task(runner.start())
        watching = asyncio.create_task(_watch_crashes(deployment_ids, report_crash))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            notice(
                "stopping: runs in progress end first and keep what they finished; Ctrl-C again"
                " does not wait"
            )
            await runner.cancel_all()  # wait for the runs: Prefect's own shutdown kills them
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            raise
        except Exception as error:
            why = (
                f"({type(error).__name__}): is the Prefect server running? Start `prbench serve`"
                " again"
            )
            raise PipelineError(f"the deployments are no longer served {why}") from error
        finally:
            watching.cancel()


async def _register(job: Job, arguments: Arguments, name: str | None, work_pool: str) -> None:
    """Register the deployments with the configured Prefect server for the workers of a work pool.

    Raises:
        UsageError: deployments of these names belong to another warehouse or benchmark, or there is
            no such work pool.
    """
    # Runs go to this folder, so relative paths in the configuration mean the same as here.
    where = {"working_dir": str(_CODE), "env": {_WORKING_FOLDER: str(Path.cwd())}}
    deployments = await _deployments(job, arguments, name, job_variables=where)
    async with get_client() as client:
        try:
            await client.read_work_pool(work_pool)
        except ObjectNotFound as error:
            create = f"prefect work-pool create {work_pool} --type process"
            raise UsageError(
                f"--work-pool {work_pool}: there is no such work pool; `{create}` creates it"
            ) from error
    for each in deployments:
        await each.aapply(work_pool_name=work_pool)
    notice(f"registered: {', '.join(each.name for each in deployments)}")


async def _deployments(
    job: Job, arguments: Arguments, name: str | None, **options: Any
) -> list[RunnerDeployment]:
    """Return the deployments under plain names, else with the name of the warehouse, if another one
    has these.

    Raises:
        UsageError: all these names belong to another warehouse or benchmark.
    """
    served = [
        warehouse_name(job.warehouse),
        *([arguments.benchmark] if arguments.benchmark else []),
    ]
    own = "-" + re.sub(r"[^A-Za-z0-9._-]+", "-", name or "-".join(served))
    for suffix in [own] if name else ["", own]:
        deployments = await _named(job, arguments, suffix, **options)
        if await _are_free(deployments):
            return deployments
        notice(
            f"another warehouse or benchmark has the deployment {deployments[0].full_name} of this"
            " Prefect server"
        )
    raise UsageError(
        f"another warehouse or benchmark has the deployments *{own}; choose another --name"
    )


async def _named(
    job: Job, arguments: Arguments, suffix: str, **options: Any
) -> list[RunnerDeployment]:
    # The runs are processes of their own, so paths are absolute.
    config = config_file(arguments.config)
    where = {"config": str(config.absolute()) if config else None, "warehouse": str(job.warehouse)}
    of_one = where | {"benchmark": arguments.benchmark}
    schedule = schedule_of(job.settings.nightly)
    return [
        await each.ato_deployment(
            each.name.removeprefix("prbench-") + suffix,
            schedule=schedule if each is nightly else None,
            parameters=where if each is compact else of_one,
            entrypoint_type=EntrypointType.MODULE_PATH,
            tags=[job.settings.benchmark, warehouse_name(job.warehouse)],
            **options,
        )
        for each in (nightly, run, backfill, check, compact)
    ]


def schedule_of(nightly: Nightly) -> Schedule:
    """Return Prefect's schedule of nights, on the days on which cron would start them.

    If both days of the month and of the week are given, cron takes the days that are in either; or
    in both, if one of them begins with a star, such as `*/2`.
    """
    days_of_either = not CronSim(nightly.cron, datetime.now(UTC)).day_and
    return Cron(nightly.cron, timezone=nightly.timezone, day_or=days_of_either)


async def _are_free(deployments: list[RunnerDeployment]) -> bool:
    """Return whether no deployments of another warehouse or benchmark are registered under these
    names.
    """
    async with get_client() as client:
        for each in deployments:
            with suppress(ObjectNotFound):
                theirs = (await client.read_deployment_by_name(each.full_name)).parameters
                if any(
                    theirs.get(name) != each.parameters.get(name)
                    for name in ("warehouse", "benchmark")
                ):
                    return False
    return True
