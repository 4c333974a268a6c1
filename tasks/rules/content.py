"""The content of a message: its text, its thinking, and parts of other types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TEXT = frozenset({"text", "input_text", "output_text"})
_THINKING = ("thinking", "reasoning", "redacted_thinking", "thought")
"""Types of thinking; longer names that begin so (`reasoning_text`, `reasoning.summary`) are
thinking, too.
"""
_THINKING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking_blocks",
    "thinking",
)
_HOLDERS = ("thinking", "reasoning", "thought", "text", "content", "summary", "data")
"""Fields of a piece of thinking that hold a text, or more pieces."""


@dataclass
class Content:
    """The content of a message; `unknown_type` is the type of a part that is none of the others."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    unknown_type: str | None = None


def content_of(value: Any) -> Content:
    """Return the content in a text, or in a list of texts and of objects with a type."""
    content = Content()
    if value is None:
        return content
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        kind = _type_of(part)
        if kind in _TEXT:
            text = part if isinstance(part, str) else _text_of(part.get("text"))
            if text is None:
                content.unknown_type = f"{kind} without a text"
            else:
                content.text += text
        elif kind.startswith(_THINKING):
            content.thinking += _texts_in(part)
        elif kind == "refusal":
            content.refusal += str(part.get("refusal") or "")
        else:
            content.unknown_type = kind
    return content


def _type_of(part: Any) -> str:
    if isinstance(part, str):
        return "text"
    if not isinstance(part, Mapping):
        return type(part).__name__
    stated_type = part.get("type")
    if stated_type is None and "text" in part:
        return "text"
    return stated_type if isinstance(stated_type, str) else "no type"


def _text_of(value: Any) -> str | None:
    """Return the text of a part, which some providers put into an object with a `value`."""
    if isinstance(value, Mapping):
        value = value.get("value")
    return value if isinstance(value, str) else None


def thinking_of(message: Mapping[str, Any]) -> str:
    """Return the thinking of a message that stands beside its content."""
    for name in _THINKING_FIELDS:
        thinking = _texts_in(message.get(name))
        if thinking:
            return thinking
    return ""


def _texts_in(value: Any) -> str:
    """Return all texts in thinking: in a text, an object or a list, also nested."""
    texts = []
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, list):
            pending.extend(reversed(part))
        elif isinstance(part, Mapping):
            pending.extend(part.get(name) for name in reversed(_HOLDERS))
    return "".join(texts)
