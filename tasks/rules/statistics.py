"""Intervals for figures that are means or pooled shares over tasks, with whole tasks as the sample.

The interval is the studentised bootstrap (bootstrap-t; Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
section 12.5), held within bounds where it is known to run wild. README.md tells why this one.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draws = NDArray[np.floating[Any]]
Singles = NDArray[np.float32]

RESAMPLES = 10_000
SEED = 20251114
METHOD = "bootstrap-t-2"
"""The name of the interval method, stored beside intervals; the number grows when the method changes."""
SMALL = 50
"""Below so many tasks the interval's coverage is not promised."""
FEW_OTHERS = 10
"""Nor is it where fewer tasks than these differ from the commonest value, as with a rare mistake."""
WIDEST = 2.0
"""One side of an interval is at most so many times Student's t."""
_DRAWN_AT_A_TIME = 1_000
_FIGURES_AT_A_TIME = 100
_NO_SPREAD = 1e-6
"""The share of the sample's squared spread below which a resample has none but rounding."""


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
    seed: int = SEED,
    drawn: Draws | None = None,
) -> Floats:
    """Intervals of the means of figures over their tasks.

    Trials are nested in tasks, so a task's value is its mean over trials and tasks are the clusters.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
        level: nominal coverage.
        drawn: draws of these tasks, shape (n_resamples, n_tasks), such as the columns of these tasks from the draws
            of a whole board; made from `resamples` and `seed` when absent. A resample without any task of a figure
            is left out for it.

    Returns:
        Shape (n_figures, 2): low and high in the unit of the values, NaN for a figure with fewer than two tasks.
    """
    counted = ~np.isnan(values)
    counts = counted.astype(np.float64)
    return ratio_intervals(
        np.where(counted, values, 0.0), counts, level=level, resamples=resamples, seed=seed, drawn=drawn
    )


def ratio_intervals(
    numerators: Floats,
    denominators: Floats,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
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
        Shape (n_figures, 2), NaN for a figure with fewer than two tasks.
    """
    weights = (draws(len(numerators), resamples, seed) if drawn is None else drawn).astype(np.float32, copy=False)
    found = np.full((numerators.shape[1], 2), np.nan)
    for columns in figure_chunks(numerators.shape[1], _FIGURES_AT_A_TIME):
        enough = (denominators[:, columns] > 0).sum(axis=0) >= 2
        chosen = np.arange(columns.start, columns.stop)[enough]
        if len(chosen):
            found[chosen] = _studentised(numerators[:, chosen], denominators[:, chosen], weights, level)
    return found


def _studentised(numerators: Floats, denominators: Floats, weights: Draws, level: float) -> Floats:
    """The intervals of figures that have at least two tasks each.

    Resamples are worked out in single precision: an interval's end is off by a millionth of its length at most, far
    less than by the number of resamples.
    """
    total = denominators.sum(axis=0)
    ratio = numerators.sum(axis=0) / total
    # What a task adds beyond its share; sums to nothing, which also keeps the second moments free of cancellation.
    excess = numerators - ratio * denominators
    spread = np.sqrt((excess**2).sum(axis=0))
    error = spread / total
    widest = WIDEST * student_quantile((1.0 + level) / 2.0, (denominators > 0).sum(axis=0) - 1.0)
    standard = excess / np.where(spread > 0.0, spread, 1.0)
    steps = _steps(standard.astype(np.float32), denominators.astype(np.float32), weights)
    limit = widest[:, None].astype(np.float32)
    np.clip(steps, -limit, limit, out=steps)
    tails = np.full(len(ratio), (1.0 - level) / 2.0)
    lowest, highest = quantile_pairs(steps, tails).T
    with np.errstate(divide="ignore", invalid="ignore"):
        each = numerators / denominators
    # A mean lies within the values that it is taken over.
    low = np.clip(ratio - error * np.maximum(highest, 0.0), np.nanmin(each, axis=0), ratio)
    high = np.clip(ratio - error * np.minimum(lowest, 0.0), ratio, np.nanmax(each, axis=0))
    return np.stack([low, high], axis=1)


def _steps(excess: Singles, denominators: Singles, weights: Draws) -> Singles:
    """How many of its own standard errors each resample lies off, shape (n_figures, n_resamples).

    The squares of a figure's `excess` sum to 1, or to 0 where there is no spread. NaN where the resample holds none of
    the figure's tasks. A resample without spread lies off by very many.
    """
    moved, squares = excess.T @ weights.T, (excess**2).T @ weights.T
    if (denominators == 1.0).all():
        # All tasks count alike, and a column of a wider board's draws need not sum to the number of tasks.
        total = crossed = squared = np.broadcast_to(weights.sum(axis=1), moved.shape)
        crossed = moved
    else:
        total = denominators.T @ weights.T
        is_mask = ((denominators == 0.0) | (denominators == 1.0)).all()
        crossed = moved if is_mask else (excess * denominators).T @ weights.T
        squared = total if is_mask else (denominators**2).T @ weights.T
    with np.errstate(divide="ignore", invalid="ignore"):
        off = moved / total  # NaN without any of the figure's tasks, and with it all that follows
        # The spread about the resample's own ratio, multiplied out.
        squares += off * (off * squared - 2 * crossed)
        np.maximum(squares, _NO_SPREAD, out=squares)
        steps = np.divide(moved, np.sqrt(squares), dtype=np.float32)
    steps[(excess == 0.0).all(axis=0)] = 0.0
    return steps


def figure_chunks(n_figures: int, at_a_time: int) -> Iterator[slice]:
    """Slices that together cover the figures, so that memory does not grow with their number."""
    return (slice(start, min(start + at_a_time, n_figures)) for start in range(0, n_figures, at_a_time))


def quantile_pairs(rows: NDArray[Any], tails: Floats) -> Floats:
    """The quantiles at `tails` and `1 - tails` of each row, by linear interpolation, NaN left out. Sorts the rows.

    Args:
        rows: shape (n_figures, n_resamples).
        tails: one probability a row.

    Returns:
        Shape (n_figures, 2); NaN for a row of nothing but NaN.
    """
    rows.sort(axis=1)  # NaN goes to the end
    last = rows.shape[1] - np.isnan(rows).sum(axis=1) - 1
    every = np.arange(len(rows))
    pair = []
    for probability in (tails, 1.0 - tails):
        place = np.maximum(last, 0) * probability
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(last, 0))
        low, high = rows[every, below], rows[every, above]
        pair.append(low + (high - low) * (place - below))
    return np.stack(pair, axis=1)


def student_quantile(probability: float, degrees: Floats) -> Floats:
    """Quantiles of Student's t for each number of degrees of freedom."""
    from scipy.special import stdtrit  # takes as long to import as NumPy, and who only reads needs none of it

    return np.asarray(stdtrit(degrees, probability), dtype=np.float64)


def expanded_tails(n_tasks: Floats, level: float) -> Floats:
    """The tail probability that gives a percentile interval of so many tasks the width of Student's t.

    Phi(-sqrt(n / (n - 1)) * t), with t the upper quantile with n - 1 degrees of freedom (Hesterberg, "What Teachers
    Should Know About the Bootstrap", 2015). For numbers of at least two.
    """
    from scipy.special import ndtr

    wider = np.sqrt(n_tasks / (n_tasks - 1.0)) * student_quantile((1.0 + level) / 2.0, n_tasks - 1.0)
    return np.asarray(ndtr(-wider), dtype=np.float64)


def few_to_rest_on(values: Floats) -> NDArray[np.bool_]:
    """Which figures rest on too few tasks for their interval to be relied on: too few at all, or too few that differ.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
    """
    found = []
    for column in np.asarray(values).T:
        counted = column[~np.isnan(column)]
        commonest = int(np.unique(counted, return_counts=True)[1].max(initial=0))
        found.append(len(counted) < SMALL or len(counted) - commonest < FEW_OTHERS)
    return np.array(found, dtype=np.bool_)


def repeated_interval(scores: Sequence[float], level: float = 0.95) -> tuple[float, float, float] | None:
    """Mean, low and high of an evaluation that was repeated, by Student's t with one degree of freedom fewer.

    Args:
        scores: one score a repetition.

    Returns:
        None for fewer than two repetitions.
    """
    n = len(scores)
    if n < 2:
        return None
    mean, spread = float(np.mean(scores)), float(np.std(scores, ddof=1))
    half = float(student_quantile((1.0 + level) / 2.0, np.asarray(n - 1.0))) * spread / math.sqrt(n)
    return mean, mean - half, mean + half
