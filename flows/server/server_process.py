"""The process of a Prefect server that the project starts: Prefect's own, behind a secret, for this machine alone.

    python -P -m flows.server.server_process SOCKET SECRET LOCK FOLDER UNUSED_S

The first three are numbers of open files: the socket to listen on; the file with the secret (so that it is neither in
the arguments nor in the environment of the process); and the lock of the folder's server. The folder holds the
database, and the lock that users share. UNUSED_S seconds after its last user the server ends.
"""

import fcntl
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
ADDRESS, USERS = "address.json", "users.lock"
FRESH_S = 60.0
"""The age in seconds at which a sign of life of a server on another machine expires."""
_LOOK_EVERY_S = 1.0
_NAMES = {HOST, "localhost", "[::1]"}
"""The names of this machine in a Host header."""
_SETTINGS = {
    # On shutdown Prefect would log the events that it could not store.
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    # Fewer and larger writes: thousands of task runs otherwise stall its SQLite database.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    # The pages call the address that they were loaded from: a tunnel may give the server another port.
    "PREFECT_UI_API_URL": "/api",
}
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def is_from_here(hosts: Sequence[str], origins: Sequence[str]) -> bool:
    """Return whether a request's Host and Origin headers name this machine and no foreign page.

    A browser sends the page's own address as Origin. With a foreign name that leads here (DNS rebinding) both headers
    agree, so the name itself must be checked.
    """
    if len(hosts) != 1:
        return False
    # A browser leaves out the port 80; a name is the same in capitals, and may end with a dot.
    host = hosts[0].lower()
    is_this_machine = re.sub(r":\d*\Z", "", host).removesuffix(".") in _NAMES
    return is_this_machine and all(origin.lower() == f"http://{host}" for origin in origins)


class OnlyFromHere:
    """An application that refuses requests with a foreign name or from a foreign page; Prefect would accept them."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan" or is_from_here(_headers(scope, b"host"), _headers(scope, b"origin")):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            plain = [(b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 403, "headers": plain})
            await send({"type": "http.response.body", "body": b"Only from this machine\n"})


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def main() -> None:
    """Serve until the last user has left, or SIGTERM."""
    # The third file stays open: its lock shows that the server is running.
    listening, secret = socket.socket(fileno=int(sys.argv[1])), os.pread(int(sys.argv[2]), 1024, 0).decode()
    folder, unused_s = Path(sys.argv[4]), float(sys.argv[5])
    threading.Thread(target=_end_when_unused, args=(folder, unused_s), daemon=True).start()
    os.environ |= {
        "PREFECT_SERVER_API_AUTH_STRING": secret,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": f"http://{HOST}:{listening.getsockname()[1]}",
    }
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    settings = _SETTINGS | {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / 'prefect.db'}",
        # Prefect copies its pages before it serves them, by default into its installed package.
        "PREFECT_UI_STATIC_DIRECTORY": str(home / "prbench" / "ui"),
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    # Prefect reads its settings when it is imported.
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    config = uvicorn.Config(
        OnlyFromHere(create_app(final=True)),
        lifespan="on",
        # A lower level logs the headers of web sockets, which include the secret.
        log_level="error",
        timeout_keep_alive=get_current_settings().server.api.keepalive_timeout,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _end_when_unused(folder: Path, unused_s: float) -> None:
    """Show that the server is alive, and end it when unused for `unused_s`; a new one waits for its end."""
    users = (folder / USERS).open("a+b")
    used_s = time.monotonic()
    while time.monotonic() - used_s < unused_s:
        time.sleep(_LOOK_EVERY_S)
        try:
            os.utime(folder / ADDRESS)
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            break  # the folder is gone
        except BlockingIOError:
            used_s = time.monotonic()
        else:
            if time.monotonic() - used_s < unused_s:
                fcntl.flock(users, fcntl.LOCK_UN)
    (folder / ADDRESS).unlink(missing_ok=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)
    os._exit(0)


if __name__ == "__main__":
    main()
