"""Rules that send a criterion from a cascade's first judge to its second.

They are the same in replays and live runs. The module also has the input of a replay (the verdicts
of two judges on the same criteria, as arrays) and the rules that an evaluation tries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import Flags, Floats, Ints


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
        conditions = {}
        for condition in fields(self):
            value = getattr(self, condition.name)
            if value != condition.default:
                conditions[condition.name] = value
        return conditions

    def __or__(self, when: "When") -> "When":
        """Return the conditions of both; where both set one, that of `when` counts."""
        return replace(self, **when.conditions)

    def n_repetitions(self, trials: int) -> int:
        """Return the number of the first judge's repetitions: all if compared, else one."""
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

    def of_criteria(self, is_included: Flags) -> "Facts":
        """Return the facts of the included criteria."""
        return Facts(*(getattr(self, fact.name)[is_included] for fact in fields(self)))


def escalations(when: When, facts: Facts) -> dict[str, Flags]:
    """Return, by reason to escalate, flags of the criteria that have it, shape (n_criteria,).

    A failure of the first judge always escalates: of its first repetition, or of any if they are
    compared. The first judge's verdict is that of its first repetition.
    """
    compared = facts.first if when.disagreement else facts.first[:, :1]
    failed = np.asarray(np.isnan(compared).any(axis=1))
    reasons: dict[str, Flags] = {"failed": failed}
    if when.disagreement:
        disagrees = (compared != compared[:, :1]).any(axis=1)
        reasons["disagreement"] = ~failed & disagrees
    if when.weight_above is not None:
        reasons["weight"] = np.abs(facts.weights) > when.weight_above
    if when.categories:
        reasons["category"] = np.isin(facts.categories, when.categories)
    if when.severities:
        reasons["severity"] = np.isin(facts.severities, when.severities)
    if when.kinds:
        kinds = set(when.kinds)
        is_kind = [not kinds.isdisjoint(names.split()) for names in facts.kinds]
        reasons["kind"] = np.array(is_kind, dtype=bool)
    if when.confidence_below is not None:
        is_unknown = np.isnan(facts.confidence)
        is_unsure = facts.confidence < when.confidence_below
        reasons["confidence"] = ~failed & ~is_unknown & is_unsure
        reasons["confidence_unknown"] = ~failed & is_unknown
    return reasons


def reasons_to_escalate(
    when: When,
    first_values: Sequence[float | None],
    confidence: float | None,
    criterion: Mapping[str, Any],
) -> list[str]:
    """Return the reasons to escalate one criterion; none: the first judge has decided.

    Args:
        first_values: those of the first judge's repetitions, None for a failure.
        criterion: its `weight`, `category`, `severity` and `kinds`.
    """
    # NumPy makes NaN of None.
    facts = Facts(
        first=np.array([first_values], dtype=float),
        weights=np.array([criterion["weight"]], dtype=float),
        categories=np.array([criterion["category"] or "(none)"]),
        confidence=np.array([confidence], dtype=float),
        probability=np.array([np.nan]),
        severities=np.array([criterion["severity"] or "(none)"]),
        kinds=np.array([" ".join(criterion["kinds"])]),
    )
    return [reason for reason, flags in escalations(when, facts).items() if flags[0]]


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
    task: Ints
    response: Ints
    tasks: tuple[str, ...]
    task_of_response: Ints
    model_of_response: Ints
    models: tuple[str, ...]
    offset: Floats
    denominator: Floats
    has_second: Flags

    def of_tasks(self, is_included: Flags) -> "PairedVerdicts":
        """Return only the criteria of some tasks, with unchanged indices.

        Args:
            is_included: shape (n_tasks,).
        """
        criteria = is_included[self.task]
        responses = is_included[self.task_of_response]
        return replace(
            self,
            facts=self.facts.of_criteria(criteria),
            strong=self.strong[criteria],
            task=self.task[criteria],
            response=self.response[criteria],
            denominator=np.where(responses, self.denominator, np.nan),
            has_second=self.has_second[criteria],
        )

    def scores(self, values: NDArray[Any]) -> Floats:
        """Return the scores of responses for values of criteria; NaN if one is missing."""
        weighted = values * self.facts.weights
        points = np.bincount(self.response, weighted, minlength=len(self.denominator))
        return (points + self.offset) / self.denominator


THRESHOLDS = tuple(round(0.05 * n, 2) for n in range(1, 20))
"""Thresholds of the cheap judge's probability to try, from 0.05 to 0.95."""
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
"""Values of `When.confidence_below` to try."""
_MOST_WEIGHTS = 12
"""Largest number of distinct weights to try; more are thinned out evenly."""


@dataclass(frozen=True)
class CandidateRule:
    """A rule with its name; `when` is None for the strong judge alone.

    With a `threshold`, a probability of the cheap judge at or above it means met.
    """

    name: str
    when: When | None
    threshold: float | None = None


def candidates(paired: PairedVerdicts, *, has_repetitions: bool) -> list[CandidateRule]:
    """Return the rules to try, the simplest first.

    Weights and confidences are those at which the escalated criteria change; sets of categories
    grow in the order of the cheap judge's share of errors. `paired` are only the criteria of the
    tasks for choosing rules.
    """
    rules = [CandidateRule("cheap alone", When()), CandidateRule("strong alone", None)]
    for threshold in _separating(THRESHOLDS, paired.facts.probability):
        rules.append(CandidateRule(f"cheap alone, threshold {threshold:g}", When(), threshold))
    for when in _conditions(paired, has_repetitions=has_repetitions):
        rules.append(CandidateRule(_name_of(when), when))
    return rules


def _conditions(paired: PairedVerdicts, *, has_repetitions: bool) -> list[When]:
    """Return the conditions to try: single ones, some pairs, and disagreement alone or with one."""
    facts = paired.facts
    by_weight = [When(weight_above=weight) for weight in _tried_weights(facts.weights)]
    by_categories = [When(categories=names) for names in _category_sets(paired)]
    by_category = [When(categories=(name,)) for name in _different(facts.categories.tolist())]
    levels = _separating(CONFIDENCES, facts.confidence)
    by_confidence = [When(confidence_below=level) for level in levels]
    by_severity_or_kind = _by_severity_or_kind(facts)
    pairs = [
        *product(by_severity_or_kind, by_confidence),
        *product(by_weight, by_categories),
        *product(by_weight, by_confidence),
    ]
    conditions = [
        *by_weight,
        *dict.fromkeys([*by_category, *by_categories]),
        *by_confidence,
        *by_severity_or_kind,
        *(when | condition for when, condition in pairs),
    ]
    if has_repetitions:
        for when in (When(), *by_weight, *by_categories, *by_confidence):
            conditions.append(When(disagreement=True) | when)
    return conditions


def _by_severity_or_kind(facts: Facts) -> list[When]:
    """Return the conditions on a severity or a kind that only some criteria have."""
    severities = _different(facts.severities.tolist())
    conditions = [When(severities=(name,)) for name in severities if name != "(none)"]
    kinds_of_criteria = [set(names.split()) for names in _different(facts.kinds.tolist())]
    if kinds_of_criteria:
        common = kinds_of_criteria[0].intersection(*kinds_of_criteria)
        kinds = kinds_of_criteria[0].union(*kinds_of_criteria)
        conditions += [When(kinds=(name,)) for name in sorted(kinds - common)]
    return conditions


def _tried_weights(weights: Floats) -> list[float]:
    """Return the sizes of weights with criteria on both sides; many are thinned out."""
    sizes = np.unique(np.abs(weights))[:-1]
    if len(sizes) > _MOST_WEIGHTS:
        positions = np.linspace(0, len(sizes) - 1, _MOST_WEIGHTS).round().astype(int)
        sizes = sizes[np.unique(positions)]
    return [float(size) for size in sizes]


def _separating(bounds: Sequence[float], values: Floats) -> list[float]:
    """Return the bounds with values on both sides."""
    n_values = (~np.isnan(values)).sum()
    return [bound for bound in bounds if 0 < (values < bound).sum() < n_values]


def _different(names: Sequence[str]) -> list[str]:
    """Return the names without duplicates; none if all are the same."""
    different = sorted(set(names))
    return different if len(different) > 1 else []


def _name_of(when: When) -> str:
    names = []
    if when.disagreement:
        names.append("disagreement")
    if when.weight_above is not None:
        names.append(f"weight above {when.weight_above:g}")
    categories = ", ".join(when.categories)
    if len(when.categories) > 1:
        names.append(f"{len(when.categories)} categories ({categories})")
    elif categories:
        names.append(f"category {categories}")
    names += [f"severity {name}" for name in when.severities]
    names += [f"kind {name}" for name in when.kinds]
    if when.confidence_below is not None:
        names.append(f"confidence below {when.confidence_below:g}")
    return " or ".join(names)


def _category_sets(paired: PairedVerdicts) -> list[tuple[str, ...]]:
    """Return the category with the cheap judge's largest share of errors, the first two, etc."""
    names, indices = np.unique(paired.facts.categories, return_inverse=True)
    values = paired.facts.first[:, 0]
    is_decided = ~np.isnan(values)  # after a failure, every rule escalates
    is_error = is_decided & (values != paired.strong)
    n_errors = np.bincount(indices, is_error, minlength=len(names))
    n_decided = np.bincount(indices, is_decided, minlength=len(names))
    order = np.argsort(-n_errors / np.maximum(1, n_decided), kind="stable")
    return [tuple(sorted(names[order[:size]].tolist())) for size in range(1, len(names))]
