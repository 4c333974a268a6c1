"""Calibration of probabilities: Brier score with its parts, and expected calibration error.

Measures take sums of shape (..., `BINS`, 6): for the cases in each bin of the probability p, their
number and the sums of p, y, p*p, p*y and y*y, where y is the true value (1, 0.5 or 0). Results have
the leading shape, NaN without cases. Probabilities differ within a bin, so the Brier score is only
about reliability - resolution + uncertainty.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import (
    Draws,
    Floats,
    expanded_tails,
    quotient,
    ratio_intervals,
)

BINS = 10
"""Bins of equal width, as scikit-learn's `calibration_curve` has them with `strategy="uniform"`."""
METHOD = "calibration-4"
"""The name of the method, stored with results; increase the number when the method changes."""
Sums = NDArray[Any]


def brier(sums: Sums) -> Floats:
    """Return the mean squared difference of probability and truth (Brier, 1950): 0 is perfect."""
    return quotient(*squared_errors(sums))


def squared_errors(sums: Sums) -> tuple[Floats, Floats]:
    """Return the sum of the squared differences of probability and truth, and the cases' number."""
    n, _, _, pp, py, yy = _sums_over_bins(sums)
    return pp - 2.0 * py + yy, n


def reliability(sums: Sums) -> Floats:
    """Return the part of the Brier score that is miscalibration (Murphy, 1973): 0 is calibrated."""
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(np.nan_to_num(quotient((p - y) ** 2, n)).sum(axis=-1), n.sum(axis=-1))


def resolution(sums: Sums) -> Floats:
    """Return the mean squared difference of bins' true shares from the overall share.

    More is better (Murphy, 1973).
    """
    n, _, y, *_ = np.moveaxis(sums, -1, 0)
    overall = quotient(y.sum(axis=-1), n.sum(axis=-1))
    differences = np.nan_to_num(quotient(y, n)) - overall[..., None]  # (..., n_bins)
    return quotient((n * differences**2).sum(axis=-1), n.sum(axis=-1))


def uncertainty(sums: Sums) -> Floats:
    """Return the variance of the truth, which no judge can change."""
    n, _, y, _, _, yy = _sums_over_bins(sums)
    return quotient(yy, n) - quotient(y, n) ** 2


def calibration_error(sums: Sums) -> Floats:
    """Return the expected calibration error (Naeini et al., 2015).

    It is the mean distance of truth and probability by bin. Noise adds to it: it is above 0 even
    for a calibrated judge (see `corrected_error`).
    """
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(np.abs(p - y).sum(axis=-1), n.sum(axis=-1))


def corrected_error(task_sums: Sums, sampled: Draws) -> Floats:
    """Return the calibration error without what noise adds to it, and its interval.

    Whole tasks are drawn with replacement. The draws' errors are on average above the sample's by
    about as much as the sample's is above the true one::

        bias = mean(errors of draws) - error
        corrected error = error - bias

    With the sign s of each bin's difference fixed, the error is a pooled share, sum(s * (p - y)) /
    n, which has an interval; both of its ends are reduced by the bias, too. Noise has chosen the
    signs, so this interval is no test of calibration: its low end is 0 unless the error is above
    `largest_by_chance`.

    Args:
        task_sums: shape (n_tasks, `BINS`, 6).
        sampled: draws of these tasks, shape (n_resamples, n_tasks).

    Returns:
        The error, and low and high of its 95 % interval; without an interval NaN (see
        `ratio_intervals`).
    """
    sums = task_sums[..., :3]  # n, p and y are enough
    total = sums.sum(axis=0)
    error = calibration_error(total)
    n_tasks, *shape = sums.shape
    resampled = (sampled @ sums.astype(sampled.dtype).reshape(n_tasks, -1)).reshape(-1, *shape)
    bias = np.nanmean(calibration_error(resampled)) - error

    excess = sums[..., 1] - sums[..., 2]  # (n_tasks, n_bins)
    signed = (excess * np.sign(excess.sum(axis=0))).sum(axis=1, keepdims=True)
    counts = sums[..., 0].sum(axis=1, keepdims=True)
    ends = ratio_intervals(signed, counts, sampled=sampled)[0]

    corrected: Floats = np.array([error, *ends]) - bias  # error, low, high
    has_interval = not np.isnan(ends).any()
    if has_interval and error <= largest_by_chance(total, resampled, n_tasks):
        corrected[1] = 0.0
    return np.maximum(0.0, corrected)


def largest_by_chance(total: Sums, resampled: Sums, n_tasks: int) -> float:
    """Return the calibration error that a calibrated judge exceeds in 2.5 % of samples.

    The draws deviate from the sample as samples of a calibrated judge deviate from 0. A task's
    verdicts are drawn together, so they may be correlated: outcomes tossed one by one from the
    probabilities would vary too little.

    Args:
        total: shape (`BINS`, 3), sums over tasks.
        resampled: shape (n_resamples, `BINS`, 3), the same of draws of whole tasks.
        n_tasks: at least two; for few tasks the tail is expanded.
    """
    deviations = _differences(resampled) - _differences(total)  # (n_resamples, bins)
    tail = float(expanded_tails(float(n_tasks)))
    return float(np.quantile(np.abs(deviations).sum(axis=-1), 1.0 - tail))


def _differences(sums: Sums) -> Floats:
    """Return each bin's part of the mean difference of probability and truth, shape (..., bins)."""
    n, p, y, *_ = np.moveaxis(sums, -1, 0)
    return quotient(p - y, n.sum(axis=-1, keepdims=True))


def _sums_over_bins(sums: Sums) -> Sums:
    """Return the sums over all bins, shape (6, ...)."""
    return np.moveaxis(sums.sum(axis=-2), -1, 0)
