"""What a request is about: its messages, its digest, its model, whichever of the two endpoints it was sent to."""

import hashlib
import json
import re
from typing import Any

Request = dict[str, Any]

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_LONG = 500
_MARKS = bytes(ord(" ") if chr(code).isspace() and code < 128 else ord("x") for code in range(256))
"""Every byte as a space or as part of a word."""


class TakenRequest(Request):
    """A request as it arrived, with the digest of its content worked out once."""

    __slots__ = ("digest",)

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.digest = _content_digest(request)


def digest_of(request: Request) -> str:
    """A hash of a request's content; the order of its keys does not count."""
    return request.digest if isinstance(request, TakenRequest) else _content_digest(request)


def _content_digest(request: Request) -> str:
    return hashlib.sha256(_CANONICAL.encode(_abridged(request)).encode()).hexdigest()


def _abridged(value: Any) -> Any:
    """A value with hashes for its long texts, which is faster than writing them as JSON again."""
    if isinstance(value, str) and len(value) > _LONG:
        return "sha256 " + hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
    if isinstance(value, dict):
        return {_abridged(key): _abridged(item) for key, item in value.items()}
    return [_abridged(item) for item in value] if isinstance(value, list) else value


def messages_of(request: Request) -> list[dict[str, Any]]:
    """The conversation of a request: `messages` of a chat completion, `instructions` and `input` of a response."""
    if "messages" in request:
        messages: list[dict[str, Any]] = request["messages"]
        return messages
    given = request.get("input") or []
    given = [given] if isinstance(given, str) else list(given)
    items = [{"role": "user", "content": item} if isinstance(item, str) else item for item in given]
    instructions = request.get("instructions")
    return [{"role": "system", "content": instructions}, *items] if instructions else items


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, whose content may be a string, a list of parts or missing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())


def prompt_of(request: Request) -> str:
    """The text of a request's first message."""
    messages = messages_of(request)
    return text_of(messages[0]) if messages else ""


def prompt_tokens_of(request: Request) -> int:
    """The words of all messages, which is what this provider calls tokens."""
    return sum(words_in(text_of(message)) for message in messages_of(request))


def words_in(text: str) -> int:
    """As many as `split` finds, in half the time for plain text."""
    if not text.isascii():
        return len(text.split())
    return (b" " + text.encode()).translate(_MARKS).count(b" x")


def flaw_of(request: object, field: str) -> str | None:
    """What makes a request one that no provider would answer; `field` has to hold the conversation."""
    if not isinstance(request, dict):
        return "The body is not a JSON object."
    if not isinstance(request.get("model"), str):
        return "You must provide a model parameter."
    conversation = request.get(field)
    if field == "input" and (isinstance(conversation, str) or _are_texts(conversation)):
        return None
    if not isinstance(conversation, list) or not all(isinstance(item, dict) for item in conversation):
        return f"Missing or malformed parameter: '{field}'."
    return None


def _are_texts(given: object) -> bool:
    """Whether it is what embeddings are asked for with."""
    return isinstance(given, list) and bool(given) and all(isinstance(item, str) for item in given)


def criterion_of(prompt: str) -> str:
    """The criterion that a judge's prompt of the shipped templates quotes."""
    return re.findall(r"\n\[(\d{16}) criterion\]\n(.*)\n\[\1 end of the criterion\]", prompt, re.DOTALL)[0][1]
