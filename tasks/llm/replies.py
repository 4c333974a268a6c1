"""What a call to a model comes back with, and how its outcomes are distinguished."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.llm.redaction import redacted, safe
from tasks.llm.request import NO_PRICES, Prices
from tasks.llm.transport.bodies import Body
from tasks.rules.text.characters import one_line, storable

OK = "ok"
REFUSED, TRUNCATED, CONTEXT_LENGTH, EMPTY = "refused", "truncated", "context_length", "empty"
TIMEOUT, PROVIDER_ERROR = "timeout", "provider_error"
REDIRECTED, TOO_LARGE = "redirected", "too_large"

MOST_TEXT_BYTES = 16 << 20
"""The longest text that is kept of a reply, in UTF-8."""
_MOST_TOKENS = 10**12
_MOST_NAME_CHARS = 200
Paid = tuple[str, int]
"""(call key, attempt) of an entry in the ledger."""
Logprobs = tuple[tuple[str, float], ...]
"""The tokens of a reply's text, in order, with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished call. `text` is None unless `status` is ok; what the provider did not report is None.

    Tokens are those of the deciding attempt, `cost_usd` is that of all attempts whose cost is known. `paid` are the
    ledger's entries that the reply rests on. `logprobs` are the tokens of the text with their log-probabilities.
    """

    status: str
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    served_fingerprint: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    prices: Prices = NO_PRICES
    latency_s: float | None = None
    attempts: int = 1
    error: str | None = None
    degraded: bool = False
    paid: tuple[Paid, ...] = ()
    logprobs: Logprobs | None = None


def from_chat(completion: Any, body: Body) -> Reply:
    """A reply from LiteLLM's answer to a chat completion and the body that came, without its cost and time."""
    usage = getattr(completion, "usage", None)
    if not getattr(usage, "prompt_tokens", None):
        usage = None  # LiteLLM makes zeros of a report that is missing; no prompt has no tokens
    prompt_details = getattr(usage, "prompt_tokens_details", None)
    completion_details = getattr(usage, "completion_tokens_details", None)
    choice = completion.choices[0] if completion.choices else None
    status, text, error = _chat_outcome(choice)
    return Reply(
        status=status,
        text=text,
        finish_reason=_name(_finish_reason(choice, body)),
        served_model=_name(getattr(completion, "model", None)),
        served_fingerprint=_name(getattr(completion, "system_fingerprint", None)),
        prompt_tokens=_count(getattr(usage, "prompt_tokens", None)),
        cached_tokens=_count(getattr(prompt_details, "cached_tokens", None)),
        completion_tokens=_count(getattr(usage, "completion_tokens", None)),
        reasoning_tokens=_count(getattr(completion_details, "reasoning_tokens", None)),
        error=error,
        logprobs=logprobs_in([choice]) if status == OK else None,
    )


def logprobs_in(choices: Sequence[Any]) -> Logprobs | None:
    """The log-probabilities that a choice has, or the pieces of a streamed one; None where a token has none."""
    tokens = [
        token
        for choice in choices
        for token in _get(_get(choice, "logprobs"), "content") or ()
    ]  # fmt: skip
    found = tuple((storable(str(_get(token, "token"))), _get(token, "logprob")) for token in tokens)
    is_known = bool(found) and all(_is_number(logprob) for _, logprob in found)
    return tuple((token, round(float(logprob), 6)) for token, logprob in found) if is_known else None


def _chat_outcome(choice: Any) -> tuple[str, str | None, str | None]:
    if choice is None:
        return EMPTY, None, "the reply has no choices"
    if choice.finish_reason == "length":
        return TRUNCATED, None, "the reply was cut at its token limit"
    if choice.finish_reason == "content_filter":
        return REFUSED, None, "the provider's content filter stopped the reply"
    refusal = getattr(choice.message, "refusal", None) or (choice.message.provider_specific_fields or {}).get("refusal")
    if refusal:
        return REFUSED, None, safe(str(refusal))
    if not choice.message.content:
        return EMPTY, None, "the reply has no text"
    return _kept(choice.message.content)


def _finish_reason(choice: Any, body: Body) -> Any:
    """Why a completion ended: LiteLLM's name for it, but where that is `stop`, the provider's own word, if any."""
    reason = getattr(choice, "finish_reason", None)
    return body.finish_reason if reason == "stop" and body.is_completion else reason


def _kept(text: str) -> tuple[str, str | None, str | None]:
    """The outcome that a text is, as it may be stored: without the secrets that it repeats."""
    text = redacted(storable(text), is_answer=True)
    if len(text.encode()) > MOST_TEXT_BYTES:
        return TOO_LARGE, None, f"the text of the reply is larger than {MOST_TEXT_BYTES >> 20} MiB"
    return OK, text, None


def from_response(response: Any) -> Reply:
    """A reply from LiteLLM's answer of the responses API, without its cost and time."""
    usage = getattr(response, "usage", None)
    status, text, error = _response_outcome(response)
    return Reply(
        status=status,
        text=text,
        finish_reason=_name(_incomplete_reason(response) or getattr(response, "status", None)),
        served_model=_name(getattr(response, "model", None)),
        prompt_tokens=_count(getattr(usage, "input_tokens", None)),
        cached_tokens=_count(getattr(getattr(usage, "input_tokens_details", None), "cached_tokens", None)),
        completion_tokens=_count(getattr(usage, "output_tokens", None)),
        reasoning_tokens=_count(getattr(getattr(usage, "output_tokens_details", None), "reasoning_tokens", None)),
        error=error,
    )


def _response_outcome(response: Any) -> tuple[str, str | None, str | None]:
    reason = _incomplete_reason(response)
    if reason == "content_filter":
        return REFUSED, None, "the provider's content filter stopped the reply"
    if reason is not None:
        return TRUNCATED, None, f"the reply is incomplete: {reason}"
    if getattr(response, "status", None) == "failed":
        return PROVIDER_ERROR, None, safe(f"the response failed: {getattr(response, 'error', None)}")
    parts = [
        part
        for item in response.output or ()
        if _get(item, "type") == "message"
        for part in _get(item, "content") or ()
    ]  # fmt: skip
    refusal = next((_get(part, "refusal") for part in parts if _get(part, "type") == "refusal"), None)
    if refusal:
        return REFUSED, None, safe(str(refusal))
    text = "".join(_get(part, "text") or "" for part in parts if _get(part, "type") == "output_text")
    return _kept(text) if text else (EMPTY, None, "the reply has no text")


def _incomplete_reason(response: Any) -> str | None:
    if getattr(response, "status", None) != "incomplete":
        return None
    return str(_get(getattr(response, "incomplete_details", None), "reason") or "no reason given")


def from_embedding(answer: Any) -> Reply:
    """A reply from LiteLLM's answer with the vector of one text, without its cost and time; its text is JSON."""
    data = getattr(answer, "data", None) or []
    vector = _get(data[0], "embedding") if len(data) == 1 else None
    is_vector = isinstance(vector, list) and bool(vector) and all(_is_number(each) for each in vector)
    usage = getattr(answer, "usage", None)
    return Reply(
        status=OK if is_vector else EMPTY,
        # Numbers hold no secret; as they are, the vector can be read back.
        text=json.dumps([float(each) for each in vector or ()]) if is_vector else None,
        served_model=_name(getattr(answer, "model", None)),
        prompt_tokens=_count(getattr(usage, "prompt_tokens", None) or None),
        completion_tokens=0,
        error=None if is_vector else "the reply has no vector of finite numbers",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _get(item: Any, name: str) -> Any:
    """A field of what LiteLLM gives now as an object and now as a mapping."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _name(value: Any) -> str | None:
    """A name as a provider may report it; what is no text is not one."""
    return one_line(redacted(storable(value), is_answer=True), _MOST_NAME_CHARS) if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    """A number of tokens as a provider may report it; what no call can have used is not one."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if is_count else None
