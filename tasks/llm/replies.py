"""The outcome of a call: the model's reply, or the kind of its failure."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from tasks.llm.request import NO_PRICES, Prices, cost_usd
from tasks.rules.ends import is_among

OK = "ok"
REFUSED = "refused"
TRUNCATED = "truncated"
CONTEXT_LENGTH = "context_length"
EMPTY = "empty"
TIMEOUT = "timeout"
PROVIDER_ERROR = "provider_error"
REDIRECTED = "redirected"
TOO_LARGE = "too_large"
NOT_SERVED = frozenset({PROVIDER_ERROR, REDIRECTED, TIMEOUT})
"""The statuses of calls that an endpoint did not serve: it failed, redirected or was silent."""
UNCLEAR = "unclear"
"""The status of a reply that may not be whole: its end, or a part of it, is of an unknown kind."""

LedgerKey = tuple[str, int]
"""(call key, number of the attempt): the key of an entry in the ledger."""
Logprobs = tuple[tuple[str, float], ...]
"""The tokens of a reply's text, in order, with their log-probabilities."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished call.

    `text` is None unless `status` is ok; values that the provider did not report are None.

    `unaccepted_text` is the text of a reply whose end is not that of a complete one; only the
    ledger keeps it.

    Tokens are those of the deciding attempt; `cost_usd` is the sum over all attempts of known cost.
    `ledger_keys` are those of the ledger's entries behind the reply. `logprobs` are the tokens of
    the text with their log-probabilities. `failure` is known only for a new attempt, and so is
    `largest_usage`: where the reported usage does not add up, the most tokens of the prompt and of
    the completion that it may mean.
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
    ledger_keys: tuple[LedgerKey, ...] = ()
    logprobs: Logprobs | None = None
    unaccepted_text: str | None = None
    failure: "Failure | None" = field(default=None, compare=False)
    largest_usage: tuple[int, int] | None = field(default=None, compare=False)

    def accepted(self, ends_ok: Collection[str]) -> "Reply":
        """Return the reply as a success if it ended with one of these words (`ends_ok`), else
        unchanged.
        """
        if self.unaccepted_text is None or not is_among(self.finish_reason, ends_ok):
            return self
        return replace(
            self,
            status=OK,
            text=self.unaccepted_text,
            unaccepted_text=None,
            error=None,
            failure=None,
        )

    def priced(self, prices: Prices) -> "Reply":
        """Return the reply with its cost by these prices."""
        cost = cost_usd(prices, self.prompt_tokens, self.cached_tokens, self.completion_tokens)
        return replace(self, prices=prices, cost_usd=cost)

    @property
    def may_pass(self) -> bool:
        """True if the same request may succeed later."""
        if self.failure is None:
            return self.status == EMPTY
        return self.failure.may_pass

    @property
    def is_final(self) -> bool:
        """True if no further attempt is needed; False if the failure is temporary or stops the
        model.
        """
        stops_model = self.failure is not None and self.failure.kind is Kind.FATAL
        return not self.may_pass and not stops_model


class Kind(Enum):
    """The kind of a failure, which shows the state of the model and its endpoint."""

    DOWN = "down"
    """No reply, or a broken one: temporary; if no other call succeeds, the endpoint is down."""
    BUSY = "busy"
    """Too many requests: temporary, until there are fewer."""
    BAD_REQUEST = "bad request"
    """The server refuses this request as invalid; others may succeed."""
    DECLINED = "declined"
    """The request is too long or refused, or its paid reply is too large or cannot be read."""
    LOST = "lost"
    """The process that made the attempt is gone: temporary, and no information on the model or its
    endpoint.
    """
    FATAL = "fatal"
    """Every request will fail, or seems to: wrong key, unknown model, exhausted quota, an address
    that redirects.
    """


class Failure(NamedTuple):
    """The reason why an attempt has no reply: the stored status and cause, and the wait that the
    server requests.
    """

    status: str
    kind: Kind
    error: str
    retry_after_s: float | None = None
    is_unpaid: bool = False
    """True if the server refused the request before working on it, so that it cost nothing."""
    is_about_key: bool = False
    """True if the key is missing or refused."""
    request_fault: tuple[str, Kind] | None = None
    """The status and kind that apply instead if the fault is this request's own, because the server
    accepts a harmless one; None if no harmless request can be made.
    """
    http_status: int | None = None
    """The HTTP status of the error; None if the server stated none."""

    @property
    def of_this_request(self) -> "Failure":
        """The failure if the server accepts a harmless request: it is that of this request
        alone.
        """
        if self.request_fault is None:
            return self
        status, kind = self.request_fault
        return self._replace(status=status, kind=kind, request_fault=None)

    @property
    def reply(self) -> Reply:
        """The failure as a reply."""
        return Reply(self.status, error=self.error, failure=self)

    @property
    def may_pass(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in {Kind.DOWN, Kind.BUSY, Kind.LOST}
