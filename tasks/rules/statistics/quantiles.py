"""Quantiles: of resamples, and of the distributions that intervals use."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def quantile_pairs(rows: NDArray[Any], tails: Floats) -> Floats:
    """The quantiles at `tails` and `1 - tails` of each row, by linear interpolation, NaN left out. Sorts the rows.

    Args:
        rows: shape (n_figures, n_resamples).
        tails: one probability a row.

    Returns:
        Shape (n_figures, 2); NaN for a row of nothing but NaN.
    """
    rows.sort(axis=1)  # NaN goes to the end
    return sorted_quantile_pairs(rows, tails)


def sorted_quantile_pairs(rows: NDArray[Any], tails: Floats) -> Floats:
    """As `quantile_pairs`, of rows that are sorted."""
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


def student_two_sided(distances: Floats, degrees: Floats) -> Floats:
    """The chance of so far a distance from 0, either way, under Student's t."""
    from scipy.special import stdtr

    return np.asarray(2.0 * stdtr(degrees, -distances), dtype=np.float64)


def normal_below(distances: Floats) -> Floats:
    """The chance of a standard normal below each of some values."""
    from scipy.special import ndtr

    return np.asarray(ndtr(distances), dtype=np.float64)


def expanded_tails(n_tasks: Floats, level: float) -> Floats:
    """The tail probability that gives a percentile interval of so many tasks the width of Student's t.

    Phi(-sqrt(n / (n - 1)) * t), with t the upper quantile with n - 1 degrees of freedom (Hesterberg, "What Teachers
    Should Know About the Bootstrap", 2015). For numbers of at least two.
    """
    from scipy.special import ndtr

    wider = np.sqrt(n_tasks / (n_tasks - 1.0)) * student_quantile((1.0 + level) / 2.0, n_tasks - 1.0)
    return np.asarray(ndtr(-wider), dtype=np.float64)
