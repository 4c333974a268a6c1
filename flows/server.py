"""The Prefect server that records runs: the configured one, else the project's own, one for each
data folder.

Prefect's default (an ephemeral server) obeys any local user and any web page. The project's own
server is a process of this module, with a secret in a file in the user's Prefect home. The first
command that needs it starts it. Its users share a lock while they live, and it ends some time after
the last of them. It inherits its socket from here, so that no other user can take its port.

    python -P -m flows.server SOCKET SECRET LOCK FOLDER UNUSED_S

is that process: Prefect's server, behind a secret, for this machine alone. The first three are
numbers of open files: the socket to listen on; the file with the secret (so that it is neither in
the arguments nor in the environment of the process); and the lock of the folder's server. The
folder holds the database, and the lock that users share. UNUSED_S seconds after its last user the
server ends. Imports are few, so that it starts soon.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from tasks.console import notice
from tasks.rules.errors import UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from tasks.config.job import Job

HOST = "127.0.0.1"
ADDRESS = "address.json"
"""The file with the server's address, in its folder; its time is the server's last sign of life."""
USERS = "users.lock"
"""The file that the server's users lock in shared mode, and the server exclusively when it ends."""
FRESH_S = 60.0
"""The age in seconds at which a sign of life of a server on another machine expires."""
FOLDER = "prefect"
"""The server's folder within the data folder."""
UNUSED_S = 120.0
"""Seconds that a server keeps running after its last user, for the next command."""
START_S = 60.0
"""Time limit for a server to start, or to come back."""
_START_CHECK_S = 0.1


class NoServerError(UsageError):
    """An error: the project's own server cannot be used."""


@dataclass(frozen=True)
class PrefectServer:
    """The address of a Prefect server; for the project's own also its secret."""

    url: str
    secret: str = field(default="", repr=False)

    @property
    def host_and_port(self) -> str:
        """Host and port, without a password."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def use(self) -> None:
        """Make Prefect use this server, here and in processes started from now on.

        For a configured server it does nothing, since Prefect uses that anyway.
        """
        from prefect.context import refresh_global_settings_context

        if self.secret:
            os.environ |= {"PREFECT_API_URL": self.url, "PREFECT_API_AUTH_STRING": self.secret}
            refresh_global_settings_context()

    def wait_until_ready(self, within_s: float = START_S) -> bool:
        """Wait until the server responds, and return whether it does."""
        until_s = time.monotonic() + within_s
        is_up = self._is_up()
        if not is_up and not self.secret:  # the project's own server has just been started
            notice(
                f"Prefect's server at {self.host_and_port} does not respond; waiting up to"
                f" {within_s:.0f} s for it"
            )
        while not is_up and time.monotonic() < until_s:
            time.sleep(_START_CHECK_S)
            is_up = self._is_up()
        return is_up

    def _is_up(self) -> bool:
        """Return whether the server responds, even if only to demand a secret."""
        import httpx

        may_use_proxy = not self.secret  # the project's own server is never behind one
        try:
            response = httpx.get(f"{self.url}/health", timeout=5, trust_env=may_use_proxy)
        except (httpx.HTTPError, httpx.InvalidURL):
            return False
        return response.status_code in {200, 401, 403}


HELD: dict[Path, BinaryIO] = {}
"""Folder -> lock that this process holds as a user of the folder's server."""
_own_urls: set[str] = set()
"""The addresses of the project's own servers, which `use` may have put into the environment."""


def server_of(job: "Job") -> PrefectServer | None:
    """Return the server that records a job's run; it may still be starting. None: not recorded.

    Raises:
        UsageError: certificates or proxies of the environment cannot be used, so that no server
            could be reached.
    """
    from tasks.llm.variables import refuse_unusable_network  # not for the server's own process

    refuse_unusable_network()
    if job.settings.prefect == "off" or os.environ.get("PRBENCH_PREFECT") == "off":
        return None
    configured_url = named_server()
    if configured_url:
        return PrefectServer(configured_url)
    try:
        server = own_server(job)
    except (NoServerError, OSError) as error:
        notice(f"no Prefect server: {error}; this run is not recorded")
        return None
    server.use()
    return server


def named_server() -> str | None:
    """Return the API address of another server that the environment or a Prefect profile names.

    It does not end with a slash, so that paths can be added to it.
    """
    from prefect.settings import Settings

    url = Settings().api.url
    return None if url is None or url in _own_urls else url.rstrip("/")


def own_server(job: "Job", port: int = 0) -> PrefectServer:
    """Return the server of a data folder, started if necessary.

    This process counts as its user from now on.

    Raises:
        NoServerError: it belongs to another user or machine, or its port or secret cannot be used.
    """
    folder = job.warehouse.resolve() / FOLDER
    folder.mkdir(
        mode=0o700,
        parents=True,
        exist_ok=True,
    )
    if folder.stat().st_uid != os.getuid():
        raise NoServerError(f"{folder} is another user's")
    if folder not in HELD:
        users = (folder / USERS).open("a+b")
        # This waits for a server that is ending: it holds the lock exclusively.
        fcntl.flock(users, fcntl.LOCK_SH)
        HELD[folder] = users
    until_s = time.monotonic() + START_S
    with (folder / "server.lock").open("a+b") as server_lock:
        while not _try_lock(server_lock):
            server = _running_server(folder)
            if server is not None:
                return server
            if time.monotonic() > until_s:
                raise NoServerError(f"{folder / ADDRESS} does not hold its address")
            time.sleep(_START_CHECK_S)  # it is starting
        _read_address(folder, is_running=False)  # refuses a server on another machine
        return _start_server(job, folder, server_lock, port)


def _try_lock(file: BinaryIO) -> bool:
    """Lock the file that a running server keeps locked; False if one does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _running_server(folder: Path) -> PrefectServer | None:
    """Return the folder's server; None if it is starting and has no address yet."""
    address = _read_address(folder, is_running=True)
    if not address:
        return None
    with _secret_file(folder) as file:
        secret = _read_secret(file.fileno())
    if not secret:
        raise NoServerError(
            f"{secret_path(folder)} is gone; it is created again two minutes after the last run"
        )
    url = address["url"]
    _own_urls.add(url)
    return PrefectServer(url, secret)


def _read_address(folder: Path, *, is_running: bool) -> dict[str, str]:
    """Return the address of a folder's server; empty if the file is missing or being written.

    Raises:
        NoServerError: it runs on another machine, where locks may not reach, and was alive
            recently.
    """
    from warehouse.locks import this_machine

    try:
        address: dict[str, str] = json.loads((folder / ADDRESS).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    if address["machine"] != this_machine().kernel:
        clock = folder / "server.lock"
        os.utime(clock)  # takes the present time from the clock of the file system
        age_s = clock.stat().st_mtime - (folder / ADDRESS).stat().st_mtime
        if is_running or age_s < FRESH_S:
            raise NoServerError(f"the server of this data folder runs on {address['host']}")
    return address


def _start_server(job: "Job", folder: Path, server_lock: BinaryIO, port: int) -> PrefectServer:
    """Start the folder's server in a process of its own, which inherits socket, secret and lock."""
    try:
        listening = socket.create_server((HOST, port), backlog=2048)
    except OSError as error:
        raise NoServerError(
            f"--port {port}: {error.strerror}; choose another one, or set PREFECT_API_URL if a"
            " Prefect server of yours runs there"
        ) from error
    with listening, _secret_file(folder) as secret_file:
        secret = _read_secret(secret_file.fileno())
        if not secret:
            secret = f"prbench:{secrets.token_urlsafe(32)}"
            os.pwrite(secret_file.fileno(), secret.encode(), 0)
            os.fsync(secret_file.fileno())
        url = f"http://{HOST}:{listening.getsockname()[1]}/api"
        _write_address(folder, url)
        files = (listening.fileno(), secret_file.fileno(), server_lock.fileno())
        # -P: no modules from the current folder.
        command = [sys.executable, "-P", "-m", "flows.server"]
        command += [*map(str, files), str(folder), str(UNUSED_S)]
        subprocess.Popen(
            command,
            env=os.environ | _retention(job.settings.retention.prefect_days),
            pass_fds=files,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A session of its own, so that Ctrl-C in a terminal does not end it before its users.
            start_new_session=True,
        )
    _own_urls.add(url)
    return PrefectServer(url, secret)


def _write_address(folder: Path, url: str) -> None:
    from warehouse.locks import this_machine

    machine = this_machine()
    address = {
        "url": url,
        "machine": machine.kernel,
        "host": machine.host,
    }
    (folder / ADDRESS).write_text(json.dumps(address), encoding="utf-8")


def _retention(days: int | None) -> dict[str, str]:
    """Return the settings by which the server deletes runs and events after so many days.

    None: it deletes none.
    """
    if days is None:
        return {}
    return {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": f"P{days}D",
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": f"P{min(days, 7)}D",
    }


def secret_path(folder: Path) -> Path:
    """Return the path of the secret of a folder's server; a restarted server keeps its secret."""
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    folder_hash = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    return home / "prbench" / f"server-{folder_hash}.secret"


def _secret_file(folder: Path) -> BinaryIO:
    path = secret_path(folder)
    path.parent.mkdir(
        mode=0o700,
        parents=True,
        exist_ok=True,
    )
    # The file has this mode from its creation, and is never a link to another file.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise NoServerError(
            f"{path} is a link or cannot be written ({error.strerror}); delete it"
        ) from error
    file = os.fdopen(descriptor, "r+b", buffering=0)
    for stat in (path.parent.stat(), os.fstat(descriptor)):
        if stat.st_uid != os.getuid() or stat.st_mode & 0o077:
            file.close()
            raise NoServerError(f"{path}: other users can read this secret; delete {path.parent}")
    return file


def _read_secret(descriptor: int) -> str:
    return os.pread(descriptor, 1024, 0).decode()


def check_server() -> tuple[bool | None, str]:
    """Return whether the configured server is secure and reachable, and a sentence about it.

    None: that is unknown. Anyone with access to a Prefect server can make it run commands.
    """
    import httpx
    from prefect.settings import Settings

    url = named_server()
    if not url:
        return True, (
            "PREFECT_API_URL is not set; a server of this data folder, which requires a secret,"
            " records runs"
        )
    api = Settings().api
    authorization = f"Bearer {api.key.get_secret_value()}" if api.key else ""
    if api.auth_string:
        authorization = f"Basic {b64encode(api.auth_string.get_secret_value().encode()).decode()}"
    headers = {"Authorization": authorization}
    server = PrefectServer(url).host_and_port
    version_url = f"{url}/admin/version"
    try:
        open_status = httpx.get(version_url).status_code
        secret_status = httpx.get(version_url, headers=headers).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return False, (
            f"{server} cannot be reached ({type(error).__name__}); start it, or correct"
            " PREFECT_API_URL"
        )
    if open_status == httpx.codes.OK:
        return False, (
            f"{server} requires no secret: anyone can have commands run; set"
            " PREFECT_SERVER_API_AUTH_STRING"
        )
    if open_status not in {401, 403}:
        return None, (
            f"{server} responds with status {open_status}; PREFECT_API_URL may not be a Prefect"
            " server"
        )
    if secret_status in {401, 403}:
        return False, (
            f"{server} requires a secret other than PREFECT_API_AUTH_STRING; set that to the"
            " server's secret"
        )
    return True, f"{server} requires a secret"


# The server's process

_LOCAL_NAMES = {HOST, "localhost", "[::1]"}
"""The names of this machine in a Host header."""
_PROCESS_SETTINGS = {
    # On shutdown Prefect would log the events that it could not store.
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    # Fewer and larger writes: thousands of task runs otherwise stall its SQLite database.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    # The pages call the address that they were loaded from: a tunnel may give the server another
    # port.
    "PREFECT_UI_API_URL": "/api",
}


def is_from_here(hosts: Sequence[str], origins: Sequence[str]) -> bool:
    """Return whether a request's Host and Origin headers name this machine and no foreign page.

    A browser sends the page's own address as Origin. With a foreign name that leads here (DNS
    rebinding) both headers agree, so the name itself must be checked.
    """
    if len(hosts) != 1:
        return False
    # A browser leaves out the port 80; a name is the same in capitals, and may end with a dot.
    host = hosts[0].lower()
    is_this_machine = re.sub(r":\d*\Z", "", host).removesuffix(".") in _LOCAL_NAMES
    return is_this_machine and all(origin.lower() == f"http://{host}" for origin in origins)


def only_from_here(app: "ASGIApp") -> "ASGIApp":
    """Return an application that refuses requests with a foreign name or from a foreign page.

    Prefect accepts them.
    """
    from starlette.datastructures import Headers
    from starlette.responses import PlainTextResponse
    from starlette.websockets import WebSocketClose

    async def guarded(scope: "Scope", receive: "Receive", send: "Send") -> None:
        headers = Headers(raw=scope.get("headers", []))
        is_local = is_from_here(headers.getlist("host"), headers.getlist("origin"))
        if is_local or scope["type"] == "lifespan":
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)
        else:
            await PlainTextResponse("Only from this machine\n", 403)(scope, receive, send)

    return guarded


def main() -> None:
    """Serve until the last user has left, or SIGTERM."""
    # The third file stays open: its lock shows that the server is running.
    _, socket_number, secret_number, _, folder_path, unused_s = sys.argv
    listening = socket.socket(fileno=int(socket_number))
    secret = _read_secret(int(secret_number))
    folder = Path(folder_path)
    threading.Thread(
        target=_end_when_unused,
        args=(folder, float(unused_s)),
        daemon=True,
    ).start()
    os.environ |= {
        "PREFECT_SERVER_API_AUTH_STRING": secret,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": f"http://{HOST}:{listening.getsockname()[1]}",
    }
    settings = _PROCESS_SETTINGS | {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / 'prefect.db'}",
        # Prefect copies its pages before it serves them, by default into its installed package.
        "PREFECT_UI_STATIC_DIRECTORY": str(secret_path(folder).with_name("ui")),
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    # Prefect reads its settings when it is imported.
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    config = uvicorn.Config(
        only_from_here(create_app(final=True)),
        lifespan="on",
        # A lower level logs the headers of web sockets, which include the secret.
        log_level="error",
        timeout_keep_alive=get_current_settings().server.api.keepalive_timeout,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _end_when_unused(folder: Path, unused_s: float) -> None:
    """Show that the server is alive, and end it when unused for `unused_s`.

    A process that wants to use the server waits while this one holds the users' lock, and then
    starts a new server.
    """
    users = (folder / USERS).open("a+b")
    last_used_s = time.monotonic()
    while time.monotonic() - last_used_s < unused_s:
        time.sleep(1)
        try:
            os.utime(folder / ADDRESS)
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            break  # the folder is gone
        except BlockingIOError:
            last_used_s = time.monotonic()
        else:
            # Nobody uses the server. When its time is up, the lock is kept until the process ends.
            if time.monotonic() - last_used_s < unused_s:
                fcntl.flock(users, fcntl.LOCK_UN)
    (folder / ADDRESS).unlink(missing_ok=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)  # for a shutdown that hangs
    os._exit(0)


if __name__ == "__main__":
    main()
