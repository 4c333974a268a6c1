"""How failed calls are distinguished: the state that is stored, and what follows for the model."""

import email.utils
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tasks.llm.redaction import safe
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, PROVIDER_ERROR, REDIRECTED, REFUSED, TIMEOUT, TOO_LARGE
from tasks.llm.transport.bodies import TooLarge
from tasks.llm.transport.wire import Redirected
from tasks.rules.errors import PipelineError


class Kind(Enum):
    """What a failure says about the model and its endpoint."""

    DOWN = "down"
    """No answer, or a broken one: it may pass, and when nothing else comes the endpoint is down."""
    BUSY = "busy"
    """Too many requests: it passes when less is asked for."""
    BAD_REQUEST = "bad request"
    """This request is not taken; another may be."""
    DECLINED = "declined"
    """The model will not or cannot answer this: too long, or refused. Or its answer is too large to be read."""
    LOST = "lost"
    """What made the attempt is gone: that says nothing about the model or its endpoint, and it may pass."""
    FATAL = "fatal"
    """No request will be answered: wrong key, unknown model, exhausted quota, an address that redirects."""


@dataclass(frozen=True)
class Failure:
    """Why an attempt has no reply: the stored status and cause, and when the server wants to be asked again."""

    status: str
    kind: Kind
    error: str
    retry_after_s: float | None = None
    is_unpaid: bool = False
    """Whether the server said no before it worked on the request, so that it cost nothing."""
    is_about_key: bool = False
    """Whether the key is missing, or refused."""

    @property
    def passes(self) -> bool:
        """Whether the same request may be answered later."""
        return self.kind in {Kind.DOWN, Kind.BUSY, Kind.LOST}

    @property
    def is_fatal(self) -> bool:
        """Whether no other request to this model will be answered either."""
        return self.kind is Kind.FATAL


def may_pass(status: str, failure: Failure | None) -> bool:
    """Whether the same request, that came to this status, may be answered later."""
    return failure.passes if failure else status == EMPTY


def is_final(status: str, failure: Failure | None) -> bool:
    """Whether an attempt answers its call, for good or ill; one that may pass, or that stops the model, does not."""
    return not may_pass(status, failure) and not (failure and failure.is_fatal)


_CONTEXT_LENGTH = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context|available context|context (?:length|window|size)"
    r"|(?:prompt|input|request)(?: is)? too (?:long|large)|too many (?:input )?tokens|reduce the length of",
    re.IGNORECASE,
)
_CONTENT_FILTER = re.compile(
    r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation|content management policy"
    r"|flagged|moderation_blocked",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|billing_(?:hard_limit_reached|not_active)|credit balance is too low"
    r"|insufficient (?:funds|credits|balance)",
    re.IGNORECASE,
)
"""Codes and sentences that mean an empty account; 'quota' and 'billing' also stand in mere rate limits."""
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|(?:unknown|no such|invalid) model|model .{0,80}does not exist", re.IGNORECASE
)
_NO_KEY = r"missing credentials|missing (?:\w+ )?api[ _-]?key|api_key client option"
_NEVER_SENT = re.compile(rf"LLM Provider NOT provided|{_NO_KEY}", re.IGNORECASE)
_KEY_REFUSED = re.compile(
    rf"(?:incorrect|invalid) api[ _-]?key|api[ _-]?key (?:is )?(?:not valid|not found|invalid|expired|missing)"
    rf"|{_NO_KEY}",
    re.IGNORECASE,
)
"""What some providers say of a wrong key with HTTP 400, and libraries of one that is not there."""
_NO_ANSWER = frozenset({"TransportError", "ClientError", "APIConnectionError", "OSError"})
"""Classes (of httpx, aiohttp, openai, Python) that say that no whole answer came; their status is made up."""
_NO_CONNECTION = frozenset({"ConnectError", "ClientConnectorError", "ConnectionRefusedError"})
_TRACE = re.compile(r"\s*Traceback \(most recent call last\)")
"""Where a message of LiteLLM goes on with its traceback."""
_LIBRARY = re.compile(r"litellm\.\w+: (?:\w+Error: )?")
"""How a message of LiteLLM begins: with the name of its own class, twice."""
_PASSING_4XX = frozenset({408, 409, 425, 429})


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception of a call means, by the HTTP status that the server really sent if there is one."""
    if isinstance(error, Redirected):
        return Failure(REDIRECTED, Kind.FATAL, safe(str(error)), is_unpaid=True)
    if isinstance(error, TooLarge):
        return Failure(TOO_LARGE, Kind.DECLINED, safe(str(error)))
    text = safe(f"{type(error).__name__}: {_LIBRARY.sub('', _TRACE.split(str(error))[0])}")
    status = getattr(error, "status_code", None)
    if isinstance(error, TimeoutError) or type(error).__name__ == "Timeout" or status == 408:
        return Failure(TIMEOUT, Kind.DOWN, text, _retry_after_s(error))
    if isinstance(error, PipelineError) or _NEVER_SENT.search(text):
        return Failure(PROVIDER_ERROR, Kind.FATAL, text, is_unpaid=True, is_about_key=bool(_KEY_REFUSED.search(text)))
    if not isinstance(status, int) or status < 400 or _goes_back_to(_NO_ANSWER, error):
        return Failure(PROVIDER_ERROR, Kind.DOWN, text, is_unpaid=_goes_back_to(_NO_CONNECTION, error))
    evidence = _evidence(error)
    return Failure(
        *_by_status(status, evidence), text, _retry_after_s(error), is_unpaid=True,
        is_about_key=_is_about_key(status, evidence),
    )  # fmt: skip


def failure_of_status(status: int, text: str) -> Failure:
    """Tell a failure apart of which only status and body are known, as from a batch's file."""
    if 300 <= status < 400:
        return Failure(REDIRECTED, Kind.BAD_REQUEST, safe(f"HTTP {status}: {text}"), is_unpaid=True)
    return Failure(*_by_status(status, text), safe(f"HTTP {status}: {text}"), is_unpaid=True)


def _is_about_key(status: int, text: str) -> bool:
    return status == 401 or (status in {400, 403} and bool(_KEY_REFUSED.search(text)))


def _by_status(status: int, text: str) -> tuple[str, Kind]:
    is_about_request = status < 500 and status not in _PASSING_4XX
    if status in {402, 404} or _is_about_key(status, text) or (status in {400, 403, 429} and _QUOTA.search(text)):
        return PROVIDER_ERROR, Kind.FATAL
    if _CONTEXT_LENGTH.search(text) and (is_about_request or status == 500):
        return CONTEXT_LENGTH, Kind.DECLINED
    if is_about_request and _CONTENT_FILTER.search(text):
        return REFUSED, Kind.DECLINED
    if status == 403 or (is_about_request and _UNKNOWN_MODEL.search(text)):
        return PROVIDER_ERROR, Kind.FATAL
    if is_about_request:
        return PROVIDER_ERROR, Kind.BAD_REQUEST
    return PROVIDER_ERROR, Kind.BUSY if status == 429 else Kind.DOWN


def _evidence(error: BaseException) -> str:
    """All that an exception and its causes say: messages uncut, and the codes that LiteLLM leaves out of them."""
    said = (getattr(cause, name, "") for cause in _chain(error) for name in ("code", "type", "body"))
    return " ".join([*map(str, _chain(error)), *map(str, said)])


def _goes_back_to(names: frozenset[str], error: BaseException) -> bool:
    """Whether an exception or one of its causes is of a class with one of these names."""
    return any(kind.__name__ in names for cause in _chain(error) for kind in type(cause).__mro__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it was raised from, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _retry_after_s(error: BaseException) -> float | None:
    """How long the server asks to wait: seconds, milliseconds, or until a date."""
    headers: Mapping[str, Any] = getattr(error, "litellm_response_headers", None) or {}
    named = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    return retry_after_s(named, time.time())


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """The wait that response headers (names in lower case) ask for at a moment of wall-clock time; None if none."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    stated = headers.get("retry-after", "")
    seconds = _number(stated)
    return _until(stated, now_s) if seconds is None else max(0.0, seconds)


def _number(text: str) -> float | None:
    try:
        return float(text) if math.isfinite(float(text)) else None
    except ValueError:
        return None


def _until(date: str, now_s: float) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - now_s)
    except ValueError:
        return None
