"""Comparing two models on the same tasks, and correcting for how often one compares."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.rules.statistics import RESAMPLES, SEED, Floats, mean_intervals, student_quantile

POWER = 0.8
"""The chance with which a difference of the smallest detectable size is found."""
_ENUMERATED = 12
"""Up to so many tasks all flips of signs are looked at, 4,096 at most."""
_FLIPPED_AT_A_TIME = 1_000
_TIE = 1e-9
"""The share of the sum of absolute differences within which two sums are the same but for rounding."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much the second model scores above the first on the tasks that both have, in the unit of the scores.

    Everything but the mean difference is None for fewer than two tasks, and the mean for none. `smallest_detectable`
    is None too where the tasks are so few that the test can show no difference at all, however large.
    """

    n_tasks: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    smallest_detectable: float | None


def paired_difference(
    first: Floats,
    second: Floats,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> PairedDifference:
    """The mean over tasks of second minus first, with what can be said about it.

    Args:
        first: one value a task, its mean over trials; NaN where it has none, and the task does not count.
        second: the values of the same tasks in the same order.
        level: coverage of the interval, and one minus the error that the smallest detectable difference allows.
        resamples: of the interval, and random flips of the test.
    """
    both = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    differences = both[~np.isnan(both)]
    n = len(differences)
    if n < 2:
        return PairedDifference(n, float(differences[0]) if n else None, None, None, None, None)
    low, high = mean_intervals(differences[:, None], level=level, resamples=resamples, seed=seed)[0]
    return PairedDifference(
        n_tasks=n,
        difference=float(differences.mean()),
        ci_low=float(low),
        ci_high=float(high),
        p_value=_sign_flip_p(differences, resamples, seed),
        smallest_detectable=smallest_detectable(differences, 1.0 - level),
    )


def _sign_flip_p(differences: Floats, resamples: int, seed: int) -> float:
    """The two-sided p-value of a mean of nothing, when each difference is as likely to have either sign.

    All flips for few tasks. Otherwise random ones with the observed counted among them, as Phipson and Smyth (2010)
    show that it must be for a valid test.
    """
    n = len(differences)
    # Sums that are equal in truth differ in their last digits, by the order of adding.
    reached = abs(float(differences.sum())) - _TIE * float(np.abs(differences).sum())
    if n <= _ENUMERATED:
        every = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float((np.abs(every @ differences) >= reached).mean())
    generator = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, resamples, _FLIPPED_AT_A_TIME):
        count = min(_FLIPPED_AT_A_TIME, resamples - start)
        signs = 1.0 - 2.0 * generator.integers(0, 2, size=(count, n))
        extreme += int((np.abs(signs @ differences) >= reached).sum())
    return (1 + extreme) / (1 + resamples)


def smallest_detectable(differences: Floats, alpha: float) -> float | None:
    """The true mean that a two-sided t-test at alpha finds with 80 % power, given this spread.

    (t_{1 - alpha/2, n-1} + t_{0.8, n-1}) * sd / sqrt(n), the textbook formula with Student's t for the normal. None
    where flipping signs cannot come below alpha: two of the 2^n flips always reach the observed mean.
    """
    n = len(differences)
    if 2.0 ** (1 - n) > alpha:
        return None
    degrees = np.asarray(n - 1.0)
    quantiles = student_quantile(1.0 - alpha / 2.0, degrees) + student_quantile(POWER, degrees)
    return float(quantiles) * float(differences.std(ddof=1)) / math.sqrt(n)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values that hold the chance of any false finding (Holm, 1979).

    Returns:
        In the order given. None stays None and does not count as a comparison.
    """
    known = sorted((value, place) for place, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    so_far = 0.0
    for rank, (value, place) in enumerate(known):
        so_far = max(so_far, min(1.0, value * (len(known) - rank)))
        adjusted[place] = so_far
    return adjusted
