"""How the tests of the provider talk to it: OpenAI's own client, plain HTTP, a bare socket."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from openai import AsyncOpenAI

from tests.faults.process import ServerProcess
from tests.faults.server import FaultServer, Request

T = TypeVar("T")


def chat(content: str = "What is a bond?", **more: Any) -> Request:
    """A request for a chat completion."""
    return {"model": "candidate", "messages": [{"role": "user", "content": content}], **more}


def with_client(api_base: str, use: Callable[[AsyncOpenAI], Awaitable[T]], timeout_s: float = 60) -> T:
    """What `use` makes of a client that does not try again by itself."""

    async def run() -> T:
        async with AsyncOpenAI(base_url=api_base, api_key="none", max_retries=0, timeout=timeout_s) as client:
            return await use(client)

    return asyncio.run(run())


def post(server: FaultServer | ServerProcess, request: object, path: str = "/chat/completions") -> httpx.Response:
    """A plain request, its answer as it came."""
    return httpx.post(server.api_base + path, content=json.dumps(request), timeout=60)


def request_bytes(request: Request) -> bytes:
    """A request as it goes over the socket."""
    body = json.dumps(request).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def opened(server: FaultServer | ServerProcess, request: Request) -> socket.socket:
    """A bare connection over which a request was sent and nothing was read yet."""
    address = urlsplit(server.api_base)
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    connection.sendall(request_bytes(request))
    return connection
