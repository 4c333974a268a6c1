"""Models, judges and cascades in the configuration: their addresses, parameters and prices."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Final, Literal, Self, cast
from urllib.parse import parse_qsl, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    model_validator,
)

from tasks.rules.cascades.rules import When
from tasks.rules.ends import End, meaning_of
from tasks.rules.identity import IMPORTED
from tasks.rules.text.secrecy import REFERENCE, is_reference, is_secret_name, literal_secret
from tasks.rules.verdict import MOST_QUESTIONS, TERNARY

BATCH_PREFIXES = ("openai/", "hosted_vllm/")
"""Routes whose endpoints support OpenAI's batch interface."""
Parameters = dict[str, Any]
"""Parameters of a model's calls, by name."""
Size = Annotated[int, Field(ge=1, strict=True)]
Share = Annotated[float, Field(gt=0, le=1)]
Text = Annotated[str, Field(min_length=1)]
ORIGINAL: Final = "original"
"""The original wording of the rubric."""
_RESERVED = frozenset(
    {
        "model",
        "messages",
        "input",
        "n",
        "stream",
        "timeout",
        "api_base",
        "base_url",
        "num_retries",
        "max_retries",
        "fallbacks",
        "mock_response",
        "extra_headers",
        "caching",
        "drop_params",
    }
)
"""Parameters that the pipeline sets itself, or that would change a call without its knowledge."""


def address_problems(address: str, name: str) -> Iterator[str]:
    """Yield the problems of an address that contains a literal secret; `name` is the setting's
    name.
    """
    parts = urlsplit(address)
    if "@" in parts.netloc:
        # HTTP clients refuse a user or password in an address together with a key in a header.
        yield f"`{name}` holds a user or password; send it as a header with ${{NAME}} for its value"
    for key, value in parse_qsl(parts.query):
        if is_secret_name(key) and not REFERENCE.fullmatch(value):
            yield f"`{name}`: `{key}` is a secret; write ${{NAME}} and put it in the environment"


class Strict(BaseModel):
    """A part of the configuration: unknown keys are refused, and it never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def problems(self) -> Iterator[str]:
        """Yield the problems of these settings, except values of the wrong type."""
        yield from ()

    @model_validator(mode="after")
    def _refuse_problems(self) -> Self:
        problem = next(self.problems(), None)
        if problem is not None:
            raise ValueError(problem)
        return self


class Price(Strict):
    """The prices of a model's tokens that LiteLLM's table does not have, in USD per million
    tokens.
    """

    input_usd_per_mtok: NonNegativeFloat
    output_usd_per_mtok: NonNegativeFloat
    cached_usd_per_mtok: NonNegativeFloat | None = None


def _refuse_known_failure(word: str) -> str:
    """Return a word of `ends_ok`, unless it means that a reply was cut or filtered."""
    if meaning_of(word) in {End.CUT, End.FILTERED}:
        raise ValueError(f"{word!r} is not the end of a complete reply")
    return word


class Endpoint(Strict):
    """A model behind LiteLLM, with the parameters that are sent to it.

    Values of `headers` and `api_base`, and secrets in `params`, refer to the environment as
    `${NAME}`. The text in the file is part of the identity, the values of the environment are not.

    Attributes:
        api: chat completions or the responses API.
        stream: request the reply in pieces.
        omits_think_tag: the server sends thinking without its opening tag, so everything up to the
            closing tag is thinking. No request contains this setting, but it changes how a reply is
            read, so it is part of the identity.
        ends_ok: words with which complete replies of this model end, besides those that are known;
            not part of the identity.
        retires_on: the day on which the provider switches the model off, in place of the day in
            LiteLLM's table.
    """

    name: Text
    label: Text = Field(default_factory=lambda settings: settings.get("name", ""))
    api_base: Text | None = None
    api: Literal["chat", "responses"] = "chat"
    stream: bool = False
    omits_think_tag: bool = False
    ends_ok: tuple[Annotated[Text, AfterValidator(_refuse_known_failure)], ...] = ()
    headers: dict[str, str] = {}
    reasoning_effort: str | None = None
    thinking_budget_tokens: int | None = None
    temperature: NonNegativeFloat | None = None
    seed: int | None = None
    max_tokens: Size | None = None
    web_search: bool = False
    code_interpreter: bool = False
    timeout_s: PositiveFloat = 3600.0
    price: Price | None = None
    retires_on: date | None = None
    params: Parameters = {}

    def problems(self) -> Iterator[str]:
        """Yield secrets in stored settings, and parameters that cannot be sent."""
        for path in self._secret_paths():
            yield f"`{path}` is a secret; put it in the environment and write ${{NAME}} here"
        yield from address_problems(self.api_base or "", "api_base")
        if self.name.startswith("aiohttp_openai/"):
            # LiteLLM's client for these names neither refuses redirects nor bounds bodies.
            yield (
                "names that begin with aiohttp_openai/ are not supported; use openai/ or"
                " hosted_vllm/"
            )
        for name in sorted(_RESERVED & {*self.params, *getattr(self, "fallback", {})}):
            yield f"`{name}` cannot be given as a parameter; the pipeline sets it itself"
        if self.code_interpreter and self.api != "responses":
            yield "`code_interpreter` needs `api: responses`"
        needs_chat = self.stream or self.seed is not None or self.thinking_budget_tokens is not None
        if needs_chat and self.api == "responses":
            yield "`stream`, `seed` and `thinking_budget_tokens` are for `api: chat`"
        if self.name.startswith("hosted_vllm/") and self.thinking_budget_tokens is not None:
            # LiteLLM converts the budget to an effort, so different budgets would send the same
            # request.
            yield (
                "`thinking_budget_tokens` is not sent to hosted_vllm/ models; give"
                " `reasoning_effort`"
            )

    def _secret_paths(self) -> Iterator[str]:
        """Yield the settings that hold a literal secret."""
        for kind in ("params", "fallback"):
            path = literal_secret(getattr(self, kind, {}), kind)
            if path is not None:
                yield path
        # These values mark a header as a secret, whatever its name.
        scheme = re.compile(r"(?:Bearer|Basic)\s", re.IGNORECASE)
        for name, value in sorted(self.headers.items()):
            is_secret = is_secret_name(name) or scheme.match(value)
            if is_secret and not is_reference(value):
                yield f"headers.{name}"

    @property
    def parameters(self) -> Parameters:
        """The set parameters that are sent with the messages and change the reply."""
        names = {
            "reasoning_effort",
            "thinking_budget_tokens",
            "temperature",
            "seed",
            "max_tokens",
            "web_search",
            "code_interpreter",
            "api",
        }
        return self.params | self.model_dump(include=names, exclude_defaults=True)


class Model(Endpoint):
    """A model to evaluate.

    Attributes:
        source: a model with `imported` is never called: its responses are those imported under its
            label.
        system_prompt: the first message of every conversation, and part of the model's identity;
            judges do not see it. By default there is none, as in the benchmarks.
    """

    source: Literal["sampled", "imported"] = "sampled"
    resample: Literal["never", "nightly"] = "never"
    fallback: Parameters = {}
    system_prompt: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_if_imported(cls, data: Any) -> Any:
        """Give a model whose responses are imported its label as its name, if it has none."""
        if isinstance(data, dict) and data.get("source") == IMPORTED:
            if not (data.get("label") or data.get("name")):
                raise ValueError("`label` is missing, under which the responses were imported")
            return {"name": data.get("label"), **data}
        return data

    def problems(self) -> Iterator[str]:
        """Yield the problems of any model, and needless settings of one that is never called."""
        yield from super().problems()
        plain = Model.model_construct(name=self.label, label=self.label, source=self.source)
        if self.is_imported and self != plain:
            yield (
                "a model with `source: imported` is never called, so it has a `label` and nothing"
                " else"
            )

    @property
    def is_imported(self) -> bool:
        """True if its responses are those imported under its label."""
        return self.source == IMPORTED


class Analyst(Endpoint):
    """A model that judges responses, labels tasks or reviews criteria.

    Attributes:
        trials: the number of calls for each item.
        mode: with `batch` the calls are provider batches, which cost less and may take a day.
        allow_live: permit live calls for work that a batch has not done or cannot do: failed calls,
            reminders after an unreadable reply, long responses. Without it the first two are
            failures that the next run's batch repeats.
        structured_output: request the reply's JSON schema: always, never, or (null) if LiteLLM
            knows that the model supports it.
    """

    trials: Size = 1
    mode: Literal["live", "batch"] = "live"
    allow_live: bool = False
    structured_output: bool | None = None
    timeout_s: PositiveFloat = 600.0

    def problems(self) -> Iterator[str]:
        """Yield the problems of any model, and `mode: batch` if its route has no batches."""
        yield from super().problems()
        has_batches = self.name.startswith(BATCH_PREFIXES) and self.api == "chat"
        if self.mode == "batch" and not has_batches:
            yield f"`mode: batch` is for chat names that begin with {' or '.join(BATCH_PREFIXES)}"
        if self.allow_live and self.mode != "batch":
            yield "`allow_live` belongs to `mode: batch`"


Analysts = Annotated[
    tuple[Analyst, ...],
    BeforeValidator(lambda value: [value] if isinstance(value, dict) else value),
]
"""One analyst, or a list of them."""


class Embedding(Analyst):
    """An embedding model for phrases."""

    def problems(self) -> Iterator[str]:
        """Yield the problems of any model, and settings that are only for conversations."""
        yield from super().problems()
        if self.api != "chat" or self.stream or self.mode != "live" or self.trials != 1:
            yield "`api`, `stream`, `mode` and `trials` are not settings of an embedding model"

    @property
    def parameters(self) -> Parameters:
        """The parameters of any model, and the kind of call."""
        return super().parameters | {"api": "embedding"}


class Capabilities(Strict):
    """The models of `prbench capabilities`.

    `model` writes a phrase for each criterion and a name for each node of the tree. `embedding`
    makes vectors of the phrases; null: TF-IDF, which needs no call.
    """

    model: Analyst | None = None
    embedding: Embedding | None = None

    def problems(self) -> Iterator[str]:
        """Yield a problem if criteria have no phrase, or several."""
        if self.embedding is not None and self.model is None:
            yield "`embedding` needs `model`, which writes the phrases"
        if self.model is not None and self.model.trials != 1:
            yield "`model.trials` must be 1: each criterion has one phrase"


class Escalation(Strict):
    """The conditions for the second judge of a cascade; one is enough
    (`tasks.rules.cascades.rules.When`).
    """

    disagreement: bool = False
    weight_above: NonNegativeFloat | None = None
    categories: tuple[Text, ...] = ()
    severities: tuple[Text, ...] = ()
    kinds: tuple[Literal["number", "negation", "list"], ...] = ()
    confidence_below: Share | None = None

    def problems(self) -> Iterator[str]:
        """Yield a problem if there is no condition."""
        if not self.rule.conditions:
            yield f"is empty; give at least one of {', '.join(type(self).model_fields)}"

    @property
    def rule(self) -> When:
        """The conditions in the rule's form."""
        return When(
            disagreement=self.disagreement,
            weight_above=self.weight_above,
            categories=tuple(sorted(set(self.categories))),
            confidence_below=self.confidence_below,
            severities=tuple(sorted(set(self.severities))),
            kinds=tuple(sorted(set(self.kinds))),
        )


class Cascade(Strict):
    """A first and a second judge: labels in the configuration file, replaced by the judges when it
    is read.
    """

    first: "str | Judge"
    then: "str | Judge"
    when: Escalation

    @property
    def members(self) -> "tuple[Judge, Judge]":
        """The first and the second judge, after their labels were replaced."""
        return cast("Judge", self.first), cast("Judge", self.then)


class Judge(Analyst):
    """A model that judges, with its template (`default`, a name under `tasks/prompts/`, or a path).

    A judge with `cascade` calls a first judge and, if its rule says so, a second one. It has the
    settings of the second one.

    A judge with `majority` is a panel, which makes no call: its verdict is the majority of those of
    other judges.

    Attributes:
        grading: one of the benchmark's; null: its first. Part of a verdict's identity.
        rubric: the wording of the criteria: `original`, or a variant (`examples_removed`,
            `augmented`). Part of a verdict's identity.
        explanation_chars: a bound on the explanation in the reply's schema.
        context_tokens: the judge's context, prompt and reply together; null: LiteLLM's value, else
            the length that the judge refuses. A longer response is searched chunk by chunk, if the
            benchmark has a template for that. Not part of a verdict's identity: a decided verdict
            stays, however its response was read.
        logprobs: request the log-probabilities of the reply's tokens, which give a verdict's
            `confidence`. It changes no reply, so it is not part of the identity of a call or of the
            judge.
        kind: with `decisions` a decision model: it gives a probability for each criterion and no
            text.
        criteria_per_call: the number of criteria of a response in one call, in the rubric's order;
            `all` means the whole rubric (decisions: at most 128 criteria). `max_tokens` is for each
            criterion.
        threshold: the lowest probability at which a decision is met; null: 0.5.
        majority: the judges of a panel.
        votes: the number of repetitions of each of them that count.
        has_board: false for a judge that is configured in a panel alone.
    """

    template: str = "default"
    grading: Literal["binary", "ternary"] | None = None
    rubric: Literal["original", "examples_removed", "augmented"] = ORIGINAL
    explanation_chars: Size | None = None
    context_tokens: Size | None = None
    logprobs: bool = False
    kind: Literal["chat", "decisions"] = "chat"
    criteria_per_call: Size | Literal["all"] = 1
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    cascade: Cascade | None = None
    majority: "tuple[str | Judge, ...]" = ()
    votes: Size = 1
    has_board: bool = True

    @model_validator(mode="before")
    @classmethod
    def _prepare_composed(cls, data: Any) -> Any:
        """Refuse a cascade or panel with settings that its judges have, and give it a provisional
        name.

        A stored configuration has a name already, and a stored cascade all settings of its second
        judge.
        """
        if not isinstance(data, Mapping) or "name" in data:
            return data
        if isinstance(data.get("cascade"), Mapping):
            kind = "cascade"
            own_settings = {"label", "cascade"}
        elif data.get("majority"):
            kind = "panel"
            own_settings = {"label", "majority", "votes"}
        else:
            return data
        if not data.get("label"):
            raise ValueError(f"a {kind} needs a `label`")
        settings = (set(data) & set(cls.model_fields)) - own_settings
        if settings:
            raise ValueError(
                f"`{min(settings)}` is a setting of the judges of a {kind}, not of the {kind}"
            )
        # `with_cascades` replaces a cascade's name when its judges are known.
        return {"name": kind, **data}

    def problems(self) -> Iterator[str]:
        """Yield the problems of any model, and settings that do not fit this kind of judge."""
        yield from super().problems()
        if self.majority and self.name != "panel":
            yield "`name` is a setting of the judges of a panel, not of the panel"
        if self.logprobs and (self.api != "chat" or self.mode == "batch"):
            yield "`logprobs` is for `api: chat` and `mode: live`"
        if self.logprobs and self.criteria_per_call != 1:
            yield "`logprobs` needs `criteria_per_call: 1`"
        if self.is_decision_model:
            yield from self._problems_of_decisions()
        elif self.threshold is not None:
            yield "`threshold` is for `kind: decisions`"

    def _problems_of_decisions(self) -> Iterator[str]:
        for name in sorted(self.model_fields_set - _DECISION_SETTINGS):
            yield f"`{name}` is for `kind: chat`; a decision model writes no text"
        if isinstance(self.criteria_per_call, int) and self.criteria_per_call > MOST_QUESTIONS:
            yield (
                f"`criteria_per_call` is at most {MOST_QUESTIONS} for `kind: decisions`, as LiteLLM"
                " allows no more"
            )
        if self.grading == TERNARY and self.threshold is not None:
            yield (
                "`threshold` is for `grading: binary`; of three values the most probable one counts"
            )

    @property
    def members(self) -> "tuple[Judge, ...]":
        """The judges that are called: itself, or both judges of its cascade; none for a panel."""
        if self.majority:
            return ()
        return self.cascade.members if self.cascade else (self,)

    @property
    def panel_members(self) -> "tuple[Judge, ...]":
        """The judges whose majority it is, after their labels were replaced; none for others."""
        return cast("tuple[Judge, ...]", self.majority)

    @property
    def is_decision_model(self) -> bool:
        """True if it gives probabilities and no text."""
        return self.kind == "decisions"

    @property
    def least_probability(self) -> float:
        """The lowest probability at which a decision is met."""
        return 0.5 if self.threshold is None else self.threshold

    @property
    def piece_size(self) -> int | None:
        """The criteria in one call; None for a judge that decides each criterion by itself."""
        if self.criteria_per_call == "all":
            return MOST_QUESTIONS if self.is_decision_model else sys.maxsize
        if self.criteria_per_call == 1 and not self.is_decision_model:
            return None
        return self.criteria_per_call

    @property
    def parameters(self) -> Parameters:
        """The parameters of any model, and the kind of call."""
        parameters = super().parameters
        if self.is_decision_model:
            parameters["api"] = "decisions"
        return parameters


_DECISION_SETTINGS = frozenset(
    {
        "name",
        "label",
        "api_base",
        "headers",
        "timeout_s",
        "price",
        "retires_on",
        "params",
        "trials",
        "template",
        "grading",
        "rubric",
        "kind",
        "criteria_per_call",
        "threshold",
        "cascade",
        "has_board",
    }
)
"""The settings that a decision model has."""
Cascade.model_rebuild()


def with_cascades(judges: Sequence[Judge]) -> tuple[Judge, ...]:
    """Return the judges whose verdicts are wanted: the cascades, which now hold their judges, and
    the judges that no cascade names.

    Raises:
        ValueError: a cascade is impossible; each problem with the path of its key.
    """
    judges_by_label = {judge.label: judge for judge in judges}
    _refuse_impossible_cascades(judges, judges_by_label)
    member_labels = _member_labels(judges)
    labels = [judge.label for judge in judges]
    for label in sorted(member_labels):
        if labels.count(label) > 1:
            raise ValueError(f"label {label!r} is used twice; give each judge its own `label`")
    deciding_judges = []
    for judge in judges:
        if judge.cascade is not None:
            deciding_judges.append(_cascade_judge(judge.label, judge.cascade, judges_by_label))
        elif judge.label not in member_labels:
            deciding_judges.append(judge)
    return tuple(deciding_judges)


def with_panels(judges: tuple[Judge, ...]) -> tuple[Judge, ...]:
    """Return the judges, with panels that hold their members, and the members that only a panel
    configures.

    Raises:
        ValueError: a panel is impossible.
    """
    judges_by_label = {judge.label: judge for judge in judges if not judge.majority}
    unlisted = []
    for panel in judges:
        for member in panel.majority:
            if isinstance(member, str) or member.majority or member.cascade:
                continue
            if member.label not in judges_by_label:
                judges_by_label[member.label] = member.model_copy(update={"has_board": False})
                unlisted.append(judges_by_label[member.label])
    resolved = []
    for judge in (*judges, *unlisted):
        resolved.append(_panel(judge, judges_by_label) if judge.majority else judge)
    return tuple(resolved)


def _panel_problems(panel: Judge, judges_by_label: Mapping[str, Judge]) -> Iterator[str]:
    for member in panel.majority:
        problem = _member_problem(member, judges_by_label)
        if problem:
            yield f"`majority`: {problem}"
            return
    members = _members_of(panel, judges_by_label)
    if len({member.label for member in members}) < len(members):
        yield "`majority` names a judge twice; `votes` counts its repetitions"
    n_votes = len(members) * panel.votes
    if n_votes < 3 or n_votes % 2 == 0:
        yield f"{n_votes} votes; a majority needs an odd number of at least 3"
    for member in members:
        if member.trials < panel.votes:
            yield f"{member.label} has too few repetitions; give it `trials: {panel.votes}`"
        if member.rubric != members[0].rubric:
            yield "its judges have different settings of `rubric`"


def _member_problem(member: str | Judge, judges_by_label: Mapping[str, Judge]) -> str | None:
    if isinstance(member, str):
        if member in judges_by_label:
            return None
        labels = ", ".join(sorted(judges_by_label))
        return f"there is no judge {member!r}; there are {labels or 'none'}"
    label = member.label
    if label not in judges_by_label:
        return f"{label} is a panel or a cascade; a member is a model, or a cascade's label"
    judge = judges_by_label[label]
    same_judge = judge.model_copy(update={"has_board": member.has_board})
    if member != same_judge:
        return f"{label} has other settings elsewhere; give it another label"
    return None


def _label_of(member: str | Judge) -> str:
    return member if isinstance(member, str) else member.label


def _members_of(panel: Judge, judges_by_label: Mapping[str, Judge]) -> list[Judge]:
    """Return the judges of a panel in the order of their labels."""
    return [judges_by_label[label] for label in sorted(map(_label_of, panel.majority))]


def _panel(panel: Judge, judges_by_label: Mapping[str, Judge]) -> Judge:
    """Return a panel that holds its members, with their grading.

    Raises:
        ValueError: it is impossible.
    """
    problem = next(_panel_problems(panel, judges_by_label), None)
    if problem is not None:
        raise ValueError(f"judge {panel.label}: {problem}")
    members = _members_of(panel, judges_by_label)
    changes = {
        "majority": tuple(members),
        "trials": min(judge.trials for judge in members) // panel.votes,
        "grading": members[0].grading,
    }
    return panel.model_copy(update=changes)


def _refuse_impossible_cascades(
    judges: Sequence[Judge], judges_by_label: Mapping[str, Judge]
) -> None:
    problems = []
    for index, judge in enumerate(judges):
        if judge.cascade is not None:
            for problem in _cascade_problems(judge.cascade, judges_by_label):
                problems.append(f"judges[{index}].cascade.{problem}")
    if problems:
        raise ValueError("; ".join(problems))


def _member_labels(judges: Sequence[Judge]) -> set[str]:
    """Return the labels of judges that cascades name."""
    labels = set()
    for judge in judges:
        if judge.cascade is not None:
            members = (judge.cascade.first, judge.cascade.then)
            labels |= {member for member in members if isinstance(member, str)}
    return labels


def _cascade_judge(label: str, cascade: Cascade, judges_by_label: Mapping[str, Judge]) -> Judge:
    """Return a cascade that holds both judges, with all other settings of the second one."""
    first_judge = _member(cascade.first, judges_by_label)
    second_judge = _member(cascade.then, judges_by_label)
    whole_cascade = cascade.model_copy(update={"first": first_judge, "then": second_judge})
    return second_judge.model_copy(update={"label": label, "trials": 1, "cascade": whole_cascade})


def _member(member: str | Judge, judges_by_label: Mapping[str, Judge]) -> Judge:
    return judges_by_label[member] if isinstance(member, str) else member


def _cascade_problems(cascade: Cascade, judges_by_label: Mapping[str, Judge]) -> Iterator[str]:
    """Yield the problems of a cascade, each with the rest of its key's path."""
    labels = sorted(label for label, judge in judges_by_label.items() if judge.cascade is None)
    for key, member in (("first", cascade.first), ("then", cascade.then)):
        if isinstance(member, str) and member not in labels:
            yield (
                f"{key}: there is no judge {member!r} without a cascade; there are"
                f" {', '.join(labels) or 'none'}"
            )
            return
    first_judge = _member(cascade.first, judges_by_label)
    second_judge = _member(cascade.then, judges_by_label)
    if first_judge.label == second_judge.label:
        yield "then: is the first judge too; name another one"
    else:
        yield from _problems_of_members(first_judge, second_judge, cascade.when)


def _problems_of_members(
    first_judge: Judge,
    second_judge: Judge,
    when: Escalation,
) -> Iterator[str]:
    first_label = repr(first_judge.label)
    second_label = repr(second_judge.label)
    has_confidence = first_judge.logprobs or first_judge.is_decision_model
    if "batch" in {first_judge.mode, second_judge.mode}:
        yield f"when: cannot wait for {first_label} or {second_label} in `mode: batch`"
    if first_judge.rubric != second_judge.rubric:
        yield (
            f"then: judges `rubric: {second_judge.rubric}`, and {first_label}"
            f" {first_judge.rubric}; give both the same"
        )
    if when.disagreement and first_judge.trials < 2:
        yield f"when.disagreement: {first_label} is called once; give it `trials: 2`"
    if when.confidence_below is not None and not has_confidence:
        yield (
            f"when.confidence_below: {first_label} has no confidence; give it `logprobs: true` and"
            " one criterion a call"
        )
    if (second_judge.piece_size or 1) > 1:
        yield (
            f"then: {second_label} decides several criteria in one call; the second judge must"
            " decide each by itself"
        )
