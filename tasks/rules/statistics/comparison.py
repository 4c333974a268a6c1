"""Comparison of two models on the same tasks, and correction for several comparisons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them

from tasks.rules.statistics import intervals
from tasks.rules.statistics.intervals import Floats, n_differing

ALPHA = 0.05
"""The largest significant p-value, after correction if there are several: a 95 % interval then
excludes 0.
"""
_ROUNDING = 1e-12
"""Share of the largest value below which a difference is only a rounding error."""


@dataclass(frozen=True)
class PairedDifference:
    """The second model's score minus the first's on the tasks that both have.

    It is in the unit of the scores. The mean difference is None without tasks. Interval and p-value
    have the same statistic: the 95 % interval excludes 0 exactly if p is at most 0.05.

    If `n_differing` is below `FEWEST_DIFFERING`, interval and `smallest_detectable` are None,
    because so few tasks do not show the variation of tasks. The p-value is then that of the sign
    test, which needs tasks that change, even by the same amount; None if these are too few as well.

    Attributes:
        n_differing: number of tasks whose difference is not the most common one, which usually is
            0.
        is_small: true if the interval may be too narrow (`have_few_tasks`).
    """

    n_tasks: int
    difference: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    smallest_detectable: float | None = None
    n_differing: int = 0
    is_small: bool = True


def paired_difference(
    first_values: Floats,
    second_values: Floats,
    *,
    level: float = intervals.LEVEL,
    resamples: int = intervals.RESAMPLES,
) -> PairedDifference:
    """Return the mean over tasks of second minus first, with its interval and p-value.

    Args:
        first_values: a value for each task, its mean over trials; a task with NaN does not count.
        second_values: the values of the same tasks in the same order.
        level: coverage of the interval, and 1 - the error level of the smallest detectable
            difference.
        resamples: number of bootstrap resamples; the p-value is at least 1 / (resamples + 1).
    """
    differences = task_differences(first_values, second_values)
    n_tasks = len(differences)
    differing = int(n_differing(differences[:, None])[0])
    mean = math.fsum(differences) / n_tasks if n_tasks else None
    if mean is None or differing < intervals.FEWEST_DIFFERING:
        return PairedDifference(
            n_tasks=n_tasks,
            difference=mean,
            p_value=_sign_test(differences),
            n_differing=differing,
        )
    # The values are sorted, and their signs turned so that the mean is positive: the resamples then
    # do not depend on the order of the tasks or of the sides.
    sign = -1.0 if mean < 0 else 1.0
    values = np.sort(sign * differences)[:, None]
    weights = intervals.draws(n_tasks, resamples)
    resampled = intervals.studentised(values, np.ones_like(values), np.array([differing]), weights)
    low, high = _interval(resampled, level, abs(mean))
    ends = sorted([sign * low, sign * high])
    return PairedDifference(
        n_tasks=n_tasks,
        difference=mean,
        ci_low=ends[0],
        ci_high=ends[1],
        p_value=max(float(resampled.p_values()[0]), 1.0 / (1 + resamples)),
        smallest_detectable=_smallest_detectable(values[:, 0], differing, 1.0 - level),
        n_differing=differing,
        is_small=bool(intervals.have_few_tasks(values)[0]),
    )


def _interval(resampled: intervals.Studentised, level: float, mean: float) -> tuple[float, float]:
    """Return low and high of a positive mean; a low end that touches 0 is 0."""
    lows, highs = resampled.ends(level)
    low = float(lows[0])
    if 0.0 < low <= intervals.TOUCHES * mean:
        low = 0.0
    return low, float(highs[0])


def task_differences(first_values: Floats, second_values: Floats) -> Floats:
    """Return second minus first on the tasks that both have; rounding errors count as 0."""
    first_values = np.asarray(first_values, dtype=float)
    second_values = np.asarray(second_values, dtype=float)
    differences = second_values - first_values
    rounding = _ROUNDING * np.maximum(np.abs(first_values), np.abs(second_values))
    differences[np.abs(differences) <= rounding] = 0.0
    return differences[~np.isnan(differences)]


def is_drop(difference: float, least_drop: float) -> bool:
    """Return whether a score fell by at least `least_drop`, up to errors of rounding."""
    return difference < 0 and -difference >= least_drop - _ROUNDING


def _sign_test(differences: Floats) -> float | None:
    """Return the two-sided p-value of the number of equal signs; None if too few tasks change."""
    n_changes = int((differences != 0).sum())
    n_rises = int((differences > 0).sum())
    # Even if all have the same sign, five changes are not significant: p is 0.0625.
    if n_changes <= intervals.FEWEST_DIFFERING:
        return None
    n_rarer = min(n_rises, n_changes - n_rises)
    return min(1.0, 2.0 * float(scipy.special.bdtr(n_rarer, n_changes, 0.5)))


def _smallest_detectable(differences: Floats, differing: int, alpha: float) -> float:
    """Return the true mean that a two-sided t-test at alpha finds with 80 % power, given this
    spread.

    (t_{1 - alpha/2} + t_{0.8}) * sd / sqrt(n): the textbook formula, but with Student's t instead
    of the normal, with the degrees of freedom of the tasks that differ.
    """
    degrees = differing - 1.0
    quantiles = intervals.student_quantile(1.0 - alpha / 2.0, degrees)
    quantiles = quantiles + intervals.student_quantile(0.8, degrees)
    return float(quantiles) * float(differences.std(ddof=1)) / math.sqrt(len(differences))


def is_significant(p_value: float | None, alpha: float = ALPHA) -> bool | None:
    """Return whether a p-value is at most alpha; None without a p-value."""
    return None if p_value is None else p_value <= alpha


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return adjusted p-values that bound the probability of any false finding (Holm, 1979).

    Returns:
        In the order given. None stays None and does not count as a comparison.
    """
    ordered = sorted((value, index) for index, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (value, index) in enumerate(ordered):
        largest = max(largest, min(1.0, value * (len(ordered) - rank)))
        adjusted[index] = largest
    return adjusted
