"""Models and judges as the configuration gives them: where they are, what is sent to them, what they cost."""

import re
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tasks.rules.identity import IMPORTED
from tasks.rules.text.secrecy import REFERENCE, is_reference, is_secret_name, literal_secret

BATCH_PREFIXES = ("openai/", "hosted_vllm/")
"""Routes whose endpoints speak OpenAI's batch interface."""
Size = Annotated[int, Field(ge=1, strict=True)]
ORIGINAL: Final = "original"
"""The rubric in its own words."""
_RESERVED = frozenset({
    "model", "messages", "input", "n", "stream", "timeout", "api_base", "base_url", "num_retries", "max_retries",
    "fallbacks", "mock_response", "extra_headers", "caching", "drop_params",
})  # fmt: skip
"""Parameters that are the pipeline's own to set, or that would change what a call is behind its back."""
_SCHEME = re.compile(r"(?:Bearer|Basic)\s", re.IGNORECASE)
"""How the value of a header begins that is a secret, whatever its name."""


def refuse_secrets_in(address: str, name: str) -> None:
    """Raise ValueError if an address holds a secret itself; `name` is the setting's."""
    parts = urlsplit(address)
    if "@" in parts.netloc:
        # HTTP clients refuse it beside the key that is sent in a header.
        raise ValueError(f"`{name}` holds a user or password; send it as a header with ${{NAME}} for its value")
    for key, value in parse_qsl(parts.query):
        if is_secret_name(key) and not REFERENCE.fullmatch(value):
            raise ValueError(f"`{name}`: `{key}` is a secret; write ${{NAME}} and put it in the environment")


class Strict(BaseModel):
    """A part of the configuration: unknown keys are refused, nothing is changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Price(Strict):
    """What tokens of a model cost that LiteLLM's table does not know, in USD a million."""

    input_usd_per_mtok: Annotated[float, Field(ge=0)]
    output_usd_per_mtok: Annotated[float, Field(ge=0)]
    cached_usd_per_mtok: Annotated[float, Field(ge=0)] | None = None


class Endpoint(Strict):
    """A model behind LiteLLM, with the parameters that are sent to it.

    `api` chooses chat completions or the responses API, `stream` asks for the reply in pieces. `omits_think_tag` says
    that the server sends thinking without its opening tag, so that all up to the closing one is thinking; it changes no
    request, but what is read of a reply, so it is part of the identity. Values of `headers`, `api_base`, and of what is
    named like a secret in `params`, refer to the environment as `${NAME}`; what stands in the file is part of the
    identity, the values of the environment are not.
    """

    name: str = Field(min_length=1)
    label: str = ""
    api_base: Annotated[str, Field(min_length=1)] | None = None
    api: Literal["chat", "responses"] = "chat"
    stream: bool = False
    omits_think_tag: bool = False
    headers: dict[str, str] = {}
    reasoning_effort: str | None = None
    thinking_budget_tokens: int | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    seed: int | None = None
    max_tokens: Size | None = None
    web_search: bool = False
    code_interpreter: bool = False
    timeout_s: Annotated[float, Field(gt=0)] = 3600.0
    price: Price | None = None
    params: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _label_is_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("label") and isinstance(data.get("name"), str):
            return {**data, "label": data["name"]}
        return data

    @model_validator(mode="after")
    def _holds_no_secret(self) -> Self:
        for kind in ("params", "fallback"):
            if (path := literal_secret(getattr(self, kind, {}), kind)) is not None:
                name = path.rpartition(".")[2]
                raise ValueError(f"`{name}` is a secret ({path}); put it in the environment and write ${{NAME}} here")
        for name, value in self.headers.items():
            if (is_secret_name(name) or _SCHEME.match(value)) and not is_reference(value):
                raise ValueError(
                    f"header `{name}` is a secret (headers.{name}); put it in the environment and write ${{NAME}} here"
                )
        refuse_secrets_in(self.api_base or "", "api_base")
        return self

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        if self.name.startswith("aiohttp_openai/"):
            # Its client neither refuses redirects nor bounds what it reads.
            raise ValueError("names that begin with aiohttp_openai/ are not supported; use openai/ or hosted_vllm/")
        if reserved := sorted(_RESERVED & {*self.params, *getattr(self, "fallback", {})}):
            raise ValueError(f"`{reserved[0]}` cannot be given as a parameter; the pipeline sets it itself")
        if self.code_interpreter and self.api != "responses":
            raise ValueError("`code_interpreter` needs `api: responses`")
        if self.api == "responses" and self.stream:
            raise ValueError("`stream` is for `api: chat`")
        if self.api == "responses" and (self.seed is not None or self.thinking_budget_tokens is not None):
            raise ValueError("`seed` and `thinking_budget_tokens` are not parameters of the responses API")
        if self.name.startswith("hosted_vllm/") and self.thinking_budget_tokens is not None:
            # LiteLLM makes an effort of it, so different budgets would send the same request.
            raise ValueError("`thinking_budget_tokens` is not sent to hosted_vllm/ models; give `reasoning_effort`")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """What is sent beside the messages, and changes the answer; what is not set is not there."""
        names = ("reasoning_effort", "thinking_budget_tokens", "temperature", "seed", "max_tokens")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        tools = {name: True for name in ("web_search", "code_interpreter") if getattr(self, name)}
        api = {"api": self.api} if self.api != "chat" else {}
        return {**self.params, **given, **tools, **api}


class Model(Endpoint):
    """A model that is evaluated.

    `system_prompt` is sent as the first message of every conversation, and is part of the model's identity; judges do
    not see it. Without it none is sent, as the benchmarks do. One whose `source` is `imported` is never called: its
    responses are those that were imported under its label.
    """

    source: Literal["sampled", "imported"] = "sampled"
    resample: Literal["never", "nightly"] = "never"
    fallback: dict[str, Any] = {}
    system_prompt: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _needs_no_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("source") == IMPORTED:
            if not (data.get("label") or data.get("name")):
                raise ValueError("`label` is missing, under which the responses were imported")
            return {"name": data.get("label"), **data}
        return data

    @model_validator(mode="after")
    def _has_no_settings_of_calls(self) -> Self:
        plain = Model.model_construct(name=self.label, label=self.label, source=self.source)
        if self.is_imported and self != plain:
            raise ValueError("a model with `source: imported` is never called, so it has a `label` and nothing else")
        return self

    @property
    def is_imported(self) -> bool:
        """Whether its responses are those that were imported under its label."""
        return self.source == IMPORTED


class Analyst(Endpoint):
    """A model that is asked about what is stored: to judge it, to label tasks, to review criteria.

    It is asked `trials` times. `structured_output` asks for the reply's JSON schema: always, never, or (null) where
    LiteLLM knows that the model supports it. In `mode: batch` the calls go out as provider batches, which cost less and
    may take a day. `allow_live` lets live calls do what a batch did not or cannot: failed calls, reminders after a
    reply that cannot be read, long responses; else the first two are failures that the next run's batch repeats.
    """

    trials: Size = 1
    mode: Literal["live", "batch"] = "live"
    allow_live: bool = False
    structured_output: bool | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 600.0

    @model_validator(mode="after")
    def _can_be_batched(self) -> Self:
        if self.mode == "batch" and (not self.name.startswith(BATCH_PREFIXES) or self.api != "chat"):
            raise ValueError(f"`mode: batch` is for chat names that begin with {' or '.join(BATCH_PREFIXES)}")
        if self.allow_live and self.mode != "batch":
            raise ValueError("`allow_live` belongs to `mode: batch`")
        return self


def _as_list(given: Any) -> Any:
    if not isinstance(given, dict | list | tuple):
        # Of a validator, pydantic takes only ValueError for a problem of the configuration.
        raise ValueError("must be a model with its `name`, or a list of models")  # noqa: TRY004
    return [given] if isinstance(given, dict) else given


Analysts = Annotated[tuple[Analyst, ...], BeforeValidator(_as_list)]
"""One analyst, or a list of them."""


class Embedding(Analyst):
    """A model that makes vectors of phrases."""

    @model_validator(mode="after")
    def _is_plain(self) -> Self:
        if self.api != "chat" or self.stream or self.mode != "live" or self.trials != 1:
            raise ValueError("`api`, `stream`, `mode` and `trials` are not settings of an embedding model")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """As for any model, and what kind of call it is."""
        return {**super().parameters, "api": "embedding"}


class Capabilities(Strict):
    """The models of `prbench capabilities`.

    `model` writes a phrase for each criterion and a name for each node of the tree. `embedding` makes vectors of the
    phrases; null: TF-IDF, which needs no call.
    """

    model: Analyst | None = None
    embedding: Embedding | None = None

    @model_validator(mode="after")
    def _has_phrases(self) -> Self:
        if self.embedding is not None and self.model is None:
            raise ValueError("`embedding` needs `model`, which writes the phrases")
        if self.model is not None and self.model.trials != 1:
            raise ValueError("`model.trials` must be 1: each criterion has one phrase")
        return self
