"""Rules that send a criterion from a cascade's first judge to its second: one definition for
replays and live runs.

The module also has the input of a replay (the verdicts of two judges on the same criteria, as
arrays) and the rules that an evaluation tries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class When:
    """Conditions on a criterion and on the first judge's verdict; any one of them escalates.

    Attributes:
        disagreement: the repetitions of the first judge differ.
        weight_above: the criterion's weight, without its sign, is above this.
        categories: the criterion is of one of these categories.
        confidence_below: the first judge's confidence is below this, from 0 to 1, or unknown.
        severities: its severity is one of these.
        kinds: its words make it one of these kinds (`kinds_of` in SQL): number, negation, list.
    """

    disagreement: bool = False
    weight_above: float | None = None
    categories: tuple[str, ...] = ()
    confidence_below: float | None = None
    severities: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions, without the unused ones."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }

    def __or__(self, other: "When") -> "When":
        """Return the conditions of both."""
        return replace(self, **other.conditions)

    def n_repetitions(self, trials: int) -> int:
        """Return the number of the first judge's repetitions: all if they are compared, else
        one.
        """
        return trials if self.disagreement else 1


@dataclass(frozen=True)
class Facts:
    """The facts that decide whether criteria are escalated.

    Attributes:
        first: the values of the first judge's repetitions, shape (n_criteria, n_repetitions), NaN
            for a failure.
        weights: shape (n_criteria,).
        categories, severities: shape (n_criteria,), `(none)` without one.
        confidence: of the first repetition, shape (n_criteria,), NaN if unknown.
        probability: of met in the first repetition, likewise.
        kinds: shape (n_criteria,), the names in one text, with spaces between.
    """

    first: Floats
    weights: Floats
    categories: NDArray[Any]
    confidence: Floats
    probability: Floats
    severities: NDArray[Any]
    kinds: NDArray[Any]

    def of(self, chosen: Flags) -> "Facts":
        """Return the facts of some criteria."""
        return Facts(*(getattr(self, each.name)[chosen] for each in fields(self)))


def escalations(when: When, facts: Facts) -> dict[str, Flags]:
    """Return, for each reason to escalate, flags of the criteria that have it, shape (n_criteria,).

    A failure of the first judge always escalates: of its first repetition, or of any if they are
    compared. The first judge's verdict is that of its first repetition.
    """
    counted = facts.first if when.disagreement else facts.first[:, :1]
    failed = np.asarray(np.isnan(counted).any(axis=1))
    reasons: dict[str, Flags] = {"failed": failed}
    if when.disagreement:
        reasons["disagreement"] = ~failed & np.asarray((counted != counted[:, :1]).any(axis=1))
    if when.weight_above is not None:
        reasons["weight"] = np.abs(facts.weights) > when.weight_above
    named = {
        "category": (facts.categories, when.categories),
        "severity": (facts.severities, when.severities),
    }
    reasons |= {
        reason: np.isin(values, np.asarray(names))
        for reason, (values, names) in named.items()
        if names
    }
    if when.kinds:
        reasons["kind"] = np.array(
            [not set(when.kinds).isdisjoint(kinds.split()) for kinds in facts.kinds], np.bool_
        )
    if when.confidence_below is not None:
        unknown = np.isnan(facts.confidence)
        reasons["confidence"] = ~failed & ~unknown & (facts.confidence < when.confidence_below)
        reasons["confidence_unknown"] = ~failed & unknown
    return reasons


def reasons_to_escalate(
    when: When,
    first: Sequence[float | None],
    confidence: float | None,
    criterion: Mapping[str, Any],
) -> list[str]:
    """Return the reasons to escalate one criterion; none: the first judge has decided.

    Args:
        first: the values of the first judge's repetitions, None for a failure.
        criterion: its `weight`, `category`, `severity` and `kinds`.
    """
    category, severity = (
        np.array([criterion[name] or "(none)"]) for name in ("category", "severity")
    )
    # NumPy makes NaN of None.
    values, weight, known, unknown = (
        np.array([each], dtype=np.float64)
        for each in (first, criterion["weight"], confidence, None)
    )
    facts = Facts(
        values, weight, category, known, unknown, severity, np.array([" ".join(criterion["kinds"])])
    )
    return [reason for reason, which in escalations(when, facts).items() if which[0]]


Indices = NDArray[np.int64]


@dataclass(frozen=True)
class PairedVerdicts:
    """Criteria of responses that a strong judge has decided and a cheap one has judged.

    Attributes:
        facts: the cheap judge's decisions, and the other inputs of a rule to escalate.
        strong: the strong judge's values, shape (n_criteria,): 1, 0.5 or 0.
        task: index of the criterion's task in `tasks`.
        response: index of its response.
        tasks: the ids of the tasks.
        task_of_response, model_of_response: indices in `tasks` and `models`, shape (n_responses,).
        models: names of the models.
        offset, denominator: of the response's primary score, (points + offset) / denominator; NaN
            if the response has criteria that are not here.
        has_second: true if the cheap judge has a second verdict, shape (n_criteria,).
    """

    facts: Facts
    strong: Floats
    task: Indices
    response: Indices
    tasks: tuple[str, ...]
    task_of_response: Indices
    model_of_response: Indices
    models: tuple[str, ...]
    offset: Floats
    denominator: Floats
    has_second: Flags

    def of_tasks(self, chosen: Flags) -> "PairedVerdicts":
        """Return only the criteria of some tasks, with unchanged indices.

        Args:
            chosen: shape (n_tasks,).
        """
        here = chosen[self.task]
        denominator = np.where(chosen[self.task_of_response], self.denominator, np.nan)
        return replace(
            self,
            facts=self.facts.of(here),
            strong=self.strong[here],
            task=self.task[here],
            response=self.response[here],
            denominator=denominator,
            has_second=self.has_second[here],
        )

    def scores(self, values: NDArray[Any]) -> Floats:
        """Return the scores of responses, shape (n_responses,), for values of criteria; NaN if one
        is missing.
        """
        points = np.bincount(
            self.response, values * self.facts.weights, minlength=len(self.denominator)
        )
        return np.asarray((points + self.offset) / self.denominator)


THRESHOLDS = tuple(round(0.05 * n, 2) for n in range(1, 20))
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_MOST_WEIGHTS = 12
"""Largest number of distinct weights to try; more are thinned out evenly."""


@dataclass(frozen=True)
class CandidateRule:
    """A rule with its name. `when` None: the strong judge alone.

    With a `threshold`, probabilities of the cheap judge at or above it are met.
    """

    name: str
    when: When | None
    threshold: float | None = None


def candidates(paired: PairedVerdicts, *, has_repetitions: bool) -> list[CandidateRule]:
    """Return the rules to try, the simplest first.

    Weights and confidences are those at which the escalated criteria change; sets of categories
    grow in the order of the cheap judge's number of errors. Call it with the tasks for choosing
    rules.
    """
    distinct = np.unique(np.abs(paired.facts.weights))[
        :-1
    ]  # sizes of weights, with criteria on both sides
    if len(distinct) > _MOST_WEIGHTS:
        distinct = distinct[
            np.unique(np.linspace(0, len(distinct) - 1, _MOST_WEIGHTS).round().astype(int))
        ]
    sets = _category_sets(paired)
    single = (
        [(name,) for name in sorted(set(paired.facts.categories.tolist()))] if len(sets) else []
    )
    # Thresholds and levels with criteria on both sides.
    thresholds, levels = (
        [each for each in tried if 0 < (values < each).sum() < (~np.isnan(values)).sum()]
        for tried, values in (
            (THRESHOLDS, paired.facts.probability),
            (CONFIDENCES, paired.facts.confidence),
        )
    )
    of_weight = [When(weight_above=float(weight)) for weight in distinct]
    of_categories = [When(categories=names) for names in sets]
    of_names = [When(severities=(name,)) for name in _some(paired.facts.severities)]
    of_names += [
        When(kinds=(name,)) for name in _some(np.array(" ".join(paired.facts.kinds).split()))
    ]
    unsure = [When(confidence_below=level) for level in levels]
    whens = [
        *of_weight,
        *(When(categories=names) for names in dict.fromkeys([*single, *sets])),
        *unsure,
        *of_names,
    ]
    for ones, others in ((of_names, unsure), (of_weight, of_categories), (of_weight, unsure)):
        whens += [one | other for one in ones for other in others]
    if has_repetitions:
        whens += [
            When(disagreement=True) | each for each in (When(), *of_weight, *of_categories, *unsure)
        ]
    alone = [CandidateRule("cheap alone", When()), CandidateRule("strong alone", None)]
    alone += [
        CandidateRule(f"cheap alone, threshold {each:g}", When(), each) for each in thresholds
    ]
    return alone + [CandidateRule(_name_of(when), when) for when in whens]


def _some(names: NDArray[Any]) -> list[str]:
    """Return the different names of criteria, if there are several."""
    different = sorted(set(names.tolist()) - {"(none)"})
    return different if len(different) > 1 else []


def _name_of(when: When) -> str:
    n_categories = len(when.categories)
    listed = ", ".join(when.categories)
    conditions: tuple[str, ...] = (
        "disagreement" if when.disagreement else "",
        "" if when.weight_above is None else f"weight above {when.weight_above:g}",
        (
            f"{n_categories} categories ({listed})"
            if n_categories > 1
            else listed and f"category {listed}"
        ),
        *(f"severity {name}" for name in when.severities),
        *(f"kind {name}" for name in when.kinds),
        "" if when.confidence_below is None else f"confidence below {when.confidence_below:g}",
    )
    return " or ".join(filter(None, conditions))


def _category_sets(paired: PairedVerdicts) -> list[tuple[str, ...]]:
    """Return sets of categories: the category with most errors of the cheap judge, then the first
    two, and so on.
    """
    names, indices = np.unique(paired.facts.categories, return_inverse=True)
    first = paired.facts.first[:, 0]
    decided = ~np.isnan(first)  # after a failure, every rule escalates
    errs = np.bincount(indices, decided & (first != paired.strong), minlength=len(names))
    shares = errs / np.maximum(1, np.bincount(indices, decided, minlength=len(names)))
    order = np.argsort(-shares, kind="stable")
    return [tuple(sorted(names[order[:size]].tolist())) for size in range(1, len(names))]
