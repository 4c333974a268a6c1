"""When a criterion goes from a cascade's first judge to its second: one definition for replays and live runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FAILED, DISAGREEMENT, WEIGHT, CATEGORY = "failed", "disagreement", "weight", "category"
CONFIDENCE, CONFIDENCE_UNKNOWN = "confidence", "confidence_unknown"
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class When:
    """Conditions on a criterion and on what the first judge said of it; any one of them escalates.

    Attributes:
        disagreement: the repetitions of the first judge do not all say the same.
        weight_above: the criterion's weight, without its sign, is above this.
        categories: the criterion is of one of these categories.
        confidence_below: the first judge's confidence is below this, from 0 to 1, or not known.
    """

    disagreement: bool = False
    weight_above: float | None = None
    categories: tuple[str, ...] = ()
    confidence_below: float | None = None

    @property
    def n_conditions(self) -> int:
        """How many conditions there are."""
        given = (self.disagreement, self.weight_above is not None, bool(self.categories), self.has_confidence)
        return sum(given)

    @property
    def has_confidence(self) -> bool:
        """Whether the first judge's confidence counts."""
        return self.confidence_below is not None

    def n_repetitions(self, trials: int) -> int:
        """How many of a first judge's repetitions are asked: all where they are compared, else one."""
        return trials if self.disagreement else 1


@dataclass(frozen=True)
class Facts:
    """What a decision to escalate rests on, for some criteria.

    Attributes:
        first: the values of the first judge's repetitions, shape (n_criteria, n_repetitions), NaN where one failed.
        weights: shape (n_criteria,).
        categories: shape (n_criteria,), `(none)` without one.
        confidence: of the first repetition, shape (n_criteria,), NaN where it is not known.
    """

    first: Floats
    weights: Floats
    categories: NDArray[Any]
    confidence: Floats


def escalations(when: When, facts: Facts) -> dict[str, Flags]:
    """For each reason to escalate which criteria have it, shape (n_criteria,).

    A failure of the first judge always escalates: of its first repetition, or of any where they are compared. Its
    verdict is that of the first repetition.
    """
    counted = facts.first if when.disagreement else facts.first[:, :1]
    failed = np.asarray(np.isnan(counted).any(axis=1))
    found: dict[str, Flags] = {FAILED: failed}
    if when.disagreement:
        found[DISAGREEMENT] = ~failed & np.asarray((counted != counted[:, :1]).any(axis=1))
    if when.weight_above is not None:
        found[WEIGHT] = np.abs(facts.weights) > when.weight_above
    if when.categories:
        found[CATEGORY] = np.isin(facts.categories, np.asarray(when.categories))
    if when.confidence_below is not None:
        unknown = np.isnan(facts.confidence)
        found[CONFIDENCE] = ~failed & ~unknown & (facts.confidence < when.confidence_below)
        found[CONFIDENCE_UNKNOWN] = ~failed & unknown
    return found


def reasons_to_escalate(
    when: When, first: Sequence[float | None], weight: float, category: str | None, confidence: float | None
) -> list[str]:
    """The reasons to escalate one criterion; none: the first judge has decided.

    Args:
        first: the values of the first judge's repetitions, None where one failed.
    """
    facts = Facts(
        np.array([[math.nan if value is None else value for value in first]]),
        np.array([float(weight)]),
        np.array([category or "(none)"]),
        np.array([math.nan if confidence is None else confidence]),
    )
    return [reason for reason, which in escalations(when, facts).items() if which[0]]
