"""Intervals and tests of means and pooled shares over tasks, with whole tasks as the sample.

On each side the interval is the wider of two: the studentised bootstrap (bootstrap-t; Efron and
Tibshirani, "An Introduction to the Bootstrap", 1993, section 12.5), which knows about skewed
figures, and Student's t with the degrees of freedom of the tasks that differ from the most common
value: if 8 of 100 tasks differ, only 8 show the spread.
`tasks/rules/evidence.md` shows why.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Singles = NDArray[np.float32]
Draws = NDArray[np.floating[Any]]
"""How often each task is drawn in each resample, shape (n_resamples, n_tasks)."""

LEVEL = 0.95
"""The nominal coverage of intervals."""
UPPER = (1.0 + LEVEL) / 2.0
"""The probability below the upper end of an interval."""
RESAMPLES = 10_000
SEED = 20251114
METHOD = "bootstrap-t-3"
"""The name of the interval method, stored with intervals; increase the number when the method
changes.
"""
WIDEST = 2.0
"""The largest ratio of a side's length by the bootstrap to that by Student's t with all tasks."""
TOUCHES = 1e-5
"""An interval's end touches a value if their distance is at most this share of the estimate's
distance from the value (a rounding error).
"""
SMALL = 50
"""Number of tasks below which the interval's coverage is not promised."""
FEW_DIFFERING = 10
"""The same for the number of tasks that differ from the most common value (rare mistakes)."""
FEWEST_DIFFERING = 5
"""An interval needs at least this many tasks that differ from the most common value; else the
spread is unknown.
"""
_FIGURES_AT_A_TIME = 100
"""Number of figures whose resamples are in memory together."""
_SAME = 1e-9
"""Share of the largest value below which a difference of two values is only a rounding error."""


def none_if_nan(value: Any) -> float | None:
    """Return a number in its stored form: None if it is undefined (NaN)."""
    return None if np.isnan(value) else float(value)


def quantile_pairs(rows: NDArray[Any], tails: Floats) -> Floats:
    """Return the quantiles at `tails` and `1 - tails` of each row, ignoring NaN.

    They are interpolated linearly.

    Args:
        rows: sorted, with NaN last, shape (n_figures, n_resamples).
        tails: a probability for each row.

    Returns:
        Shape (n_figures, 2); NaN for a row with only NaN.
    """
    n_values = rows.shape[1] - np.isnan(rows).sum(axis=1)
    last_index = np.maximum(n_values - 1, 0)
    figures = np.arange(len(rows))
    quantiles = []
    for probability in (tails, 1.0 - tails):
        position = last_index * probability
        index = np.floor(position).astype(np.int64)
        low = rows[figures, index]
        high = rows[figures, np.minimum(index + 1, last_index)]
        quantiles.append(low + (high - low) * (position - index))
    return np.stack(quantiles, axis=1)


def student_quantile(probability: float, degrees: Floats | float) -> Floats:
    """Return quantiles of Student's t for each number of degrees of freedom."""
    quantiles: Floats = scipy.special.stdtrit(degrees, probability)
    return quantiles


def expanded_tails(n_tasks: Floats | float, level: float = LEVEL) -> Floats:
    """Return the tail probability that makes a percentile interval as wide as Student's t.

    Phi(-sqrt(n / (n - 1)) * t), with t the upper quantile with n - 1 degrees of freedom
    (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015). The number of tasks must be
    at least two.
    """
    quantile = student_quantile((1.0 + level) / 2.0, n_tasks - 1.0)
    tails: Floats = scipy.special.ndtr(-np.sqrt(n_tasks / (n_tasks - 1.0)) * quantile)
    return tails


@dataclass(frozen=True)
class Studentised:
    """Means or pooled shares with the parts of their intervals and tests.

    All arrays have an entry for each figure.

    Attributes:
        ratio: the means or pooled shares.
        error: their standard errors, with the number of tasks as the divisor.
        n_counted: number of tasks that count.
        n_differing: number of those that differ from the most common value.
        steps: deviation of each resample in its own standard errors, sorted, shape (n_figures,
            n_resamples).
    """

    ratio: Floats
    error: Floats
    n_counted: Floats
    n_differing: Floats
    steps: Singles

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return low and high of the interval at a level."""
        tails = np.full(len(self.ratio), (1.0 - level) / 2.0)
        low_step, high_step = quantile_pairs(self.steps, tails).T
        probability = (1.0 + level) / 2.0
        shortest = student_quantile(probability, self.n_differing - 1.0) * self._student_factor
        longest = WIDEST * student_quantile(probability, self.n_counted - 1.0)
        longest = np.maximum(longest, shortest)
        # A resample that is too high means a truth that is lower.
        low = self.ratio - self.error * np.clip(high_step, shortest, longest)
        high = self.ratio + self.error * np.clip(-low_step, shortest, longest)
        return low, high

    def p_values(self) -> Floats:
        """Return the p-value of each figure: the smallest `1 - level` whose interval excludes 0.

        An interval that ends within `TOUCHES` of the figure's distance from 0 does not exclude 0.
        """
        distance = (1.0 - TOUCHES) * np.abs(self.ratio) / self.error
        by_bootstrap = np.empty(len(self.ratio))
        for figure, steps in enumerate(self.steps):
            towards_zero = steps if self.ratio[figure] > 0 else -steps[::-1]
            by_bootstrap[figure] = _two_sided(towards_zero, distance[figure])
        by_widest = 2.0 * scipy.special.stdtr(self.n_counted - 1.0, -distance / WIDEST)
        by_student = 2.0 * scipy.special.stdtr(
            self.n_differing - 1.0, -distance / self._student_factor
        )
        # As `ends` clips lengths: at least by Student's t, at most by the widest interval.
        return np.asarray(np.maximum(by_student, np.minimum(by_bootstrap, by_widest)))

    @property
    def _student_factor(self) -> Floats:
        """The factor from the standard error here to that of Student's t."""
        return np.sqrt(self.n_counted / (self.n_counted - 1.0))


def _two_sided(steps: Singles, distance: float) -> float:
    """Return the smallest `1 - level`, interpolated, at which the steps' upper quantile is below a
    distance.
    """
    steps = steps[~np.isnan(steps)]
    index = int(np.searchsorted(steps, distance))
    if index == 0:
        return 1.0
    if index == len(steps):
        return 0.0
    low = float(steps[index - 1])
    high = float(steps[index])
    position = index - 1 + (distance - low) / (high - low)
    return min(1.0, 2.0 * (1.0 - position / (len(steps) - 1)))


def studentised(
    numerators: Floats,
    denominators: Floats,
    n_differing: Ints,
    weights: Draws,
) -> Studentised:
    """Return the parts of intervals of pooled shares.

    Each figure must have at least two tasks that differ. The standard error is that of a ratio of
    sums (Cochran, "Sampling Techniques", 1977, chapter 6).

    Resamples are computed in single precision: the error of an interval's end is at most a
    millionth of its length, far less than the error from the number of resamples.
    """
    total = denominators.sum(axis=0)
    ratio = numerators.sum(axis=0) / total
    # Each task's excess over its share; the sum is 0, which also avoids cancellation in the second
    # moments.
    excess = numerators - ratio * denominators  # (n_tasks, n_figures)
    spread = np.sqrt((excess**2).sum(axis=0))
    standard = excess / np.where(spread > 0.0, spread, 1.0)
    steps = _steps(standard.astype(np.float32), denominators.astype(np.float32), weights)
    steps.sort(axis=1)
    return Studentised(
        ratio=ratio,
        error=spread / total,
        n_counted=(denominators > 0).sum(axis=0).astype(float),
        n_differing=n_differing.astype(float),
        steps=steps,
    )


def _steps(excess: Singles, denominators: Singles, weights: Draws) -> Singles:
    """Return the deviation of each resample in its own standard errors.

    The squares of a figure's `excess` sum to 1. A resample without spread has a very large
    deviation.

    Returns:
        Shape (n_figures, n_resamples), NaN if the resample has none of the figure's tasks.
    """
    parts = [excess, excess**2]
    has_one_case = bool((denominators == 1.0).all())
    if not has_one_case:
        parts += [denominators, denominators**2, excess * denominators]
    # One large product takes half the time of several small ones, which would each read all
    # weights.
    sums = np.split(np.concatenate(parts, axis=1).T @ weights.T, len(parts))
    excess_sums = sums[0]  # all sums: (n_figures, n_resamples)
    squares = sums[1]
    if has_one_case:  # all denominators are 1
        # The draws of a part of a task set need not sum to its number of tasks.
        total = np.broadcast_to(weights.sum(axis=1), excess_sums.shape)
        total_squares = total
        products = excess_sums
    else:
        total, total_squares, products = sums[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        # NaN if the resample has none of the figure's tasks; so is all below.
        ratio = excess_sums / total
        # The spread around the resample's own ratio, expanded.
        squares += ratio * (ratio * total_squares - 2 * products)
        # A smaller share of the sample's squared spread is a rounding error.
        np.maximum(squares, 1e-6, out=squares)
        return np.divide(excess_sums, np.sqrt(squares), dtype=np.float32)


def draws(n_tasks: int, resamples: int = RESAMPLES, seed: int = SEED) -> Draws:
    """Return how often each task is drawn in each resample, with replacement.

    Returns:
        Counts of shape (resamples, n_tasks), read-only. Every row sums to n_tasks.
    """
    return _kept_draws(n_tasks, resamples, seed)


# A cache sees a default and the same value as an argument as two calls; these are one.
@lru_cache(maxsize=4)
def _kept_draws(n_tasks: int, resamples: int, seed: int) -> Draws:
    shares = np.full(max(1, n_tasks), 1.0 / max(1, n_tasks))
    counts = np.random.default_rng(seed).multinomial(n_tasks, shares, size=resamples)[:, :n_tasks]
    # A task's counts are contiguous, so that draws of some of the tasks can be selected fast.
    sampled = np.ascontiguousarray(counts.T, dtype=np.float32)
    sampled.flags.writeable = False
    return sampled.T


def mean_intervals(values: Floats, *, sampled: Draws | None = None) -> Floats:
    """Return 95 % intervals of the means of figures over their tasks.

    Tasks are the clusters: trials are nested in them, so a task's value is its mean over trials.

    Args:
        values: shape (n_tasks, n_figures), NaN if a task does not count for a figure.
        sampled: draws of these tasks, shape (n_resamples, n_tasks), such as the columns of these
            tasks from the draws of a whole task set; `RESAMPLES` new ones if absent. A resample
            without any task of a figure is left out for that figure.

    Returns:
        Shape (n_figures, 2): low and high in the unit of the values, NaN for a figure with too few
        tasks that differ.
    """
    is_counted = ~np.isnan(values)
    sums = np.where(is_counted, values, 0.0)
    return ratio_intervals(sums, is_counted.astype(float), sampled=sampled)


def ratio_intervals(
    numerators: Floats,
    denominators: Floats,
    *,
    sampled: Draws | None = None,
) -> Floats:
    """Return 95 % intervals of pooled shares: sums of numerators / sums of denominators over tasks.

    The standard error is that of a ratio of sums (Cochran, "Sampling Techniques", 1977, chapter 6).

    Args:
        numerators: shape (n_tasks, n_figures).
        denominators: the same shape, at least 0; a task without cases has 0 and 0.
        sampled: as in `mean_intervals`.

    Returns:
        Shape (n_figures, 2), NaN for a figure with too few tasks that differ (`FEWEST_DIFFERING`).
    """
    if sampled is None:
        sampled = draws(len(numerators))
    weights = sampled.astype(np.float32, copy=False)
    task_shares = quotient(numerators, denominators)  # (n_tasks, n_figures), NaN without cases
    differing = n_differing(task_shares)
    figures = np.flatnonzero(differing >= FEWEST_DIFFERING)
    ends = np.full((numerators.shape[1], 2), np.nan)
    for start in range(0, len(figures), _FIGURES_AT_A_TIME):
        block = figures[start : start + _FIGURES_AT_A_TIME]
        resampled = studentised(
            numerators[:, block],
            denominators[:, block],
            differing[block],
            weights,
        )
        low, high = resampled.ends(LEVEL)
        # The interval stays within the range of the tasks' values.
        ends[block, 0] = np.maximum(low, np.nanmin(task_shares[:, block], axis=0))
        ends[block, 1] = np.minimum(high, np.nanmax(task_shares[:, block], axis=0))
    return ends


def quotient(
    numerators: NDArray[Any],
    denominators: NDArray[Any],
    bound: Floats | float = 0.0,
) -> Floats:
    """Return the quotient, NaN if the divisor is not above a bound."""
    shape = np.broadcast_shapes(np.shape(numerators), np.shape(denominators))
    quotients: Floats = np.full(shape, np.nan)
    np.divide(numerators, denominators, out=quotients, where=denominators > bound)
    return quotients


def means(values: Floats, axis: int = 0) -> Floats:
    """Return means that ignore NaN; NaN without any value."""
    is_counted = ~np.isnan(values)
    sums = np.where(is_counted, values, 0.0).sum(axis=axis)
    return quotient(sums, is_counted.sum(axis=axis))


def n_differing(values: Floats) -> Ints:
    """Return the number of tasks that differ from the most common value of each figure.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
    """
    n_tasks, n_figures = values.shape
    if not n_tasks:
        return np.zeros(n_figures, dtype=np.int64)
    ordered = np.sort(values, axis=0)  # NaN goes to the end
    is_counted = ~np.isnan(ordered)
    scale = np.abs(np.where(is_counted, ordered, 0.0)).max(axis=0)
    is_new = np.ones(ordered.shape, dtype=bool)
    is_new[1:] = ~(np.diff(ordered, axis=0) <= _SAME * scale)
    indices = np.arange(n_tasks)[:, None]
    starts = np.maximum.accumulate(np.where(is_new, indices, 0), axis=0)
    # The length of the run of equal values that ends at each index.
    lengths = indices + 1 - starts
    n_equal = np.where(is_counted, lengths, 0).max(axis=0)
    return np.asarray(is_counted.sum(axis=0) - n_equal, dtype=np.int64)


def have_few_tasks(values: Floats) -> Flags:
    """Return flags of the figures with too few tasks for a reliable interval.

    Either there are too few tasks, or too few of them differ.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
    """
    n_counted = (~np.isnan(values)).sum(axis=0)
    return np.asarray((n_counted < SMALL) | (n_differing(values) < FEW_DIFFERING), dtype=bool)


def repeated_interval(scores: Sequence[float]) -> tuple[float, float, float] | None:
    """Return mean, low and high (95 %) of a repeated evaluation.

    The interval is Student's t with one degree of freedom less than repetitions.

    Args:
        scores: a score for each repetition.

    Returns:
        None for fewer than two repetitions.
    """
    n = len(scores)
    if n < 2:
        return None
    mean = sum(scores) / n
    quantile = float(student_quantile(UPPER, n - 1.0))
    half = quantile * float(np.std(scores, ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half
