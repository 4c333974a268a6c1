"""How well a check predicts an outcome: figures of tables with the check in rows and the outcome in columns.

Tables have the shape (..., 2, 2): rows are cases that fail the check and that pass it, columns those with the outcome
and without it. Entries are sums of weights, since a case may fail in one repetition and pass in another. Figures have
the leading shape, NaN where undefined. `agreement_intervals` takes them as measures.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.quantiles import Floats

Tables = NDArray[Any]


def failing_rate(tables: Tables) -> Floats:
    """The share with the outcome among the cases that fail the check."""
    table = np.asarray(tables, dtype=np.float64)
    return _ratio(table[..., 0, 0], table[..., 0, :].sum(axis=-1))


def passing_rate(tables: Tables) -> Floats:
    """The share with the outcome among the cases that pass the check."""
    table = np.asarray(tables, dtype=np.float64)
    return _ratio(table[..., 1, 0], table[..., 1, :].sum(axis=-1))


def rate_difference(tables: Tables) -> Floats:
    """The first of these rates minus the second: above 0 where the check finds the outcome."""
    return np.asarray(failing_rate(tables) - passing_rate(tables))


def odds_ratio(tables: Tables) -> Floats:
    """The odds of the outcome where the check fails over those where it passes; NaN if a divisor is 0."""
    table = np.asarray(tables, dtype=np.float64)
    return _ratio(table[..., 0, 0] * table[..., 1, 1], table[..., 0, 1] * table[..., 1, 0])


def check_auc(tables: Tables) -> Floats:
    """The area under the ROC curve of a check that only fails or passes: the mean of sensitivity and specificity.

    It is the chance that of two cases, one with the outcome and one without, the check fails the first and passes the
    second, with half of the chance that it does not distinguish them (Hanley and McNeil, 1982).
    """
    table = np.asarray(tables, dtype=np.float64)
    sensitivity = _ratio(table[..., 0, 0], table[..., :, 0].sum(axis=-1))
    specificity = _ratio(table[..., 1, 1], table[..., :, 1].sum(axis=-1))
    return np.asarray((sensitivity + specificity) / 2.0)


def _ratio(over: Floats, under: Floats) -> Floats:
    quotient: Floats = np.full(np.shape(under), np.nan)
    np.divide(over, under, out=quotient, where=np.asarray(under) > 0.0)
    return quotient
