"""`prbench serve`: the deployments, registered with a Prefect server and run when their time comes."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator

from flows.registration import run_deployments
from flows.run.arguments import Asked
from flows.server.own_server import lasting_server, named_server, secret_path
from flows.server.prefect_environment import prepare
from flows.supervisor import supervise
from tasks.config.settings import Job
from tasks.console.progress import notice


def serve(job: Job, asked: Asked, *, port: int, is_verbose: bool, name: str | None = None) -> int:
    """Serve the deployments until interrupted; with a Prefect server of its own where none is named.

    The runs that are under way end first, then what starts them, and the server last, since all of them tell it.
    `name` tells the deployments of several warehouses on one Prefect server apart.

    Raises:
        UsageError: deployments of these names serve another warehouse, or the port is taken.
        PipelineError: no Prefect server starts, or what runs the deployments ended by itself.
    """
    prepare(is_verbose=is_verbose)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _server(job, port):
            supervise(run_deployments, job, asked, name)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


@contextlib.contextmanager
def _server(job: Job, port: int) -> Iterator[None]:
    """A Prefect server that is used meanwhile: the one that is named, or one of this user's on the port."""
    if named := named_server():
        notice(f"Prefect: {named.removesuffix('/api')}")
        yield
        return
    server = lasting_server(port, _settings(job))
    try:
        asyncio.run(server.until_ready())
        server.use()
        notice(f"Prefect: {server.url.removesuffix('/api')}, the password is in {secret_path(port)}")
        yield
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
