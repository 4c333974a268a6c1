"""What a run is asked to do: the configuration file's shape, and a run's own choices beside it.

Unknown keys, wrong types and impossible values are refused. Secrets are no part of it: they come from the environment
under LiteLLM's own names.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.rules.identity import BASE_VINTAGE

Policy = Literal["quarantine", "warn", "fail"]
Share = Annotated[float, Field(gt=0, le=1)]
Size = Annotated[int, Field(ge=1, strict=True)]

_UNSUPPORTED_LIMITS = ("rpm", "tpm", "max_usd", "max_tokens")


_SECRET_KEY = re.compile(r"api.?key|authorization|password|secret|(?:^|[_-])token$|credential", re.IGNORECASE)


def _keys(value: Any) -> Iterator[str]:
    """All keys of a nested mapping."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Dataset(_Strict):
    """Where the tasks come from: the hub, the sample that ships, or a path to Parquet or JSON Lines."""

    source: str = Field(default="hub", min_length=1)
    id: str | None = None
    revision: str | None = None
    splits: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_pinned(self) -> Self:
        if self.source == "hub" and not (self.revision and self.splits):
            raise ValueError("source hub needs `revision` (a commit) and `splits`")
        if self.source != "hub" and self.revision:
            raise ValueError("`revision` belongs to source hub; a file's revision is its content")
        return self


class Endpoint(_Strict):
    """A model behind LiteLLM, with the parameters that are sent to it."""

    name: str = Field(min_length=1)
    label: str = ""
    api_base: str | None = None
    reasoning_effort: str | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 3600.0
    params: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _label_is_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("label") and isinstance(data.get("name"), str):
            return {**data, "label": data["name"]}
        return data

    @model_validator(mode="after")
    def _holds_no_secret(self) -> Self:
        for key in _keys({**self.params, **getattr(self, "fallback", {})}):
            if _SECRET_KEY.search(key):
                raise ValueError(f"`{key}` is a secret; give it in the environment, under LiteLLM's name for it")
        if self.api_base and "@" in urlsplit(self.api_base).netloc:
            raise ValueError("`api_base` holds a user or password; give secrets in the environment")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """What is sent beside the messages, and changes the answer."""
        effort = {"reasoning_effort": self.reasoning_effort} if self.reasoning_effort else {}
        return {**self.params, **effort}


class Model(Endpoint):
    """A model that is evaluated."""

    resample: Literal["never", "nightly"] = "never"
    fallback: dict[str, Any] = {}


class Judge(Endpoint):
    """A model that judges, with its template (a name under `tasks/prompts/`, or a path).

    `structured_output` asks for the reply's JSON schema: always, never, or (null) where LiteLLM knows that the model
    supports it. `explanation_chars` bounds the explanation in that schema.
    """

    template: str = "default"
    trials: Size = 1
    structured_output: bool | None = None
    explanation_chars: Size | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 600.0


class Limits(_Strict):
    """Bounds on the calls of one run."""

    concurrency: Size = 64
    attempts: Size = 5
    rpm: int | None = None
    tpm: int | None = None
    max_usd: float | None = None
    max_tokens: int | None = None

    @model_validator(mode="after")
    def _is_supported(self) -> Self:
        # A bound that is accepted and not kept would be worse than none.
        for name in _UNSUPPORTED_LIMITS:
            if getattr(self, name) is not None:
                raise ValueError(f"`{name}` is not kept by this version; leave it null")
        return self


class Quality(BaseModel):
    """Policies by check name, beside the task ids whose quarantine is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    policies: dict[str, Policy] = {}
    accepted: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _by_check(cls, data: Any) -> Any:
        """Take the configuration's flat form: check names beside `accepted`."""
        if not isinstance(data, dict) or "policies" in data:
            return data
        policies = {name: policy for name, policy in data.items() if name != "accepted"}
        return {"policies": policies, "accepted": data.get("accepted") or ()}


class Coverage(_Strict):
    """The bar under which a run is not good enough."""

    min: Annotated[float, Field(ge=0, le=1)] = 0.99


class HardSubset(_Strict):
    """How the hard subset is selected: a share of each field's tasks or a number by field, and whose scores count."""

    share: Share | dict[str, Size] = 0.5
    panel: Literal["all"] | tuple[str, ...] = "all"


class Settings(_Strict):
    """The configuration."""

    benchmark: str = "prbench"
    dataset: Dataset
    models: tuple[Model, ...] = ()
    judges: tuple[Judge, ...] = ()
    trials: Size = 1
    limits: Limits = Limits()
    quality: Quality = Quality()
    coverage: Coverage = Coverage()
    hard_subset: HardSubset = HardSubset()

    @model_validator(mode="after")
    def _labels_are_unique(self) -> Self:
        for kind, endpoints in (("models", self.models), ("judges", self.judges)):
            labels = [endpoint.label for endpoint in endpoints]
            twice = sorted({label for label in labels if labels.count(label) > 1})
            if twice:
                raise ValueError(f"{kind}: label {twice[0]!r} stands twice; give each a `label` of its own")
        return self


class Job(_Strict):
    """One run: the configuration, narrowed by what was asked on the command line, on one warehouse.

    `models` and `judges` of the settings are already the chosen ones; `named_models` is None unless models were named,
    and then also holds labels that only imported responses have; `named_judges` likewise.
    """

    settings: Settings
    warehouse: Path
    run_id: str
    limit: Size | None = None
    vintage: str = BASE_VINTAGE
    named_models: tuple[str, ...] | None = None
    named_judges: tuple[str, ...] | None = None
    is_quiet: bool = False
