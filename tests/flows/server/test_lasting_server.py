"""Whose server has the port, and who can read its secret."""

import fcntl
import os
import socket
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from flows.server import own_server
from flows.server.own_server import OwnServer, lasting_server
from tasks.rules.errors import PipelineError, UsageError


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The secrets of servers that were started, in a Prefect home of their own; none of them is a real one."""
    secrets: list[str] = []

    def start(listening: socket.socket, file: BinaryIO, *_: object) -> OwnServer:
        secrets.append(own_server._read(file) or own_server._made(file))
        return OwnServer(f"http://127.0.0.1:{listening.getsockname()[1]}/api", secrets[-1])

    monkeypatch.setattr(own_server, "_started", start)
    monkeypatch.setattr(own_server, "secret_path", lambda port: tmp_path / "home" / "prbench" / f"{port}.secret")
    return secrets


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def test_a_secret_is_its_users_alone_whatever_the_mask_and_stays_the_same(started: list[str]) -> None:
    port, other = free_port(), free_port()
    before = os.umask(0)
    try:
        first = lasting_server(port, {})
    finally:
        os.umask(before)
    path = own_server.secret_path(port)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
    assert path.read_text() == first.secret
    assert first.secret.startswith("prbench:")
    assert len(first.secret) > 40

    assert lasting_server(port, {}).secret == first.secret
    assert lasting_server(other, {}).secret != first.secret
    assert first.secret not in repr(first)


def test_the_port_of_a_server_of_ones_own_is_shared_and_that_of_anything_else_is_not(started: list[str]) -> None:
    port = free_port()
    secret = lasting_server(port, {}).secret
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(UsageError, match=f"--port {port}: .*PREFECT_API_URL"):
            lasting_server(port, {})
        with own_server.secret_path(port).open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # as the process of the server does
            found = lasting_server(port, {})
    assert (found.url, found.secret, found.process) == (f"http://127.0.0.1:{port}/api", secret, None)
    assert len(started) == 1


@pytest.mark.parametrize("widened", [0o644, 0o640, 0o602])
def test_a_secret_that_others_can_get_at_is_not_used(started: list[str], widened: int) -> None:
    port = free_port()
    lasting_server(port, {})
    own_server.secret_path(port).chmod(widened)

    with pytest.raises(UsageError, match="other users can read this secret; delete"):
        lasting_server(port, {})
    assert len(started) == 1


def test_a_secret_that_is_a_link_or_in_a_folder_of_others_is_not_used(started: list[str], tmp_path: Path) -> None:
    port = free_port()
    path = own_server.secret_path(port)
    path.parent.mkdir(parents=True, mode=0o777)
    path.parent.chmod(0o777)
    with pytest.raises(UsageError, match="other users can read this secret"):
        lasting_server(port, {})
    path.unlink(missing_ok=True)
    path.parent.chmod(0o700)
    (tmp_path / "elsewhere").write_text("prbench:known")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link"):
        lasting_server(port, {})
    assert started == []


def test_a_server_that_is_only_just_started_by_another_command_is_told(started: list[str]) -> None:
    port = free_port()
    path = own_server.secret_path(port)
    path.parent.mkdir(parents=True, mode=0o700)
    with socket.create_server(("127.0.0.1", port)), os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match="is being started"):
            lasting_server(port, {})
