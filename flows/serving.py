"""`prbench serve`: the deployments, registered with a Prefect server and run when their time comes."""

import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.asked import Asked
from flows.config import DEFAULT_FILE
from flows.environment import prepare
from tasks.progress import say
from tasks.rules.errors import PipelineError
from tasks.settings import Job

_HOST = "127.0.0.1"
_START_S, _STOP_S = 180.0, 30.0


def serve(job: Job, asked: Asked, *, port: int, is_verbose: bool) -> int:
    """Serve the deployments until interrupted; with a Prefect server of its own where none is named."""
    prepare(is_verbose=is_verbose)
    with _server(job, port) as api:
        os.environ["PREFECT_API_URL"] = api
        say(f"Prefect: {api.removesuffix('/api')}")
        _serve(job, asked)
    return 0


def _serve(job: Job, asked: Asked) -> None:
    from prefect import serve as serve_deployments

    deployments = _deployments(job, asked)
    nightly = job.settings.nightly
    say(f"nights begin at {nightly.cron!r} ({nightly.timezone})")
    say("one by hand: prefect deployment run prbench-nightly/nightly")
    with contextlib.suppress(KeyboardInterrupt):
        serve_deployments(*deployments, print_starting_message=False)


def _deployments(job: Job, asked: Asked) -> list[Any]:
    from prefect.schedules import Cron
    from prefect.types.entrypoint import EntrypointType

    from flows import deployments as of

    # The runs are processes of their own, which find files from wherever they are.
    config = asked.config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    where = {"config": str(config.absolute()) if config else None, "warehouse": str(job.warehouse)}
    common: dict[str, Any] = {
        "parameters": where, "tags": [job.settings.benchmark],
        "entrypoint_type": EntrypointType.MODULE_PATH,
    }  # fmt: skip
    nightly = job.settings.nightly
    schedule = Cron(nightly.cron, timezone=nightly.timezone)
    return [
        of.nightly.to_deployment("nightly", schedule=schedule, **common),
        of.backfill.to_deployment("backfill", **common),
        of.check.to_deployment("check", **common),
        of.compact.to_deployment("compact", **common),
    ]


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
