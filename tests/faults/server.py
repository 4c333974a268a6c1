"""A model provider for tests: OpenAI's endpoints over a real socket, faults on demand,
a record of every call.

Its response is a function of the request, so a test knows the right result without asking the
pipeline.
"""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.faults import behaviours, bodies
from tests.faults.batch import BatchEnd, Batches
from tests.faults.behaviours import (
    Behaviour,
    Book,
    Entry,
    HttpResponse,
    Request,
    is_judge_request,
    meets,
    well_behaved,
)

__all__ = [
    "Behaviour",
    "Entry",
    "FaultServer",
    "HttpResponse",
    "Request",
    "is_judge_request",
    "meets",
    "well_behaved",
]

_BACKLOG = 4096
_SHUTDOWN_TIMEOUT_S = 0.01
_START_TIMEOUT_S = 30


class FaultServer(Book):
    """The server; `behaviour` makes the response to a request, given how many earlier requests had
    the same content.

    As a context manager it serves from a thread of its own. The settings may be assigned at any
    time.
    """

    def __init__(
        self,
        behaviour: Behaviour = well_behaved,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ):
        super().__init__()
        self.behaviour = behaviour
        self.polls_until_done = 0
        """How many times a batch is reported as in progress before it ends."""
        self.batch_end: BatchEnd = "completed"
        """How batches end."""
        self.responses_before_end = 0
        """How many requests of a batch are processed before it expires."""
        self.change_line: Callable[[bytes, int], bytes] = lambda line, _number: line
        """(line of a batch's results, its number) -> the line that is written to the file."""
        self.strikes: Callable[[str], int | None] = lambda _: None
        """Method and path -> an error status to send instead; 0: process it but send no response;
        None: no fault.
        """
        self._batches = Batches(self)
        self._socket = socket.create_server((host, port), backlog=_BACKLOG)
        self._address: tuple[str, int] = self._socket.getsockname()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    @property
    def api_base(self) -> str:
        """The base URL to configure."""
        return "http://{}:{}/v1".format(*self._address)

    @property
    def book(self) -> list[Request]:
        """The content of the requests, in order of arrival."""
        return [entry.request for entry in self.entries]

    @property
    def paid(self) -> list[Entry]:
        """The entries for which a completion was made, delivered or not."""
        return [entry for entry in self.entries if entry.is_paid]

    @property
    def samples(self) -> list[Request]:
        """The requests for responses to conversations."""
        return [request for request in self.book if not is_judge_request(request)]

    @property
    def judge_requests(self) -> list[Request]:
        """The requests for verdicts."""
        return [request for request in self.book if is_judge_request(request)]

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self.serve(ready.set)),
            name="provider",
            daemon=True,
        )
        self._thread.start()
        if not ready.wait(_START_TIMEOUT_S):
            raise TimeoutError("the provider did not start")
        return self

    def __exit__(self, *_: object):
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def stop(self):
        """Stop serving, from any thread: nothing new is accepted, and requests in hand are
        dropped.
        """
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                self._loop.call_soon_threadsafe(self._ended.set)

    async def serve(self, when_ready: Callable[[], None]):
        """Serve from the running loop until `stop` is called."""
        self._loop = asyncio.get_running_loop()
        # A size of 0 means no limit.
        app = web.Application(client_max_size=0, middlewares=[self._inject_fault])
        app.add_routes(
            [web.post(path, self._complete) for path in bodies.CONVERSATION]
        )
        app.add_routes(self._batches.routes())
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_SHUTDOWN_TIMEOUT_S
        )
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket, backlog=_BACKLOG).start()
            when_ready()
            await self._ended.wait()
        finally:
            await runner.cleanup()
            self._socket.close()

    @web.middleware
    async def _inject_fault(
        self, http: web.Request, handler: Handler
    ) -> web.StreamResponse:
        status = self.strikes(f"{http.method} {http.path}")
        if status:
            return await bodies.send_json(http, bodies.error_json("Struck."), status)
        if status == 0:
            # The request is processed all the same, but the response goes to a closed
            # connection.
            await http.read()
            bodies.cut(http)
        return await handler(http)

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        path = http.path
        try:
            request = json.loads(await http.read())
        except ConnectionError:
            # The client left in the middle of its request, so it never arrived.
            return bodies.cut(http)
        except ValueError:
            request = None
        flaw = behaviours.flaw_of(request, bodies.CONVERSATION[path])
        if path == bodies.RESPONSES and flaw is None and request.get("stream"):
            flaw = "Streamed responses are not served here."
        if flaw is not None:
            return await bodies.send_json(http, bodies.error_json(flaw), 400)
        headers = {name.lower(): value for name, value in http.headers.items()}
        entry = self.enter(path, request, headers)
        try:
            reply = self.behaviour(entry.request, entry.number)
            if reply.delay_s:
                await asyncio.sleep(reply.delay_s)
            if reply.cuts_connection:
                return bodies.cut(http)
            kind = "application/json"
            if bodies.is_streamed(entry.request, reply):
                kind = bodies.EVENTS
            body = bodies.body_of(entry.path, entry.request, reply)
            entry.status = reply.status
            entry.is_paid = reply.is_completion
            return await bodies.send(http, body, reply, content_type=kind)
        finally:
            self.close(entry)
