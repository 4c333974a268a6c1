"""The deployments: their names, schedule and parameters, registered with a Prefect server, and run from here."""

import asyncio
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from prefect import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.settings import get_current_settings
from prefect.states import Crashed
from prefect.types.entrypoint import EntrypointType
from prefect.utilities.callables import ParameterSchema

from flows import deployments as of
from flows.recorded.names import warehouse_name
from flows.run.arguments import Arguments
from flows.run.document import config_file
from flows.server.own_server import secret_path
from flows.server.prefect_environment import follow_no_redirects
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Warehouse

_IN_PROGRESS = FlowRunFilterState(
    type=FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING])
)
_LOOK_EVERY_S = 1.0
_KILLED = "The process was killed; the next run goes on with what is missing."


class _Runner(Runner):
    """Prefect's runner, except that its runs end in order whatever ends it: Prefect's own kills them on Ctrl-C.

    When it ends because the server stopped answering, its runs go on to their end: they do not need the server.
    """

    async def __aexit__(self, *exc_info: Any) -> None:
        try:
            if isinstance(exc_info[1], Exception) and self._process_manager.flow_run_ids():
                notice("Prefect's server is lost: no more runs will be started; runs in progress continue")
                while self._process_manager.flow_run_ids():  # noqa: ASYNC110 - Prefect has no event for it
                    await asyncio.sleep(_LOOK_EVERY_S)
        finally:
            if self._process_manager.flow_run_ids():
                notice(
                    "stopping: runs in progress end first and keep what they finished; another Ctrl-C does not wait "
                    "for them"
                )
            await self.cancel_all()
            await super().__aexit__(*exc_info)


async def run_deployments(job: Job, arguments: Arguments, name: str | None) -> None:
    """Register the deployments with the configured Prefect server, and run them until cancelled.

    Raises:
        UsageError: deployments of these names belong to another warehouse or benchmark.
        WarehouseBusy: these deployments are served already.
        PipelineError: the server stopped answering.
    """
    follow_no_redirects()
    deployments = await _deployments(job, arguments, name)
    with Warehouse(job.warehouse).only_one(f"serve-{deployments[0].name}", wait=False):
        await _run(job, deployments)


async def _run(job: Job, deployments: list[RunnerDeployment]) -> None:
    # A schedule that a restart pauses would stay paused if the next start fails.
    runner = _Runner(pause_on_shutdown=False)
    ids = [await runner.aadd_deployment(each) for each in deployments]
    await _close_killed(ids)
    nightly = job.settings.nightly
    notice(f"nights start at {nightly.cron!r} ({nightly.timezone})")
    notice(f"to start one now: {at_this_server(f'deployment run prbench-nightly/{deployments[0].name}')}")
    try:
        await runner.start()
    except Exception as error:
        raise PipelineError(
            f"the deployments are no longer served ({type(error).__name__}): is the Prefect server running? "
            "Start `prbench serve` again"
        ) from error


async def register(job: Job, arguments: Arguments, name: str | None, work_pool: str) -> None:
    """Register the deployments with the configured Prefect server for the workers of a work pool.

    Raises:
        UsageError: deployments of these names belong to another warehouse or benchmark, or there is no such work pool.
    """
    follow_no_redirects()
    # Relative paths of the configuration are relative to the folder of the command, as in a run that starts here.
    deployments = await _deployments(job, arguments, name, job_variables={"working_dir": str(Path.cwd())})
    async with get_client() as client:
        try:
            await client.read_work_pool(work_pool)
        except ObjectNotFound as error:
            create = at_this_server(f"work-pool create {work_pool} --type process")
            raise UsageError(f"--work-pool {work_pool}: there is no such work pool; `{create}` creates it") from error
    for each in deployments:
        await each.aapply(work_pool_name=work_pool)
    notice(f"registered: {', '.join(each.name for each in deployments)}")
    notice(f"a worker for them: {at_this_server(f'worker start --pool {work_pool}')}")


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
                notice(f"{_taken(found[0], owners[0])}; these get the name {own}")
            return found[place]
    raise UsageError(f"{_taken(found[-1], owners[-1])}; choose another --name")


def _taken(deployments: list[RunnerDeployment], owner: str | None) -> str:
    name, ours = deployments[0].full_name, _served(deployments[0].parameters)
    delete = at_this_server(f"deployment delete {name}")
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
    deployments = [
        await of.nightly.ato_deployment(f"nightly{suffix}", schedule=schedule, parameters=of_one, **options),
        await of.backfill.ato_deployment(f"backfill{suffix}", parameters=of_one, **options),
        await of.check.ato_deployment(f"check{suffix}", parameters=of_one, **options),
        await of.compact.ato_deployment(f"compact{suffix}", parameters=where, **options),
    ]
    for each in deployments:
        # Prefect has no option for it.
        known = each._parameter_openapi_schema.model_dump()
        each._parameter_openapi_schema = _KnownParameters(**known, additionalProperties=False)
    return deployments


class _KnownParameters(ParameterSchema):
    """The parameters of a flow, and no others.

    A server that knows this refuses an unknown one when a run is asked for; the run would crash before it begins.
    """

    additionalProperties: bool  # noqa: N815 - the name is JSON Schema's


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


async def _close_killed(deployment_ids: list[UUID]) -> None:
    """Show as crashed the runs that were killed with an earlier `prbench serve`; Prefect would show them as running.

    Runs of a work pool were not started there: their workers say what became of them.
    """
    of_these = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=deployment_ids), state=_IN_PROGRESS)
    async with get_client() as client:
        found = await client.read_flow_runs(flow_run_filter=of_these)
        killed = [run for run in found if run.work_pool_id is None]
        while killed:
            for run in killed:
                await client.set_flow_run_state(run.id, Crashed(message=_KILLED), force=True)
            below = FlowRunFilterParentFlowRunId(any_=[run.id for run in killed])
            killed = await client.read_flow_runs(
                flow_run_filter=FlowRunFilter(parent_flow_run_id=below, state=_IN_PROGRESS)
            )


def at_this_server(command: str) -> str:
    """A Prefect command for this server. Without an address Prefect would start a server that asks for no secret."""
    api = get_current_settings().api
    secret = api.auth_string.get_secret_value() if api.auth_string else None
    path = secret_path(urlsplit(api.url or "").port or 0)
    is_own = secret is not None and path.is_file() and path.read_text() == secret
    given = f'PREFECT_API_AUTH_STRING="$(cat {shlex.quote(str(path))})" ' if is_own else ""
    return f"PREFECT_API_URL={api.url} {given}prefect {command}"
