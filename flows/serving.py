"""`prbench serve`: a Prefect server, and the deployments whose runs start from here."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from flows.run.arguments import Arguments
from flows.run.signals import run_interruptibly
from flows.server.own_server import lasting_server, named_server, secret_path
from flows.server.prefect_environment import prepare
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import UsageError


def serve(
    job: Job,
    arguments: Arguments,
    *,
    port: int,
    is_verbose: bool,
    name: str | None = None,
    work_pool: str | None = None,
) -> int:
    """Serve the deployments until interrupted; with a Prefect server of its own if none is configured.

    Runs that are in progress end in order first, then what starts them, and the server last, since all of them report
    to it. `name` is added to the names of the deployments, to tell those of several warehouses on one Prefect server
    apart. With a `work_pool` they are registered for its workers, and nothing is served from here.

    Raises:
        UsageError: deployments of these names belong to another warehouse, or the port is taken.
        WarehouseBusy: these deployments are served already.
        PipelineError: no Prefect server answers, or it stopped answering.
    """
    prepare(is_verbose=is_verbose)
    if work_pool is not None:
        _register(job, arguments, name, work_pool)
        return 0
    with _server(job, port) as until_ready:
        try:
            run_interruptibly(lambda: _run(job, arguments, name, until_ready))
        except (asyncio.CancelledError, KeyboardInterrupt):
            notice("stopped; the schedules stay active")
    return 0


def _register(job: Job, arguments: Arguments, name: str | None, work_pool: str) -> None:
    if not named_server():
        raise UsageError("--work-pool: set PREFECT_API_URL to the Prefect server that has the work pool")
    from flows.registration import register

    asyncio.run(register(job, arguments, name, work_pool))


async def _run(job: Job, arguments: Arguments, name: str | None, until_ready: Callable[[], Awaitable[None]]) -> None:
    await until_ready()
    from flows.registration import run_deployments

    await run_deployments(job, arguments, name)


@contextlib.contextmanager
def _server(job: Job, port: int) -> Iterator[Callable[[], Awaitable[None]]]:
    """Use a Prefect server meanwhile: the configured one, or this user's own on the port. Gives what waits for it."""
    if named := named_server():
        notice(f"Prefect: {named.removesuffix('/api')}")
        yield partial(asyncio.sleep, 0)
        return
    server = lasting_server(port, _settings(job))
    server.use()
    notice(f"Prefect: {server.url.removesuffix('/api')}, the password is in {secret_path(port)}")
    try:
        yield server.until_ready
    finally:
        server.stop()


def _settings(job: Job) -> dict[str, str]:
    """How long the server keeps finished runs."""
    days = job.settings.retention.prefect_days
    if days is None:
        return {}
    return {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": f"P{days}D",
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": f"P{min(days, 7)}D",
    }
