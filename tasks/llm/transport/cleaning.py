"""Completions without the figures that LiteLLM fails at."""

import math
from collections.abc import Mapping
from typing import Any

_COUNTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


def cleaned(content: Any) -> Any:
    """A completion without what fails to be read: figures of usage that are none, a reason that is no name.

    The very same object if there is nothing to clean.
    """
    if not isinstance(content, dict):
        return content
    clean = dict(content)
    if content.get("usage") is not None and (usage := _usage(content["usage"])) != content["usage"]:
        # Chat completions take an empty report, the responses API takes one that is not there.
        clean["usage"] = usage if usage or content.get("object") != "response" else None
    choices = content.get("choices")
    if isinstance(choices, list) and any(map(_has_odd_reason, choices)):
        clean["choices"] = [{**each, "finish_reason": None} if _has_odd_reason(each) else each for each in choices]
    return content if all(clean[name] is content[name] for name in content) else clean


def _has_odd_reason(choice: Any) -> bool:
    return isinstance(choice, dict) and not isinstance(choice.get("finish_reason"), str | None)


def _usage(usage: Any) -> dict[str, Any]:
    """A report of usage whose figures are figures; an empty one where a main figure is none."""
    if not isinstance(usage, Mapping):
        return {}
    if not all(_is_count(usage[name]) for name in _COUNTS if usage.get(name) is not None):
        return {}
    return {
        name: _usage(value) if name.endswith("_details") and value is not None else value
        for name, value in usage.items()
        if not _is_odd(name, value)
    }


def _is_odd(name: str, value: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return True
    return name.endswith("tokens") and value is not None and not _is_count(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
