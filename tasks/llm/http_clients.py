"""The HTTP clients of this process, made to ask the exchange that is under way; outside of one nothing is changed.

LiteLLM makes its clients itself, follows redirects with them and reads whatever comes; so do the libraries behind
Apprise. Their classes are changed once in a process, when the first exchange begins: whoever only reads does not need
the three libraries.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from tasks.llm.transport import Exchange

_CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def watched(exchange: Exchange | None = None) -> Iterator[Exchange]:
    """Everything that clients do inside, in this task and what it starts, is one exchange."""
    _guard()
    exchange = exchange or Exchange()
    token = _CURRENT.set(exchange)
    try:
        yield exchange
    finally:
        _CURRENT.reset(token)


@cache
def _guard() -> None:
    import aiohttp
    import httpx
    import requests

    class Body(_Body, httpx.AsyncByteStream, httpx.SyncByteStream):
        pass

    _guard_httpx(httpx.AsyncClient, Body)
    _guard_httpx(httpx.Client, Body)
    request, send = aiohttp.ClientSession._request, requests.Session.send

    async def requested(self: Any, method: str, address: Any, **options: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return await request(self, method, address, **options)
        response = await request(self, method, address, **{**options, "allow_redirects": False})
        return _direct(exchange, response, response.status)

    def sent(self: Any, request: Any, **options: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return send(self, request, **options)
        response = send(self, request, **{**options, "allow_redirects": False})
        return _direct(exchange, response, response.status_code)

    aiohttp.ClientSession._request = requested  # type: ignore[assignment, method-assign]
    requests.Session.send = sent  # type: ignore[method-assign]


def _direct(exchange: Exchange, response: Any, status: int) -> Any:
    """The response, if it is no redirect."""
    try:
        exchange.refuse_redirect(status, str(response.url), response.headers.get("location", ""))
    except BaseException:
        response.close()
        raise
    return response


class _Body:
    """The body of a response of httpx, as the exchange hands it on."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream, self._exchange = stream, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for raw in self._stream:
            for piece in self._exchange.read(raw):
                yield piece
            if self._exchange.body.is_over:
                break
        for piece in self._exchange.read(None):
            yield piece

    def __iter__(self) -> Iterator[bytes]:
        for raw in self._stream:
            yield from self._exchange.read(raw)
            if self._exchange.body.is_over:
                break
        yield from self._exchange.read(None)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()


def _guard_httpx(client: Any, body: type[_Body]) -> None:
    """In the one place of httpx that every request passes, also each of a redirect's."""
    send = client._send_single_request

    def admitted(exchange: Exchange, response: Any) -> Any:
        headers = response.headers
        exchange.refuse_redirect(response.status_code, str(response.request.url), headers.get("location", ""))
        # What is handed on is decompressed already, within the bound.
        encoding, length = headers.pop("content-encoding", ""), headers.pop("content-length", "")
        exchange.begin(headers.get("content-type", "").lower(), encoding, length)
        response.stream = body(response.stream, exchange)
        return response

    async def sent_async(self: Any, request: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return await send(self, request)
        request.headers["accept-encoding"] = "gzip"
        response = await send(self, request)
        try:
            return admitted(exchange, response)
        except BaseException:
            await response.aclose()
            raise

    def sent(self: Any, request: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return send(self, request)
        request.headers["accept-encoding"] = "gzip"
        response = send(self, request)
        try:
            return admitted(exchange, response)
        except BaseException:
            response.close()
            raise

    client._send_single_request = sent_async if hasattr(client, "aclose") else sent
