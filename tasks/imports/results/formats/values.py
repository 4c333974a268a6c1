"""Reading what the logs of Inspect AI and EvalScope share: messages, model outputs, usage and decisions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.benchmarks.rows import as_list, as_mapping, as_number, as_text, as_whole_number
from tasks.llm import CONTEXT_LENGTH, EMPTY, PROVIDER_ERROR, TIMEOUT, failure_of_status
from tasks.rules.conversation import Message
from tasks.rules.text.characters import is_blank, one_line
from tasks.rules.verdict import VALUES, status_of

TRUNCATED, REFUSED = "truncated", "refused"
FAILURES = {REFUSED, TRUNCATED, CONTEXT_LENGTH, EMPTY, TIMEOUT, PROVIDER_ERROR}
_STOPPED = {"max_tokens": TRUNCATED, "content_filter": REFUSED, "model_length": CONTEXT_LENGTH}
"""Why a model stopped -> the failure that this is here."""
_HTTP = re.compile(r"\b(?:HTTP|status|code)\w*\W{0,4}([45]\d\d)\b|\b([45]\d\d) (?:Client|Server) Error", re.IGNORECASE)
_TIMED_OUT = re.compile(r"time[ds]?[ _-]?out", re.IGNORECASE)
_NO_REPLY = re.compile(
    r"connection|overloaded|unavailable|rate[ _-]?limit|quota|too many requests|bad ?gateway|(?:server|api)[ _]?error",
    re.IGNORECASE,
)
_BETWEEN_WORDS = re.compile(r"[ _-]+")
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "c": 1.0, "i": 0.0, "p": 0.5, "correct": 1.0,
          "incorrect": 0.0, "pass": 1.0, "fail": 0.0, "✓": 1.0, "✗": 0.0,
          "not met": 0.0, "partially met": 0.5, "partly met": 0.5, **VALUES}  # fmt: skip


def plain(content: Any) -> str:
    """The text of a message's content: a text, or parts of which those that are text count."""
    if isinstance(content, str):
        return content
    parts = [as_mapping(part) for part in as_list(content)]
    return "".join(as_text(part.get("text")) or "" for part in parts if part.get("type") in {"text", None})


def messages_of(given: Any) -> list[Message]:
    """Role and text of each message of a list, or one user turn."""
    if isinstance(given, str):
        return [("user", given)]
    return [(str(m.get("role")), plain(m.get("content"))) for m in map(as_mapping, as_list(given))]


def text_of(output: Mapping[str, Any]) -> str | None:
    """What a model said, without its reasoning; None where there is no output."""
    choices = as_list(output.get("choices"))
    if not choices:
        return as_text(output.get("completion")) or None
    return plain(as_mapping(as_mapping(choices[0]).get("message")).get("content"))


def finished(output: Mapping[str, Any], text: str | None, error: Any = None) -> tuple[str | None, str | None]:
    """The failure of an output with its cause, if it is one: an error, nothing said, or said not to the end."""
    choices = as_list(output.get("choices"))
    reason = as_text(as_mapping(choices[0]).get("stop_reason")) if choices else None
    if reason in _STOPPED:
        return _STOPPED[reason], f"stopped: {reason}"
    cause = as_text(error or output.get("error"))
    if text is None or (cause and is_blank(text)):
        stated = (cause or "").partition(":")[0]
        return (
            stated if stated in FAILURES else call_failure(cause) or PROVIDER_ERROR,
            one_line(cause) if cause else "the log has no output",
        )
    return None, None


def call_failure(cause: str | None) -> str | None:
    """The failure of a call that a cause in words names; None where it speaks of none."""
    if status := _HTTP.search(cause or ""):
        code = int(status[1] or status[2])
        return TIMEOUT if code == 408 else failure_of_status(code, cause or "").status
    if _TIMED_OUT.search(cause or ""):
        return TIMEOUT
    return PROVIDER_ERROR if _NO_REPLY.search(cause or "") else None


def usage_of(output: Mapping[str, Any], *, prompt_lacks_cached: bool = False) -> dict[str, Any]:
    """The columns on a call: the model that served it, tokens, cost and seconds."""
    usage = as_mapping(output.get("usage"))
    names = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "output_tokens", "reasoning_tokens")
    prompt, cached, written, said, thought = (as_whole_number(usage.get(name)) for name in names)
    if prompt_lacks_cached and prompt is not None:
        prompt += (cached or 0) + (written or 0)
    choices = as_list(output.get("choices"))
    return {
        "served_model": as_text(output.get("model")) if choices else None,
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "completion_tokens": said,
        "reasoning_tokens": thought,
        "cost_usd": as_number(usage.get("total_cost")),
        "latency_s": as_number(output.get("time")),
        "finish_reason": as_text(as_mapping(choices[0]).get("stop_reason")) if choices else None,
    }


def decided(raw: Any) -> float | None:
    """A decision as 1, 0.5 or 0; None for what is none."""
    if isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str):
        status = status_of(raw)
        return _WORDS.get(_BETWEEN_WORDS.sub(" ", raw.strip().lower())) if status is None else VALUES[status]
    value = as_number(raw)
    return value if value in VALUES.values() else None


def first_of(item: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of some keys that a mapping has a value for."""
    return next((item[name] for name in names if item.get(name) is not None), None)
