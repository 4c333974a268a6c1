"""The process of a Prefect server that the project starts: Prefect's own, behind a secret, for this machine alone.

    python -P -m flows.server.server_process SOCKET SECRET [--for-one-run]

Both are numbers of open files: the socket to listen on, and the file with the secret, which so stands neither among the
arguments nor in the environment that the process was started with. With `--for-one-run` there are no pages and no
services for deployments, and the server ends with the process that holds the other end of its standard input.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from flows.server.loopback import HOST, is_from_here

FOR_ONE_RUN = "--for-one-run"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class OnlyFromHere:
    """Answers nobody who asks by a foreign name or from a foreign page; Prefect looks at neither."""

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
    """Serve until SIGTERM."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    # The file stays open: its lock says that the server is running.
    secret = os.pread(int(sys.argv[2]), 1024, 0).decode()
    is_for_one_run = FOR_ONE_RUN in sys.argv[3:]
    if is_for_one_run:
        threading.Thread(target=_end_with_the_run, daemon=True).start()
    _prepare(secret, listening.getsockname()[1], is_for_one_run=is_for_one_run)
    # Prefect reads its settings when it is imported.
    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    config = uvicorn.Config(
        OnlyFromHere(create_app(final=True)),
        lifespan="on",
        # Below that it logs the headers of web sockets, the secret among them.
        log_level="error",
        timeout_keep_alive=get_current_settings().server.api.keepalive_timeout,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _prepare(secret: str, port: int, *, is_for_one_run: bool) -> None:
    os.environ |= {
        "PREFECT_SERVER_API_AUTH_STRING": secret,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": f"http://{HOST}:{port}",
    }
    # The pages talk to whatever address they came from: a tunnel may give the server another port.
    os.environ.setdefault("PREFECT_UI_API_URL", "/api")
    # Prefect copies its pages before it serves them, which it would do inside its installed package.
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    os.environ.setdefault("PREFECT_UI_STATIC_DIRECTORY", str(home / "prbench" / "ui"))
    if is_for_one_run:
        os.environ |= {"PREFECT__SERVER_EPHEMERAL": "1", "PREFECT_UI_ENABLED": "false"}


def _end_with_the_run() -> None:
    """Wait for the end of the process that the server is for, which may be killed."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
