"""Calls: the model that is called, one call, and its cost.

Prices are from the configuration or from LiteLLM's local table; an unknown price is None, never 0.
"""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date
from functools import cache, cached_property
from typing import Any, NamedTuple

from tasks.llm import embedded
from tasks.llm.litellm_setup import decision_providers, litellm, model_entry
from tasks.rules.identity import BASE_VINTAGE, adopted_key, call_key, config_hash

Messages = Sequence[Mapping[str, str]]
PriceEntry = dict[str, Any]
"""What LiteLLM's table says of a model."""
Parameters = Mapping[str, Any]
"""Parameters of a model or of a request, with this project's names."""
RESPONSES = "responses"
"""The value of the parameter `api` for OpenAI's responses API."""
EMBEDDING = "embedding"
"""The value of `api` for a model that returns the vector of a text."""
DECISIONS = "decisions"
"""The value of `api` for a model that decides questions on a text."""


class Prices(NamedTuple):
    """The prices of tokens, in USD per million, and the table they are from; an unknown price is
    None.
    """

    input_usd_per_mtok: float | None = None
    cached_usd_per_mtok: float | None = None
    output_usd_per_mtok: float | None = None
    price_table: str | None = None


NO_PRICES = Prices()


@dataclass(frozen=True)
class Target:
    """A model to call: its LiteLLM name, its address, the parameters sent with the messages, and
    its time limit.

    Attributes:
        api_base: None is the provider's default address.
        fallback: replaces parameters on the last attempt; a reply made with it is marked as
            degraded.
        identity: further values that distinguish the target's replies and are not sent.
        headers: sent with every request.
        is_streamed: requests the reply in pieces, so that the connection is never idle for long.
        wants_logprobs: requests the log-probabilities of a reply's tokens; it changes neither the
            reply nor the call's identity.
        prices: those of the configuration, which replace those of LiteLLM's table.
        ends_ok: further words with which a complete reply may end; they are not part of any
            identity.
        address_variable: the environment variable that `api_base` was taken from; None if it was
            configured.
        retires_on: the configured day on which the provider switches the model off.
    """

    name: str
    api_base: str | None = None
    parameters: Parameters = field(default_factory=dict)
    timeout_s: float = 600.0
    fallback: Parameters = field(default_factory=dict)
    identity: Parameters = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_streamed: bool = False
    wants_logprobs: bool = False
    prices: Prices | None = None
    ends_ok: tuple[str, ...] = ()
    address_variable: str | None = None
    retires_on: date | None = None

    @property
    def is_embedded(self) -> bool:
        """True if the target is the model that runs in this process."""
        return embedded.is_embedded(self.name)

    @property
    def endpoint(self) -> str:
        """The address of the model's server, or the hash of the embedded weights, as part of a
        call's identity.
        """
        if self.is_embedded:
            return embedded.weights_hash()
        return self.api_base or ""

    @property
    def endpoint_name(self) -> str:
        """A model at an address: calls to it are slowed down, paused and stopped together."""
        return f"{self.name} at {self.api_base}" if self.api_base else self.name

    @property
    def why_refused(self) -> str | None:
        """Why LiteLLM can send no call of this kind to the model, in one line; None if it can."""
        if self.parameters.get("api") != DECISIONS or self.is_embedded:
            return None
        provider = self.name.partition("/")[0]
        providers = decision_providers()
        if provider in providers:
            return None
        return f"LiteLLM cannot ask {provider}/ for decisions; it can ask {', '.join(providers)}"

    @property
    def config_hash(self) -> str:
        """Identity of the model with its endpoint and parameters."""
        return config_hash(
            name=self.name,
            endpoint=self.endpoint,
            parameters={**self.parameters, **self.sent_along, **self.identity},
        )

    @property
    def sent_along(self) -> dict[str, Any]:
        """The arguments that are sent with every call, besides the model's parameters."""
        return {"headers": dict(self.headers)} if self.headers else {}

    @cached_property
    def can_follow_schema(self) -> bool:
        """True if the model is known to support structured output."""
        return self.is_embedded or bool(litellm().supports_response_schema(model=self.name))

    @property
    def last_resort(self) -> Parameters | None:
        """The parameters of the last attempt, if they differ from the requested ones."""
        return {**self.parameters, **self.fallback} if self.fallback else None


@dataclass(frozen=True)
class Call:
    """A request to a model."""

    target: Target
    messages: Messages
    cell: str
    """The id of the reply's row."""
    _: KW_ONLY
    response_format: Parameters | None = None
    trial: int = 1
    vintage: str = BASE_VINTAGE
    priority: tuple[int, ...] = ()
    """The order of waiting calls, lowest first."""
    is_batched: bool = False
    """True if the call is made by a provider's batch."""
    allows_live: bool = False
    """True if a batched call that failed in its batch may be made individually."""
    not_before_s: float | None = None
    """The wall-clock time at which the call's row was removed: earlier replies do not count."""
    after_attempt: int = 0
    """Replies of attempts up to this number do not count."""
    questions: Sequence[Parameters] = ()
    """Sent to a decision model along with the only message."""

    @property
    def live_if_allowed(self) -> "Call":
        """The call outside of batches if it allows that, else the call as it is."""
        return replace(self, is_batched=self.is_batched and not self.allows_live)

    def parameters(self, model_parameters: Parameters | None = None) -> dict[str, Any]:
        """Return all arguments that are sent with the messages, with the model's parameters or
        other ones.
        """
        if model_parameters is None:
            model_parameters = self.target.parameters
        parameters = dict(model_parameters)
        if self.response_format:
            parameters["response_format"] = dict(self.response_format)
        if self.questions:
            parameters["questions"] = list(self.questions)
        parameters.update(self.target.sent_along)
        return parameters

    def key(self, parameters: Parameters) -> str:
        """Return the identity of the request with these parameters."""
        return call_key(
            name=self.target.name,
            endpoint=self.target.endpoint,
            parameters=parameters,
            messages=self.messages,
            trial=self.trial,
            vintage=self.vintage,
        )

    def adopted_key(self, parameters: Parameters) -> str | None:
        """Return the key of an adopted reply to this call; None if there can be none.

        Such a reply was made before the address of the environment was part of a call's identity,
        so its own key is that of the call without an address (`prbench adopt` gives it this one).
        """
        if self.target.address_variable is None:
            return None
        without_address = replace(self, target=replace(self.target, api_base=None))
        return adopted_key(
            earlier_key=without_address.key(parameters), address=self.target.endpoint
        )


class Usage(NamedTuple):
    """The usage of a call, or its highest possible usage; a figure is None if unknown."""

    usd: float | None = None
    tokens: int | None = None


UNKNOWN_USAGE = Usage()
NO_USAGE = Usage(0.0, 0)


_MTOK = 1_000_000
_OTHER_TARIFFS = (
    "batches",
    "priority",
    "flex",
    "audio",
    "image",
    "video",
    "cache",
    "character",
    "second",
    "query",
)
"""Words in the names of prices for other calls, or for other things than tokens of text."""
_REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@cache
def table_entry(name: str) -> PriceEntry:
    """Return LiteLLM's entry for a model: that of its full name, else that of its name without the
    provider if the entry is of that provider.
    """
    entry = model_entry(name)
    if entry:
        return entry
    provider, _, bare_name = name.partition("/")
    entry = model_entry(bare_name)
    # The table divides some providers, such as `vertex_ai-language-models` and `bedrock_converse`.
    if entry.get("litellm_provider", "").startswith(provider):
        return entry
    return {}


def prices_of(target: Target, *, of_batch: bool = False) -> Prices:
    """Return the prices of a model, or of its batches if the table has separate ones.

    The embedded model runs in this process and costs nothing.
    """
    if target.prices is not None:
        return target.prices
    if target.is_embedded:
        return Prices(0.0, 0.0, 0.0, "embedded")
    entry = table_entry(target.name)
    if target.parameters.get("api") == DECISIONS:
        entry = _with_prices_of_decisions(entry)
    input_price = entry.get("input_cost_per_token")
    output_price = entry.get("output_cost_per_token")
    cache_price = entry.get("cache_read_input_token_cost")
    if input_price is None or output_price is None:
        return NO_PRICES
    batch_input_price = entry.get("input_cost_per_token_batches")
    batch_output_price = entry.get("output_cost_per_token_batches")
    if of_batch and batch_input_price is not None and batch_output_price is not None:
        input_price = batch_input_price
        output_price = batch_output_price
        cache_price = None
    return Prices(
        input_usd_per_mtok=input_price * _MTOK,
        cached_usd_per_mtok=None if cache_price is None else cache_price * _MTOK,
        output_usd_per_mtok=output_price * _MTOK,
        price_table=f"litellm {importlib.metadata.version('litellm')}",
    )


def _with_prices_of_decisions(entry: PriceEntry) -> PriceEntry:
    """Return the entry of a model, which has separate prices for decisions if it also chats."""
    suffix = "_decisions"
    prices = dict(entry)
    for name, value in entry.items():
        if name.endswith(suffix):
            prices[name.removesuffix(suffix)] = value
    return prices


def cost_usd(
    prices: Prices,
    prompt_tokens: int | None,
    cached_tokens: int | None,
    completion_tokens: int | None,
) -> float | None:
    """Return the cost of a call by its prices; None if a price or the number of tokens is unknown.

    Cached prompt tokens without a separate price cost as much as others.
    """
    prompt_price, cached_price, completion_price, _ = prices
    if prompt_price is None or completion_price is None:
        return None
    if prompt_tokens is None or completion_tokens is None:
        return None
    if cached_price is None:
        cached_price = prompt_price
    n_cached = min(cached_tokens or 0, prompt_tokens)
    n_uncached = prompt_tokens - n_cached
    uncached_cost = n_uncached * prompt_price + completion_tokens * completion_price
    return (uncached_cost + n_cached * cached_price) / _MTOK


def most_reply_tokens(target: Target, parameters: Parameters) -> int | None:
    """Return the most tokens of a reply: the sent limit, else the model's own; None if unknown.

    A vector has no tokens, and each decision on a question at most 16.
    """
    if parameters.get("api") in {EMBEDDING, DECISIONS}:
        return 16 * len(parameters.get("questions", ()))
    limit = requested_reply_tokens(parameters)
    if limit is None:
        limit = table_entry(target.name).get("max_output_tokens")
    return int(limit) if limit else None


def requested_reply_tokens(parameters: Parameters) -> int | None:
    """Return the sent limit of a reply; None if there is none."""
    limits = [parameters[name] for name in _REPLY_LIMITS if isinstance(parameters.get(name), int)]
    return max(limits, default=None)


def most_prompt_tokens(messages: Any, parameters: Parameters) -> int:
    """Return an upper bound of a prompt's tokens that needs no tokenizer: no token is shorter than
    a byte.
    """
    texts = [message["content"] for message in messages]
    for name in ("response_format", "questions"):
        if parameters.get(name):
            texts.append(str(parameters[name]))
    # No known chat template adds more than 16 tokens to a message.
    return sum(len(text.encode()) + 16 for text in texts)


def most_usd(target: Target, prompt_tokens: int, reply_tokens: int) -> float | None:
    """Return the highest possible cost of a call; None if a price is unknown.

    If the table has higher prices for long prompts or for reasoning, these are used.
    """
    input_price, _, output_price, _ = prices_of(target)
    if input_price is None or output_price is None:
        return None
    if target.prices is None:
        entry = table_entry(target.name)
        input_price = max([input_price, *_tariffs(entry, "input_cost_per")])
        output_price = max([output_price, *_tariffs(entry, "output_cost_per")])
    return (prompt_tokens * input_price + reply_tokens * output_price) / _MTOK


def _tariffs(entry: PriceEntry, prefix: str) -> list[float]:
    """Return all possible prices of a text call, in USD per million tokens."""
    tariffs = []
    for name, value in entry.items():
        is_of_tokens = name.startswith(prefix) and "token" in name
        is_other = any(word in name for word in _OTHER_TARIFFS)
        if is_of_tokens and not is_other and isinstance(value, int | float):
            tariffs.append(float(value) * _MTOK)
    return tariffs


def highest_usage_of(call: Call, parameters: Parameters) -> Usage:
    """Return the highest possible usage of one attempt; its figures are None if unknown."""
    prompt_tokens = most_prompt_tokens(call.messages, parameters)
    reply_tokens = most_reply_tokens(call.target, parameters)
    if reply_tokens is None:
        return UNKNOWN_USAGE
    return Usage(
        usd=most_usd(call.target, prompt_tokens, reply_tokens),
        tokens=prompt_tokens + reply_tokens,
    )


def count_tokens(target: Target, text: str) -> int:
    """Return the number of tokens of a text.

    It is counted by the embedded server's tokenizer, by LiteLLM's for the model, or by its default
    one.
    """
    if target.is_embedded:
        return embedded.count_tokens(text)
    # With the provider before its name, LiteLLM does not know a model of OpenAI's and uses an older
    # tokenizer.
    return int(litellm().token_counter(model=target.name.removeprefix("openai/"), text=text))


def longest_prompt_tokens(
    target: Target,
    context_tokens: int | None,
    reply_format: Parameters | None,
) -> int | None:
    """Return the tokens of the longest prompt that fits into a context of `context_tokens` (None:
    the known context of the model).

    `max_tokens` are reserved for the reply, at most half of the context. Without `max_tokens` the
    reserve is the model's longest reply, at most a quarter of the context or 16,384 tokens. None if
    the context is unknown.
    """
    if not context_tokens:
        context_tokens = _known_context_tokens(target)
    if not context_tokens:
        return None
    reply_tokens = requested_reply_tokens(target.parameters)
    if reply_tokens is None:
        # 0 for a decision model, because the parameters of a target have no questions.
        longest_reply = most_reply_tokens(target, target.parameters) or context_tokens
        reserve = min(longest_reply, context_tokens // 4, 16_384)
    else:
        reserve = min(reply_tokens, context_tokens // 2)
    if reply_format:
        reserve += count_tokens(target, str(reply_format))
    return context_tokens - reserve


def _known_context_tokens(target: Target) -> int:
    if target.is_embedded:
        return embedded.CONTEXT_TOKENS
    return int(table_entry(target.name).get("max_input_tokens") or 0)
