"""How an answer goes out over the socket: at once, in two halves with a pause, or not to its end."""

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from tests.faults.answers import Answer

EVENTS = "text/event-stream"

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PROMPT = Answer()


async def send(
    http: web.BaseRequest, body: bytes, answer: Answer = _PROMPT, *, content_type: str = "application/json"
) -> tuple[web.StreamResponse, bool]:
    """Send a body with an answer's status, headers and faults; second: whether all of it was taken off our hands."""
    headers = CIMultiDict({"Content-Type": content_type})
    headers.update(answer.headers)
    is_plain = not (answer.body_delay_s or answer.cuts_body) and content_type != EVENTS
    if is_plain:  # headers and body go out in a single write, which is what makes the server fast
        response: web.StreamResponse = web.Response(body=body, status=answer.status, headers=headers)
    else:
        response = web.StreamResponse(status=answer.status, headers=headers)
        if content_type != EVENTS:
            response.content_length = len(body)
    try:
        await response.prepare(http)
        if is_plain:
            await response.write_eof()
            return response, await _is_flushed(http)
        return response, await _in_halves(http, response, body, answer)
    except ConnectionError:  # the client gave up, as it does on a time-out
        return response, False


async def _in_halves(http: web.BaseRequest, response: web.StreamResponse, body: bytes, answer: Answer) -> bool:
    half = len(body) // 2
    await response.write(body[:half])
    if not await _is_flushed(http):
        return False
    await asyncio.sleep(answer.body_delay_s)
    if answer.cuts_body:
        reset(http)
        return False
    await response.write_eof(body[half:])
    return await _is_flushed(http)


async def send_json(http: web.BaseRequest, content: Mapping[str, Any], status: int = 200) -> web.StreamResponse:
    """Send a JSON object without faults."""
    response, _ = await send(http, json.dumps(content).encode(), Answer(status=status))
    return response


def cut(http: web.BaseRequest) -> web.Response:
    """Close the connection without an answer; what is returned is for the server alone, nobody receives it."""
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


def reset(http: web.BaseRequest) -> None:
    """End the connection with a reset, as a provider's crashed proxy does."""
    transport = http.transport
    if transport is None:
        return
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()


async def _is_flushed(http: web.BaseRequest) -> bool:
    """Wait until the operating system has taken all that was written; whether the connection still stands then."""
    transport = http.transport
    if transport is None or transport.is_closing():
        return False
    if transport.get_write_buffer_size():
        transport.set_write_buffer_limits(high=0)
        await http.writer.drain()
    return http.transport is not None and not http.transport.is_closing()
