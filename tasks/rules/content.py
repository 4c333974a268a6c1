"""The content of a message in parts: its text, its thinking, and parts of other types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TEXT = frozenset({"text", "input_text", "output_text"})
_THINKING = ("thinking", "reasoning", "redacted_thinking", "thought")
"""Types of thinking; longer names that begin so (`reasoning_text`, `reasoning.summary`) are thinking, too."""


@dataclass
class Content:
    """The content of a message: its text, its thinking, a refusal, and the type of a part that is none of these."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    unknown_type: str | None = None


def content_of(parts: list[Any]) -> Content:
    """Return the content in a list of parts, each a text or an object with its type."""
    content = Content()
    for part in parts:
        kind = _type_of(part)
        if kind in _TEXT:
            text = part if isinstance(part, str) else _text_of(part.get("text"))
            if text is None:
                content.unknown_type = f"{kind} without a text"
            else:
                content.text += text
        elif kind.startswith(_THINKING):
            content.thinking += _thinking_of(part, kind)
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
    stated = part.get("type")
    if stated is None and "text" in part:
        return "text"
    return stated if isinstance(stated, str) else "no type"


def _text_of(value: Any) -> str | None:
    """Return the text of a part, which some providers put into an object with a `value`."""
    if isinstance(value, Mapping):
        value = value.get("value")
    return value if isinstance(value, str) else None


def _thinking_of(part: Mapping[str, Any], kind: str) -> str:
    """Return the thinking in a part: a text, or a list of parts."""
    for name in (kind, "thinking", "reasoning", "text", "summary"):
        value = part.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return content_of(value).text
    return ""
