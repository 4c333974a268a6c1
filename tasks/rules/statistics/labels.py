"""How far two sets of labels agree, where a task can have several: precision, recall, F1 and Jaccard, with intervals.

Averages are named as in scikit-learn: micro pools all labels, macro is the mean over labels, and the mean over tasks is
its `samples`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import FEWEST_OTHERS, draws, mean_intervals, n_differing, ratio_intervals
from tasks.rules.statistics.quantiles import Floats, expanded_tails, quantile_pairs
from tasks.rules.statistics.studentised import Draws

Flags = NDArray[np.bool_]
MICRO, MACRO, TASKS = "(micro average)", "(macro average)", "(mean over tasks)"
MEASURES = ("precision", "recall", "f1", "jaccard")


@dataclass(frozen=True)
class LabelAgreement:
    """How a label, or an average over labels, agrees: the tasks that have it, and each measure with its interval.

    A measure that is not defined, and the ends of an interval that would rest on too few tasks, are NaN.
    """

    label: str
    n_given: int
    n_expected: int
    n_both: int
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]


def label_agreement(given: Flags, expected: Flags, labels: Sequence[str]) -> list[LabelAgreement]:
    """Agreement of given labels with expected ones: for each label that either uses, and on average.

    Tasks are the sample. Measures of a label and micro averages are pooled shares over tasks, and have their intervals
    (`ratio_intervals`); that of the macro average are percentiles of resampled tasks with expanded tails.

    Args:
        given: shape (n_tasks, n_labels), whether a task has a label; every task has at least one.
        expected: the same for the labels that they are compared with.
        labels: the names of the columns.
    """
    used = np.flatnonzero(given.any(axis=0) | expected.any(axis=0))
    given, expected = given[:, used], expected[:, used]
    counts = np.stack([given & expected, given & ~expected, ~given & expected]).astype(np.float64)
    counts = np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2)  # the last column: all labels
    drawn = draws(len(given))
    columns = {name: _measured(*_parts(counts)[name], drawn) for name in MEASURES}
    both, only_given, only_expected = counts.sum(axis=1).astype(int)
    names = [*(labels[column] for column in used.tolist()), MICRO, MACRO, TASKS]
    places = [*range(len(used) + 1), len(used), len(used)]
    return [
        LabelAgreement(
            name,
            int(both[place] + only_given[place]),
            int(both[place] + only_expected[place]),
            int(both[place]),
            {measure: float(values[row]) for measure, (values, _) in columns.items()},
            {measure: (float(ends[row, 0]), float(ends[row, 1])) for measure, (_, ends) in columns.items()},
        )
        for row, (name, place) in enumerate(zip(names, places, strict=True))
    ]


def _parts(counts: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Numerator and denominator of each measure, from counts: in both, only given, only expected."""
    both, only_given, only_expected = counts
    return {
        "precision": (both, both + only_given),
        "recall": (both, both + only_expected),
        "f1": (2.0 * both, 2.0 * both + only_given + only_expected),
        "jaccard": (both, both + only_given + only_expected),
    }


def _measured(over: Floats, under: Floats, drawn: Draws) -> tuple[Floats, Floats]:
    """A measure of each label, its micro and macro average and mean over tasks, and the ends of their intervals.

    Args:
        over, under: numerator and denominator, shape (n_tasks, n_labels + 1), the last for all labels together.
        drawn: draws of the tasks.
    """
    pooled = _ratio(over.sum(axis=0), under.sum(axis=0))
    of_tasks = _ratio(over[:, -1:], under[:, -1:])
    macro, macro_ends = _macro(over[:, :-1], under[:, :-1], drawn)
    ends = [ratio_intervals(over, under, drawn=drawn), macro_ends, mean_intervals(of_tasks, drawn=drawn)]
    return np.array([*pooled, macro, np.nanmean(of_tasks)]), np.concatenate(ends)


def _macro(over: Floats, under: Floats, drawn: Draws) -> tuple[float, Floats]:
    """The mean over labels that have the measure, and its interval, shape (1, 2)."""
    weights = drawn.astype(np.float64)
    resampled = np.nanmean(_ratio(weights @ over, weights @ under), axis=1)
    ends = np.full((1, 2), np.nan)
    if n_differing(_ratio(over.sum(axis=1, keepdims=True), under.sum(axis=1, keepdims=True)))[0] >= FEWEST_OTHERS:
        ends = quantile_pairs(resampled[None], expanded_tails(np.array([float(len(over))]), 0.95))
    return float(np.nanmean(_ratio(over.sum(axis=0), under.sum(axis=0)))), ends


def _ratio(over: Floats, under: Floats) -> Floats:
    quotient: Floats = np.full(np.shape(under), np.nan)
    np.divide(over, under, out=quotient, where=under > 0)
    return quotient
