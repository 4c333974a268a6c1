"""What is called, and what one call is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.llm import embedded
from tasks.llm.litellm_setup import can_follow_schema
from tasks.rules.identity import call_key, config_hash

Messages = Sequence[Mapping[str, str]]
RESPONSES, EMBEDDING = "responses", "embedding"
"""The values of the parameter `api` that ask for the responses API, and for the vector of a text."""


@dataclass(frozen=True)
class Prices:
    """What tokens cost, in USD a million, and which table says so; a price that is not known is None."""

    input_usd_per_mtok: float | None = None
    cached_usd_per_mtok: float | None = None
    output_usd_per_mtok: float | None = None
    price_table: str | None = None


NO_PRICES = Prices()


@dataclass(frozen=True)
class Target:
    """A model to call: its LiteLLM name, where it is served, what is sent beside the messages, and its time limit.

    `fallback` replaces parameters on the last attempt; a reply made with it is marked as degraded. `identity` holds
    what else makes the target's answers its own, and is not sent. `is_streamed` asks for the reply in pieces, so that
    the connection is never idle for long. `prices` are the configuration's own, for a model that LiteLLM's table lacks.
    `wants_logprobs` asks for the log-probabilities of a reply's tokens; it changes no answer, so no call's identity.
    """

    name: str
    api_base: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 600.0
    fallback: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_streamed: bool = False
    wants_logprobs: bool = False
    prices: Prices | None = None

    @property
    def is_embedded(self) -> bool:
        """Whether the target is the model that runs in this process."""
        return embedded.is_embedded(self.name)

    @property
    def endpoint(self) -> str:
        """Where the model is served, as far as it is part of a call's identity."""
        return embedded.weights_hash() if self.is_embedded else self.api_base or ""

    @property
    def endpoint_name(self) -> str:
        """A model at an address: calls to it are slowed down, paused and stopped together."""
        return f"{self.name} at {self.api_base}" if self.api_base else self.name

    @property
    def config_hash(self) -> str:
        """Identity of the model with its endpoint and parameters."""
        return config_hash(self.name, self.endpoint, {**self.parameters, **self.sent_along, **self.identity})

    @property
    def sent_along(self) -> dict[str, Any]:
        """What is sent with every call beside the model's parameters."""
        return {"headers": dict(self.headers)} if self.headers else {}

    @property
    def can_follow_schema(self) -> bool:
        """Whether the model is known to support structured output."""
        return self.is_embedded or can_follow_schema(self.name)

    @property
    def last_resort(self) -> Mapping[str, Any] | None:
        """The parameters of the last attempt, where they are others than asked for."""
        return {**self.parameters, **self.fallback} if self.fallback else None


@dataclass(frozen=True)
class Call:
    """One answer that is wanted from a model.

    `cell` is the id of the row that the answer is for; `priority` orders calls that wait, lowest first. A call that
    `is_batched` is answered by a provider's batch, and made by itself only after it failed there, if it `allows_live`
    calls. Where its row was removed, no reply that came until `not_before_s` (wall-clock time) is an answer to it.
    """

    target: Target
    messages: Messages
    cell: str
    response_format: Mapping[str, Any] | None = None
    trial: int = 1
    vintage: str = "base"
    priority: tuple[int, ...] = ()
    is_batched: bool = False
    allows_live: bool = False
    not_before_s: float | None = None

    @property
    def own_parameters(self) -> dict[str, Any]:
        """All that is sent beside the messages, unless it is the last resort."""
        return self.parameters(self.target.parameters)

    def parameters(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """All that is sent beside the messages, given the model's parameters."""
        shape = {"response_format": dict(self.response_format)} if self.response_format else {}
        return {**own, **shape, **self.target.sent_along}

    def key(self, parameters: Mapping[str, Any]) -> str:
        """Identity of the request under the parameters that are really used."""
        return call_key(self.target.name, self.target.endpoint, parameters, self.messages, self.trial, self.vintage)


@dataclass(frozen=True)
class Usage:
    """What a call uses, or may use at most; None where that is not known."""

    usd: float | None = None
    tokens: int | None = None


UNKNOWN = Usage()
NOTHING = Usage(0.0, 0)
