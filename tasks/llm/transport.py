"""HTTP below LiteLLM: redirects are refused, bodies are bounded, and invalid figures are removed.

LiteLLM creates its own clients, which follow redirects and read bodies of any size; so do the libraries behind Apprise.
Their classes are patched once per process, when the first exchange begins, to ask the current exchange; outside of an
exchange they work as before.
"""

import json
import math
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from tasks.llm.usage import is_count, openai_form
from tasks.rules.content import content_of
from tasks.rules.ends import End, end_word, meaning_of
from tasks.rules.errors import PipelineError

_COUNTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


def cleaned(content: Any) -> Any:
    """Return a completion without what LiteLLM cannot read: invalid figures of usage, ends that are no words, parts.

    `Body.look_at` keeps what is replaced here.
    """
    if not isinstance(content, dict):
        return content
    clean = dict(content)
    if content.get("usage") is not None:
        clean["usage"] = _usage(content["usage"]) or _no_usage(content)
    if isinstance(choices := content.get("choices"), list):
        clean["choices"] = [_clean_choice(choice) if isinstance(choice, dict) else choice for choice in choices]
    return clean


def _clean_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    clean = dict(choice)
    word = end_word(choice.get("finish_reason"))
    if word != choice.get("finish_reason") or meaning_of(word) is End.TROUBLE:
        # Some routes end a stream at such a word, and its text and usage would be lost.
        clean["finish_reason"] = "stop" if word else None
    for name in ("message", "delta"):
        message = choice.get(name)
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            content = content_of(message["content"])
            thinking = content.thinking or message.get("reasoning_content")
            clean[name] = {**message, "content": content.text, "reasoning_content": thinking}
    return clean


def without_decisions(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a decision model without its decisions, with the total of tokens that LiteLLM needs."""
    usage = content.get("usage") or {}
    counts = {name: usage.get(name) or 0 for name in ("input_tokens", "output_tokens")}
    usage = {**usage, **counts, "total_tokens": sum(counts.values())}
    return {**content, "answers": type(content["answers"])(), "usage": usage}


def _no_usage(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a missing report: chat completions accept an empty one, the responses API none."""
    return None if content.get("object") == "response" else {}


def _usage(usage: Any) -> dict[str, Any]:
    """Return a report of usage with valid figures only; an empty one if a main figure is invalid."""
    if not isinstance(usage, Mapping) or not all(is_count(usage[n]) for n in _COUNTS if usage.get(n) is not None):
        return {}
    return {
        name: _usage(value) if name.endswith("_details") and value is not None else value
        for name, value in usage.items()
        if not (isinstance(value, float) and not math.isfinite(value))
        and (not name.endswith("tokens") or value is None or is_count(value))
    }


_ENDS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "native_finish_reason")
"""The names under which providers say why a reply ended; a choice of vLLM may have the first and the third."""
_TELLS_MORE = re.compile(
    rb'"(?:usage|error|refusal|' + "|".join(_ENDS).encode() + rb')"\s*:\s*[^n\s]'
    rb'|"content"\s*:\s*\['
)
"""Marks a stream's event that holds more than a piece of text; in all other events these values are null."""


def _has_no_reply(content: Mapping[str, Any]) -> bool:
    """Return whether a body has no list: replies have choices, an output, decisions, vectors or parts."""
    return not any(isinstance(value, list) for value in content.values())


class ReplyTooLarge(Exception):
    """The reply is larger than the limit."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"the reply is larger than {most_bytes >> 20} MiB or has too many pieces; reading stopped")


class Body:
    """The body of a response: its bytes are counted, it is passed on cleaned, and what LiteLLM may hide is kept.

    A body that `may_be_cut` (a file of JSON lines, the results of a batch) ends at the bound, so that no paid result
    before it is lost; then it `is_over`. `is_completion` is true for the shape of OpenAI's chat completions.
    `stated_end` is the word with which the provider says why the reply ended, because LiteLLM replaces a missing or
    unknown one by `stop`. `usage` is the last report of usage: LiteLLM replaces its missing figures by 0, and for some
    providers adds some up. `error` is one inside a completion, `refusal` the model's own, `unknown_type` that of a part
    of its content which is neither text nor thinking. `error_text` is the text of an object with an error, or without a
    reply, since LiteLLM omits some of them from its exceptions. `decisions` is the original body of a decision model;
    LiteLLM gets it without the decisions, because it matches them by their order, and fails on all of them if it cannot
    read one.
    """

    is_stream = False

    def __init__(self, most_bytes: int, encoding: str = "", *, may_be_cut: bool = False) -> None:
        self._most_bytes, self._n_bytes, self._encoding = most_bytes, 0, encoding
        self._may_be_cut = may_be_cut
        self._pieces = bytearray()
        self.is_over = False
        self.is_completion = False
        self.stated_end: str | None = None
        self.usage: Mapping[str, Any] = {}
        self.error: Any = None
        self.error_text = ""
        self.refusal = ""
        self.unknown_type: str | None = None
        self.decisions: bytes | None = None

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """Yield the bytes to pass on for a piece from the connection.

        Raises:
            ReplyTooLarge: the body is larger than the limit.
            ValueError: it is compressed.
        """
        if self._encoding not in {"", "identity"}:
            raise ValueError(f"the reply is compressed as {self._encoding[:20]!r}, which was not requested")
        self._n_bytes += len(raw)
        self.is_over = self._n_bytes > self._most_bytes
        if self.is_over and not self._may_be_cut:
            raise ReplyTooLarge(self._most_bytes)
        if not self.is_over:
            yield from self._handed_on(raw)

    def _handed_on(self, piece: bytes) -> Sequence[bytes]:
        self._pieces += piece
        return ()

    def end(self) -> bytes:
        """Return the remaining bytes at the end of the connection."""
        return bytes(self._pieces) if self._may_be_cut else self._cleaned(bytes(self._pieces))

    def _cleaned(self, text: bytes) -> bytes:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return text
        clean = cleaned(content)
        if isinstance(clean, dict) and isinstance(clean.get("answers"), list | dict):
            self.decisions, clean = text, without_decisions(clean)
        elif isinstance(clean, dict) and clean.get("usage"):
            clean["usage"] = openai_form(clean["usage"]) or _no_usage(clean)
        self.look_at(content)
        return text if clean == content else json.dumps(clean).encode()

    def look_at(self, content: Any) -> None:
        """Keep what LiteLLM may hide of a completion, or of a part of one, as it was received."""
        if not isinstance(content, dict):
            return
        report = _usage(content.get("usage"))
        is_partial = content.get("type") == "message_delta"  # Anthropic's streams state the prompt before
        if report and not is_partial:
            self.usage = report
        if content.get("error") or _has_no_reply(content):
            self.error_text = json.dumps(content, ensure_ascii=False)
        choices = content.get("choices")
        if isinstance(choices, list):
            self.is_completion = True
        if self.is_completion:
            self.error = self.error or content.get("error")
        choice = _first(choices)
        holders = (choice, content, content.get("delta"), _first(content.get("candidates")))
        words = [end_word(holder.get(name)) for holder in holders if isinstance(holder, dict) for name in _ENDS]
        self.stated_end = next(filter(None, words), self.stated_end)
        if isinstance(choice, dict):
            self.error = self.error or choice.get("error")
            self._look_at_message(choice.get("message") or choice.get("delta"))

    def _look_at_message(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        refusal = message.get("refusal")
        self.refusal += refusal if isinstance(refusal, str) else ""
        if isinstance(message.get("content"), list):
            content = content_of(message["content"])
            self.refusal += content.refusal
            self.unknown_type = self.unknown_type or content.unknown_type


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else None


class EventBody(Body):
    """A stream of events, passed on line by line."""

    is_stream = True
    _n_lines = 0

    def _handed_on(self, piece: bytes) -> Sequence[bytes]:
        *ended, rest = piece.split(b"\n")
        self._n_lines += len(ended)
        if self._n_lines > 500_000:  # two or three for each event, of which LiteLLM keeps about 4 KB
            raise ReplyTooLarge(self._most_bytes)
        if ended:
            ended[0], self._pieces = bytes(self._pieces) + ended[0], bytearray()
        self._pieces += rest
        return [self._cleaned(line) + b"\n" for line in ended]

    def _cleaned(self, text: bytes) -> bytes:
        if b'"choices"' in text:
            self.is_completion = True
        if not text.startswith(b"data:") or not _TELLS_MORE.search(text):
            return text
        return text[:5] + super()._cleaned(text[5:])


MOST_BYTES = 32 << 20
"""Limit of one reply: 128,000 streamed tokens of 250 bytes each; in one piece, far more tokens."""


class Redirected(PipelineError):
    """The server responded with a redirect, which was not followed."""

    def __init__(self, status: int, address: str, location: str) -> None:
        super().__init__(
            f"HTTP {status}: {_host(address)} redirects to {_host(address, location)}, which is not followed; "
            "configure the address where it leads"
        )


@dataclass
class Exchange:
    """One call over HTTP: its limits, and what a library may hide of it.

    `n_results` is the number of calls with a line in a batch's file. `status` is that of the last response. `fault` is
    the error that ended it: libraries replace it by other errors.
    """

    n_results: int | None = None
    status: int | None = None
    fault: Redirected | ReplyTooLarge | None = None
    body: Body = field(default_factory=lambda: Body(0))

    def refuse_redirect(self, response: Any) -> None:
        """Raise `Redirected` if the response, of any library, is a redirect."""
        self.status = status = response.status if hasattr(response, "status") else response.status_code
        if 300 <= status < 400:
            self.fault = Redirected(status, str(response.url), response.headers.get("location", ""))
            raise self.fault

    def begin(self, kind: str, encoding: str) -> None:
        """Begin the next body, given its content type and content encoding from the headers."""
        # 32 KiB for each call of a batch are several times the size of a verdict.
        most_bytes, may_be_cut = MOST_BYTES + (32 << 10) * (self.n_results or 0), self.n_results is not None
        form = EventBody if kind.startswith("text/event-stream") and not may_be_cut else Body
        self.body = form(most_bytes, encoding.strip().lower(), may_be_cut=may_be_cut)

    def read(self, raw: bytes | None) -> Iterator[bytes]:
        """Yield the bytes to pass on for a piece from the connection; None means its end."""
        try:
            yield from [self.body.end()] if raw is None else self.body.feed(raw)
        except ReplyTooLarge as fault:
            self.fault = fault
            raise


def _host(address: str, location: str = "") -> str:
    """Return only the host and port of an address, or of a location that it names: the rest may hold secrets."""
    try:
        host = urlsplit(urljoin(address, location)).netloc.rpartition("@")[2]
    except ValueError:
        return "an invalid address"
    return ascii(host)[1:-1][:100] or "no host"


_CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def watched(exchange: Exchange | None = None) -> Iterator[Exchange]:
    """Make all requests of this task and its subtasks one exchange, until the block ends."""
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

    class HandedOn(_HandedOn, httpx.AsyncByteStream, httpx.SyncByteStream):
        """A body in the form that httpx requires."""

    _guard_httpx(httpx.AsyncClient, HandedOn)
    _guard_httpx(httpx.Client, HandedOn)
    request, send = aiohttp.ClientSession._request, requests.Session.send

    async def requested(self: Any, method: str, address: Any, **options: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return await request(self, method, address, **options)
        return _direct(exchange, await request(self, method, address, **{**options, "allow_redirects": False}))

    def sent(self: Any, request: Any, **options: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return send(self, request, **options)
        return _direct(exchange, send(self, request, **{**options, "allow_redirects": False}))

    # LiteLLM's transport over aiohttp follows no redirects, but fails on a location that is not a valid header.
    aiohttp.ClientSession._request = requested  # type: ignore[assignment, method-assign]
    requests.Session.send = sent  # type: ignore[method-assign]


def _direct(exchange: Exchange, response: Any) -> Any:
    """Return a response, if it is not a redirect."""
    try:
        exchange.refuse_redirect(response)
    except Redirected:
        response.close()
        raise
    return response


class _HandedOn:
    """The body of a response of httpx, as the exchange passes it on."""

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


def _guard_httpx(client: Any, body: type[_HandedOn]) -> None:
    """Patch the one function of httpx that every request passes through, including those of redirects."""
    send = client._send_single_request

    def watched_by(exchange: Exchange, response: Any) -> Any:
        response.headers.pop("content-length", None)
        exchange.begin(response.headers.get("content-type", "").lower(), response.headers.pop("content-encoding", ""))
        response.stream = body(response.stream, exchange)
        return response

    async def sent_async(self: Any, request: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return await send(self, request)
        request.headers["accept-encoding"] = "identity"
        response = await send(self, request)
        try:
            exchange.refuse_redirect(response)
        except Redirected:
            await response.aclose()
            raise
        return watched_by(exchange, response)

    def sent(self: Any, request: Any) -> Any:
        if (exchange := _CURRENT.get()) is None:
            return send(self, request)
        request.headers["accept-encoding"] = "identity"
        return watched_by(exchange, _direct(exchange, send(self, request)))

    client._send_single_request = sent_async if hasattr(client, "aclose") else sent
