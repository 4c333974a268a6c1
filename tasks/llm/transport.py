"""HTTP below LiteLLM: redirects are refused, bodies are bounded, and only what is used of a
completion is passed on.

LiteLLM creates its own clients, which follow redirects and read bodies of any size; so do the
libraries behind Apprise. Their classes are patched once per process, when the first exchange
begins, to ask the current exchange; outside of an exchange they work as before.
"""

import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from tasks.llm.usage import is_count, openai_form
from tasks.rules.content import content_of, thinking_of
from tasks.rules.ends import End, end_word, meaning_of
from tasks.rules.errors import PipelineError

_COUNTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


def cleaned(content: Any, *, is_event: bool = False) -> Any:
    """Return a reply, or an event of a streamed one, as LiteLLM can read it.

    `Body.look_at` keeps what is replaced here.
    """
    if not isinstance(content, dict):
        return content
    if "choices" in content:
        return _clean_completion(content, is_event=is_event)
    if content.get("usage") is None:
        return content
    return {**content, "usage": _clean_usage(content)}


def _clean_completion(content: Mapping[str, Any], *, is_event: bool) -> dict[str, Any]:
    """Return a completion in OpenAI's form with only the fields that are used, each of the type
    that LiteLLM reads.

    LiteLLM fails on any other type, also in fields that nobody needs, and the paid reply would be
    lost.
    """
    clean: dict[str, Any] = {
        "id": _text(content.get("id")) or "",
        "object": "chat.completion.chunk" if is_event else "chat.completion",
        "created": 0,
        "choices": [],
        "model": None,
    }
    choice = _first(content.get("choices"))
    message = _message_in(choice, is_event=is_event)
    if message is not None:
        clean["choices"].append(_clean_choice(choice, message, is_event=is_event))
    for name in ("model", "system_fingerprint", "service_tier"):
        if isinstance(content.get(name), str):
            clean[name] = content[name]
    citations = content.get("citations")
    if isinstance(citations, list):  # LiteLLM prices those of Perplexity
        clean["citations"] = [citation for citation in citations if isinstance(citation, str)]
    if content.get("usage") is not None:
        clean["usage"] = _figures(_clean_usage(content) or {})
    if content.get("error"):
        clean["error"] = content["error"]
    return clean


def _message_in(choice: Any, *, is_event: bool) -> dict[str, Any] | None:
    """Return the message of a choice; that of an event may be without anything, or in one piece."""
    if not isinstance(choice, dict):
        return None
    names = ("delta", "message") if is_event else ("message", "delta")
    for name in names:
        message = choice.get(name)
        if isinstance(message, dict):
            return message
    return {} if is_event else None


def _clean_choice(
    choice: Mapping[str, Any], message: Mapping[str, Any], *, is_event: bool
) -> dict[str, Any]:
    finish_reason = choice.get("finish_reason")
    word = end_word(finish_reason)
    if word and (word != finish_reason or meaning_of(word) is End.TROUBLE):
        # Some routes end a stream at such a word, and its text and usage would be lost.
        word = "stop"
    logprobs = choice.get("logprobs")
    return {
        "index": 0,  # one choice is requested; some servers count tokens here
        "delta" if is_event else "message": _clean_message(message),
        "finish_reason": word,
        "logprobs": logprobs if isinstance(logprobs, dict) else None,
    }


def _clean_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = content_of(message.get("content"))
    clean: dict[str, Any] = {"role": "assistant", "content": None}
    if message.get("content") is not None:
        clean["content"] = content.text
    thinking = content.thinking or thinking_of(message)
    if thinking:
        clean["reasoning_content"] = thinking
        clean["reasoning"] = thinking  # LiteLLM's route to OpenRouter reads only this one
    if isinstance(message.get("refusal"), str):
        clean["refusal"] = message["refusal"]
    tool_calls = message.get("tool_calls")
    if isinstance(tool_calls, list) and tool_calls:
        clean["tool_calls"] = [
            _clean_tool_call(call) for call in tool_calls if isinstance(call, dict)
        ]
    annotations = message.get("annotations")
    if isinstance(annotations, list) and any(map(_is_url_citation, annotations)):
        # LiteLLM prices a search by its citations.
        clean["annotations"] = [{"type": "url_citation", "url_citation": {}}]
    return clean


def _clean_tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict):
        function = {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {})
    clean = {
        "id": _text(call.get("id")),
        "type": "function",
        "function": {"name": _text(function.get("name")), "arguments": arguments},
    }
    if is_count(call.get("index")):
        clean["index"] = call["index"]
    return clean


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_url_citation(annotation: Any) -> bool:
    return isinstance(annotation, dict) and annotation.get("type") == "url_citation"


def _clean_usage(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a report of usage with valid figures, counted as OpenAI does."""
    report = openai_form(_usage(content["usage"]))
    if not report and content.get("object") == "response":
        return None  # the responses API accepts no empty report
    return report


_LARGEST_FIGURE = 10**12


def _figures(report: Mapping[str, Any], *, is_detail: bool = False) -> dict[str, Any]:
    """Return only the figures of a report and of its details, where all are whole numbers."""
    figures: dict[str, Any] = {}
    for name, value in report.items():
        if isinstance(value, dict) and not is_detail:
            figures[name] = _figures(value, is_detail=True)
        is_figure = is_count(value) or (isinstance(value, float) and not is_detail)
        if is_figure and abs(value) <= _LARGEST_FIGURE:
            figures[name] = value
    return figures


def without_decisions(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a decision model without its decisions, with the total of tokens that
    LiteLLM needs.
    """
    usage = _usage(content.get("usage"))
    for name in ("input_tokens", "output_tokens"):
        usage[name] = usage.get(name) or 0
    usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    no_decisions = type(content["answers"])()
    return {**content, "answers": no_decisions, "usage": usage}


def _usage(usage: Any) -> dict[str, Any]:
    """Return a report of usage with valid figures only; an empty one if a main figure is
    invalid.
    """
    if not isinstance(usage, Mapping):
        return {}
    figures: dict[str, Any] = {}
    for name, value in usage.items():
        is_invalid_count = name.endswith("tokens") and value is not None and not is_count(value)
        if is_invalid_count and name in _COUNTS:
            return {}
        is_invalid_number = isinstance(value, float) and not math.isfinite(value)
        if is_invalid_count or is_invalid_number:
            continue
        if name.endswith("_details") and value is not None:
            figures[name] = _usage(value)
        else:
            figures[name] = value
    return figures


_ENDS = (
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "done_reason",
    "native_finish_reason",
)
"""The names under which providers say why a reply ended; a choice of vLLM may have the first and
the third.
"""


def _has_no_reply(content: Mapping[str, Any]) -> bool:
    """Return whether a body has no list: replies have choices, an output, decisions, vectors or
    parts.
    """
    return not any(isinstance(value, list) for value in content.values())


class ReplyTooLarge(Exception):
    """The reply is larger than the limit."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(
            f"the reply is larger than {most_bytes >> 20} MiB or has too many pieces; reading"
            " stopped"
        )


class Body:
    """The body of a response: its bytes are counted, it is passed on cleaned, and what LiteLLM may
    hide is kept.

    A body that `may_be_cut` (a file of JSON lines, the results of a batch) ends at the bound, so
    that no paid result before it is lost; then it `is_over`. `is_completion` is true for the shape
    of OpenAI's chat completions. `stated_end` is the word with which the provider says why the
    reply ended, because LiteLLM replaces a missing or unknown one by `stop`. `usage` is the last
    report of usage: LiteLLM replaces its missing figures by 0, and for some providers adds some up.
    `error` is one inside a completion, `refusal` the model's own, `unknown_type` that of a part of
    its content which is neither text nor thinking. A completion `is_unreadable` whose choices are
    no messages. A provider may send a whole reply where events are requested; it is passed on as
    events. `error_text` is the text of an object with an error, or without a reply, since LiteLLM
    omits some of them from its exceptions. `decisions` is the original body of a decision model;
    LiteLLM gets it without the decisions, because it matches them by their order, and fails on all
    of them if it cannot read one.
    """

    is_stream = False

    def __init__(
        self,
        most_bytes: int,
        encoding: str = "",
        *,
        may_be_cut: bool = False,
        is_streamed_chat: bool = False,
    ) -> None:
        self._most_bytes = most_bytes
        self._n_bytes = 0
        self._encoding = encoding
        self._may_be_cut = may_be_cut
        self._is_streamed_chat = is_streamed_chat
        self._pieces = bytearray()
        self.is_over = False
        self.is_completion = False
        self.stated_end: str | None = None
        self.usage: Mapping[str, Any] = {}
        self.error: Any = None
        self.error_text = ""
        self.refusal = ""
        self.unknown_type: str | None = None
        self.is_unreadable = False
        self.decisions: bytes | None = None

    def feed(self, raw: bytes) -> Iterator[bytes]:
        """Yield the bytes to pass on for a piece from the connection.

        Raises:
            ReplyTooLarge: the body is larger than the limit.
            ValueError: it is compressed.
        """
        if self._encoding not in {"", "identity"}:
            raise ValueError(
                f"the reply is compressed as {self._encoding[:20]!r}, which was not requested"
            )
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
        text = bytes(self._pieces)
        return text if self._may_be_cut else self._cleaned(text)

    def _cleaned(self, text: bytes) -> bytes:
        content = _object_in(text)
        if content is None:
            return text
        self.look_at(content)
        if isinstance(content.get("answers"), list | dict):
            self.decisions = text
            return json.dumps(without_decisions(content)).encode()
        if self._is_streamed_chat and "choices" in content and not content.get("error"):
            return _as_events(content)
        clean = cleaned(content)
        return text if clean == content else json.dumps(clean).encode()

    def look_at(self, content: Any) -> None:
        """Keep what LiteLLM may hide of a completion, or of a part of one, as it was received."""
        if not isinstance(content, dict):
            return
        report = _usage(content.get("usage"))
        # The last events of Anthropic's streams leave out the prompt, which was stated before.
        if report and content.get("type") != "message_delta":
            self.usage = report
        if content.get("error") or (not self.is_stream and _has_no_reply(content)):
            self.error_text = json.dumps(content, ensure_ascii=False)
        choices = content.get("choices")
        if isinstance(choices, list):
            self.is_completion = True
        if self.is_completion:
            self.error = self.error or content.get("error")
        if "choices" in content:
            self._look_at_completion(content)
        # A word for a failure stands, whatever follows.
        if meaning_of(self.stated_end) is End.COMPLETE:
            self.stated_end = _end_in(content) or self.stated_end

    def _look_at_completion(self, content: Mapping[str, Any]) -> None:
        state = content.get("base_resp")  # of MiniMax, which states errors beside a reply
        if isinstance(state, dict) and state.get("status_code"):
            self.error = self.error or state
        if content.get("output_sensitive") is True:
            self.refusal += "the provider marked the reply as `output_sensitive`"
        choices = content.get("choices")
        choice = _first(choices)
        if isinstance(choice, dict):
            self.error = self.error or choice.get("error")
        message = _message_in(choice, is_event=self.is_stream)
        if message is not None:
            self._look_at_message(message)
        elif choices != [] and not self.is_stream:
            self.is_unreadable = True

    def _look_at_message(self, message: Mapping[str, Any]) -> None:
        refusal = message.get("refusal")
        self.refusal += _text(refusal) or ""
        content = content_of(message.get("content"))
        self.refusal += content.refusal
        self.unknown_type = self.unknown_type or content.unknown_type


def _end_in(content: Mapping[str, Any]) -> str | None:
    """Return the word with which a completion, or a part of one, says why it ended."""
    choice = _first(content.get("choices"))
    candidate = _first(content.get("candidates"))
    for fields in (choice, content, content.get("delta"), candidate):
        if isinstance(fields, dict):
            for name in _ENDS:
                word = end_word(fields.get(name))
                if word:
                    return word
    return None


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else None


def _object_in(text: bytes) -> dict[str, Any] | None:
    """Return a JSON object; None if the text is none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _as_events(content: Mapping[str, Any]) -> bytes:
    """Return a whole completion as the events of a streamed one.

    A whole reply needs no word for its end.
    """
    event = cleaned(content, is_event=True)
    event["choices"] = event["choices"] or [_clean_choice({}, {}, is_event=True)]
    choice = event["choices"][0]
    choice["finish_reason"] = choice["finish_reason"] or "stop"
    return b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n"


_MOST_LINES = 500_000
"""Two or three lines are an event, of which LiteLLM keeps about 4 KB."""


class EventBody(Body):
    """A stream of events, each passed on as one line of data, after a line with its name if it has
    one.

    Lines that are neither are not passed on, because LiteLLM and its libraries fail on some of
    them. A body without any event is read as a whole reply.
    """

    is_stream = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._n_lines = 0
        self._name = b""
        self._data: list[bytes] = []
        self._has_events = False
        self._other_lines: list[bytes] = []

    def _handed_on(self, piece: bytes) -> Sequence[bytes]:
        *ended, rest = piece.split(b"\n")
        self._n_lines += len(ended)
        if self._n_lines > _MOST_LINES:
            raise ReplyTooLarge(self._most_bytes)
        if ended:
            ended[0] = bytes(self._pieces) + ended[0]
            self._pieces = bytearray()
        self._pieces += rest
        events = b"".join(self._event_after(line.removesuffix(b"\r")) for line in ended)
        return [events] if events else ()

    def end(self) -> bytes:
        """Return the last event, which may have no empty line after it, or the whole reply."""
        last_line = bytes(self._pieces).removesuffix(b"\r")
        last_event = self._event_after(last_line) or self._event()
        if self._has_events:
            return last_event
        self.is_stream = False
        self._is_streamed_chat = True
        return self._cleaned(b"\n".join(self._other_lines))

    def _event_after(self, line: bytes) -> bytes:
        """Return the event that a line ends; nothing if it ends none."""
        field, _, value = line.partition(b":")
        if not line:
            return self._event()
        if field == b"event":
            self._name = value.strip()
        elif field == b"data":
            self._has_events = True
            self._data.append(value.removeprefix(b" "))
            # Some servers leave out the empty line, so complete JSON is an event.
            if len(self._data) == 1 and _object_in(value) is not None:
                return self._event()
        elif field not in {b"", b"id", b"retry"} and not self._has_events:
            self._other_lines.append(line)
        return b""

    def _event(self) -> bytes:
        """Return the event of the lines since the last one; nothing if it only keeps the connection
        open.
        """
        text = b"\n".join(self._data).strip()
        name = self._name
        self._data = []
        self._name = b""
        content = _object_in(text)
        is_of_chat = self._is_streamed_chat or self.is_completion
        if content is not None:
            if is_of_chat and name != b"error" and not _says_something(content):
                return b""
            text = self._clean_event(content)
        elif is_of_chat and text != b"[DONE]":
            return b""
        if not text:
            return b""
        heading = b"event: " + name + b"\n" if name else b""
        return heading + b"data: " + text.replace(b"\n", b"\ndata: ") + b"\n\n"

    def _clean_event(self, content: dict[str, Any]) -> bytes:
        choice = _first(content.get("choices"))
        if self.is_completion and isinstance(choice, dict):
            choice.pop("message", None)  # some servers repeat the whole text at the end
        self.look_at(content)
        if self.is_completion and content.get("usage"):
            content.setdefault("choices", [])
        return json.dumps(cleaned(content, is_event=True)).encode()


def _says_something(content: Mapping[str, Any]) -> bool:
    """Return whether an event of a streamed completion is more than a sign of life."""
    is_error = "error" in {str(content.get("type")), str(content.get("object"))}
    return (
        is_error or "choices" in content or bool(content.get("usage")) or bool(content.get("error"))
    )


MOST_BYTES = 32 << 20
"""Limit of one reply: 128,000 streamed tokens of 250 bytes each; in one piece, far more tokens."""


class Redirected(PipelineError):
    """The server responded with a redirect, which was not followed."""

    def __init__(self, status: int, address: str, location: str) -> None:
        super().__init__(
            f"HTTP {status}: {_host(address)} redirects to {_host(address, location)}, which is not"
            " followed; configure the address where it leads"
        )


@dataclass
class Exchange:
    """One call over HTTP: its limits, and what a library may hide of it.

    `n_results` is the number of calls with a line in a batch's file. `status` is that of the last
    response. `fault` is the error that ended it: libraries replace it by other errors.
    """

    n_results: int | None = None
    status: int | None = None
    fault: Redirected | ReplyTooLarge | None = None
    body: Body = field(default_factory=lambda: Body(0))

    def refuse_redirect(self, response: Any) -> None:
        """Raise `Redirected` if the response, of any library, is a redirect."""
        status = response.status if hasattr(response, "status") else response.status_code
        self.status = status
        if 300 <= status < 400:
            self.fault = Redirected(status, str(response.url), response.headers.get("location", ""))
            raise self.fault

    def begin(self, kind: str, encoding: str, *, is_streamed_chat: bool) -> None:
        """Begin the next body, given its content type and content encoding from the headers.

        `is_streamed_chat` is true if a streamed chat completion in OpenAI's form was requested.
        """
        # 32 KiB for each call of a batch are several times the size of a verdict.
        most_bytes = MOST_BYTES + (32 << 10) * (self.n_results or 0)
        may_be_cut = self.n_results is not None
        # Some servers name another type; a body without events is read as a whole reply.
        has_events = is_streamed_chat or kind.startswith("text/event-stream")
        body_class = EventBody if has_events and not may_be_cut else Body
        self.body = body_class(
            most_bytes,
            encoding.strip().lower(),
            may_be_cut=may_be_cut,
            is_streamed_chat=is_streamed_chat,
        )

    def read(self, raw: bytes | None) -> Iterator[bytes]:
        """Yield the bytes to pass on for a piece from the connection; None means its end."""
        try:
            if raw is None:
                yield self.body.end()
            else:
                yield from self.body.feed(raw)
        except ReplyTooLarge as fault:
            self.fault = fault
            raise


def _host(address: str, location: str = "") -> str:
    """Return only the host and port of an address, or of a location that it names: the rest may
    hold secrets.
    """
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
    request = aiohttp.ClientSession._request
    send = requests.Session.send

    async def requested(self: Any, method: str, address: Any, **options: Any) -> Any:
        exchange = _CURRENT.get()
        if exchange is None:
            return await request(self, method, address, **options)
        return _direct(
            exchange, await request(self, method, address, **{**options, "allow_redirects": False})
        )

    def sent(self: Any, request: Any, **options: Any) -> Any:
        exchange = _CURRENT.get()
        if exchange is None:
            return send(self, request, **options)
        return _direct(exchange, send(self, request, **{**options, "allow_redirects": False}))

    # LiteLLM's transport over aiohttp follows no redirects, but fails on a location that is not a
    # valid header.
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
        self._stream = stream
        self._exchange = exchange

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


def _requests_streamed_chat(request: Any) -> bool:
    if not request.url.path.endswith("/chat/completions"):
        return False
    content = _object_in(request.content) or {}
    return bool(content.get("stream"))


def _guard_httpx(client: Any, body: type[_HandedOn]) -> None:
    """Patch the one function of httpx that every request passes through, including those of
    redirects.
    """
    send = client._send_single_request

    def watched_by(exchange: Exchange, response: Any) -> Any:
        response.headers.pop("content-length", None)
        exchange.begin(
            response.headers.get("content-type", "").lower(),
            response.headers.pop("content-encoding", ""),
            is_streamed_chat=_requests_streamed_chat(response.request),
        )
        response.stream = body(response.stream, exchange)
        return response

    async def sent_async(self: Any, request: Any) -> Any:
        exchange = _CURRENT.get()
        if exchange is None:
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
        exchange = _CURRENT.get()
        if exchange is None:
            return send(self, request)
        request.headers["accept-encoding"] = "identity"
        return watched_by(exchange, _direct(exchange, send(self, request)))

    client._send_single_request = sent_async if hasattr(client, "aclose") else sent
