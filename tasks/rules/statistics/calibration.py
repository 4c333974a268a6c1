"""Calibration of probabilities: Brier score with its parts, and expected calibration error.

Measures take sums of shape (..., `BINS`, 6): for the cases in each bin of the probability p, their number and the sums
of p, y, p*p, p*y and y*y, where y is the true value (1, 0.5 or 0). Figures have the leading shape, NaN without cases.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import Draws, Floats, expanded_tails, quotient

BINS = 10
"""Bins of equal width, as scikit-learn's `calibration_curve` has them with `strategy="uniform"`."""
METHOD = "calibration-2"
"""The name of the method, stored with figures; the number grows when the method changes."""
Sums = NDArray[Any]


def brier(sums: Sums) -> Floats:
    """Return the mean squared difference of probability and truth (Brier, 1950): 0 is perfect."""
    n, _, _, pp, py, yy = _totals(sums)
    return quotient(pp - 2.0 * py + yy, n)


def reliability(sums: Sums) -> Floats:
    """Return the part of the Brier score that is miscalibration (Murphy, 1973): 0 is calibrated."""
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(np.nan_to_num(quotient((p - y) ** 2, n)).sum(axis=-1), n.sum(axis=-1))


def resolution(sums: Sums) -> Floats:
    """Return the part by which the bins' true shares differ from the overall one (Murphy, 1973): more is better."""
    n, _, y, *_ = np.moveaxis(sums, -1, 0)
    overall = quotient(y.sum(axis=-1), n.sum(axis=-1))
    apart = n * (np.nan_to_num(quotient(y, n)) - overall[..., None]) ** 2
    return quotient(apart.sum(axis=-1), n.sum(axis=-1))


def uncertainty(sums: Sums) -> Floats:
    """Return the variance of the truth, which no judge can change."""
    n, _, y, _, _, yy = _totals(sums)
    return quotient(yy, n) - quotient(y, n) ** 2


def calibration_error(sums: Sums) -> Floats:
    """Return the expected calibration error (Naeini et al., 2015): the mean distance of a bin's probability and truth.

    Noise adds to it: it is above 0 even for a calibrated judge (see `corrected`).
    """
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(np.abs(p - y).sum(axis=-1), n.sum(axis=-1))


def corrected(task_sums: Sums, measure: Callable[[Sums], Floats], sampled: Draws) -> tuple[float, float, float]:
    """Return a measure of one figure without what noise adds to it, and the ends of its 95 % interval.

    Whole tasks are drawn with replacement. As far as the mean of the draws is above the measure, the measure is above
    the truth; the interval is the percentiles of the draws, reflected at the measure (the basic bootstrap; Davison and
    Hinkley, "Bootstrap Methods and their Application", 1997, section 2.4), with tails expanded for few tasks.

    Args:
        task_sums: shape (n_tasks, `BINS`, 6).
        sampled: draws of these tasks, shape (n_resamples, n_tasks).
    """
    n_tasks, *shape = task_sums.shape
    drawn = measure((sampled.astype(np.float64) @ task_sums.reshape(n_tasks, -1)).reshape(-1, *shape))
    value = float(measure(task_sums.sum(axis=0)))
    tail = float(expanded_tails(np.array([float(n_tasks)]), 0.95)[0]) if n_tasks > 1 else np.nan
    low, high = np.nanquantile(drawn, [tail, 1.0 - tail]) if n_tasks > 1 else (np.nan, np.nan)
    return max(0.0, 2.0 * value - float(np.nanmean(drawn))), max(0.0, 2.0 * value - high), 2.0 * value - low


def _totals(sums: Sums) -> Sums:
    return np.moveaxis(sums.sum(axis=-2), -1, 0)
