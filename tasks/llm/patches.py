"""Patches of the libraries for HTTP: each request and each body passes through the current
exchange.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import aiohttp
import httpx
import requests

from tasks.llm.cleaning import object_in
from tasks.llm.transport import CURRENT, Exchange, Redirected


@dataclass
class _PassedOn(httpx.AsyncByteStream, httpx.SyncByteStream):
    """The body of a response of httpx, as the exchange passes it on."""

    stream: Any
    exchange: Exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for raw in self.stream:
            yield self.exchange.read(raw)
            if self.exchange.body.is_over:
                break
        yield self.exchange.body.end()

    def __iter__(self) -> Iterator[bytes]:
        for raw in self.stream:
            yield self.exchange.read(raw)
            if self.exchange.body.is_over:
                break
        yield self.exchange.body.end()

    async def aclose(self) -> None:
        await self.stream.aclose()

    def close(self) -> None:
        self.stream.close()


def _watched_by(exchange: Exchange, response: httpx.Response) -> httpx.Response:
    response.headers.pop("content-length", None)
    exchange.begin(
        response.headers.get("content-type", "").lower(),
        response.headers.pop("content-encoding", ""),
        is_streamed_chat=_requests_streamed_chat(response.request),
    )
    response.stream = _PassedOn(response.stream, exchange)
    return response


def _requests_streamed_chat(request: httpx.Request) -> bool:
    if not request.url.path.endswith("/chat/completions"):
        return False
    content = object_in(request.content) or {}
    return bool(content.get("stream"))


def _direct(exchange: Exchange, response: Any) -> Any:
    """Return a response, if it is not a redirect."""
    try:
        exchange.refuse_redirect(response)
    except Redirected:
        response.close()
        raise
    return response


_send_async = httpx.AsyncClient._send_single_request
_send = httpx.Client._send_single_request
_request_by_aiohttp = aiohttp.ClientSession._request
_send_by_requests = requests.Session.send


async def _sent_async(self: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    exchange = CURRENT.get()
    if exchange is None:
        return await _send_async(self, request)
    request.headers["accept-encoding"] = "identity"
    response = await _send_async(self, request)
    try:
        exchange.refuse_redirect(response)
    except Redirected:
        await response.aclose()
        raise
    return _watched_by(exchange, response)


def _sent(self: httpx.Client, request: httpx.Request) -> httpx.Response:
    exchange = CURRENT.get()
    if exchange is None:
        return _send(self, request)
    request.headers["accept-encoding"] = "identity"
    return _watched_by(exchange, _direct(exchange, _send(self, request)))


async def _requested_by_aiohttp(self: Any, method: str, address: Any, **options: Any) -> Any:
    exchange = CURRENT.get()
    if exchange is None:
        return await _request_by_aiohttp(self, method, address, **options)
    options["allow_redirects"] = False
    return _direct(exchange, await _request_by_aiohttp(self, method, address, **options))


def _sent_by_requests(self: Any, request: Any, **options: Any) -> Any:
    exchange = CURRENT.get()
    if exchange is None:
        return _send_by_requests(self, request, **options)
    options["allow_redirects"] = False
    return _direct(exchange, _send_by_requests(self, request, **options))


@cache
def patch_libraries() -> None:
    """Patch the libraries, once in a process."""
    # The one function of httpx that every request passes through, including those of redirects.
    httpx.AsyncClient._send_single_request = _sent_async  # type: ignore[method-assign]
    httpx.Client._send_single_request = _sent  # type: ignore[method-assign]
    # LiteLLM's transport over aiohttp follows no redirects, but fails on a location that is not a
    # valid header.
    session = aiohttp.ClientSession
    session._request = _requested_by_aiohttp  # type: ignore[assignment, method-assign]
    requests.Session.send = _sent_by_requests  # type: ignore[method-assign]
