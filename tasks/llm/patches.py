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
from tasks.llm.exchange import CURRENT, Exchange, Redirected


@dataclass
class _PassedOn(httpx.AsyncByteStream, httpx.SyncByteStream):
    """The body of a response of httpx, as the exchange passes it on."""

    stream: Any
    exchange: Exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for raw in self.stream:
            yield self.exchange.read(raw)
            if self.exchange.body.is_too_large:
                break
        yield self.exchange.body.end()

    def __iter__(self) -> Iterator[bytes]:
        for raw in self.stream:
            yield self.exchange.read(raw)
            if self.exchange.body.is_too_large:
                break
        yield self.exchange.body.end()

    async def aclose(self) -> None:
        await self.stream.aclose()

    def close(self) -> None:
        self.stream.close()


def _watched_by(exchange: Exchange, response: httpx.Response) -> httpx.Response:
    """Return a response whose body passes through an exchange, which changes its length."""
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


def _unless_redirect(exchange: Exchange, response: Any) -> Any:
    """Return a response; close it and raise an error if it is a redirect."""
    try:
        exchange.refuse_redirect(response)
    except Redirected:
        response.close()
        raise
    return response


_original_async_send = httpx.AsyncClient._send_single_request
_original_send = httpx.Client._send_single_request
_original_aiohttp_request = aiohttp.ClientSession._request
_original_requests_send = requests.Session.send


async def _async_send(self: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    exchange = CURRENT.get()
    if exchange is None:
        return await _original_async_send(self, request)
    request.headers["accept-encoding"] = "identity"
    response = await _original_async_send(self, request)
    try:
        exchange.refuse_redirect(response)
    except Redirected:
        await response.aclose()
        raise
    return _watched_by(exchange, response)


def _send(self: httpx.Client, request: httpx.Request) -> httpx.Response:
    exchange = CURRENT.get()
    if exchange is None:
        return _original_send(self, request)
    request.headers["accept-encoding"] = "identity"
    response = _unless_redirect(exchange, _original_send(self, request))
    return _watched_by(exchange, response)


async def _aiohttp_request(self: Any, method: str, address: Any, **options: Any) -> Any:
    exchange = CURRENT.get()
    if exchange is None:
        return await _original_aiohttp_request(self, method, address, **options)
    options["allow_redirects"] = False
    response = await _original_aiohttp_request(self, method, address, **options)
    return _unless_redirect(exchange, response)


def _requests_send(self: Any, request: Any, **options: Any) -> Any:
    exchange = CURRENT.get()
    if exchange is None:
        return _original_requests_send(self, request, **options)
    options["allow_redirects"] = False
    return _unless_redirect(exchange, _original_requests_send(self, request, **options))


@cache
def patch_libraries() -> None:
    """Patch the libraries, once in a process."""
    # The one function of httpx that every request passes through, including those of redirects.
    httpx.AsyncClient._send_single_request = _async_send  # type: ignore[method-assign]
    httpx.Client._send_single_request = _send  # type: ignore[method-assign]
    # LiteLLM's transport over aiohttp follows no redirects, but fails on a location that is not a
    # valid header.
    session = aiohttp.ClientSession
    session._request = _aiohttp_request  # type: ignore[assignment, method-assign]
    requests.Session.send = _requests_send  # type: ignore[method-assign]
