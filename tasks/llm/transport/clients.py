"""The HTTP clients of this process, made to ask the exchange that is under way; outside of one nothing is changed."""

from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

import aiohttp
import httpx
import requests

from tasks.llm.transport.wire import Exchange, current


@cache
def guard() -> None:
    """Tell them, once."""
    _guard_httpx()
    _guard_aiohttp()
    _guard_requests()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, exchange: Exchange) -> None:
        self._stream, self._exchange = stream, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for raw in self._stream:
            for piece in self._exchange.read(raw):
                yield piece
            if self._exchange.body.is_over:
                break
        for piece in self._exchange.read(None):
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class _SyncBody(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, exchange: Exchange) -> None:
        self._stream, self._exchange = stream, exchange

    def __iter__(self) -> Iterator[bytes]:
        for raw in self._stream:
            yield from self._exchange.read(raw)
            if self._exchange.body.is_over:
                break
        yield from self._exchange.read(None)

    def close(self) -> None:
        self._stream.close()


def _admit(exchange: Exchange, response: httpx.Response) -> None:
    """Let a response pass whose body is worth reading."""
    headers = response.headers
    exchange.refuse_redirect(response.status_code, str(response.request.url), headers.get("location", ""))
    # What is handed on is decompressed already, within the bound.
    encoding, length = headers.pop("content-encoding", ""), headers.pop("content-length", "")
    exchange.begin(headers.get("content-type", "").lower(), encoding, length)


def _guard_httpx() -> None:
    """In the one place of httpx that every request passes, also each of a redirect's."""
    sent_async, sent = httpx.AsyncClient._send_single_request, httpx.Client._send_single_request

    async def send_async(self: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        if (exchange := current()) is None:
            return await sent_async(self, request)
        request.headers["accept-encoding"] = "gzip"
        response = await sent_async(self, request)
        try:
            _admit(exchange, response)
        except BaseException:
            await response.aclose()
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _AsyncBody(response.stream, exchange)
        return response

    def send(self: httpx.Client, request: httpx.Request) -> httpx.Response:
        if (exchange := current()) is None:
            return sent(self, request)
        request.headers["accept-encoding"] = "gzip"
        response = sent(self, request)
        try:
            _admit(exchange, response)
        except BaseException:
            response.close()
            raise
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _SyncBody(response.stream, exchange)
        return response

    httpx.AsyncClient._send_single_request = send_async  # type: ignore[method-assign]
    httpx.Client._send_single_request = send  # type: ignore[method-assign]


def _refuse_redirect(exchange: Exchange, response: aiohttp.ClientResponse | requests.Response, status: int) -> None:
    try:
        exchange.refuse_redirect(status, str(response.url), response.headers.get("location", ""))
    except BaseException:
        response.close()
        raise


def _guard_aiohttp() -> None:
    request = aiohttp.ClientSession._request

    async def guarded(self: aiohttp.ClientSession, method: str, address: Any, **options: Any) -> aiohttp.ClientResponse:
        if (exchange := current()) is None:
            return await request(self, method, address, **options)
        response = await request(self, method, address, **{**options, "allow_redirects": False})
        _refuse_redirect(exchange, response, response.status)
        return response

    aiohttp.ClientSession._request = guarded  # type: ignore[assignment, method-assign]


def _guard_requests() -> None:
    send = requests.Session.send

    def guarded(self: requests.Session, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        if (exchange := current()) is None:
            return send(self, request, **options)
        response = send(self, request, **{**options, "allow_redirects": False})
        _refuse_redirect(exchange, response, response.status_code)
        return response

    requests.Session.send = guarded  # type: ignore[method-assign]
