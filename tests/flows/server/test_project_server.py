"""The project's own Prefect server for a data folder: who starts it, who uses it, and who can read
its secret.
"""

import fcntl
import json
import os
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.server import (
    ADDRESS,
    USERS,
    NoServerError,
    named_server,
    own_server,
    secret_path,
    server_of,
)
from tasks.config.job import Job
from tests.kit import job_on


@dataclass
class StartedServer:
    """A server that would have been started; it keeps its lock as the server's process would."""

    command: list[str]
    environment: dict[str, str]
    lock: int

    def end(self):
        os.close(self.lock)


@pytest.fixture
def servers(tmp_path, monkeypatch) -> list[StartedServer]:
    """The servers of a user without a configuration; none is really started."""
    servers = []

    def start(command, **options):
        lock = os.dup(options["pass_fds"][2])
        servers.append(StartedServer(command, options["env"], lock))

    monkeypatch.setattr(subprocess, "Popen", start)
    for name in list(os.environ):
        if name.startswith(("PREFECT_API", "PRBENCH_PREFECT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("flows.server.HELD", {})
    monkeypatch.chdir(tmp_path)
    return servers


def job_in(folder: Path, name: str = "data", **settings: Any) -> Job:
    return job_on("sample", folder / name, **settings)


@pytest.fixture
def job(tmp_path) -> Job:
    return job_in(tmp_path)


def folder_of(job: Job) -> Path:
    return job.warehouse / "prefect"


def secret_of(job: Job) -> Path:
    """The file with the secret of a folder's server."""
    return secret_path(folder_of(job).resolve())


def test_a_folder_has_one_server(servers, tmp_path, job):
    server = own_server(job)

    assert own_server(job) == server
    assert own_server(job_in(tmp_path, "other")).url != server.url
    assert len(servers) == 2


def test_a_server_keeps_runs_as_long_as_configured(servers, tmp_path):
    own_server(job_in(tmp_path, retention={"prefect_days": 9}))

    environment = servers[0].environment
    assert environment["PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD"] == "P9D"
    assert environment["PREFECT_SERVER_EVENTS_RETENTION_PERIOD"] == "P7D"


@pytest.mark.usefixtures("servers")
def test_the_users_of_a_server_share_a_lock(job):
    own_server(job)

    with (
        (folder_of(job) / USERS).open() as users,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_server_after_the_last_one_ended_has_the_same_secret(servers, job):
    ended_server = own_server(job)
    servers[0].end()

    server = own_server(job)

    assert server.url != ended_server.url
    assert server.secret == ended_server.secret


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_secret_is_its_users_alone(servers, job):
    umask = os.umask(0)
    try:
        server = own_server(job)
    finally:
        os.umask(umask)

    path = secret_of(job)
    assert path.read_text() == server.secret
    assert len(server.secret) > 40
    assert mode_of(path) == 0o600
    assert mode_of(path.parent) == 0o700
    assert mode_of(folder_of(job)) == 0o700
    assert server.secret not in repr(server)
    assert server.secret not in str(servers[0].command)


@pytest.mark.usefixtures("servers")
def test_a_secret_is_not_beside_the_data(job):
    server = own_server(job)

    for file in folder_of(job).iterdir():
        assert server.secret not in file.read_text()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_secret_that_others_can_get_at_is_not_used(servers, job, mode):
    own_server(job)
    servers[0].end()
    secret_of(job).chmod(mode)

    with pytest.raises(
        NoServerError, match="other users can read this secret; delete"
    ):
        own_server(job)

    assert len(servers) == 1


def test_a_secret_in_a_folder_of_others_is_not_used(servers, job):
    path = secret_of(job)
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o777)

    with pytest.raises(NoServerError, match="other users can read this secret"):
        own_server(job)

    assert servers == []


def test_a_secret_that_is_a_link_is_not_used(servers, tmp_path, job):
    path = secret_of(job)
    path.parent.mkdir(parents=True, mode=0o700)
    (tmp_path / "elsewhere").write_text("prbench:known")
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NoServerError, match="is a link"):
        own_server(job)

    assert servers == []


@pytest.mark.usefixtures("servers")
def test_a_port_in_use_is_refused(job):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(NoServerError, match=f"--port {port}: .*PREFECT_API_URL"):
            own_server(job, port)


def move_to_another_machine(address: Path):
    """Have the address of a server say that it runs on `node7`."""
    values = json.loads(address.read_text())
    address.write_text(json.dumps(values | {"machine": "another", "host": "node7"}))


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_server_of_another_machine_is_not_used(servers, job, is_locked, capsys):
    own_server(job)
    if not is_locked:
        servers[0].end()
    move_to_another_machine(folder_of(job) / ADDRESS)

    assert server_of(job) is None
    assert capsys.readouterr().err == (
        "no Prefect server: the server of this data folder runs on node7; this run is not"
        " recorded\n"
    )


def test_a_server_of_another_machine_that_gave_no_sign_of_life_is_replaced(
    servers, job
):
    own_server(job)
    servers[0].end()
    address = folder_of(job) / ADDRESS
    move_to_another_machine(address)
    os.utime(address, (0, 0))

    own_server(job)

    assert len(servers) == 2


@pytest.mark.parametrize("content", ["", "{"])
def test_without_an_address_nothing_waits_for_ever(
    servers,
    job,
    monkeypatch,
    capsys,
    content,
):
    monkeypatch.setattr("flows.server.START_S", 0.2)
    own_server(job)
    address = folder_of(job) / ADDRESS
    address.write_text(content)

    assert server_of(job) is None
    reason = (
        f"{address.resolve()} does not hold its address; this run is not recorded"
    )
    assert capsys.readouterr().err == f"no Prefect server: {reason}\n"
    servers[0].end()
    assert own_server(job).secret


@pytest.mark.parametrize("value", ["off", False])  # False is how YAML reads `off`
def test_unrecorded_runs_start_no_server(servers, tmp_path, value):
    assert server_of(job_in(tmp_path, prefect=value)) is None
    assert servers == []


def test_the_environment_can_switch_recording_off(servers, job, monkeypatch):
    monkeypatch.setenv("PRBENCH_PREFECT", "off")

    assert server_of(job) is None
    assert servers == []


@pytest.mark.usefixtures("servers")
def test_the_server_of_another_user_is_not_used(job, monkeypatch, capsys):
    own_server(job)
    monkeypatch.setattr(os, "getuid", lambda: 12345)

    assert server_of(job) is None
    assert "is another user's; this run is not recorded" in capsys.readouterr().err


def test_a_configured_address_may_end_with_a_slash(monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api/")

    assert named_server() == "http://127.0.0.1:1/api"


def test_a_silent_server_is_reported_without_its_password(
    servers,
    job,
    monkeypatch,
    capsys,
):
    monkeypatch.setenv("PREFECT_API_URL", "http://me:a-password@127.0.0.1:1/api")

    server = server_of(job)

    assert server is not None
    assert not server.wait_until_ready(0.3)
    line = (
        "Prefect's server at 127.0.0.1:1 does not respond; waiting up to 0 s for it"
    )
    assert capsys.readouterr().err == f"{line}\n"
    assert servers == []


_AS_A_NOTEBOOK = """
import {module}
import flows.recorded
from prefect.settings import get_current_settings
settings = get_current_settings()
server = settings.server
print(server.ephemeral.enabled, server.analytics_enabled)
print(settings.client.max_retries, settings.api.url)
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["flows", "prefect.context"])
def test_importing_flows_starts_no_server_and_switches_off_what_prefect_would_start(
    module,
    tmp_path,
    monkeypatch,
):
    for name in list(os.environ):
        if name.startswith("PREFECT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))

    process = subprocess.run(
        [sys.executable, "-c", _AS_A_NOTEBOOK.format(module=module)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert process.stdout.split() == ["False", "False", "3", "None"], process.stderr
    assert not (tmp_path / "prefect.db").exists()
