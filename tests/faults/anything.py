"""A server that is no provider: it responds to every request in the same way, on any path, and
records it.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Seen:
    """A request as received, and the number of bytes of its response that were sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    n_sent: int = 0

    @property
    def json(self) -> Any:
        """The parsed JSON body."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Plain:
    """A response: its body is sent piece by piece, as long as the client reads, without a content
    length.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Callable[[], Iterable[bytes]] = tuple


class AnyServer:
    """The server, in a thread of its own, on an address of this machine."""

    def __init__(
        self,
        http_response: Plain | Callable[[Seen], Plain],
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ):
        self.seen: list[Seen] = []
        self._http_response = http_response
        self._server = ThreadingHTTPServer((host, 0), self._handler())
        self._server.daemon_threads = True
        scheme = "https" if tls else "http"
        self.address = f"{scheme}://{host}:{self._server.server_port}"
        if tls:
            self._server.socket = tls.wrap_socket(
                self._server.socket,
                server_side=True,
                do_handshake_on_connect=False,
            )

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever,
            args=(0.02,),
            name="anything",
            daemon=True,
        ).start()
        return self

    def __exit__(self, *_: object):
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {
                    name.lower(): value for name, value in self.headers.items()
                }
                seen = Seen(self.command, self.path, headers, body)
                owner.seen.append(seen)
                http_response = owner._http_response
                if callable(http_response):
                    http_response = http_response(seen)
                self.close_connection = True
                with suppress(ConnectionError):  # the client has read enough
                    self.send_response(http_response.status)
                    for name, value in http_response.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    for piece in http_response.body():
                        self.wfile.write(piece)
                        seen.n_sent += len(piece)

            do_GET = do_POST = do_HEAD = _serve  # noqa: N815 - their names are the library's

            def log_message(self, *_):
                """Log nothing."""

        return Handler
