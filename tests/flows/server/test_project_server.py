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
from pathlib import Path
from typing import Any

import pytest

from flows.server import ADDRESS, USERS, NoServerError, own_server, secret_path, server_of
from tasks.config.job import Job
from tests.kit import Patch, Printed, job_on


@pytest.fixture
def started(tmp_path: Path, monkeypatch: Patch) -> list[Any]:
    """The commands that would have started servers, for a user without a configuration; none is
    really started.
    """
    commands: list[Any] = []

    def start(command: list[str], **options: Any) -> None:
        # Keeps the lock, as the server's process would.
        commands.append((command, options, os.dup(options["pass_fds"][2])))

    monkeypatch.setattr(subprocess, "Popen", start)
    for name in [
        name for name in os.environ if name.startswith(("PREFECT_API", "PRBENCH_PREFECT"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("flows.server.HELD", {})
    monkeypatch.chdir(tmp_path)
    return commands


def job(tmp_path: Path, name: str = "data", **settings: Any) -> Job:
    return job_on("sample", tmp_path / name, **settings)


def folder_of(job: Job) -> Path:
    return job.warehouse / "prefect"


def ended(started: list[Any]) -> None:
    """End the server that was started last."""
    os.close(started[-1][2])


def test_a_folder_has_one_server_and_its_users_share_a_lock(
    started: list[Any], tmp_path: Path
) -> None:
    first = own_server(job(tmp_path, retention={"prefect_days": 9}))
    again = own_server(job(tmp_path))
    assert again == first
    assert len(started) == 1
    kept = {name: value for name, value in started[0][1]["env"].items() if "RETENTION" in name}
    days = {"SERVICES_DB_VACUUM": "P9D", "EVENTS": "P7D"}
    assert {
        f"PREFECT_SERVER_{name}_RETENTION_PERIOD": period for name, period in days.items()
    } == kept
    assert own_server(job(tmp_path, "other")).url != first.url
    with (folder_of(job(tmp_path)) / USERS).open() as users, pytest.raises(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(started[0][2])
    assert own_server(job(tmp_path)).url != first.url
    assert first.secret == own_server(job(tmp_path)).secret


def test_a_secret_is_its_users_alone_and_neither_shown_nor_beside_the_data(
    started: list[Any], tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        server = own_server(job(tmp_path))
    finally:
        os.umask(before)
    path = secret_path(folder_of(job(tmp_path)).resolve())
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
    assert stat.S_IMODE(folder_of(job(tmp_path)).stat().st_mode) == 0o700
    assert server.secret == path.read_text()
    assert len(server.secret) > 40
    assert server.secret not in repr(server) + str(started)
    assert not any(server.secret in each.read_text() for each in folder_of(job(tmp_path)).iterdir())


@pytest.mark.parametrize("widened", [0o644, 0o640, 0o602])
def test_a_secret_that_others_can_get_at_is_not_used(
    started: list[Any], tmp_path: Path, widened: int
) -> None:
    own_server(job(tmp_path))
    ended(started)
    secret_path(folder_of(job(tmp_path)).resolve()).chmod(widened)
    with pytest.raises(NoServerError, match="other users can read this secret; delete"):
        own_server(job(tmp_path))
    assert len(started) == 1


def test_a_secret_that_is_a_link_or_in_a_folder_of_others_is_not_used(
    started: list[Any], tmp_path: Path
) -> None:
    path = secret_path(folder_of(job(tmp_path)).resolve())
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o777)
    with pytest.raises(NoServerError, match="other users can read this secret"):
        own_server(job(tmp_path))
    path.unlink(missing_ok=True)
    path.parent.chmod(0o700)
    (tmp_path / "elsewhere").write_text("prbench:known")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoServerError, match="is a link"):
        own_server(job(tmp_path))
    assert started == []


def test_a_port_in_use_is_refused(started: list[Any], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NoServerError, match=f"--port {port}: .*PREFECT_API_URL"):
            own_server(job(tmp_path), port)


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_server_of_another_machine_is_not_used(
    started: list[Any], tmp_path: Path, is_locked: bool, capsys: Printed
) -> None:
    own_server(job(tmp_path))
    if not is_locked:
        ended(started)
    address = folder_of(job(tmp_path)) / ADDRESS
    address.write_text(
        json.dumps(json.loads(address.read_text()) | {"machine": "another", "host": "node7"})
    )
    assert server_of(job(tmp_path)) is None
    stderr = capsys.readouterr().err
    assert stderr == (
        "no Prefect server: the server of this data folder runs on node7; this run is not"
        " recorded\n"
    )
    os.utime(address, (0, 0))
    if not is_locked:
        assert own_server(job(tmp_path)).secret
        assert len(started) == 2


@pytest.mark.parametrize("content", ["", "{"])
def test_without_an_address_nothing_waits_for_ever(
    started: list[Any], tmp_path: Path, monkeypatch: Patch, capsys: Printed, content: str
) -> None:
    monkeypatch.setattr("flows.server.START_S", 0.2)
    own_server(job(tmp_path))
    address = folder_of(job(tmp_path)) / ADDRESS
    address.write_text(content)
    assert server_of(job(tmp_path)) is None
    stderr = capsys.readouterr().err
    assert (
        f"no Prefect server: {address.resolve()} does not hold its address; this run is not"
        " recorded\n" == stderr
    )
    ended(started)
    assert own_server(job(tmp_path)).secret


def test_unrecorded_runs_start_no_server_nor_use_anothers(
    started: list[Any], tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    assert server_of(job(tmp_path, prefect="off")) is None
    assert server_of(job(tmp_path, prefect=False)) is None  # as YAML reads `off`
    with monkeypatch.context() as patch:
        patch.setenv("PRBENCH_PREFECT", "off")
        assert server_of(job(tmp_path)) is None
    assert started == []
    own_server(job(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert server_of(job(tmp_path)) is None
    assert "is another user's; this run is not recorded" in capsys.readouterr().err


def test_a_silent_server_is_reported_without_its_password(
    started: list[Any], tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://me:a-password@127.0.0.1:1/api")
    named = server_of(job(tmp_path))
    assert named is not None
    assert not named.is_ready(0.3)
    stderr = capsys.readouterr().err
    assert stderr == "Prefect's server at 127.0.0.1:1 does not respond; waiting up to 0 s for it\n"
    assert started == []


_AS_A_NOTEBOOK = """
import {first}
import flows.pipeline
from prefect.settings import get_current_settings
settings = get_current_settings()
server = settings.server
print(server.ephemeral.enabled, server.analytics_enabled, settings.client.max_retries, settings.api.url)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["flows", "prefect.context"])
def test_importing_flows_starts_no_server_and_switches_off_what_prefect_would_start(
    first: str, tmp_path: Path
) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")
    }
    shown = subprocess.run(
        [sys.executable, "-c", _AS_A_NOTEBOOK.format(first=first)],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"PREFECT_HOME": str(tmp_path)},
        cwd=tmp_path,
    )
    assert shown.stdout.split() == ["False", "False", "3", "None"], shown.stderr
    assert not (tmp_path / "prefect.db").exists()
