"""`prbench serve`: a Prefect server, the deployments registered with it, and their runs."""

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from cronsim import CronSim
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule
from prefect.types.entrypoint import EntrypointType

from flows.deployments import RUNS_LOCK, WORKING_FOLDER, backfill, check, compact, nightly, run
from flows.nightly import alert_crashed, as_night
from flows.run.arguments import Arguments
from flows.run.config import config_file
from flows.run.signals import run_interruptibly
from flows.server import FOLDER, PrefectServer, named_server, own_server, secret_path
from flows.ui import warehouse_name
from tasks.config.job import Job
from tasks.config.settings import Nightly
from tasks.console import notice
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Warehouse
from warehouse.locks import file_lock

_CODE = Path(__file__).parents[1]
"""The folder of this project's packages.

Prefect starts runs in it, since it imports from the folder of a run first: a folder `flows` or a
file `json.py` of the user would take the place of a package. A run then goes to its folder.
"""
_CRASH_CHECK_S = 1.0


def serve(
    job: Job,
    arguments: Arguments,
    *,
    port: int,
    name: str | None = None,
    work_pool: str | None = None,
) -> None:
    """Serve the deployments until interrupted, on the project's own Prefect server by default.

    Runs in progress end first, then their runner; the server ends some time later. `name` is added
    to the names of the deployments, to distinguish several warehouses on one Prefect server. With a
    `work_pool` the deployments are registered for its workers, and this process serves nothing.

    Raises:
        UsageError: deployments of these names belong to another warehouse, or the port is taken.
        WarehouseBusy: these deployments are served already.
        PipelineError: no Prefect server responds, or it stopped responding.
    """
    configured_url = named_server()
    if work_pool is not None:
        if not configured_url:
            raise UsageError(
                "--work-pool: set PREFECT_API_URL to the Prefect server that has the work pool"
            )
        asyncio.run(_register(job, arguments, name, work_pool))
        return
    server = PrefectServer(configured_url) if configured_url else own_server(job, port)
    server.use()
    line = f"Prefect: http://{server.host_and_port}"
    if server.secret:
        line += f", the password is in {secret_path(job.warehouse.resolve() / FOLDER)}"
    notice(line)
    if not server.wait_until_ready():
        raise PipelineError(f"no Prefect server responds at {server.host_and_port}; run again")
    try:
        run_interruptibly(lambda: _serve(job, arguments, name))
    except (asyncio.CancelledError, KeyboardInterrupt):
        notice("stopped; the schedules stay active")


class ServingRunner(Runner):
    """A runner that lets runs finish when the server is lost; Prefect's own kills them."""

    async def __aexit__(self, *exc_info: Any) -> None:
        if isinstance(exc_info[1], Exception):
            notice(
                "Prefect's server is lost: no more runs will be started; runs in progress continue"
            )
            # Each run shares this lock until its end.
            runs_lock = file_lock(Path(os.environ[RUNS_LOCK]), wait=True)
            await asyncio.to_thread(runs_lock.__enter__)
        await super().__aexit__(*exc_info)


async def _serve(job: Job, arguments: Arguments, name: str | None) -> None:
    """Register the deployments with the configured Prefect server, and run them until cancelled."""
    deployments = await _deployments(job, arguments, name)
    night_name = deployments[0].name
    folder = job.warehouse / FOLDER
    schedule = job.settings.nightly
    names_by_id: dict[UUID | None, str] = {}
    with Warehouse(job.warehouse).only_one(f"serve-{night_name}", wait=False):
        folder.mkdir(mode=0o700, exist_ok=True)
        os.environ[RUNS_LOCK] = str(folder / f"{night_name}-runs.lock")
        os.environ[WORKING_FOLDER] = str(Path.cwd())
        os.chdir(_CODE)
        # Schedules that are paused at shutdown would stay paused if the next start failed.
        runner = ServingRunner(pause_on_shutdown=False)
        for deployment in deployments:
            deployment_id = await runner.aadd_deployment(deployment)
            names_by_id[deployment_id] = deployment.name
        notice(f"nights start at {schedule.cron!r} ({schedule.timezone})")
        watching = asyncio.create_task(_watch_crashes(job, names_by_id))
        try:
            await _run_until_cancelled(runner)
        finally:
            watching.cancel()


async def _run_until_cancelled(runner: Runner) -> None:
    """Start due runs; when cancelled, wait for the runs in progress.

    Raises:
        PipelineError: the server is lost.
    """
    serving = asyncio.create_task(runner.start())
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
        raise PipelineError(
            f"the deployments are no longer served ({type(error).__name__}): is the Prefect server"
            " running? Start `prbench serve` again"
        ) from error


# Crashes


async def _watch_crashes(job: Job, names_by_id: Mapping[UUID | None, str]) -> None:
    """Report each run of these deployments that crashes from now on, until cancelled."""
    crash_filter = FlowRunFilter.model_validate(
        {
            "deployment_id": {"any_": list(names_by_id)},
            "state": {"type": {"any_": ["CRASHED"]}},
        }
    )
    order = FlowRunSort.EXPECTED_START_TIME_DESC
    seen_ids: set[UUID] | None = None
    async with get_client() as client:
        while True:
            # The runner reports a lost server.
            with suppress(httpx.HTTPError):
                runs = await client.read_flow_runs(flow_run_filter=crash_filter, sort=order)
                if seen_ids is None:
                    seen_ids = {crashed_run.id for crashed_run in runs}
                for crashed_run in runs:
                    if crashed_run.id not in seen_ids:
                        seen_ids.add(crashed_run.id)
                        name = names_by_id[crashed_run.deployment_id]
                        await asyncio.to_thread(_report_crash, job, crashed_run, name)
            await asyncio.sleep(_CRASH_CHECK_S)


def _report_crash(job: Job, crashed_run: FlowRun, deployment_name: str) -> None:
    """Print that a run has crashed, and send an alert about a night."""
    message = crashed_run.state.message if crashed_run.state else ""
    reason = f"{message} The log of the run {crashed_run.name} in Prefect may say more"
    expected_at = crashed_run.expected_start_time
    notice(f"{deployment_name} of {expected_at:%Y-%m-%d %H:%M} UTC crashed: {reason}")
    if deployment_name.startswith("nightly"):
        night = crashed_run.parameters.get("night")
        night_job = job.model_copy(update={"night": night, "run_id": str(crashed_run.id)})
        alert_crashed(as_night(night_job, expected_at), reason)


# Deployments


async def _register(job: Job, arguments: Arguments, name: str | None, work_pool: str) -> None:
    """Register the deployments with the configured Prefect server for the workers of a work pool.

    Raises:
        UsageError: deployments of these names belong to another warehouse or benchmark, or there is
            no such work pool.
    """
    # A run starts in `working_dir` and then goes to WORKING_FOLDER, so relative paths in the
    # configuration mean the same as here.
    job_variables = {"working_dir": str(_CODE), "env": {WORKING_FOLDER: str(Path.cwd())}}
    deployments = await _deployments(job, arguments, name, job_variables)
    async with get_client() as client:
        try:
            await client.read_work_pool(work_pool)
        except ObjectNotFound as error:
            creation = f"prefect work-pool create {work_pool} --type process"
            raise UsageError(
                f"--work-pool {work_pool}: there is no such work pool; `{creation}` creates it"
            ) from error
    for deployment in deployments:
        await deployment.aapply(work_pool_name=work_pool)
    notice(f"registered: {', '.join(deployment.name for deployment in deployments)}")


async def _deployments(
    job: Job,
    arguments: Arguments,
    name: str | None,
    job_variables: dict[str, Any] | None = None,
) -> list[RunnerDeployment]:
    """Return the deployments, the nightly one first.

    Their names end with the given name; without one they are plain, or, if another warehouse has
    the plain names, end with this warehouse's.

    Raises:
        UsageError: all these names belong to another warehouse or benchmark.
    """
    data_name = warehouse_name(job.warehouse)
    if arguments.benchmark:
        data_name += f"-{arguments.benchmark}"
    suffix = "-" + re.sub(r"[^A-Za-z0-9._-]+", "-", name or data_name)
    suffixes = [suffix] if name else ["", suffix]
    for tried_suffix in suffixes:
        deployments = await _named_deployments(job, arguments, tried_suffix, job_variables)
        if await _are_free(deployments):
            return deployments
        notice(
            f"another warehouse or benchmark has the deployment {deployments[0].full_name} of this"
            " Prefect server"
        )
    raise UsageError(
        f"another warehouse or benchmark has the deployments *{suffix}; choose another --name"
    )


async def _named_deployments(
    job: Job,
    arguments: Arguments,
    suffix: str,
    job_variables: dict[str, Any] | None,
) -> list[RunnerDeployment]:
    # The runs are processes of their own, so paths are absolute.
    config = config_file(arguments.config)
    data = {"config": str(config.absolute()) if config else None, "warehouse": str(job.warehouse)}
    deployments = []
    for flow in (nightly, run, backfill, check, compact):
        parameters = dict(data)
        if flow is not compact:
            parameters["benchmark"] = arguments.benchmark
        deployment = await flow.ato_deployment(
            flow.name.removeprefix("prbench-") + suffix,
            schedule=schedule_of(job.settings.nightly) if flow is nightly else None,
            parameters=parameters,
            entrypoint_type=EntrypointType.MODULE_PATH,
            tags=[job.benchmark, warehouse_name(job.warehouse)],
            job_variables=job_variables,
        )
        deployments.append(deployment)
    return deployments


def schedule_of(nightly: Nightly) -> Schedule:
    """Return Prefect's schedule of nights, on the days on which cron would start them.

    If both days of the month and of the week are given, cron takes the days that are in either; or
    in both, if one of them begins with a star, such as `*/2`.
    """
    must_match_both = CronSim(nightly.cron, datetime.now(UTC)).day_and
    return Cron(nightly.cron, timezone=nightly.timezone, day_or=not must_match_both)


async def _are_free(deployments: list[RunnerDeployment]) -> bool:
    """Return whether no other warehouse or benchmark has registered deployments of these names."""
    async with get_client() as client:
        for deployment in deployments:
            with suppress(ObjectNotFound):
                registered = await client.read_deployment_by_name(deployment.full_name)
                for name in ("warehouse", "benchmark"):
                    if registered.parameters.get(name) != deployment.parameters.get(name):
                        return False
    return True
