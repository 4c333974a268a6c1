"""Intervals for figures that are means or pooled shares over tasks, with whole tasks as the sample.

On each side the interval is the wider of two: the studentised bootstrap (bootstrap-t; Efron and Tibshirani, "An
Introduction to the Bootstrap", 1993, section 12.5), which knows about skewed figures, and Student's t with the degrees
of freedom that the tasks have that differ. README.md explains why.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.quantiles import Floats, student_quantile
from tasks.rules.statistics.studentised import Draws, studentised

RESAMPLES = 10_000
SEED = 20251114
METHOD = "bootstrap-t-3"
"""The name of the interval method, stored beside intervals; the number grows when the method changes."""
SMALL = 50
"""Below so many tasks the interval's coverage is not promised."""
FEW_OTHERS = 10
"""Nor is it where fewer tasks than these differ from the commonest value, as with a rare mistake."""
FEWEST_OTHERS = 5
"""Where fewer tasks than these differ from the commonest value, their spread is unknown and there is no interval."""
_DRAWN_AT_A_TIME = 1_000
_FIGURES_AT_A_TIME = 100
_SAME = 1e-9
"""The share of the largest value within which two values are the same but for rounding."""


@lru_cache(maxsize=4)
def draws(n_tasks: int, resamples: int = RESAMPLES, seed: int = SEED) -> Draws:
    """How often each task is drawn in each resample of as many tasks with replacement.

    Returns:
        Counts of shape (resamples, n_tasks), read-only. Every row sums to n_tasks.
    """
    # A task's counts lie side by side, so that the draws of some of the tasks are quickly taken out.
    drawn = np.zeros((n_tasks, resamples), dtype=np.float32)
    if n_tasks:
        generator = np.random.default_rng(seed)
        shares = np.full(n_tasks, 1.0 / n_tasks)
        for start in range(0, resamples, _DRAWN_AT_A_TIME):
            columns = drawn[:, start : start + _DRAWN_AT_A_TIME]
            columns[:] = generator.multinomial(n_tasks, shares, size=columns.shape[1]).T
    drawn.flags.writeable = False
    return drawn.T


def mean_intervals(
    values: Floats,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    drawn: Draws | None = None,
) -> Floats:
    """Intervals of the means of figures over their tasks.

    Trials are nested in tasks, so a task's value is its mean over trials and tasks are the clusters.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
        level: nominal coverage.
        drawn: draws of these tasks, shape (n_resamples, n_tasks), such as the columns of these tasks from the draws
            of a whole task set; `resamples` new ones when absent. A resample without any task of a figure
            is left out for it.

    Returns:
        Shape (n_figures, 2): low and high in the unit of the values, NaN for a figure with too few tasks that differ.
    """
    counted = ~np.isnan(values)
    counts = counted.astype(np.float64)
    return ratio_intervals(np.where(counted, values, 0.0), counts, level=level, resamples=resamples, drawn=drawn)


def ratio_intervals(
    numerators: Floats,
    denominators: Floats,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    drawn: Draws | None = None,
) -> Floats:
    """Intervals of pooled shares: the sum of numerators by the sum of denominators over tasks.

    The standard error is that of a ratio of sums (Cochran, "Sampling Techniques", 1977, chapter 6).

    Args:
        numerators: shape (n_tasks, n_figures).
        denominators: the same shape, not negative; a task without the thing has 0 and 0.
        level: nominal coverage.
        drawn: as in `mean_intervals`.

    Returns:
        Shape (n_figures, 2), NaN for a figure with too few tasks that differ (`FEWEST_OTHERS`).
    """
    weights = (draws(len(numerators), resamples) if drawn is None else drawn).astype(np.float32, copy=False)
    each = _each(numerators, denominators)
    differing = n_differing(each)
    enough = np.flatnonzero(differing >= FEWEST_OTHERS)
    found = np.full((numerators.shape[1], 2), np.nan)
    for places in figure_chunks(len(enough), _FIGURES_AT_A_TIME):
        chosen = enough[places]
        chosen_each = each[:, chosen]
        made = studentised(numerators[:, chosen], denominators[:, chosen], differing[chosen], weights)
        low, high = made.ends(level)
        # No mean is sought outside the values that it is taken over.
        found[chosen, 0] = np.maximum(low, np.nanmin(chosen_each, axis=0))
        found[chosen, 1] = np.minimum(high, np.nanmax(chosen_each, axis=0))
    return found


def _each(numerators: Floats, denominators: Floats) -> Floats:
    """Each task's own share, NaN where it has none of the thing."""
    shares: Floats = np.full(numerators.shape, np.nan)
    np.divide(numerators, denominators, out=shares, where=denominators > 0)
    return shares


def figure_chunks(n_figures: int, at_a_time: int) -> Iterator[slice]:
    """Slices that together cover the figures, so that memory does not grow with their number."""
    return (slice(start, min(start + at_a_time, n_figures)) for start in range(0, n_figures, at_a_time))


def n_differing(values: Floats) -> NDArray[np.int64]:
    """How many tasks differ from the commonest value of each figure.

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
    places = np.arange(n_tasks)[:, None]
    # How long the run of equal values is that ends at each place.
    lengths = places + 1 - np.maximum.accumulate(np.where(is_new, places, 0), axis=0)
    commonest = np.where(counted, lengths, 0).max(axis=0)
    return np.asarray(counted.sum(axis=0) - commonest, dtype=np.int64)


def few_to_rest_on(values: Floats) -> NDArray[np.bool_]:
    """Which figures rest on too few tasks for their interval to be relied on: too few at all, or too few that differ.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
    """
    counted = (~np.isnan(values)).sum(axis=0)
    return np.asarray((counted < SMALL) | (n_differing(values) < FEW_OTHERS), dtype=np.bool_)


def repeated_interval(scores: Sequence[float]) -> tuple[float, float, float] | None:
    """Mean, low and high (95 %) of a repeated evaluation, by Student's t with one degree of freedom fewer.

    Args:
        scores: one score a repetition.

    Returns:
        None for fewer than two repetitions.
    """
    n = len(scores)
    if n < 2:
        return None
    mean = sum(scores) / n
    spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / (n - 1))
    half = _upper_quantile(n - 1) * spread / math.sqrt(n)
    return mean, mean - half, mean + half


@cache
def _upper_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t; there are few numbers of repetitions, and many figures with them."""
    return float(student_quantile(0.975, np.asarray(float(degrees))))
