"""`prbench serve`: a Prefect server, the deployments that are registered with it, and their runs, which start here."""

import asyncio
import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from prefect import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType

from flows import deployments as of
from flows.execution import run_interruptibly
from flows.recorded import warehouse_name
from flows.run.arguments import Arguments
from flows.run.config import config_file
from flows.server.project_server import FOLDER, Server, named_server, own_server, secret_path
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Warehouse
from warehouse.locks import file_lock


def serve(job: Job, arguments: Arguments, *, port: int, name: str | None = None, work_pool: str | None = None) -> int:
    """Serve the deployments until interrupted, on the project's own Prefect server if none is configured.

    Runs that are in progress end in order first, then what starts them; the server ends some time later. `name` is
    added to the names of the deployments, to tell those of several warehouses on one Prefect server apart. With a
    `work_pool` they are registered for its workers, and nothing is served from here.

    Raises:
        UsageError: deployments of these names belong to another warehouse, or the port is taken.
        WarehouseBusy: these deployments are served already.
        PipelineError: no Prefect server answers, or it stopped answering.
    """
    named = named_server()
    if work_pool is not None:
        if not named:
            raise UsageError("--work-pool: set PREFECT_API_URL to the Prefect server that has the work pool")
        asyncio.run(_register(job, arguments, name, work_pool))
        return 0
    server = Server(named) if named else own_server(job, port)
    server.use()
    password = f", the password is in {server.secret_file}" if server.secret_file else ""
    notice(f"Prefect: http://{server.place}{password}")
    if not server.is_ready():
        raise PipelineError(f"no Prefect server answers at {server.place}; run again")
    try:
        run_interruptibly(lambda: _serve(job, arguments, name))
    except (asyncio.CancelledError, KeyboardInterrupt):
        notice("stopped; the schedules stay active")
    return 0


class _Runner(Runner):
    """Prefect's runner, except that runs go on to their end when it ends because the server stopped answering.

    They do not need the server; Prefect's own would kill them.
    """

    async def __aexit__(self, *exc_info: Any) -> None:
        if isinstance(exc_info[1], Exception):
            notice("Prefect's server is lost: no more runs will be started; runs in progress continue")
            await asyncio.to_thread(_wait_for_runs)
        await super().__aexit__(*exc_info)


def _wait_for_runs() -> None:
    with file_lock(Path(os.environ[of.RUNS_LOCK]), wait=True):
        pass


async def _serve(job: Job, arguments: Arguments, name: str | None) -> None:
    """Register the deployments with the configured Prefect server, and run them until cancelled."""
    deployments = await _deployments(job, arguments, name)
    with Warehouse(job.warehouse).only_one(f"serve-{deployments[0].name}", wait=False):
        await _run(job, deployments)


async def _run(job: Job, deployments: list[RunnerDeployment]) -> None:
    folder = job.warehouse / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ[of.RUNS_LOCK] = str(folder / f"{deployments[0].name}-runs.lock")
    # A schedule that a restart pauses would stay paused if the next start fails.
    runner = _Runner(pause_on_shutdown=False)
    for each in deployments:
        await runner.aadd_deployment(each)
    nightly = job.settings.nightly
    notice(f"nights start at {nightly.cron!r} ({nightly.timezone})")
    notice(f"to start one now: {at_this_server(f'deployment run prbench-nightly/{deployments[0].name}', job)}")
    serving = asyncio.create_task(runner.start())
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        notice(
            "stopping: runs in progress end first and keep what they finished; another Ctrl-C does not wait for them"
        )
        await runner.cancel_all()  # Prefect's own end kills them
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        raise
    except Exception as error:
        raise PipelineError(
            f"the deployments are no longer served ({type(error).__name__}): is the Prefect server running? "
            "Start `prbench serve` again"
        ) from error


async def _register(job: Job, arguments: Arguments, name: str | None, work_pool: str) -> None:
    """Register the deployments with the configured Prefect server for the workers of a work pool.

    Raises:
        UsageError: deployments of these names belong to another warehouse or benchmark, or there is no such work pool.
    """
    # Relative paths of the configuration are relative to the folder of the command, as in a run that starts here.
    deployments = await _deployments(job, arguments, name, job_variables={"working_dir": str(Path.cwd())})
    async with get_client() as client:
        try:
            await client.read_work_pool(work_pool)
        except ObjectNotFound as error:
            create = at_this_server(f"work-pool create {work_pool} --type process", job)
            raise UsageError(f"--work-pool {work_pool}: there is no such work pool; `{create}` creates it") from error
    for each in deployments:
        await each.aapply(work_pool_name=work_pool)
    notice(f"registered: {', '.join(each.name for each in deployments)}")
    notice(f"a worker for them: {at_this_server(f'worker start --pool {work_pool}', job)}")


async def _deployments(job: Job, arguments: Arguments, name: str | None, **options: Any) -> list[RunnerDeployment]:
    """The deployments under the names that they have already, else under plain ones, else under those of the warehouse.

    Raises:
        UsageError: these belong to another warehouse or benchmark.
    """
    served = [warehouse_name(job.warehouse), *([arguments.benchmark] if arguments.benchmark else [])]
    own = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(served))
    suffixes = [f"-{name}"] if name else ["", f"-{own}"]
    found = [await _named(job, arguments, suffix, **options) for suffix in suffixes]
    owners = [await _owner(deployments) for deployments in found]
    ours = _served(found[0][0].parameters)
    for wanted in (ours, None):
        if wanted in owners:
            place = owners.index(wanted)
            if place > 0 and wanted is None:
                notice(f"{_taken(job, found[0], owners[0])}; these get the name {own}")
            return found[place]
    raise UsageError(f"{_taken(job, found[-1], owners[-1])}; choose another --name")


def _taken(job: Job, deployments: list[RunnerDeployment], owner: str | None) -> str:
    name, ours = deployments[0].full_name, _served(deployments[0].parameters)
    delete = at_this_server(f"deployment delete {name}", job)
    return f"the deployment {name} of this Prefect server is for {owner}, not for {ours} (`{delete}` if not needed)"


async def _named(job: Job, arguments: Arguments, suffix: str, **options: Any) -> list[RunnerDeployment]:
    # The runs are processes of their own, so paths are absolute.
    config = config_file(arguments.config)
    where = {"config": str(config.absolute()) if config else None, "warehouse": str(job.warehouse)}
    of_one = where | {"benchmark": arguments.benchmark}
    nightly = job.settings.nightly
    schedule = Cron(nightly.cron, timezone=nightly.timezone)
    options |= {
        "tags": [job.settings.benchmark, warehouse_name(job.warehouse)],
        "entrypoint_type": EntrypointType.MODULE_PATH,
    }
    return [
        await of.nightly.ato_deployment(f"nightly{suffix}", schedule=schedule, parameters=of_one, **options),
        await of.run.ato_deployment(f"run{suffix}", parameters=of_one, **options),
        await of.backfill.ato_deployment(f"backfill{suffix}", parameters=of_one, **options),
        await of.check.ato_deployment(f"check{suffix}", parameters=of_one, **options),
        await of.compact.ato_deployment(f"compact{suffix}", parameters=where, **options),
    ]


async def _owner(deployments: list[RunnerDeployment]) -> str | None:
    """What the server's deployments of these names are for, first what is not ours; None: there are none."""
    owner = None
    async with get_client() as client:
        for each in deployments:
            with suppress(ObjectNotFound):
                known = await client.read_deployment_by_name(each.full_name)
                if (theirs := _served(known.parameters)) != _served(each.parameters):
                    return theirs
                owner = _served(deployments[0].parameters)
    return owner


def _served(parameters: dict[str, Any]) -> str:
    """What deployments with these parameters are for."""
    named = parameters.get("warehouse")
    warehouse = f"the warehouse {named}" if named else f"the warehouse of {parameters.get('config') or 'its folder'}"
    return f"{warehouse} and the benchmark {parameters['benchmark']}" if parameters.get("benchmark") else warehouse


def at_this_server(command: str, job: Job) -> str:
    """A Prefect command for this server. Without an address Prefect would start a server that asks for no secret."""
    api = get_current_settings().api
    secret = api.auth_string.get_secret_value() if api.auth_string else None
    path = secret_path(job.warehouse.resolve() / FOLDER)
    is_own = secret is not None and path.is_file() and path.read_text() == secret
    given = f'PREFECT_API_AUTH_STRING="$(cat {shlex.quote(str(path))})" ' if is_own else ""
    return f"PREFECT_API_URL={api.url} {given}prefect {command}"
