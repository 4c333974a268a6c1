"""The rules that an evaluation tries."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.rules.cascades.verdicts import PairedVerdicts
from tasks.rules.cascades.when import When

CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_MOST_WEIGHTS = 12
"""More distinct weights than these are thinned out evenly."""
_FEWEST_REPEATED = 0.5
"""Disagreement is tried where the cheap judge has repeated at least so many of the criteria."""


@dataclass(frozen=True)
class Candidate:
    """A rule under its name. `when` None: the strong judge alone, without a cheap one."""

    name: str
    when: When | None


def candidates(paired: PairedVerdicts, *, has_repetitions: bool) -> list[Candidate]:
    """The rules to try, the plainest first.

    Weights and confidences are those at which something changes; sets of categories grow by the category in which the
    cheap judge errs most often next. Call it with the tasks on which rules are chosen.
    """
    weights = _weights(paired)
    sets = _category_sets(paired)
    single = [(name,) for name in sorted(set(paired.facts.categories.tolist()))] if len(sets) else []
    confidences = [level for level in CONFIDENCES if _separates(paired, level)]
    found = [Candidate("cheap alone", When()), Candidate("strong alone", None)]
    found += [_named(When(weight_above=weight)) for weight in weights]
    found += [_named(When(categories=names)) for names in dict.fromkeys([*single, *sets])]
    found += [_named(When(confidence_below=level)) for level in confidences]
    found += [_named(When(weight_above=w, categories=names)) for w in weights for names in sets]
    found += [_named(When(weight_above=w, confidence_below=level)) for w in weights for level in confidences]
    if has_repetitions:
        found.append(_named(When(disagreement=True)))
        found += [_named(When(disagreement=True, weight_above=weight)) for weight in weights]
        found += [_named(When(disagreement=True, categories=names)) for names in sets]
        found += [_named(When(disagreement=True, confidence_below=level)) for level in confidences]
    return found


def is_repeated(n_repeated: int, n_criteria: int) -> bool:
    """Whether enough criteria have a second verdict of the cheap judge for disagreement to be tried."""
    return n_repeated >= _FEWEST_REPEATED * max(1, n_criteria)


def _named(when: When) -> Candidate:
    return Candidate(" or ".join(_conditions(when)), when)


def _conditions(when: When) -> Iterator[str]:
    if when.disagreement:
        yield "disagreement"
    if when.weight_above is not None:
        yield f"weight above {when.weight_above:g}"
    if len(when.categories) == 1:
        yield f"category {when.categories[0]}"
    elif when.categories:
        yield f"{len(when.categories)} categories ({', '.join(when.categories)})"
    if when.confidence_below is not None:
        yield f"confidence below {when.confidence_below:g}"


def _weights(paired: PairedVerdicts) -> list[float]:
    """The weights, without sign, that some criteria are above and some are not."""
    distinct = np.unique(np.abs(paired.facts.weights))[:-1]
    if len(distinct) > _MOST_WEIGHTS:
        distinct = distinct[np.unique(np.linspace(0, len(distinct) - 1, _MOST_WEIGHTS).round().astype(int))]
    return [float(weight) for weight in distinct]


def _category_sets(paired: PairedVerdicts) -> list[tuple[str, ...]]:
    """Sets of categories: the one in which the cheap judge errs most often, with the next, and so on, but not all."""
    names, places = np.unique(paired.facts.categories, return_inverse=True)
    first = paired.facts.first[:, 0]
    decided = ~np.isnan(first)  # where it failed, every rule escalates
    errs = np.bincount(places, decided & (first != paired.strong), minlength=len(names))
    shares = errs / np.maximum(1, np.bincount(places, decided, minlength=len(names)))
    order = np.argsort(-shares, kind="stable")
    return [tuple(sorted(names[order[:size]].tolist())) for size in range(1, len(names))]


def _separates(paired: PairedVerdicts, level: float) -> bool:
    below = paired.facts.confidence < level
    return bool(below.any()) and not bool((below | np.isnan(paired.facts.confidence)).all())
