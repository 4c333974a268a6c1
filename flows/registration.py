"""The deployments as a Prefect server knows them: their names, schedule and parameters, and whose they are."""

import asyncio
import contextlib
import shlex
from typing import Any
from urllib.parse import urlsplit

from flows.run.arguments import Asked
from flows.run.config import DEFAULT_FILE, DEFAULT_WAREHOUSE
from flows.server.own_server import secret_path
from flows.server.prefect_environment import follow_no_redirects, prepare
from tasks.config.settings import Job
from tasks.console.progress import notice
from tasks.rules.errors import UsageError


def run_deployments(job: Job, asked: Asked, name: str | None) -> None:
    """Register the deployments with the Prefect server of the environment, and run them until interrupted.

    Raises:
        UsageError: deployments of these names serve another warehouse or benchmark.
    """
    prepare()
    from prefect import serve as serve_deployments

    follow_no_redirects()
    deployments = _deployments(job, asked, name)
    asyncio.run(_refuse_others(deployments))
    nightly = job.settings.nightly
    notice(f"nights start at {nightly.cron!r} ({nightly.timezone})")
    notice(f"to start one now: {at_this_server(f'deployment run prbench-nightly/{deployments[0].name}')}")
    with contextlib.suppress(KeyboardInterrupt):
        # A schedule that a restart pauses would stay so when the next start fails.
        serve_deployments(*deployments, pause_on_shutdown=False, print_starting_message=False)


def _deployments(job: Job, asked: Asked, name: str | None) -> list[Any]:
    from prefect.schedules import Cron
    from prefect.types.entrypoint import EntrypointType

    from flows import deployments as of

    # The runs are processes of their own, which find files from wherever they are.
    config = asked.config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    where = {"config": str(config.absolute()) if config else None, "warehouse": str(job.warehouse)}
    of_one = where | {"benchmark": asked.benchmark}
    common: dict[str, Any] = {"tags": [job.settings.benchmark], "entrypoint_type": EntrypointType.MODULE_PATH}
    nightly = job.settings.nightly
    schedule = Cron(nightly.cron, timezone=nightly.timezone)
    suffix = f"-{name}" if name else ""
    return [
        of.nightly.to_deployment(f"nightly{suffix}", schedule=schedule, parameters=of_one, **common),
        of.backfill.to_deployment(f"backfill{suffix}", parameters=of_one, **common),
        of.check.to_deployment(f"check{suffix}", parameters=of_one, **common),
        of.compact.to_deployment(f"compact{suffix}", parameters=where, **common),
    ]


async def _refuse_others(deployments: list[Any]) -> None:
    """Leave deployments of another warehouse or benchmark alone: registering these would turn them into this one's."""
    from prefect import get_client
    from prefect.exceptions import ObjectNotFound

    async with get_client() as client:
        for each in deployments:
            full_name = f"{each.flow_name}/{each.name}"
            try:
                found = await client.read_deployment_by_name(full_name)
            except ObjectNotFound:
                continue
            theirs, ours = _served(found.parameters), _served(each.parameters)
            if theirs != ours:
                delete = at_this_server(f"deployment delete {full_name}")
                raise UsageError(
                    f"the deployment {full_name} of this Prefect server is for {theirs}, not for {ours}; "
                    f"give these a --name of their own, or `{delete}` if it is not needed"
                )


def _served(parameters: dict[str, Any]) -> str:
    """What deployments with these parameters are for."""
    warehouse = f"the warehouse {parameters.get('warehouse') or DEFAULT_WAREHOUSE}"
    return f"{warehouse} and the benchmark {parameters['benchmark']}" if parameters.get("benchmark") else warehouse


def at_this_server(command: str) -> str:
    """A command of Prefect's that asks this server. Without an address it would start one that asks for no secret."""
    from prefect.settings import get_current_settings

    api = get_current_settings().api
    secret = api.auth_string.get_secret_value() if api.auth_string else None
    path = secret_path(urlsplit(api.url or "").port or 0)
    is_own = secret is not None and path.is_file() and path.read_text() == secret
    given = f'PREFECT_API_AUTH_STRING="$(cat {shlex.quote(str(path))})" ' if is_own else ""
    return f"PREFECT_API_URL={api.url} {given}prefect {command}"
