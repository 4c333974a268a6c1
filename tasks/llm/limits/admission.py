"""Admission of calls: what is requested, what is given, and the outcome that comes back with it."""

from dataclasses import astuple, dataclass

from tasks.llm.failures import Failure
from tasks.llm.replies import Reply
from tasks.llm.usage import NOTHING, UNKNOWN, Usage


@dataclass(frozen=True)
class AdmissionRequest:
    """A call that wants to start: its endpoint, its key, its place in the queue, and what it may use at most."""

    endpoint: str
    key: str
    priority: tuple[int, ...] = ()
    most: Usage = UNKNOWN
    likely_tokens: int = 0


@dataclass(frozen=True)
class Admission:
    """Permission to make one call; `tokens` are counted against the limit a minute until its usage is known."""

    request: AdmissionRequest
    tokens: int = 0


@dataclass(frozen=True)
class Outcome:
    """How a call ended: with a reply, which may be a failure; lost with the process that made it; or not made."""

    reply: Reply | None = None
    failure: Failure | None = None
    is_lost: bool = False

    @property
    def is_not_made(self) -> bool:
        """Whether there was no call after all."""
        return self.reply is None and not self.is_lost

    @property
    def is_free(self) -> bool:
        """Whether nothing was used: it was not made, or the server said no before it worked on it."""
        return self.is_not_made if self.failure is None else self.failure.is_unpaid

    @property
    def used(self) -> Usage:
        """What the call used; None where nobody knows."""
        if self.is_free:
            return NOTHING
        if self.reply is None:
            return UNKNOWN
        prompt, completion = self.reply.prompt_tokens, self.reply.completion_tokens
        return Usage(self.reply.cost_usd, None if prompt is None or completion is None else prompt + completion)


@dataclass
class Totals:
    """What all calls of a role came to."""

    calls: int = 0
    prompt_tokens: int = 0
    prompt_tokens_with_cache_figure: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    @property
    def cached_share(self) -> float | None:
        """The part of the prompt tokens that came from the provider's cache; None where none was reported."""
        known = self.prompt_tokens_with_cache_figure
        return self.cached_tokens / known if known else None

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def add(self, outcome: Outcome) -> None:
        """Count a call, if one was made."""
        if (reply := outcome.reply) is None:
            return
        self.calls += 1
        self.prompt_tokens += reply.prompt_tokens or 0
        self.completion_tokens += reply.completion_tokens or 0
        if reply.cached_tokens is not None:
            self.prompt_tokens_with_cache_figure += reply.prompt_tokens or 0
            self.cached_tokens += reply.cached_tokens
