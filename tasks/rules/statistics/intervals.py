"""Intervals for figures that are means or pooled shares over tasks, with whole tasks as the sample,
and their tests.

On each side the interval is the wider of two: the studentised bootstrap (bootstrap-t; Efron and
Tibshirani, "An Introduction to the Bootstrap", 1993, section 12.5), which knows about skewed
figures, and Student's t with the degrees of freedom of the tasks that differ from the most common
value: if 8 of 100 tasks differ, only 8 show the spread. evidence.md shows why.
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
LEVEL = 0.95
"""The nominal coverage of intervals."""


def none_if_nan(value: Any) -> float | None:
    """Return a figure in its stored form: None if undefined."""
    return None if np.isnan(value) else float(value)


def quantile_pairs(rows: NDArray[Any], tails: Floats) -> Floats:
    """Return the quantiles at `tails` and `1 - tails` of each row, by linear interpolation,
    ignoring NaN.

    The rows are sorted in place.

    Args:
        rows: shape (n_figures, n_resamples).
        tails: a probability for each row.

    Returns:
        Shape (n_figures, 2); NaN for a row with only NaN.
    """
    rows.sort(axis=1)  # NaN goes to the end
    last = rows.shape[1] - np.isnan(rows).sum(axis=1) - 1
    every = np.arange(len(rows))
    pair = []
    for probability in (tails, 1.0 - tails):
        position = np.maximum(last, 0) * probability
        below = np.floor(position).astype(np.int64)
        low = rows[every, below]
        high = rows[every, np.minimum(below + 1, np.maximum(last, 0))]
        pair.append(low + (high - low) * (position - below))
    return np.stack(pair, axis=1)


def student_quantile(probability: float, degrees: Floats) -> Floats:
    """Return quantiles of Student's t for each number of degrees of freedom."""
    return np.asarray(scipy.special.stdtrit(degrees, probability), dtype=np.float64)


def expanded_tails(n_tasks: Floats, level: float = LEVEL) -> Floats:
    """Return the tail probability with which a percentile interval on `n_tasks` is as wide as
    Student's t.

    Phi(-sqrt(n / (n - 1)) * t), with t the upper quantile with n - 1 degrees of freedom
    (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015). The number of tasks must be
    at least two.
    """
    wider = np.sqrt(n_tasks / (n_tasks - 1.0)) * student_quantile(
        (1.0 + level) / 2.0, n_tasks - 1.0
    )
    return np.asarray(scipy.special.ndtr(-wider), dtype=np.float64)


Draws = NDArray[np.floating[Any]]
Singles = NDArray[np.float32]

WIDEST = 2.0
"""The largest ratio of a side's length by the bootstrap to that by Student's t with all tasks."""
TOUCHES = 1e-5
"""An interval touches a value if its end is nearer to it than this share of the estimate's distance
(rounding).
"""


@dataclass(frozen=True, slots=True)
class Studentised:
    """Means or pooled shares with the parts of their intervals and tests, with an entry for each
    figure.

    Attributes:
        ratio: the figures.
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
        below, above = quantile_pairs(self.steps, np.full(len(self.ratio), (1.0 - level) / 2.0)).T
        probability = (1.0 + level) / 2.0
        widest = WIDEST * student_quantile(probability, self.n_counted - 1.0)
        least = student_quantile(probability, self.n_differing - 1.0) * self._unbiased
        low = self.ratio - self.error * np.clip(above, least, np.maximum(widest, least))
        return low, self.ratio + self.error * np.clip(-below, least, np.maximum(widest, least))

    def p_values(self) -> Floats:
        """Return, for each figure, the smallest error (one minus the level) at which its interval
        excludes 0.

        An interval that ends within `TOUCHES` of the figure's distance from 0 does not exclude 0.
        """
        off = (1.0 - TOUCHES) * np.abs(self.ratio) / self.error
        by_bootstrap = np.array(
            [
                _two_sided(steps if ratio > 0 else -steps[::-1], each)
                for steps, ratio, each in zip(self.steps, self.ratio, off, strict=True)
            ]
        )
        by_widest = 2.0 * scipy.special.stdtr(self.n_counted - 1.0, -off / WIDEST)
        by_student = 2.0 * scipy.special.stdtr(self.n_differing - 1.0, -off / self._unbiased)
        return np.asarray(np.maximum(by_student, np.minimum(by_bootstrap, by_widest)))

    @property
    def _unbiased(self) -> Floats:
        """The factor from the standard error here to that of Student's t."""
        return np.asarray(np.sqrt(self.n_counted / (self.n_counted - 1.0)))


def _two_sided(steps: Draws, reached: float) -> float:
    """Return the smallest error at which the steps' upper quantile is below `reached`,
    interpolated.
    """
    steps = steps[~np.isnan(steps)]
    above = int(np.searchsorted(steps, reached))
    if above in {0, len(steps)}:
        return 0.0 if above else 1.0
    low = float(steps[above - 1])
    high = float(steps[above])
    position = above - 1 + (reached - low) / (high - low)
    return min(1.0, 2.0 * (1.0 - position / (len(steps) - 1)))


def studentised(
    numerators: Floats, denominators: Floats, n_differing: NDArray[np.int64], weights: Draws
) -> Studentised:
    """Return the parts of intervals of pooled shares; each figure must have at least two tasks that
    differ.

    The standard error is that of a ratio of sums (Cochran, "Sampling Techniques", 1977, chapter 6).

    Resamples are computed in single precision: the error of an interval's end is at most a
    millionth of its length, far less than the error from the number of resamples.
    """
    total = denominators.sum(axis=0)
    ratio = numerators.sum(axis=0) / total
    # Each task's excess over its share; the sum is 0, which also avoids cancellation in the second
    # moments.
    excess = numerators - ratio * denominators
    spread = np.sqrt((excess**2).sum(axis=0))
    standard = excess / np.where(spread > 0.0, spread, 1.0)
    steps = _steps(standard.astype(np.float32), denominators.astype(np.float32), weights)
    steps.sort(axis=1)
    n_counted = (denominators > 0).sum(axis=0).astype(np.float64)
    return Studentised(ratio, spread / total, n_counted, n_differing.astype(np.float64), steps)


def _steps(excess: Singles, denominators: Singles, weights: Draws) -> Singles:
    """Return the deviation of each resample in its own standard errors, shape (n_figures,
    n_resamples).

    The squares of a figure's `excess` sum to 1, or to 0 without spread. NaN if the resample has
    none of the figure's tasks. A resample without spread has a very large deviation.
    """
    parts = [excess, excess**2]
    if not (denominators == 1.0).all():  # else these sums are known
        parts += [denominators, denominators**2, excess * denominators]
    # One large product takes half the time of several small ones, which would each read all
    # weights.
    moved, squares, *others = np.split(np.concatenate(parts, axis=1).T @ weights.T, len(parts))
    # The draws of a part of a task set need not sum to its number of tasks.
    n_drawn = np.broadcast_to(weights.sum(axis=1), moved.shape)
    total, squared, crossed = others or (n_drawn, n_drawn, moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = moved / total  # NaN if the resample has none of the figure's tasks; so is all below
        # The spread around the resample's own ratio, expanded.
        squares += off * (off * squared - 2 * crossed)
        np.maximum(
            squares, 1e-6, out=squares
        )  # a smaller share of the sample's squared spread is a rounding error
        steps = np.divide(moved, np.sqrt(squares), dtype=np.float32)
    steps[(excess == 0.0).all(axis=0)] = 0.0
    return steps


RESAMPLES = 10_000
SEED = 20251114
METHOD = "bootstrap-t-3"
"""The name of the interval method, stored with intervals; increase the number when the method
changes.
"""
SMALL = 50
"""Number of tasks below which the interval's coverage is not promised."""
FEW_OTHERS = 10
"""The same for the number of tasks that differ from the most common value (rare mistakes)."""
FEWEST_OTHERS = 5
"""An interval needs at least this many tasks that differ from the most common value; else the
spread is unknown.
"""
_FIGURES_AT_A_TIME = 100
_SAME = 1e-9
"""Share of the largest value below which a difference of two values is only a rounding error."""


@lru_cache(maxsize=4)
def draws(n_tasks: int, resamples: int = RESAMPLES, seed: int = SEED) -> Draws:
    """Return how often each task is drawn in each resample, with as many draws as tasks, with
    replacement.

    Returns:
        Counts of shape (resamples, n_tasks), read-only. Every row sums to n_tasks.
    """
    shares = np.full(max(1, n_tasks), 1.0 / max(1, n_tasks))
    counts = np.random.default_rng(seed).multinomial(n_tasks, shares, size=resamples)[:, :n_tasks]
    # A task's counts are contiguous, so that draws of some of the tasks can be selected fast.
    sampled = np.ascontiguousarray(counts.T, dtype=np.float32)
    sampled.flags.writeable = False
    return sampled.T


def mean_intervals(values: Floats, *, sampled: Draws | None = None) -> Floats:
    """Return 95 % intervals of the means of figures over their tasks.

    Trials are nested in tasks, so a task's value is its mean over trials and tasks are the
    clusters.

    Args:
        values: shape (n_tasks, n_figures), NaN if a task does not count for a figure.
        sampled: draws of these tasks, shape (n_resamples, n_tasks), such as the columns of these
            tasks from the draws of a whole task set; `RESAMPLES` new ones if absent. A resample
            without any task of a figure is left out for that figure.

    Returns: Shape (n_figures, 2): low and high in the unit of the values, NaN for a figure with too
        few tasks that differ.
    """
    counted = ~np.isnan(values)
    return ratio_intervals(
        np.where(counted, values, 0.0), counted.astype(np.float64), sampled=sampled
    )


def ratio_intervals(
    numerators: Floats, denominators: Floats, *, sampled: Draws | None = None
) -> Floats:
    """Return 95 % intervals of pooled shares: the sum of numerators / the sum of denominators over
    tasks.

    The standard error is that of a ratio of sums (Cochran, "Sampling Techniques", 1977, chapter 6).

    Args:
        numerators: shape (n_tasks, n_figures).
        denominators: the same shape, at least 0; a task without cases has 0 and 0.
        sampled: as in `mean_intervals`.

    Returns:
        Shape (n_figures, 2), NaN for a figure with too few tasks that differ (`FEWEST_OTHERS`).
    """
    weights = (draws(len(numerators)) if sampled is None else sampled).astype(
        np.float32, copy=False
    )
    each = quotient(numerators, denominators)  # each task's own share, NaN without cases
    differing = n_differing(each)
    enough = np.flatnonzero(differing >= FEWEST_OTHERS)
    ends = np.full((numerators.shape[1], 2), np.nan)
    for start in range(0, len(enough), _FIGURES_AT_A_TIME):
        chosen = enough[start : start + _FIGURES_AT_A_TIME]
        chosen_each = each[:, chosen]
        low, high = studentised(
            numerators[:, chosen], denominators[:, chosen], differing[chosen], weights
        ).ends(LEVEL)
        # The interval stays within the range of the tasks' values.
        ends[chosen, 0] = np.maximum(low, np.nanmin(chosen_each, axis=0))
        ends[chosen, 1] = np.minimum(high, np.nanmax(chosen_each, axis=0))
    return ends


def quotient(over: NDArray[Any], under: NDArray[Any], least: Floats | float = 0.0) -> Floats:
    """Return the quotient, NaN if the divisor is not above the smallest allowed one."""
    quotients: Floats = np.full(np.broadcast_shapes(np.shape(over), np.shape(under)), np.nan)
    np.divide(over, under, out=quotients, where=np.asarray(under > least))
    return quotients


def means(values: Floats, axis: int = 0) -> Floats:
    """Return means that ignore NaN; NaN without any value."""
    counted = ~np.isnan(values)
    return quotient(np.where(counted, values, 0.0).sum(axis=axis), counted.sum(axis=axis))


def n_differing(values: Floats) -> NDArray[np.int64]:
    """Return the number of tasks that differ from the most common value of each figure.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
    """
    n_tasks, n_figures = values.shape
    if not n_tasks:
        return np.zeros(n_figures, dtype=np.int64)
    ordered = np.sort(values, axis=0)  # NaN goes to the end
    counted = ~np.isnan(ordered)
    scale = np.abs(np.where(counted, ordered, 0.0)).max(axis=0)
    is_new = np.ones(ordered.shape, dtype=np.bool_)
    is_new[1:] = ~(np.diff(ordered, axis=0) <= _SAME * scale)
    indices = np.arange(n_tasks)[:, None]
    # The length of the run of equal values that ends at each index.
    lengths = indices + 1 - np.maximum.accumulate(np.where(is_new, indices, 0), axis=0)
    commonest = np.where(counted, lengths, 0).max(axis=0)
    return np.asarray(counted.sum(axis=0) - commonest, dtype=np.int64)


def rest_on_few(values: Floats) -> NDArray[np.bool_]:
    """Return flags of the figures with too few tasks for a reliable interval.

    Either there are too few tasks, or too few of them differ.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
    """
    counted = (~np.isnan(values)).sum(axis=0)
    return np.asarray((counted < SMALL) | (n_differing(values) < FEW_OTHERS), dtype=np.bool_)


def repeated_interval(scores: Sequence[float]) -> tuple[float, float, float] | None:
    """Return mean, low and high (95 %) of a repeated evaluation, by Student's t (repetitions - 1
    degrees of freedom).

    Args:
        scores: a score for each repetition.

    Returns:
        None for fewer than two repetitions.
    """
    n = len(scores)
    if n < 2:
        return None
    mean = sum(scores) / n
    half = (
        float(student_quantile(0.975, np.asarray(n - 1.0)))
        * float(np.std(scores, ddof=1))
        / math.sqrt(n)
    )
    return mean, mean - half, mean + half
