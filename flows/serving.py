"""`prbench serve`: the deployments, registered with a Prefect server and run when their time comes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from flows.asked import Asked
from flows.environment import prepare
from flows.registration import run_deployments
from flows.supervision import supervise
from tasks.progress import say
from tasks.rules.errors import PipelineError
from tasks.settings import Job

_HOST = "127.0.0.1"
_START_S, _STOP_S = 180.0, 30.0


def serve(job: Job, asked: Asked, *, port: int, is_verbose: bool, name: str | None = None) -> int:
    """Serve the deployments until interrupted; with a Prefect server of its own where none is named.

    The runs that are under way end first, then what starts them, and the server last, since all of them tell it.
    `name` tells the deployments of several warehouses on one Prefect server apart.

    Raises:
        UsageError: deployments of these names serve another warehouse.
        PipelineError: no Prefect server starts, or what runs the deployments ended by itself.
    """
    prepare(is_verbose=is_verbose)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _server(job, port) as api:
            os.environ["PREFECT_API_URL"] = api
            say(f"Prefect: {api.removesuffix('/api')}")
            supervise(run_deployments, job, asked, name)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


@contextlib.contextmanager
def _server(job: Job, port: int) -> Iterator[str]:
    """The API of a Prefect server: the one that is named, or answers on the port, or one started here."""
    if named := os.environ.get("PREFECT_API_URL"):
        yield named
        return
    api = f"http://{_HOST}:{port}/api"
    if _is_healthy(api):
        yield api
        return
    command = [str(Path(sys.executable).with_name("prefect")), "server", "start", "--host", _HOST, "--port", str(port)]
    # In a session of its own: Ctrl-C in a terminal must not end it before the deployments have been taken back.
    server = subprocess.Popen(
        command, env=os.environ | _settings(job, api), stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        _wait_for(server, api, port)
        yield api
    finally:
        server.terminate()
        try:
            server.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            server.kill()


def _settings(job: Job, api: str) -> dict[str, str]:
    """Where the server's pages find it, and how long it keeps finished runs."""
    days = job.settings.retention.prefect_days
    pages = {"PREFECT_UI_API_URL": api}
    if days is None:
        return pages
    return pages | {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": f"P{days}D",
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": f"P{min(days, 7)}D",
    }


def _wait_for(server: "subprocess.Popen[bytes]", api: str, port: int) -> None:
    deadline_s = time.monotonic() + _START_S
    while not _is_healthy(api):
        if server.poll() is not None or time.monotonic() > deadline_s:
            raise PipelineError(f"no Prefect server starts on port {port}; if it is taken, choose another --port")
        time.sleep(0.5)


def _is_healthy(api: str) -> bool:
    try:
        with urllib.request.urlopen(f"{api}/health", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
