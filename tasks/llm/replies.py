"""What a call to a model comes back with, and how failures are told apart."""

import os
import re
from dataclasses import dataclass
from typing import Any

from tasks.rules.text import one_line, storable

OK = "ok"
REFUSED, TRUNCATED, CONTEXT_LENGTH, EMPTY = "refused", "truncated", "context_length", "empty"
TIMEOUT, PROVIDER_ERROR = "timeout", "provider_error"

_CONTENT_FILTER = '"content_filter"'
"""The code by which an error says that a filter refused; LiteLLM makes a plain bad request of some of these."""
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST_SECRET = 8


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished call. `text` is None unless `status` is ok; what the provider did not report is None."""

    status: str
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    attempts: int = 1
    error: str | None = None
    degraded: bool = False


def from_completion(completion: Any, cost_usd: float | None, latency_s: float) -> Reply:
    """A reply from LiteLLM's answer to a chat completion."""
    usage = getattr(completion, "usage", None)
    prompt_details = getattr(usage, "prompt_tokens_details", None)
    completion_details = getattr(usage, "completion_tokens_details", None)
    choice = completion.choices[0] if completion.choices else None
    status, text, error = _outcome(choice)
    return Reply(
        status=status,
        text=text,
        finish_reason=getattr(choice, "finish_reason", None),
        served_model=getattr(completion, "model", None),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        cached_tokens=getattr(prompt_details, "cached_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
        reasoning_tokens=getattr(completion_details, "reasoning_tokens", None),
        cost_usd=cost_usd,
        latency_s=latency_s,
        error=error,
    )


def _outcome(choice: Any) -> tuple[str, str | None, str | None]:
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
    return OK, storable(choice.message.content), None


def from_error(error: Exception, latency_s: float) -> tuple[Reply, bool]:
    """The reply that stands for an exception of LiteLLM's, and whether the cause may pass."""
    import litellm

    if isinstance(error, litellm.Timeout):
        status, passes = TIMEOUT, True
    elif isinstance(error, litellm.ContextWindowExceededError):
        status, passes = CONTEXT_LENGTH, False
    elif isinstance(error, litellm.ContentPolicyViolationError) or _CONTENT_FILTER in str(error):
        status, passes = REFUSED, False
    elif isinstance(
        error, litellm.AuthenticationError | litellm.PermissionDeniedError | litellm.NotFoundError
        | litellm.BadRequestError | litellm.UnprocessableEntityError,
    ):  # fmt: skip
        status, passes = PROVIDER_ERROR, False
    else:
        status, passes = PROVIDER_ERROR, True
    return Reply(status, latency_s=latency_s, error=safe(f"{type(error).__name__}: {error}")), passes


def safe(message: str) -> str:
    """A message in one line, without any secret of this process's environment."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET:
            message = message.replace(value, "[redacted]")
    return one_line(storable(message))
