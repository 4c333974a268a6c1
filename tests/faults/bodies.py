"""OpenAI's response formats, and how a body is sent over the socket: at once, in halves, or cut
off.
"""

import asyncio
import contextlib
import hashlib
import json
import math
import re
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from tests.faults.behaviours import HttpResponse, digest_of, failed, prompt_tokens_of

JsonObject = dict[str, Any]
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"
DECISIONS = "/v1/decisions"
SYSTEM_ONE = "/v1/systemone"
CONVERSATION = {
    CHAT: "messages",
    RESPONSES: "input",
    EMBEDDINGS: "input",
    DECISIONS: "questions",
    SYSTEM_ONE: "questions",
}
"""Path -> the field of a request with the conversation."""

_DELTAS = 8
_CREATED = 1
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def is_streamed(request, reply: HttpResponse) -> bool:
    """Return whether a response is a stream of events: one was requested, and the response is not
    an error.
    """
    is_success = reply.status == 200 and reply.error is None and reply.raw is None
    return bool(request.get("stream")) and is_success


def body_of(path: str, request, reply: HttpResponse) -> bytes:
    """Return the whole body of a response, as bytes."""
    if reply.raw is not None:
        return reply.raw
    if is_streamed(request, reply):
        pieces = [
            f"data: {json.dumps(event)}\n\n" for event in _events(request, reply)
        ]
        return "".join([*pieces, "data: [DONE]\n\n"]).encode()
    return json.dumps(json_of(path, request, reply)).encode()


def json_of(path: str, request, reply: HttpResponse) -> JsonObject:
    """Return the body of a response that is not streamed."""
    if reply.error is not None:
        return {"error": reply.error}
    if reply.status >= 400:
        return error_json(
            f"status {reply.status}",
            "server_error" if reply.status >= 500 else "invalid_request_error",
        )
    if path == EMBEDDINGS:
        return _embeddings(request, reply)
    if path in {DECISIONS, SYSTEM_ONE}:
        return _decisions(path, request, reply)
    return _response(request, reply) if path == RESPONSES else _chat(request, reply)


def _embeddings(request, reply: HttpResponse) -> JsonObject:
    """A vector for each text: its words, each counted in one of 64 components."""
    texts = request["input"]
    if isinstance(texts, str):
        texts = [texts]
    data = []
    for position, text in enumerate(texts):
        data.append(
            {
                "object": "embedding",
                "index": position,
                "embedding": words_vector(text),
            }
        )
    n_tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {
        "object": "list",
        "data": data,
        "model": _served(request, reply),
        "usage": usage,
    }


def _decisions(path: str, request, reply: HttpResponse) -> JsonObject:
    """The decisions in a reply's text: a list for `/v1/decisions`, System One's format for the
    other path.
    """
    decisions = json.loads(reply.text or "[]")
    if path == SYSTEM_ONE and isinstance(decisions, list):
        decisions = {
            decision["name"]: _system_one(decision) for decision in decisions
        }
    usage = {
        name: value
        for name, value in _response_usage(request, reply).items()
        if value is not None
    }
    return {
        "id": f"dec_{digest_of(request)[:24]}",
        "model": _served(request, reply),
        "answers": decisions,
        **usage,
    }


def _system_one(decision: JsonObject) -> JsonObject:
    if "probabilities" in decision:
        probabilities = {
            row["value"]: row["probability"] for row in decision["probabilities"]
        }
        return {
            "type": decision["type"],
            "choice": decision["choice"],
            "confidence": decision["confidence"],
            "probabilities": probabilities,
        }
    return {"type": "noul", "noul": decision.get("probability")}


def words_vector(text: str) -> list[float]:
    """The vector that the test provider makes of a text."""
    vector = [0.0] * 64
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % 64] += 1.0
    return vector


def error_json(message: str, kind: str = "invalid_request_error") -> JsonObject:
    """An error in OpenAI's format."""
    return {"error": failed(400, message, kind=kind).error}


def _head(request, reply: HttpResponse, kind: str) -> JsonObject:
    """Return the first fields of a completion, and of each chunk of one."""
    digest = digest_of(request)[:24]
    head = {
        "id": f"chatcmpl-{digest}",
        "object": kind,
        "created": _CREATED,
        "model": _served(request, reply),
    }
    if reply.fingerprint is not None:
        head["system_fingerprint"] = reply.fingerprint
    return head


def _served(request, reply: HttpResponse) -> str:
    return reply.model or f"{request['model']}-2026-11-01"


def _chat(request, reply: HttpResponse) -> JsonObject:
    message = {
        "role": "assistant",
        "content": reply.text,
        "refusal": reply.refusal,
    }
    choice = {"message": message, "finish_reason": reply.finish_reason}
    if request.get("logprobs"):
        choice["logprobs"] = _logprobs(reply.text or "", reply)
    choices = [{"index": index, **choice} for index in range(reply.choices)]
    return {
        **_head(request, reply, "chat.completion"),
        "choices": choices,
        **_chat_usage(request, reply),
    }


def _logprobs(text: str, reply: HttpResponse) -> JsonObject:
    """The tokens of a text (words, spaces, marks) with their log-probabilities."""
    tokens = [
        {
            "token": token,
            "bytes": list(token.encode()),
            "top_logprobs": [],
            "logprob": math.log(
                reply.certainty if token in {"true", "false"} else 0.99
            ),
        }
        for token in _tokens(text)
    ]
    return {"content": tokens, "refusal": None}


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def _events(request, reply: HttpResponse) -> Iterator[JsonObject]:
    """The chunks of a streamed completion: role, text in pieces, finish reason, and usage if
    requested.
    """
    wants_usage = bool((request.get("stream_options") or {}).get("include_usage"))
    head = _head(request, reply, "chat.completion.chunk")
    if wants_usage:
        head["usage"] = None
    deltas = [{"role": "assistant", "content": ""}]
    wants_logprobs = bool(request.get("logprobs"))
    pieces = _tokens if wants_logprobs else _pieces
    deltas += [{"content": piece} for piece in pieces(reply.text or "")]
    deltas += [{"refusal": piece} for piece in _pieces(reply.refusal or "")]
    for delta in deltas if reply.choices else ():
        logprobs = {}
        if wants_logprobs and delta.get("content"):
            logprobs = {"logprobs": _logprobs(delta["content"], reply)}
        choices = [
            {**_delta(index, delta, None), **logprobs}
            for index in range(reply.choices)
        ]
        yield {**head, "choices": choices}
    last_choices = [
        _delta(index, {}, reply.finish_reason) for index in range(reply.choices)
    ]
    yield {**head, "choices": last_choices}
    usage = _chat_usage(request, reply)
    if wants_usage and usage:
        yield {
            **head,
            "choices": [],
            **usage,
        }


def _delta(
    index: int,
    delta: JsonObject,
    finish_reason: str | None,
) -> JsonObject:
    """The choice of a chunk."""
    return {
        "index": index,
        "delta": delta,
        "finish_reason": finish_reason,
    }


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // _DELTAS))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _counts(request, reply: HttpResponse) -> tuple[int, int, int]:
    """The numbers of prompt tokens, of cached ones among them, and of completion tokens."""
    prompt = prompt_tokens_of(request)
    cached = prompt // 2 if reply.cached_tokens is None else reply.cached_tokens
    return prompt, cached, len((reply.text or "").split()) + reply.reasoning_tokens


def _chat_usage(request, reply: HttpResponse) -> JsonObject:
    if reply.usage != "counted":
        return {} if reply.usage is None else {"usage": reply.usage}
    prompt, cached, completion = _counts(request, reply)
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }
    return {"usage": usage}


def _response(request, reply: HttpResponse) -> JsonObject:
    reason = _INCOMPLETE.get(reply.finish_reason)
    fixed = {
        "error": None,
        "metadata": request.get("metadata") or {},
        "parallel_tool_calls": True,
    }
    requested = {
        "temperature": 1.0,
        "top_p": 1.0,
        "tools": [],
        "tool_choice": "auto",
        "instructions": None,
    }
    return {
        "id": f"resp_{digest_of(request)[:24]}",
        "object": "response",
        "created_at": _CREATED,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "model": _served(request, reply),
        "output": _output(request, reply),
        **fixed,
        **_response_usage(request, reply),
        **{name: request.get(name, default) for name, default in requested.items()},
    }


def _output(request, reply: HttpResponse) -> list[JsonObject]:
    """A message for each choice, after an item for the reasoning if there was any."""
    name = digest_of(request)[:24]
    status = "incomplete" if reply.finish_reason in _INCOMPLETE else "completed"
    content = []
    if reply.text is not None:
        content.append(
            {
                "type": "output_text",
                "text": reply.text,
                "annotations": [],
            }
        )
    if reply.refusal is not None:
        content.append({"type": "refusal", "refusal": reply.refusal})
    message = {
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }
    messages = [
        {"id": f"msg_{name}_{index}", **message} for index in range(reply.choices)
    ]
    if reply.reasoning_tokens and messages:
        reasoning = {
            "type": "reasoning",
            "id": f"rs_{name}",
            "summary": [],
        }
        return [reasoning, *messages]
    return messages


def _response_usage(request, reply: HttpResponse) -> JsonObject:
    if reply.usage != "counted":
        return {"usage": reply.usage}
    prompt, cached, completion = _counts(request, reply)
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
        "total_tokens": prompt + completion,
    }
    return {"usage": usage}


EVENTS = "text/event-stream"

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PROMPT = HttpResponse()


async def send(
    http: web.BaseRequest,
    body: bytes,
    reply: HttpResponse = _PROMPT,
    *,
    content_type: str = "application/json",
) -> web.StreamResponse:
    """Send a body with a response's status, headers and faults."""
    headers = CIMultiDict({"Content-Type": content_type})
    headers.update(reply.headers)
    is_plain = not (reply.body_delay_s or reply.cuts_body) and content_type != EVENTS
    if is_plain:  # a single write for headers and body makes the server fast
        response = web.Response(
            body=body,
            status=reply.status,
            headers=headers,
        )
    else:
        response = web.StreamResponse(status=reply.status, headers=headers)
        if content_type != EVENTS:
            response.content_length = len(body)
    half = len(body) // 2
    # A client may give up, for example on a timeout.
    with contextlib.suppress(ConnectionError):
        await response.prepare(http)
        if is_plain:
            await response.write_eof()
            return response
        await response.write(body[:half])
        await asyncio.sleep(reply.body_delay_s)
        if reply.cuts_body:
            reset(http)
        else:
            await response.write_eof(body[half:])
    return response


async def send_json(
    http: web.BaseRequest,
    content: Mapping[str, Any],
    status: int = 200,
) -> web.StreamResponse:
    """Send a JSON object without faults."""
    return await send(http, json.dumps(content).encode(), HttpResponse(status=status))


def cut(http: web.BaseRequest) -> web.Response:
    """Close the connection without a response; nobody receives the returned one, but the server
    needs it.
    """
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


def reset(http: web.BaseRequest):
    """End the connection with a reset, as a provider's crashed proxy does."""
    transport = http.transport
    if transport is None:
        return
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET,
        socket.SO_LINGER,
        _RESET_ON_CLOSE,
    )
    transport.abort()
