"""A server that answers whatever it is asked in one way, on any path, and keeps a record of it: no provider at all."""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Seen:
    """A request as it came, and how many bytes of its answer the client took."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    n_sent: int = 0


@dataclass(frozen=True)
class Plain:
    """An answer: its body is sent piece by piece, as long as the client takes it, without a length in front."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Callable[[], Iterable[bytes]] = tuple


class AnyServer:
    """The server, from a thread of its own, on an address of this machine."""

    def __init__(self, answer: Plain | Callable[[Seen], Plain], host: str = "127.0.0.1") -> None:
        self.seen: list[Seen] = []
        self._answer = answer if callable(answer) else lambda _: answer
        self._server = ThreadingHTTPServer((host, 0), self._handler())
        self._server.daemon_threads = True
        self.address = f"http://{host}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="anything", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                seen = Seen(self.command, self.path, headers, body)
                owner.seen.append(seen)
                answer = owner._answer(seen)
                self.close_connection = True
                with suppress(ConnectionError):  # the client has read enough
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    for piece in answer.body():
                        self.wfile.write(piece)
                        seen.n_sent += len(piece)

            do_GET = do_POST = do_HEAD = _serve  # noqa: N815 - their names are the library's

            def log_message(self, *_: Any) -> None:
                """Nothing is said."""

        return Handler
