"""Calibration of probabilities: Brier score with its parts, and expected calibration error.

Measures take sums of shape (..., `BINS`, 6): for the cases in each bin of the probability p, their number and the sums
of p, y, p*p, p*y and y*y, where y is the true value (1, 0.5 or 0). Figures have the leading shape, NaN without cases.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import Draws, Floats, quotient, ratio_intervals

BINS = 10
"""Bins of equal width, as scikit-learn's `calibration_curve` has them with `strategy="uniform"`."""
METHOD = "calibration-3"
"""The name of the method, stored with figures; increase the number when the method changes."""
Sums = NDArray[Any]


def brier(sums: Sums) -> Floats:
    """Return the mean squared difference of probability and truth (Brier, 1950): 0 is perfect."""
    return quotient(*squared_errors(sums))


def squared_errors(sums: Sums) -> tuple[Floats, Floats]:
    """Return the sum of the squared differences of probability and truth, and the number of cases."""
    n, _, _, pp, py, yy = _totals(sums)
    return pp - 2.0 * py + yy, n


def reliability(sums: Sums) -> Floats:
    """Return the part of the Brier score that is miscalibration (Murphy, 1973): 0 is calibrated."""
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(np.nan_to_num(quotient((p - y) ** 2, n)).sum(axis=-1), n.sum(axis=-1))


def resolution(sums: Sums) -> Floats:
    """Return the mean squared difference of bins' true shares from the overall share (Murphy, 1973): more is better."""
    n, _, y, *_ = np.moveaxis(sums, -1, 0)
    overall = quotient(y.sum(axis=-1), n.sum(axis=-1))
    apart = n * (np.nan_to_num(quotient(y, n)) - overall[..., None]) ** 2
    return quotient(apart.sum(axis=-1), n.sum(axis=-1))


def uncertainty(sums: Sums) -> Floats:
    """Return the variance of the truth, which no judge can change."""
    n, _, y, _, _, yy = _totals(sums)
    return quotient(yy, n) - quotient(y, n) ** 2


def calibration_error(sums: Sums) -> Floats:
    """Return the expected calibration error (Naeini et al., 2015): the mean distance of truth and probability by bin.

    Noise adds to it: it is above 0 even for a calibrated judge (see `corrected_error`).
    """
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(np.abs(p - y).sum(axis=-1), n.sum(axis=-1))


def corrected_error(task_sums: Sums, sampled: Draws) -> Floats:
    """Return the calibration error of one figure without what noise adds to it, and low and high of its 95 % interval.

    Whole tasks are drawn with replacement; the error is taken to be above the truth by as much as the mean of the draws
    is above the error. With the signs of the bins' differences fixed, the error is a pooled share; the interval of this
    share is moved by the same amount.

    Args:
        task_sums: shape (n_tasks, `BINS`, 6).
        sampled: draws of these tasks, shape (n_resamples, n_tasks).

    Returns:
        The error, low and high; without an interval NaN (see `ratio_intervals`).
    """
    used = task_sums[..., :3]  # n, p and y are enough
    plain = calibration_error(used.sum(axis=0))
    of_draws = sampled @ used.astype(sampled.dtype).reshape(len(used), -1)
    drawn = calibration_error(of_draws.reshape(-1, *used.shape[1:]))
    excess = used[..., 1] - used[..., 2]
    signed = (excess * np.sign(excess.sum(axis=0))).sum(axis=1, keepdims=True)
    ends = ratio_intervals(signed, used[..., 0].sum(axis=1, keepdims=True), sampled=sampled)[0]
    moved: Floats = np.array([plain, *ends]) - (np.nanmean(drawn) - plain)
    return np.maximum(0.0, moved)


def _totals(sums: Sums) -> Sums:
    return np.moveaxis(sums.sum(axis=-2), -1, 0)
