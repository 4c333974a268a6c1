"""The failure of a call, from the exception that ended it or the HTTP status of the server."""

import email.utils
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from tasks.llm.environment import key_state, safe
from tasks.llm.replies import (
    CONTEXT_LENGTH,
    PROVIDER_ERROR,
    REDIRECTED,
    REFUSED,
    TIMEOUT,
    TOO_LARGE,
    Failure,
    Kind,
)
from tasks.llm.request import Target
from tasks.llm.retirement import retirement_notice
from tasks.llm.transport import Exchange, Redirected, ReplyTooLarge
from tasks.rules.errors import PipelineError, causes_of

_CONTEXT_LENGTH = re.compile(
    r"(?i)context_length_exceeded|exceed_context_size|maximum context|available context|context (?:length|window|size)"
    r"|(?:prompt|input|request)(?: is)? too (?:long|large)|too many (?:input )?tokens|reduce the length of"
)
_CONTENT_CODE = re.compile(
    r"""(?ix) ["'](?:code|type|status_code)["'] \s*:\s* ["']? (?:
        content_filter | content_policy_violation | ResponsibleAIPolicyViolation | moderation_blocked
        | data_?inspection_?failed | censorship_blocked | (?:input_?|output_?)?(?:text_?)?sensitive_?content_?detected
        | 1301 | 102[67] | 1001[34]
    )\b"""
)
"""Codes of refused content, whatever the status: of OpenAI and Azure, then of DashScope, StepFun, Volcengine, Zhipu,
MiniMax and Spark.
"""
_CONTENT_TEXT = re.compile(
    r"(?i)content_filter|content_policy_violation|ResponsibleAIPolicyViolation|content management policy"
    r"|moderation_blocked|data_?inspection_?failed|content exists risk|blocked by (?:\w+ )?content filter"
)
_FLAGGED = re.compile(r"(?i)flagged")
"""A word about refused content; with `_DOUBTFUL` statuses it may be about the account."""
_QUOTA = re.compile(
    r"(?i)insufficient_quota|billing_(?:hard_limit_reached|not_active)|credit balance is too low"
    r"|insufficient (?:funds|credits|balance)|requires more credits|can only afford"
)
"""Codes and sentences that mean an empty account; 'quota' and 'billing' alone also appear in rate limits."""
_UNKNOWN_MODEL = re.compile(r"(?i)model_not_found|(?:unknown|no such|invalid) model|model .{0,80}does not exist")
_NO_KEY = r"missing credentials|missing (?:\w+ )?api[ _-]?key|api_key client option"
_NEVER_SENT = re.compile(rf"(?i)LLM Provider NOT provided|Unknown Decisions provider|{_NO_KEY}")
_KEY_REFUSED = re.compile(
    rf"(?i)(?:incorrect|invalid) api[ _-]?key|api[ _-]?key (?:is )?(?:not valid|not found|invalid|expired|missing)"
    rf"|{_NO_KEY}"
)
"""Messages of some providers about a wrong key with HTTP 400, and of libraries about a missing one."""
_NO_REPLY = frozenset({"TransportError", "ClientError", "APIConnectionError", "OSError"})
"""Exceptions (of httpx, aiohttp, openai, Python) for a reply that did not come completely; their status is invented."""
_NO_CONNECTION = frozenset({"ConnectError", "ClientConnectorError", "ConnectionRefusedError"})


_DOUBTFUL = frozenset({401, 402, 403, 404})
"""Statuses that may mean the key, the account or the model, or this request alone."""
_DOUBTFUL_CODE = re.compile(
    r"""["'](?:(?:error|http|status)_?)?(?:code|status)["']\s*:\s*["']?(40[1-4])\b""", re.IGNORECASE
)
"""One of these statuses in the body of a response, which may have another status itself."""
_TEMPORARY = frozenset({408, 409, 424, 425, 429, 498, 499})
"""Statuses below 500 that are not about the request: 424 and 498 mean a busy server, 499 a closed connection."""


def failure_of(error: BaseException, exchange: Exchange | None = None) -> Failure:
    """Return the failure for an exception of a call, by the server's own HTTP status if there is one.

    `exchange` is the call's, in which the body of an error is found that the exception omits.
    """
    if isinstance(error, Redirected | ReplyTooLarge):
        return _failure_of_fault(error)
    received = exchange.body.error_text if exchange else ""
    text = _with_cause(f"{type(error).__name__}: {str(error).partition('Traceback (most')[0]}", received)
    status = getattr(error, "status_code", None)
    headers: Mapping[str, Any] = getattr(error, "litellm_response_headers", None) or {}
    wait_s = retry_after_s({str(name).lower(): str(value).strip() for name, value in headers.items()}, time.time())
    if isinstance(error, TimeoutError) or type(error).__name__ == "Timeout" or status == 408:
        return Failure(TIMEOUT, Kind.DOWN, text, wait_s)
    is_from_server = exchange is not None and exchange.status is not None
    if isinstance(error, PipelineError) or (_NEVER_SENT.search(text) and not is_from_server):
        return Failure(PROVIDER_ERROR, Kind.FATAL, text, is_unpaid=True, is_about_key=bool(_KEY_REFUSED.search(text)))
    # The complete messages of the error and its causes, and the codes that LiteLLM omits.
    codes = (getattr(cause, name, "") for cause in causes_of(error) for name in ("code", "type", "body"))
    message = " ".join([*map(str, causes_of(error)), *map(str, codes), received])
    stated = _DOUBTFUL_CODE.search(message)
    if not isinstance(status, int) or status < 400 or _goes_back_to(_NO_REPLY, error):
        status = None
    if stated:
        status = int(stated[1])
    if status is not None:
        failure = failure_of_http(status, message, text, wait_s)
        # An error in the middle of a reply: what came before it may be billed.
        return failure._replace(is_unpaid=exchange is None or not exchange.body.is_completion)
    if _CONTENT_CODE.search(message):
        return Failure(REFUSED, Kind.DECLINED, text)
    return Failure(PROVIDER_ERROR, Kind.DOWN, text, is_unpaid=_goes_back_to(_NO_CONNECTION, error))


def _failure_of_fault(fault: Redirected | ReplyTooLarge) -> Failure:
    if isinstance(fault, Redirected):
        return Failure(REDIRECTED, Kind.FATAL, safe(str(fault)), is_unpaid=True)
    return Failure(TOO_LARGE, Kind.DECLINED, safe(str(fault)))


def failure_of_http(status: int, message: str, text: str, wait_s: float | None) -> Failure:
    """Return the failure for an HTTP status, by everything that is known of the body."""
    kept_status, kind = _by_status(status, message)
    return Failure(
        status=kept_status,
        kind=kind,
        error=text,
        retry_after_s=wait_s,
        is_unpaid=True,
        is_about_key=_is_about_key(status, message),
        alone=_alone(status, message),
    )


def _with_cause(text: str, received: str) -> str:
    """Return the text of an error in one line, with the received body if the text omits its message."""
    messages = re.findall(r'"(?:message|msg|error|detail)": "([^"\\]+)', received)
    has_message = not messages or any(message in text for message in messages)
    return safe(text if has_message else f"{text}: {received}")


def failure_of_status(status: int, text: str) -> Failure:
    """Return the failure for a status and a body from a batch's file."""
    of_status = (REDIRECTED, Kind.BAD_REQUEST) if 300 <= status < 400 else _by_status(status, text)
    return Failure(*of_status, safe(f"HTTP {status}: {text}"), is_unpaid=True)


def with_hints(failure: Failure, target: Target) -> Failure:
    """Return a failure whose error says what to check: the key, and when the model was or will be switched off."""
    hints = []
    if failure.is_about_key:
        hints.append(f"check the key: {key_state(target)}")
    end = retirement_notice(target, datetime.now(UTC).date())
    if end is not None and failure.kind in {Kind.FATAL, Kind.BAD_REQUEST}:
        hints.append(end)
    return failure._replace(error="; ".join([failure.error, *hints]))


def _is_about_key(status: int, text: str) -> bool:
    return status == 401 or (status in {400, 403} and bool(_KEY_REFUSED.search(text)))


def _by_status(status: int, text: str) -> tuple[str, Kind]:
    is_about_request = status < 500 and status not in _TEMPORARY
    is_flagged = status not in _DOUBTFUL and _FLAGGED.search(text)
    if _CONTENT_CODE.search(text):
        return REFUSED, Kind.DECLINED
    if status in {402, 404} or _is_about_key(status, text) or (status in {400, 403, 429} and _QUOTA.search(text)):
        return PROVIDER_ERROR, Kind.FATAL
    if _CONTEXT_LENGTH.search(text) and (is_about_request or status == 500):
        return CONTEXT_LENGTH, Kind.DECLINED
    if is_about_request and (status == 451 or is_flagged or _CONTENT_TEXT.search(text)):
        return REFUSED, Kind.DECLINED
    if status == 403 or (is_about_request and _UNKNOWN_MODEL.search(text)):
        return PROVIDER_ERROR, Kind.FATAL
    passing = Kind.BUSY if status == 429 else Kind.DOWN
    return PROVIDER_ERROR, Kind.BAD_REQUEST if is_about_request else passing


def _alone(status: int, text: str) -> tuple[str, Kind]:
    """Return the status and kind of a failure if the server accepts a harmless request."""
    # A request may be too long for what is left in an account: a later run can make it.
    if status in _DOUBTFUL and not _QUOTA.search(text):
        return REFUSED, Kind.DECLINED
    return PROVIDER_ERROR, Kind.BUSY if status == 429 else Kind.BAD_REQUEST


def _goes_back_to(names: frozenset[str], error: BaseException) -> bool:
    """Return whether an exception or one of its causes has a class with one of these names."""
    return any(kind.__name__ in names for cause in causes_of(error) for kind in type(cause).__mro__)


_LONGEST_WAIT_S = 600.0
"""A longer requested wait is not believed: it may be meant in milliseconds, or until the end of a month."""


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the wait that response headers (names in lower case) request, from a moment of wall-clock time.

    None if they request none, or one that is not believed.
    """
    waits_s: list[float] = []
    with suppress(ValueError):
        waits_s.append(float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        waits_s.append(float(headers.get("retry-after", "")))
    with suppress(ValueError, OverflowError):
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        waits_s.append(moment.timestamp() - now_s)
    believed_s = (max(0.0, wait_s) for wait_s in waits_s if wait_s <= _LONGEST_WAIT_S)
    return next(believed_s, None)
