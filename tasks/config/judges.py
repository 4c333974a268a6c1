"""Judges as the configuration gives them, and cascades of a first and a second one."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tasks.config.models import ORIGINAL, Analyst, Size, Strict
from tasks.rules.cascades.rules import When

_UNRESOLVED = "cascade"
"""Stands for the name of a cascade until its judges are known."""


class Escalation(Strict):
    """When a cascade asks its second judge; any one of the conditions is enough (see `tasks.rules.cascades.When`)."""

    disagreement: bool = False
    weight_above: Annotated[float, Field(ge=0)] | None = None
    categories: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    confidence_below: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if self.rule.n_conditions == 0:
            raise ValueError(f"is empty; give at least one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def rule(self) -> When:
        """The conditions as the rule takes them."""
        return When(self.disagreement, self.weight_above, tuple(sorted(set(self.categories))), self.confidence_below)


def _as_member(given: Any) -> Any:
    if not isinstance(given, str | Mapping | Judge):
        # Of a validator, pydantic takes only ValueError for a problem of the configuration.
        raise ValueError("must be the label of a judge")  # noqa: TRY004
    return given


class Cascade(Strict):
    """A first judge with a second one behind it: their labels; in a judge that is ready for use, the judges."""

    first: "Annotated[str | Judge, BeforeValidator(_as_member)]"
    then: "Annotated[str | Judge, BeforeValidator(_as_member)]"
    when: Escalation

    @property
    def members(self) -> "tuple[Judge, Judge]":
        """The first and the second judge of a cascade that is ready for use."""
        assert isinstance(self.first, Judge)
        assert isinstance(self.then, Judge)
        return self.first, self.then


class Judge(Analyst):
    """A model that judges, with its template (`default`, a name under `tasks/prompts/`, or a path).

    `grading` is one that the benchmark knows; null: its first. `rubric` is the wording of the criteria: `original`, or
    a variant (`examples_removed`, `augmented`). Both are part of what a verdict is.
    `explanation_chars` bounds the explanation in the reply's schema.
    `context_tokens` is the judge's context, prompt and reply together; null: what LiteLLM knows, else what the judge
    turns away as too long. A report that is longer is searched chunk by chunk, where the benchmark has a template for
    that. It is no part of what a verdict is: one that is decided stays, however its report was read.
    `logprobs` asks for the log-probabilities of the reply's tokens, from which a verdict's `confidence` follows. It
    changes no reply, so it is no part of a call or of the judge either.
    A judge with `cascade` asks a first judge, and where its rule says so a second one, whose settings it has.
    """

    template: str = "default"
    grading: Literal["binary", "ternary"] | None = None
    rubric: Literal["original", "examples_removed", "augmented"] = ORIGINAL
    explanation_chars: Size | None = None
    context_tokens: Size | None = None
    logprobs: bool = False
    cascade: Cascade | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_no_settings_of_its_judges(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("cascade"), Mapping) or "name" in data:
            return data
        if not data.get("label"):
            raise ValueError("a cascade needs a `label`")
        if others := sorted((set(data) & set(cls.model_fields)) - {"label", "cascade"}):
            raise ValueError(f"`{others[0]}` is a setting of the judges of a cascade, not of the cascade")
        return {"name": _UNRESOLVED, **data}

    @model_validator(mode="after")
    def _can_say_how_sure_it_is(self) -> Self:
        if self.logprobs and self.api != "chat":
            raise ValueError("`logprobs` is for `api: chat`")
        if self.logprobs and self.mode == "batch":
            raise ValueError("`logprobs` is for `mode: live`")
        return self


Cascade.model_rebuild()


def deciding(judges: Sequence[Judge]) -> tuple[Judge, ...]:
    """The judges that decide for themselves: those that no cascade names, and cascades, which now hold their judges.

    Raises:
        ValueError: a cascade is impossible; each problem with the path of its key.
    """
    by_label = {judge.label: judge for judge in judges}
    cascades = {place: judge.cascade for place, judge in enumerate(judges) if judge.cascade is not None}
    problems = [
        f"judges[{place}].cascade.{problem}"
        for place, cascade in cascades.items()
        for problem in _problems(cascade, by_label)
    ]
    if problems:
        raise ValueError("; ".join(problems))
    named = {label for each in cascades.values() for label in (each.first, each.then) if isinstance(label, str)}
    labels = [judge.label for judge in judges]
    if twice := sorted({label for label in named if labels.count(label) > 1}):
        raise ValueError(f"label {twice[0]!r} is used twice; give each judge its own `label`")
    return tuple(_ready(judge, by_label) for judge in judges if judge.label not in named)


def _ready(judge: Judge, by_label: Mapping[str, Judge]) -> Judge:
    """A judge; a cascade with its judges in it, and with the settings of the second one."""
    if judge.cascade is None:
        return judge
    first, then = (_member(each, by_label) for each in (judge.cascade.first, judge.cascade.then))
    cascade = judge.cascade.model_copy(update={"first": first, "then": then})
    return then.model_copy(update={"label": judge.label, "trials": 1, "cascade": cascade})


def _member(given: str | Judge, by_label: Mapping[str, Judge]) -> Judge:
    return by_label[given] if isinstance(given, str) else given


def _problems(cascade: Cascade, by_label: Mapping[str, Judge]) -> list[str]:
    """What is wrong with a cascade, each with the rest of its key's path."""
    plain = sorted(label for label, judge in by_label.items() if judge.cascade is None)
    for key, given in (("first", cascade.first), ("then", cascade.then)):
        if isinstance(given, str) and given not in by_label:
            return [f"{key}: there is no judge {given!r}; there are {', '.join(plain) or 'none'}"]
        if _member(given, by_label).cascade is not None:
            return [f"{key}: {_member(given, by_label).label!r} is a cascade itself; name a plain judge"]
    first, then = _member(cascade.first, by_label), _member(cascade.then, by_label)
    if first.label == then.label:
        return ["then: is the judge that is asked first; name another one"]
    return [*_unlike(first, then), *_unasked(cascade.when, first)]


def _unlike(first: Judge, then: Judge) -> list[str]:
    """What sets two judges too far apart for one verdict to stand for the other, or keeps them from being asked."""
    found = [
        f"{key}: {judge.label!r} has `mode: batch`, which a cascade cannot wait for"
        for key, judge in (("first", first), ("then", then))
        if judge.mode == "batch"
    ]
    if first.rubric != then.rubric:
        found.append(f"then: judges `rubric: {then.rubric}`, and {first.label!r} {first.rubric}; give both the same")
    if first.grading and then.grading and first.grading != then.grading:
        found.append(f"then: has `grading: {then.grading}`, and {first.label!r} {first.grading}; give both the same")
    return found


def _unasked(when: Escalation, first: Judge) -> list[str]:
    """Conditions on what the first judge is not asked for."""
    found = []
    if when.disagreement and first.trials < 2:
        found.append(f"when.disagreement: {first.label!r} is asked once; give it `trials: 2`")
    if when.confidence_below is not None and not first.logprobs:
        found.append(f"when.confidence_below: {first.label!r} does not say how sure it is; give it `logprobs: true`")
    return found
