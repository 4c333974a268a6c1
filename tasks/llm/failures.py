"""The failure of a call, from the exception that ended it or the HTTP status of the server."""

import email.utils
import html
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasks.llm.bodies import ReplyTooLarge
from tasks.llm.exchange import Exchange, Redirected
from tasks.llm.providers import key_state
from tasks.llm.redaction import safe
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
from tasks.llm.usage import JsonObject, as_object
from tasks.rules.ends import End, meaning_of
from tasks.rules.errors import PipelineError, causes_of

_CONTEXT_LENGTH = re.compile(
    r"(?i)context_length_exceeded|exceed_context_size|maximum context|available context"
    r"|context (?:length|window|size)|(?:prompt|input|request)(?: tokens| is)? too (?:long|large)"
    r"|too many (?:input )?tokens|reduce the length of|prompt exceeds max|max_new_tokens\W+must be"
    r"|exceeds the maximum number of (?:input )?tokens"
)
_CONTENT_CODE = re.compile(
    r"""(?ix) content_filter | content_policy_violation | ResponsibleAIPolicyViolation
    | moderation_blocked | data_?inspection_?failed | censorship_blocked
    | (?:input_?|output_?)?(?:text_?)?sensitive_?content_?detected (?:\..*)?
    | 1301 | 102[67] | 1001[34] | 336104
    """
)
"""Codes of refused content, whatever the status: of OpenAI and Azure, then of DashScope, StepFun,
Volcengine, Zhipu, MiniMax, Spark and Baidu.
"""
_CONTENT_TEXT = re.compile(
    r"(?i)content management policy|content exists risk|considered high risk|inappropriate content"
    r"|blocked by (?:\w+ )?(?:content filter|guardrail)|responsible ai (?:practices|policy)"
    r"|content_?policy_?violation|data_?inspection_?failed|sensitive (?:words|information|content)"
    r"|flagged"
)
"""Words about refused content; with `_DOUBTFUL` statuses they may be about the account."""
_QUOTA = re.compile(
    r"(?i)insufficient_quota|billing_(?:hard_limit_reached|not_active)|credit balance is too low"
    r"|insufficient (?:funds|credits|balance)|requires more credits|can only afford"
)
"""Codes and sentences that mean an empty account; 'quota' and 'billing' alone also appear in rate
limits.
"""
_ACCOUNT = re.compile(
    r"(?i)credits?\b|balance|budget|quota|billing|payment|funds|afford|arrears|\baccount"
    r"|subscription|limit (?:was |is |has been )?(?:exceeded|reached)|organi[sz]ation"
    r"|(?:no|not have) access|model_not_found|(?:unknown|no such|invalid) model|no endpoints"
    r"|providers? (?:is|are) available"
    r"|(?:model|deployment).{0,120}(?:not"
    r" (?:found|exist|available|supported|enabled|allowed|deployed)"
    r"|unavailable|deprecated|retired|decommissioned|no longer)"
)
"""Words about money, the model or the access to it: with `_DOUBTFUL` statuses, no refusal of
content.
"""
_UNKNOWN_MODEL = re.compile(
    r"(?i)model_not_found|(?:unknown|no such|invalid) model|model .{0,80}does not exist"
)
_NO_KEY = r"missing credentials|missing (?:\w+ )?api[ _-]?key|api_key client option"
_NEVER_SENT = re.compile(rf"(?i)LLM Provider NOT provided|Unknown Decisions provider|{_NO_KEY}")
_KEY_REFUSED = re.compile(
    rf"(?i)(?:incorrect|invalid) api[ _-]?key|api[ _-]?key (?:is )?(?:not valid|not"
    rf" found|invalid|expired|missing)"
    rf"|{_NO_KEY}"
)
"""Messages of some providers about a wrong key with HTTP 400, and of libraries about a missing one.
"""
_NO_REPLY = frozenset({"TransportError", "ClientError", "APIConnectionError", "OSError"})
"""Exceptions (of httpx, aiohttp, openai, Python) for a reply that did not come completely; their
status is invented.
"""
_NO_CONNECTION = frozenset({"ConnectError", "ClientConnectorError", "ConnectionRefusedError"})


_DOUBTFUL = frozenset({401, 402, 403, 404})
"""Statuses that may mean the key, the account or the model, or this request alone."""
_DOUBTFUL_CODES = frozenset(map(str, _DOUBTFUL))
_CODES = ("code", "status", "type")
_SENTENCES = ("message", "msg", "error", "detail")
"""How the names of fields with codes and with sentences end, in the body of an error."""
_TIMEOUTS = frozenset({408, 504})
_TEMPORARY = frozenset({408, 409, 424, 425, 429, 498, 499})
"""Statuses below 500 that are not about the request: 424 and 498 mean a busy server, 499 a closed
connection.
"""


def failure_of(error: BaseException, exchange: Exchange | None = None) -> Failure:
    """Return the failure for an exception of a call, by the server's own HTTP status if there is
    one.

    `exchange` is the call's, in which the body of an error is found that the exception omits.
    """
    if isinstance(error, Redirected | ReplyTooLarge):
        return _failure_of_fault(error)
    exchange = exchange or Exchange()
    body = exchange.body
    text = _text_of(error, body.error_text)
    wait_s = _requested_wait_s(error)
    if _is_timeout(error):
        http_status = exchange.status if exchange.status in _TIMEOUTS else None
        return Failure(TIMEOUT, Kind.DOWN, text, wait_s, http_status=http_status)
    was_never_sent = exchange.status is None and _NEVER_SENT.search(text)
    if isinstance(error, PipelineError) or was_never_sent:
        return Failure(
            PROVIDER_ERROR,
            Kind.FATAL,
            text,
            is_unpaid=True,
            is_about_key=bool(_KEY_REFUSED.search(text)),
        )
    message = body.error_text or " ".join(str(cause) for cause in causes_of(error))
    status = _stated_status(error, exchange.status, message)
    if status is not None:
        failure = failure_of_http(status, message, text, wait_s)
        # An error in the middle of a reply: what came before it may be billed.
        return failure._replace(is_unpaid=not body.is_completion)
    if _error_content(message).is_about_content:
        return Failure(REFUSED, Kind.DECLINED, text)
    return Failure(PROVIDER_ERROR, Kind.DOWN, text, is_unpaid=_goes_back_to(_NO_CONNECTION, error))


def _failure_of_fault(fault: Redirected | ReplyTooLarge) -> Failure:
    if isinstance(fault, Redirected):
        return Failure(REDIRECTED, Kind.FATAL, safe(str(fault)), is_unpaid=True)
    return Failure(TOO_LARGE, Kind.DECLINED, safe(str(fault)))


def _text_of(error: BaseException, received: str) -> str:
    """Return the text of an error in one line, with the received body if the text omits its
    message.
    """
    message = str(error).partition("Traceback (most")[0]
    text = f"{type(error).__name__}: {message}"
    sentences = re.findall(r'"(?:message|msg|error|detail)": "([^"\\]+)', received)
    if sentences and not any(sentence in text for sentence in sentences):
        return safe(f"{text}: {received}")
    return safe(_without_page(text))


def _requested_wait_s(error: BaseException) -> float | None:
    headers: Mapping[str, Any] = getattr(error, "litellm_response_headers", None) or {}
    lowercase_headers = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    return retry_after_s(lowercase_headers, time.time())


def _is_timeout(error: BaseException) -> bool:
    is_timeout = isinstance(error, TimeoutError) or type(error).__name__ == "Timeout"
    return is_timeout or getattr(error, "status_code", None) == 408


def _stated_status(error: BaseException, response_status: int | None, message: str) -> int | None:
    """Return the HTTP status of an error; None if the server stated none.

    A body states it where the response is no error, or that of a gateway (5xx).
    """
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or status < 400 or _goes_back_to(_NO_REPLY, error):
        status = None
    if response_status is None or not 400 <= response_status < 500:
        for code in _error_content(message).codes:
            if code in _DOUBTFUL_CODES:
                return int(code)
    return status


class ErrorContent(NamedTuple):
    """What the body of an error states: its codes, and its sentences with them."""

    codes: list[str]
    text: str

    @property
    def is_about_content(self) -> bool:
        """True if a code says that the provider refuses the content."""
        return any(_CONTENT_CODE.fullmatch(code) for code in self.codes)


def _error_content(body: str) -> ErrorContent:
    """Return the codes and sentences at the top of a body and directly in its error.

    Deeper values may be about something else. The text of a body that is no JSON, or has no
    sentence, is the body itself.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    codes = []
    sentences = []
    for fields in _fields_in(content):
        for name, value in fields.items():
            if name.lower().endswith(_CODES) and isinstance(value, str | int):
                codes.append(str(value))
            elif name.lower().endswith(_SENTENCES) and isinstance(value, str):
                sentences.append(value)
    text = body
    if sentences:
        text = " ".join([*sentences, *codes])
    return ErrorContent(codes, text)


def _fields_in(content: Any) -> list[JsonObject]:
    """Return the fields of a body, of its error, and of MiniMax's error, and the error that
    OpenRouter passes on from another provider.
    """
    body = as_object(content)
    error = as_object(body.get("error"))
    upstream_message = as_object(error.get("metadata")).get("raw")
    return [body, error, as_object(body.get("base_resp")), {"message": upstream_message}]


def failure_of_http(status: int, message: str, text: str, wait_s: float | None = None) -> Failure:
    """Return the failure for an HTTP status; `message` (the body) decides, `text` is stored."""
    kept_status, kind = _status_and_kind(status, message)
    return Failure(
        kept_status,
        kind,
        text,
        wait_s,
        is_unpaid=True,
        is_about_key=_is_about_key(status, _error_content(message).text),
        request_fault=_request_fault(status, message),
        http_status=status,
    )


_PAGE = re.compile(r"(?is)<(?:!doctype|\?xml|html|head|body)\b.*")
_TITLE = re.compile(r"(?is)<title[^<>]*>([^<]*\w[^<]*)<")
_MARKUP = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->|<[^<>]*>")
_MOST_OF_PAGE = 10_000


def _without_page(text: str) -> str:
    """Return a text with a page's title, or its words, in place of the whole HTML page."""
    page = _PAGE.search(text)
    if page is None:
        return text
    markup = page[0][:_MOST_OF_PAGE]
    title = _TITLE.search(markup)
    words = title[1] if title else _MARKUP.sub(" ", markup)
    return text[: page.start()] + html.unescape(words)


_SERVER_CODE = re.compile(r"(?i)server|internal|engine|overload|unavailable|time_?out|timed_out")
_LIMIT_CODE = re.compile(r"(?i)rate_?limit|quota")


def status_of_error(error: Any) -> int:
    """Return the HTTP status that means the same as an error inside a reply, by its code."""
    code = error.get("code") if isinstance(error, Mapping) else error
    if isinstance(code, int) and 400 <= code < 600:
        return code
    if not isinstance(code, str):
        return 500
    if re.fullmatch(r"[45]\d\d", code):
        return int(code)
    if _LIMIT_CODE.search(code):
        return 429
    if _SERVER_CODE.search(code):
        return 500
    return 400


def failure_of_stored_status(status: int, text: str) -> Failure:
    """Return the failure for a status and a body that were stored in a file."""
    if 300 <= status < 400:
        kept_status = REDIRECTED
        kind = Kind.BAD_REQUEST
    else:
        kept_status, kind = _status_and_kind(status, text)
    return Failure(
        kept_status,
        kind,
        safe(f"HTTP {status}: {text}"),
        is_unpaid=True,
        http_status=status,
    )


def with_hints(failure: Failure, target: Target) -> Failure:
    """Return a failure whose error says what to check: the key, and when the model was or will be
    switched off.
    """
    hints = []
    if failure.is_about_key:
        hints.append(f"check the key: {key_state(target)}")
    end = retirement_notice(target, datetime.now(UTC).date())
    if end is not None and failure.kind in {Kind.FATAL, Kind.BAD_REQUEST}:
        hints.append(end)
    return failure._replace(error="; ".join([failure.error, *hints]))


def _is_about_key(status: int, text: str) -> bool:
    return status == 401 or (status in {400, 403} and bool(_KEY_REFUSED.search(text)))


def _status_and_kind(status: int, body: str) -> tuple[str, Kind]:
    """Return the stored status and the kind of a failure, by its HTTP status and body."""
    content = _error_content(body)
    text = content.text
    is_about_request = status < 500 and status not in _TEMPORARY
    if content.is_about_content:
        return REFUSED, Kind.DECLINED
    has_no_money = status in {400, 403, 429} and _QUOTA.search(text)
    if status in {402, 404} or _is_about_key(status, text) or has_no_money:
        return PROVIDER_ERROR, Kind.FATAL
    is_too_long = _CONTEXT_LENGTH.search(text) or "1261" in content.codes  # Zhipu's
    if is_too_long and (is_about_request or status == 500):
        return CONTEXT_LENGTH, Kind.DECLINED
    is_filtered = any(meaning_of(code) is End.FILTERED for code in content.codes)
    reads_like_refusal = status not in _DOUBTFUL and (is_filtered or _CONTENT_TEXT.search(text))
    if is_about_request and (status == 451 or reads_like_refusal):
        return REFUSED, Kind.DECLINED
    if status == 403 or (is_about_request and _UNKNOWN_MODEL.search(text)):
        return PROVIDER_ERROR, Kind.FATAL
    kind = Kind.DOWN
    if is_about_request:
        kind = Kind.BAD_REQUEST
    elif status == 429:
        kind = Kind.BUSY
    return PROVIDER_ERROR, kind


def _request_fault(status: int, body: str) -> tuple[str, Kind]:
    """Return the status and kind of a failure if the server accepts a harmless request.

    An empty account stays FATAL, and with a `_DOUBTFUL` status so does what may be about money, the
    key or the model: the next run tries again.
    """
    if status == 429:
        return PROVIDER_ERROR, Kind.BUSY
    text = _error_content(body).text
    if status == 402 or _QUOTA.search(text):
        return PROVIDER_ERROR, Kind.FATAL
    if status not in _DOUBTFUL:
        return PROVIDER_ERROR, Kind.BAD_REQUEST
    if _ACCOUNT.search(text) or _KEY_REFUSED.search(text):
        return PROVIDER_ERROR, Kind.FATAL
    return REFUSED, Kind.DECLINED


def _goes_back_to(names: frozenset[str], error: BaseException) -> bool:
    """Return whether an exception or one of its causes has a class with one of these names."""
    for cause in causes_of(error):
        class_names = {base.__name__ for base in type(cause).__mro__}
        if not names.isdisjoint(class_names):
            return True
    return False


_LONGEST_WAIT_S = 600.0
"""A longer requested wait is not believed: it may be meant in milliseconds, or until the end of a
month.
"""


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the wait that response headers (names in lower case) request, from a moment of
    wall-clock time.

    None if they request none, or one that is not believed.
    """
    waits_s = []
    with suppress(ValueError):
        waits_s.append(float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        waits_s.append(float(headers.get("retry-after", "")))
    with suppress(ValueError, OverflowError):
        end = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        waits_s.append(end.timestamp() - now_s)
    for wait_s in waits_s:
        if wait_s <= _LONGEST_WAIT_S:
            return max(0.0, wait_s)
    return None
