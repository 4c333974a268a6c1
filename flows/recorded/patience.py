"""How long a run waits for a server that stopped answering: once, for seconds, and then it goes on unrecorded.

A server that is only busy still says that it is well, and gets longer. By itself Prefect waits for each request up to 7
minutes (60 s, 6 times), and about as long for the events and log lines that are left when a process ends.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from functools import cache, wraps
from typing import Any

import httpx
from prefect.client.base import PrefectHttpxAsyncClient, PrefectHttpxSyncClient
from prefect.events.clients import PrefectEventsClient
from prefect.logging.handlers import APILogWorker
from prefect.settings import get_current_settings
from prefect.utilities.timeout import timeout

from flows.run.recording import give_up_recording, has_given_up, patience_s
from flows.server.own_server import answers, place_of

_UNANSWERED = "Prefect's server does not answer"
_BUSY_S = 60.0
"""So much longer a server is waited for that says that it is well."""
_thread = threading.local()


def limit_waiting() -> None:
    """Limit how long Prefect's clients wait for their server; called in the thread of the run that is recorded."""
    _thread.is_of_run = True
    # Prefect's worker would print each log line that it cannot send.
    logging.raiseExceptions = False
    _limit_clients()


@cache
def _limit_clients() -> None:
    for client, limited, names in (
        (PrefectHttpxAsyncClient, _limited_request, ("send",)),
        (PrefectHttpxSyncClient, _limited_sync_request, ("send",)),
        (PrefectEventsClient, _limited, ("__aenter__", "emit", "__aexit__")),
    ):
        for name in names:
            setattr(client, name, limited(getattr(client, name)))


def where() -> str:
    """The server in a notice, without a password."""
    return f"Prefect's server at {place_of(_url())}"


def _url() -> str:
    return get_current_settings().api.url or ""


def send_the_rest() -> None:
    """Send what Prefect still holds of a recorded run, which it would do without a limit when the process ends."""
    if has_given_up():
        return
    if not answers(_url()):
        give_up_recording(f"{where()} does not answer any more")
        return
    try:
        # All of Prefect's queues, of which that of the log is one.
        left: Any = APILogWorker.drain_all(timeout=_BUSY_S)
    except KeyboardInterrupt:  # the work is done; who presses Ctrl-C now does not want to wait for this
        left = (set(), {None})
    if left[1]:
        give_up_recording(f"{where()} does not take the last events")


def _limited_request(send: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    limited = _limited(send)

    @wraps(send)
    async def sent(client: httpx.AsyncClient, request: httpx.Request, *args: Any, **kwargs: Any) -> Any:
        try:
            return await limited(client, request, *args, **kwargs)
        except (httpx.TransportError, TimeoutError) as error:
            # What Prefect sends from its own threads holds up nothing: a busy server may miss some log lines.
            if hasattr(_thread, "is_of_run"):
                give_up_recording(f"{where()} does not answer any more")
            raise httpx.ConnectError(_UNANSWERED, request=request) from error

    return sent


def _limited_sync_request(send: Callable[..., Any]) -> Callable[..., Any]:
    """The same for the outermost flow of a deployment; its last state is sent even if recording was given up."""

    @wraps(send)
    def sent(client: httpx.Client, request: httpx.Request, *args: Any, **kwargs: Any) -> Any:
        is_main = threading.current_thread() is threading.main_thread()
        try:
            with timeout(seconds=patience_s() if is_main else None):
                return send(client, request, *args, **kwargs)
        except TimeoutError as error:
            raise httpx.ConnectError(_UNANSWERED, request=request) from error

    return sent


def _limited(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def limited(*args: Any, **kwargs: Any) -> Any:
        async with asyncio.timeout(0 if has_given_up() else None) as limit:
            ending = asyncio.create_task(_end(limit))
            try:
                return await method(*args, **kwargs)
            finally:
                ending.cancel()

    return limited


async def _end(limit: asyncio.Timeout) -> None:
    """End a wait when the patience is over, unless the server says that it is well: then only after a longer time."""
    await asyncio.sleep(patience_s())
    if await asyncio.to_thread(answers, _url()):
        await asyncio.sleep(_BUSY_S)
    limit.reschedule(asyncio.get_running_loop().time())
