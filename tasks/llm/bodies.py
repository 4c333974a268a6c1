"""Reading the body of a response for LiteLLM: its size is limited, it is cleaned, and what LiteLLM
may hide of it is kept.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tasks.llm.cleaning import (
    clean_choice,
    cleaned,
    first,
    message_in,
    object_in,
    valid_usage,
    without_decisions,
)
from tasks.llm.usage import JsonObject, as_object
from tasks.rules.content import content_of
from tasks.rules.ends import End, end_word, meaning_of

_END_NAMES = (
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "done_reason",
    "native_finish_reason",
)
"""The names under which providers say why a reply ended; a choice of vLLM may have both
`finish_reason` and `stop_reason`.
"""


class ReplyTooLarge(Exception):
    """The reply is larger than the limit."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(
            f"the reply is larger than {most_bytes >> 20} MiB or has too many pieces; reading"
            " stopped"
        )


@dataclass
class Body:
    """The body of a response: its bytes are counted, it is passed on cleaned, and what LiteLLM may
    hide is kept.

    The limit, the encoding, and what was requested are set at the start; all else is what was found
    in the body. A provider may send a whole reply where events were requested; it is passed on as
    events.
    """

    most_bytes: int = 0
    encoding: str = ""
    may_be_cut: bool = False
    """True for a file of JSON lines, the results of a batch: it ends with the last piece wholly
    below the limit of bytes, so that the paid results before it are not lost.
    """
    is_streamed_chat: bool = False
    """True if a streamed chat completion in OpenAI's form was requested."""
    is_stream: bool = False
    is_too_large: bool = False
    """True if the limit of bytes is exceeded."""
    is_completion: bool = False
    """True for the form of OpenAI's chat completions."""
    stated_end: str | None = None
    """The provider's word for the reason why the reply ended: LiteLLM replaces a missing or unknown
    one by `stop`.
    """
    usage: JsonObject = field(default_factory=dict)
    """The last report of usage: LiteLLM replaces its missing figures by 0, and for some providers
    adds some up.
    """
    error: Any = None
    """The error inside a completion."""
    error_text: str = ""
    """The text of an object with an error, or without a reply: LiteLLM omits some of them from its
    exceptions.
    """
    refusal: str = ""
    """The text with which the model refuses."""
    unknown_type: str | None = None
    """The type of a part of the content that is neither text nor thinking."""
    is_unreadable: bool = False
    """True for a completion whose choices are no messages."""
    decisions: bytes | None = None
    """The original body of a decision model, which returns `answers` in place of choices. LiteLLM
    gets it without the decisions: it matches them by their order, and fails on all of them if it
    cannot read one.
    """

    def __post_init__(self) -> None:
        self._n_bytes = 0
        self._pieces = bytearray()

    def feed(self, raw: bytes) -> bytes:
        """Return the bytes to pass on for a piece from the connection.

        Raises:
            ReplyTooLarge: the body is larger than the limit.
            ValueError: it is compressed.
        """
        if self.encoding not in {"", "identity"}:
            raise ValueError(
                f"the reply is compressed as {self.encoding[:20]!r}, which was not requested"
            )
        self._n_bytes += len(raw)
        self.is_too_large = self._n_bytes > self.most_bytes
        if not self.is_too_large:
            return self._collect(raw)
        if self.may_be_cut:
            return b""
        raise ReplyTooLarge(self.most_bytes)

    def _collect(self, piece: bytes) -> bytes:
        """Collect a piece, and return the bytes to pass on at once."""
        self._pieces += piece
        return b""

    def end(self) -> bytes:
        """Return the remaining bytes at the end of the connection."""
        text = bytes(self._pieces)
        if self.may_be_cut:
            return text
        return self._look_at_and_clean(text)

    def _look_at_and_clean(self, text: bytes) -> bytes:
        """Keep what LiteLLM may hide of a whole reply, and return the reply cleaned."""
        content = object_in(text)
        if content is None:
            return text
        self.look_at(content)
        if isinstance(content.get("answers"), list | dict):
            self.decisions = text
            return json.dumps(without_decisions(content)).encode()
        if self.is_streamed_chat and "choices" in content and not content.get("error"):
            return _as_events(content)
        clean = cleaned(content)
        return text if clean == content else json.dumps(clean).encode()

    def look_at(self, content: JsonObject) -> None:
        """Keep what LiteLLM may hide of a completion, or of a part of one, as it was received."""
        report = valid_usage(content.get("usage"))
        # The last events of Anthropic's streams leave out the prompt, which was stated before.
        if report and content.get("type") != "message_delta":
            self.usage = report
        # A whole reply has a list: of choices, outputs, decisions, vectors or parts.
        may_be_reply = self.is_stream or any(isinstance(value, list) for value in content.values())
        if content.get("error") or not may_be_reply:
            self.error_text = json.dumps(content, ensure_ascii=False)
        choices = content.get("choices")
        if isinstance(choices, list):
            self.is_completion = True
        if self.is_completion:
            self.error = self.error or content.get("error")
        if "choices" in content:
            self._look_at_completion(content)
        # A word for a failure is kept, whatever word follows.
        if meaning_of(self.stated_end) is End.COMPLETE:
            self.stated_end = _end_in(content) or self.stated_end

    def _look_at_completion(self, content: JsonObject) -> None:
        # MiniMax states errors beside a reply.
        state = as_object(content.get("base_resp"))
        if state.get("status_code"):
            self.error = self.error or state
        if content.get("output_sensitive") is True:
            self.refusal += "the provider marked the reply as `output_sensitive`"
        choices = content.get("choices")
        choice = first(choices)
        self.error = self.error or as_object(choice).get("error")
        message = message_in(choice, is_event=self.is_stream)
        if message is not None:
            self._look_at_message(message)
        elif choices != [] and not self.is_stream:
            self.is_unreadable = True

    def _look_at_message(self, message: JsonObject) -> None:
        if isinstance(message.get("refusal"), str):
            self.refusal += message["refusal"]
        content = content_of(message.get("content"))
        self.refusal += content.refusal
        self.unknown_type = self.unknown_type or content.unknown_type


def _end_in(content: JsonObject) -> str | None:
    """Return the word with which a completion, or a part of one, says why it ended."""
    choice = first(content.get("choices"))
    candidate = first(content.get("candidates"))
    for fields in (choice, content, content.get("delta"), candidate):
        for name in _END_NAMES:
            word = end_word(as_object(fields).get(name))
            if word:
                return word
    return None


def _as_events(content: JsonObject) -> bytes:
    """Return a whole completion as the events of a streamed one.

    Unlike a stream, a whole reply without a finish reason is complete, so it gets `stop`.
    """
    event = cleaned(content, is_event=True)
    event["choices"] = event["choices"] or [clean_choice({}, {}, is_event=True)]
    choice = event["choices"][0]
    choice["finish_reason"] = choice["finish_reason"] or "stop"
    return b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n"


_MOST_LINES = 500_000
"""The most lines of a stream. An event has two or three, and LiteLLM keeps 4 KB of each event."""


@dataclass
class EventBody(Body):
    """A stream of events, each passed on as one line of data, after a line with its name if it has
    one.

    Lines that are neither are not passed on, because LiteLLM and its libraries fail on some of
    them. A body without any event is read as a whole reply.
    """

    is_stream: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._n_lines = 0
        self._name = b""
        self._data: list[bytes] = []
        self._has_events = False
        self._other_lines: list[bytes] = []

    def _collect(self, piece: bytes) -> bytes:
        *ended, rest = piece.split(b"\n")
        self._n_lines += len(ended)
        if self._n_lines > _MOST_LINES:
            raise ReplyTooLarge(self.most_bytes)
        if not ended:
            self._pieces += rest
            return b""
        ended[0] = bytes(self._pieces) + ended[0]
        self._pieces = bytearray(rest)
        return b"".join(self._event_after(line) for line in ended)

    def end(self) -> bytes:
        """Return the last event, which may have no empty line after it, or the whole reply."""
        last_event = self._event_after(bytes(self._pieces)) or self._event()
        if self._has_events:
            return last_event
        self.is_stream = False
        self.is_streamed_chat = True  # so that the whole reply is passed on as events
        return self._look_at_and_clean(b"\n".join(self._other_lines))

    def _event_after(self, line: bytes) -> bytes:
        """Return the event that a line ends; nothing if it ends none."""
        line = line.removesuffix(b"\r")
        if not line:
            return self._event()
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.strip()
        elif name == b"data":
            self._has_events = True
            self._data.append(value.removeprefix(b" "))
            # Some servers leave out the empty line, so complete JSON is an event.
            if len(self._data) == 1 and object_in(value) is not None:
                return self._event()
        elif name not in {b"", b"id", b"retry"} and not self._has_events:
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
        content = object_in(text)
        is_of_chat = self.is_streamed_chat or self.is_completion
        if content is not None:
            if is_of_chat and name != b"error" and not _says_something(content):
                return b""
            text = self._clean_event(content)
        elif is_of_chat and text != b"[DONE]":
            return b""
        if not text:
            return b""
        event = b"data: " + text.replace(b"\n", b"\ndata: ") + b"\n\n"
        if name:
            return b"event: " + name + b"\n" + event
        return event

    def _clean_event(self, content: dict[str, Any]) -> bytes:
        choice = first(content.get("choices"))
        if self.is_completion and isinstance(choice, dict):
            choice.pop("message", None)  # some servers repeat the whole text at the end
        self.look_at(content)
        if self.is_completion and content.get("usage"):
            content.setdefault("choices", [])
        return json.dumps(cleaned(content, is_event=True)).encode()


def _says_something(content: JsonObject) -> bool:
    """Return whether an event of a streamed completion does more than keep the connection open."""
    is_error = "error" in {str(content.get("type")), str(content.get("object"))}
    return is_error or "choices" in content or bool(content.get("usage") or content.get("error"))
