"""Replies to calls of a model, and the kinds of their outcomes."""

import email.utils
import json
import re
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from tasks.llm.environment import redacted, safe
from tasks.llm.request import DECISIONS, EMBEDDING, NO_PRICES, RESPONSES, Prices, cost_usd
from tasks.llm.transport import Body, Exchange, Redirected, ReplyTooLarge
from tasks.llm.usage import NO_REPORT, Tokens, is_count, tokens_in
from tasks.rules.content import content_of
from tasks.rules.ends import TOOL_CALLS, End, end_word, is_among, meaning_of, stated_end
from tasks.rules.errors import PipelineError, causes_of
from tasks.rules.text.characters import one_line, storable

OK = "ok"
REFUSED, TRUNCATED, CONTEXT_LENGTH, EMPTY = "refused", "truncated", "context_length", "empty"
TIMEOUT, PROVIDER_ERROR = "timeout", "provider_error"
REDIRECTED, TOO_LARGE = "redirected", "too_large"
UNCLEAR = "unclear"
"""The status of a reply that may not be whole: its end, or a part of it, is of an unknown kind."""

MOST_TEXT_BYTES = 16 << 20
"""The largest stored text of a reply, in bytes of UTF-8."""
Paid = tuple[str, int]
"""(call key, attempt) of an entry in the ledger."""
Logprobs = tuple[tuple[str, float], ...]
"""The tokens of a reply's text, in order, with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished call. `text` is None unless `status` is ok; values that the provider did not report are None.

    `unaccepted_text` is the text of a reply whose end is not that of a complete one; only the ledger keeps it.

    Tokens are those of the deciding attempt; `cost_usd` is the sum over all attempts of known cost. `paid` are the
    ledger's entries behind the reply. `logprobs` are the tokens of the text with their log-probabilities. `failure` is
    known only for a new attempt, and so is `largest_usage`: the most tokens of prompt and completion that a report of
    usage may mean that does not add up.
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
    unaccepted_text: str | None = None
    failure: "Failure | None" = field(default=None, compare=False)
    largest_usage: tuple[int, int] | None = field(default=None, compare=False)

    def accepted(self, ends_ok: Collection[str]) -> "Reply":
        """Return the reply as a success if it ended with one of these words (`ends_ok`), else unchanged."""
        if self.unaccepted_text is None or not is_among(self.finish_reason, ends_ok):
            return self
        return replace(self, status=OK, text=self.unaccepted_text, unaccepted_text=None, error=None, failure=None)

    def priced(self, prices: Prices) -> "Reply":
        """Return the reply with its cost by these prices."""
        cost = cost_usd(prices, self.prompt_tokens, self.cached_tokens, self.completion_tokens)
        return replace(self, prices=prices, cost_usd=cost)

    @property
    def may_pass(self) -> bool:
        """True if the same request may succeed later."""
        return self.failure.passes if self.failure else self.status == EMPTY

    @property
    def is_final(self) -> bool:
        """True if no further attempt is needed; False if the failure is temporary or stops the model."""
        return not self.may_pass and not (self.failure and self.failure.kind is Kind.FATAL)


def from_result(api: str | None, result: Any, body: Body) -> Reply:
    """Return the reply in LiteLLM's result of a call by its `api`, and the received body, without its cost and time."""
    by_api = {RESPONSES: _from_response, EMBEDDING: _from_embedding, DECISIONS: _from_decisions}
    try:
        reply = by_api.get(api or "", _from_chat)(result, body)
    except Exception as error:  # noqa: BLE001 - a provider may put anything into a reply
        cause = safe(f"the reply cannot be read ({type(error).__name__}: {error})")
        reply = Failure(PROVIDER_ERROR, Kind.DOWN, cause).reply
    tokens = _tokens(api, result, body)
    return replace(
        reply,
        served_model=_name(getattr(result, "model", None)),
        served_fingerprint=_name(getattr(result, "system_fingerprint", None)),
        prompt_tokens=tokens.prompt,
        cached_tokens=tokens.cached,
        completion_tokens=0 if api == EMBEDDING else tokens.completion,
        reasoning_tokens=tokens.reasoning,
        largest_usage=tokens.largest,
    )


def _tokens(api: str | None, result: Any, body: Body) -> Tokens:
    """Return the tokens in the received report of usage, or in LiteLLM's if its form is another."""
    usage = getattr(result, "usage", None) or {}
    by_litellm = tokens_in(usage if isinstance(usage, Mapping) else usage.model_dump())
    has_several_bodies = api == DECISIONS and body.decisions is None  # of the embedded model
    received = NO_REPORT if has_several_bodies else tokens_in(body.usage)
    if received == NO_REPORT:
        return by_litellm
    if api is None and not body.is_completion:  # LiteLLM also counts the reasoning that the reply shows
        return received._replace(reasoning=by_litellm.reasoning)
    return received


_FILTERED = Reply(REFUSED, error="the provider's content filter stopped the reply")
_CUT = Reply(TRUNCATED, error="the reply was cut at its token limit")


def _from_chat(completion: Any, body: Body) -> Reply:
    if body.error:
        return _error_inside(body.error)
    if not completion.choices:
        return Reply(EMPTY, error="the reply has no choices")
    choice = completion.choices[0]
    message, by_litellm = choice.message, end_word(choice.finish_reason)
    # LiteLLM has a few names of ends, and `stop` for each word that it does not know.
    word = body.stated_end or (None if body.is_completion else by_litellm)
    end = meaning_of(word)
    if end is End.UNKNOWN and by_litellm in {"length", "content_filter"}:
        end = meaning_of(by_litellm)
    elif word in TOOL_CALLS and by_litellm == "stop":  # LiteLLM has made a text of the call
        end = End.COMPLETE
    keeps_own = by_litellm is None or (by_litellm == "stop" and (body.is_completion or end is not End.COMPLETE))
    stated = _name(word if keeps_own else by_litellm)
    refusal = getattr(message, "refusal", None) or (message.provider_specific_fields or {}).get("refusal")
    reply = _kept(message.content, refusal or body.refusal)
    if reply.status == EMPTY and getattr(message, "reasoning_content", None):
        reply = replace(reply, error="the reply has no text, only `reasoning_content`; a higher `max_tokens` may help")
    if body.unknown_type is not None:
        return replace(_with_unknown_part(body.unknown_type), finish_reason=stated)
    if word is None and (body.is_stream or by_litellm is None):
        return _unfinished(reply, "the stream ended without a word that the reply is complete")
    reply = replace(_ended(reply, end, stated), finish_reason=stated)
    return replace(reply, logprobs=logprobs_in([choice])) if reply.status == OK else reply


def _error_inside(error: Any) -> Reply:
    """Return the failure for an error that a provider put into a completion."""
    code = _get(error, "code")
    status = code if is_count(code) and 400 <= code < 600 else 500
    message = json.dumps(error)
    failure = _failure_of_answer(status, message, safe(f"HTTP {status}: {message}"), None)
    return failure._replace(is_unpaid=False).reply


def _with_unknown_part(kind: str) -> Reply:
    return Reply(UNCLEAR, error=f"the reply has a part of unknown type: {_name(kind)}")


def _ended(reply: Reply, end: End, word: str | None) -> Reply:
    """Return a reply as its end decides; `word` is the provider's."""
    if end is End.CUT:
        return _CUT
    if end is End.FILTERED:
        return _FILTERED
    if end is End.TROUBLE:
        return _unfinished(reply, f"the reply {stated_end(word or '')}")
    if end is End.UNKNOWN:
        hint = "which is not known as the end of a complete reply; `ends_ok` accepts it"
        if reply.status == EMPTY:
            hint = "and has no text"
        return _not_accepted(reply, UNCLEAR, f"the reply {stated_end(word or '')}, {hint}")
    return reply


def _unfinished(reply: Reply, error: str) -> Reply:
    """Return a reply as a temporary failure."""
    failure = Failure(PROVIDER_ERROR, Kind.DOWN, error)
    return replace(_not_accepted(reply, PROVIDER_ERROR, error), failure=failure)


def _not_accepted(reply: Reply, status: str, error: str) -> Reply:
    """Return a reply as a failure that keeps its text for the ledger; a refusal stays one."""
    if reply.status not in {OK, EMPTY}:
        return reply
    return Reply(status, error=error, unaccepted_text=reply.text)


def logprobs_in(choices: Sequence[Any]) -> Logprobs | None:
    """Return the log-probabilities of a choice, or of the pieces of a streamed one; None if a token has none."""
    pairs: list[tuple[str, float]] = []
    for choice in choices:
        tokens = _get(_get(choice, "logprobs"), "content") or []
        for token in tokens if isinstance(tokens, list) else [None]:
            text, logprob = _get(token, "token"), _get(token, "logprob")
            if not isinstance(text, str) or not _is_number(logprob):
                return None
            pairs.append((storable(text), round(float(logprob), 6)))
    return tuple(pairs) or None


def _kept(text: str | None, refusal: Any = None) -> Reply:
    """Return a reply with its text, which may be stored: without our secrets, and not too large."""
    if refusal:
        return Reply(REFUSED, error=safe(str(refusal)))
    if not text:
        return Reply(EMPTY, error="the reply has no text")
    text = redacted(storable(text), is_reply=True)
    if len(text.encode()) > MOST_TEXT_BYTES:
        return Reply(TOO_LARGE, error=f"the text of the reply is larger than {MOST_TEXT_BYTES >> 20} MiB")
    return Reply(OK, text)


def _from_response(response: Any, _: Body) -> Reply:
    status = end_word(getattr(response, "status", None))
    if status == "incomplete":
        reason = str(_get(getattr(response, "incomplete_details", None), "reason") or "no reason given")
        cut = Reply(TRUNCATED, error=safe(f"the reply is incomplete: {reason}"))
        return replace(_FILTERED if meaning_of(reason) is End.FILTERED else cut, finish_reason=_name(reason))
    if status == "failed":
        return replace(_failed_response(getattr(response, "error", None)), finish_reason=status)
    messages = [item for item in response.output or () if _get(item, "type") == "message"]
    content = content_of([_plain(part) for item in messages for part in _get(item, "content") or ()])
    reply = _kept(content.text, content.refusal)
    if content.unknown_type is not None:
        return replace(_with_unknown_part(content.unknown_type), finish_reason=_name(status))
    return replace(_ended(reply, meaning_of(status), _name(status)), finish_reason=_name(status))


_STATUS_OF_CODE = {"server_error": 500, "rate_limit_exceeded": 429, "vector_store_timeout": 500}
"""Codes of failed responses that mean a temporary failure, with the HTTP status of the same failure."""


def _failed_response(error: Any) -> Reply:
    code = error if isinstance(error, str) else _get(error, "code")
    status = _STATUS_OF_CODE.get(code, 400) if isinstance(code, str) else 500
    failure = failure_of_status(status, str(error))
    return failure._replace(error=safe(f"the response failed: {error}"), is_unpaid=False).reply


def _plain(part: Any) -> Any:
    """Return a part of a response's content as a mapping."""
    return part.model_dump() if hasattr(part, "model_dump") else part


def _from_embedding(result: Any, _: Body) -> Reply:
    """Return the reply in a result with the vector of one text; its text is JSON."""
    data = getattr(result, "data", None) or []
    vector = _get(data[0], "embedding") if len(data) == 1 else None
    if isinstance(vector, list) and bool(vector) and all(_is_number(each) for each in vector):
        # Numbers are not secrets; unchanged, the vector can be read back.
        return Reply(OK, json.dumps([float(each) for each in vector]))
    return Reply(EMPTY, error="the reply has no vector of finite numbers")


def _from_decisions(result: Any, body: Body) -> Reply:
    """Return the reply with the decisions in the received body if it has them, else in LiteLLM's result.

    Its text is JSON with `answers`.
    """
    raw = body.decisions
    return _kept(result.model_dump_json(include={"answers"}) if raw is None else raw.decode(errors="replace"))


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number; JSON may hold integers beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _get(item: Any, name: str) -> Any:
    """Return a field of a value that LiteLLM returns as an object or as a mapping."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _name(value: Any) -> str | None:
    """Return a name from a provider; None if it is not a text."""
    return one_line(redacted(storable(value), is_reply=True), 200) if isinstance(value, str) else None


class Kind(Enum):
    """The kind of a failure, which shows the state of the model and its endpoint."""

    DOWN = "down"
    """No reply, or a broken one: temporary; if no other call succeeds, the endpoint is down."""
    BUSY = "busy"
    """Too many requests: temporary, until there are fewer."""
    BAD_REQUEST = "bad request"
    """The server refuses this request as invalid; others may succeed."""
    DECLINED = "declined"
    """The request is too long or refused, or its reply is too large to be read."""
    LOST = "lost"
    """The process that made the attempt is gone: temporary, and no information on the model or its endpoint."""
    FATAL = "fatal"
    """Every request will fail, or seems to: wrong key, unknown model, exhausted quota, an address that redirects."""


class Failure(NamedTuple):
    """The reason why an attempt has no reply: the stored status and cause, and the wait that the server requests."""

    status: str
    kind: Kind
    error: str
    retry_after_s: float | None = None
    is_unpaid: bool = False
    """True if the server refused the request before working on it, so that it cost nothing."""
    is_about_key: bool = False
    """True if the key is missing or refused."""
    alone: tuple[str, Kind] | None = None
    """The status and kind if the server answers a harmless request; None if no harmless request can be made."""

    @property
    def of_this_request(self) -> "Failure":
        """The failure if the server answers a harmless request: it is that of this request alone."""
        if self.alone is None:
            return self
        status, kind = self.alone
        return self._replace(status=status, kind=kind, alone=None)

    @property
    def reply(self) -> Reply:
        """The failure as a reply."""
        return Reply(self.status, error=self.error, failure=self)

    @property
    def passes(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in {Kind.DOWN, Kind.BUSY, Kind.LOST}


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
    is_answered = exchange is not None and exchange.status is not None
    if isinstance(error, PipelineError) or (_NEVER_SENT.search(text) and not is_answered):
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
        failure = _failure_of_answer(status, message, text, wait_s)
        # An error in the middle of a reply: what came before it may be billed.
        return failure._replace(is_unpaid=exchange is None or not exchange.body.is_completion)
    if _CONTENT_CODE.search(message):
        return Failure(REFUSED, Kind.DECLINED, text)
    return Failure(PROVIDER_ERROR, Kind.DOWN, text, is_unpaid=_goes_back_to(_NO_CONNECTION, error))


def _failure_of_fault(fault: Redirected | ReplyTooLarge) -> Failure:
    if isinstance(fault, Redirected):
        return Failure(REDIRECTED, Kind.FATAL, safe(str(fault)), is_unpaid=True)
    return Failure(TOO_LARGE, Kind.DECLINED, safe(str(fault)))


def _failure_of_answer(status: int, message: str, text: str, wait_s: float | None) -> Failure:
    """Return the failure for a server's answer, by its status and everything that is known of its body."""
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
    is_said = not messages or any(message in text for message in messages)
    return safe(text if is_said else f"{text}: {received}")


def failure_of_status(status: int, text: str) -> Failure:
    """Return the failure for a status and a body from a batch's file."""
    of_status = (REDIRECTED, Kind.BAD_REQUEST) if 300 <= status < 400 else _by_status(status, text)
    return Failure(*of_status, safe(f"HTTP {status}: {text}"), is_unpaid=True)


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
    """Return the status and kind of a failure if the server answers a harmless request."""
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
