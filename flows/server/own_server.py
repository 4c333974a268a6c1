"""A Prefect server of one's own, with a secret in a file that only its user can read.

Prefect would start one by itself (its ephemeral server), which takes orders from any local user and any web page. This
one is the process of `flows/server/server_process.py`. It gets the socket from here, so that its port is this user's
from the beginning, and the file with the secret, whose lock it holds for as long as it runs.
"""

import asyncio
import atexit
import errno
import fcntl
import http.client
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from flows.server.loopback import HOST
from flows.server.server_process import FOR_ONE_RUN
from tasks.rules.errors import PipelineError, UsageError

_USER = "prbench"
_STOP_S = 30.0
_LOOK_EVERY_S = 0.2
_UNANSWERED = "no Prefect server answers at {url}; run again, or start one of your own and set PREFECT_API_URL"


@dataclass(frozen=True)
class OwnServer:
    """Where a server of this user answers, what it requires, and its process if it was started here."""

    url: str
    secret: str = field(repr=False)
    process: "subprocess.Popen[bytes] | None" = None

    def use(self) -> None:
        """Have Prefect, here and in the processes that are started from now on, talk to this server."""
        os.environ |= {"PREFECT_API_URL": self.url, "PREFECT_API_AUTH_STRING": self.secret}
        if "prefect" in sys.modules:
            from prefect.context import refresh_global_settings_context

            refresh_global_settings_context()

    async def until_ready(self) -> None:
        """Wait until it answers.

        Raises:
            PipelineError: it does not.
        """
        deadline_s = time.monotonic() + _longest_start_s()
        while not await asyncio.to_thread(answers, self.url):
            has_ended = self.process is not None and self.process.poll() is not None
            if has_ended or time.monotonic() > deadline_s:
                raise PipelineError(_UNANSWERED.format(url=self.url))
            await asyncio.sleep(_LOOK_EVERY_S)

    def stop(self) -> None:
        """End it, if it was started here."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def named_server() -> str | None:
    """The API of the server that the environment or a profile of Prefect's names."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url or None


def started_for_this_run() -> OwnServer | None:
    """Start a server that ends with this process and use it, unless one is named or was started already."""
    if named_server():
        return None
    with tempfile.TemporaryFile() as file, _listening(0) as listening:
        server = _started(listening, file, {}, FOR_ONE_RUN)
    atexit.register(server.stop)
    server.use()
    return server


def lasting_server(port: int, settings: Mapping[str, str]) -> OwnServer:
    """The server of this user on a port: the one that runs there already, or one that is started now.

    Raises:
        UsageError: something else has the port, or other users can get at the file with the secret.
    """
    with _secret_file(port) as file:
        try:
            listening = _listening(port)
        except UsageError:
            if not _is_locked(file):
                raise
            # Only who has the port takes the lock, so it is no stranger who would get the secret, and be obeyed.
            if not (secret := _read(file)):
                raise PipelineError(
                    f"--port {port}: its server is being started by another command; run again"
                ) from None
            return OwnServer(_url(port), secret)
        with listening:
            fcntl.flock(file, fcntl.LOCK_EX)
            return _started(listening, file, settings)


def secret_path(port: int) -> Path:
    """Where the secret of the lasting server on a port is kept; it stays the same when that is started again."""
    from prefect.settings import get_current_settings

    return get_current_settings().home / "prbench" / f"server-{port}.secret"


def _started(listening: socket.socket, file: BinaryIO, settings: Mapping[str, str], *options: str) -> OwnServer:
    secret = _read(file) or _made(file)
    url = _url(listening.getsockname()[1])
    given = (listening.fileno(), file.fileno())
    # -P: a folder in which the command happens to run is not looked at for modules.
    command = [sys.executable, "-P", "-m", "flows.server.server_process", *map(str, given), *options]
    process = subprocess.Popen(
        command, env=os.environ | settings, pass_fds=given, stdout=subprocess.DEVNULL,
        # Closed when this process ends, however it ends.
        stdin=subprocess.PIPE if FOR_ONE_RUN in options else subprocess.DEVNULL,
        # In a session of its own: Ctrl-C in a terminal must not end it before those who talk to it.
        start_new_session=True,
    )  # fmt: skip
    return OwnServer(url, secret, process)


def _url(port: int) -> str:
    return f"http://{HOST}:{port}/api"


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=2048)
    except OSError as error:
        raise UsageError(
            f"--port {port}: {error.strerror}; choose another one, or set PREFECT_API_URL if a Prefect server of "
            "yours runs there"
        ) from error


def _secret_file(port: int) -> BinaryIO:
    path = secret_path(port)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # It never exists with another mode, and is no link to somebody else's file.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        why = "is a link" if error.errno == errno.ELOOP else f"cannot be written ({error.strerror})"
        raise UsageError(f"{path} {why}; delete it and start again") from error
    file = os.fdopen(descriptor, "r+b", buffering=0)
    for found in (path.parent.stat(), os.fstat(descriptor)):
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            file.close()
            raise UsageError(f"{path}: other users can read this secret; delete {path.parent} and start again")
    return file


def _is_locked(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _read(file: BinaryIO) -> str:
    return os.pread(file.fileno(), 1024, 0).decode()


def _made(file: BinaryIO) -> str:
    secret = f"{_USER}:{secrets.token_urlsafe(32)}"
    os.pwrite(file.fileno(), secret.encode(), 0)
    os.fsync(file.fileno())
    return secret


def place_of(url: str) -> str:
    """Where a server is, for messages: host and port, without a password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def answers(url: str) -> bool:
    """Whether a server is there and well."""
    try:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{url}/health", timeout=5):
            return True
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return False


def _longest_start_s() -> float:
    from prefect.settings import get_current_settings

    return float(get_current_settings().server.ephemeral.startup_timeout_seconds)
