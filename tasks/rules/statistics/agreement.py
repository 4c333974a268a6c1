"""How far graders agree, from counts of their labels.

Measures take tables of shape (..., k, k), k labels, and give figures of the leading shape, NaN where undefined.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import RESAMPLES, SEED, draws, figure_chunks
from tasks.rules.statistics.quantiles import Floats, expanded_tails, quantile_pairs
from tasks.rules.statistics.studentised import Draws

Counts = NDArray[Any]
Measure = Callable[[Floats], Floats]
_CELLS_AT_A_TIME = 400
"""Columns of a matrix product: table cells of figures."""
_NOTHING = 1e-12
"""The share of all pairs below which their number is nothing but rounding."""


def raw_agreement(tables: Counts) -> Floats:
    """The share of cases that both graders label alike, from 0 to 1; NaN without cases.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    alike, rows, _ = _sums(tables)
    return _ratio(alike, rows.sum(axis=-1))


def kappa(tables: Counts) -> Floats:
    """Cohen's kappa without weights (Cohen, 1960): agreement beyond chance, 1 for full, 0 for chance.

    NaN without cases, and where chance alone would agree on all, since both graders use one and the same label.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    alike, rows, columns = _sums(tables)
    total = rows.sum(axis=-1)
    # (observed - expected) / (1 - expected), multiplied by the square of the total so that counts stay whole.
    expected = (rows * columns).sum(axis=-1)
    return _ratio(total * alike - expected, total**2 - expected, total**2)


def macro_f1(tables: Counts) -> Floats:
    """The mean of the labels' F1, 2tp / (2tp + fp + fn), from 0 to 1; the same whichever grader is the truth.

    Over the labels that either grader used, as in scikit-learn's `f1_score(average="macro")`. NaN without cases.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    table = np.asarray(tables, dtype=np.float64)
    _, rows, columns = _sums(table)
    used = rows + columns
    each = np.where(used > 0, _ratio(2.0 * np.diagonal(table, axis1=-2, axis2=-1), used), 0.0)
    return _ratio(each.sum(axis=-1), (used > 0).sum(axis=-1).astype(np.float64))


def krippendorff_alpha(coincidences: Counts) -> Floats:
    """Krippendorff's alpha for nominal data ("Computing Krippendorff's Alpha-Reliability", 2011).

    1 for full agreement, 0 for chance. NaN without pairs and where only one value occurs.

    Args:
        coincidences: for each two values, the sum over units of the ordered pairs of labels divided by the unit's
            number of labels less one. A unit with one label adds nothing.
    """
    alike, values, _ = _sums(coincidences)
    total = values.sum(axis=-1)
    expected = total**2 - (values**2).sum(axis=-1)
    disagreement: Floats = (total - 1.0) * _ratio(total - alike, expected, total**2)
    return 1.0 - disagreement


def agreement_intervals(
    task_tables: Counts,
    *measures: Measure,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    drawn: Draws | None = None,
) -> list[Floats]:
    """Intervals of measures of agreement pooled over tasks, whose cases hang together.

    Whole tasks are drawn with replacement, once for all measures. Percentiles of the resampled measure, with tails
    expanded for few tasks; resamples where the measure is undefined are left out.

    Args:
        task_tables: shape (n_tasks, n_figures, k, k), the tables of each task; a figure's table is their sum.
        measures: some of this module.
        level: nominal coverage.
        drawn: draws of these tasks, shape (n_resamples, n_tasks); made from `resamples` and `seed` when absent.

    Returns:
        For each measure shape (n_figures, 2): low and high, NaN for a figure with fewer than two tasks with counts.
    """
    tables = np.asarray(task_tables, dtype=np.float64)
    n_tasks, n_figures, labels, _ = tables.shape
    weights = (draws(n_tasks, resamples, seed) if drawn is None else drawn).astype(np.float64)
    with_counts = (tables.sum(axis=(2, 3)) > 0).sum(axis=0)
    found = [np.full((n_figures, 2), np.nan) for _ in measures]
    for columns in figure_chunks(n_figures, max(1, _CELLS_AT_A_TIME // labels**2)):
        chosen = np.arange(columns.start, columns.stop)[with_counts[columns] >= 2]
        if len(chosen):
            sums = (weights @ tables[:, chosen].reshape(n_tasks, -1)).reshape(len(weights), len(chosen), labels, labels)
            tails = expanded_tails(with_counts[chosen].astype(np.float64), level)
            for measure, of_measure in zip(measures, found, strict=True):
                of_measure[chosen] = quantile_pairs(np.ascontiguousarray(measure(sums).T), tails)
    return found


def _sums(tables: Counts) -> tuple[Floats, Floats, Floats]:
    """The diagonal's sum of shape (...), and the sums of rows and of columns of shape (..., k)."""
    table = np.asarray(tables, dtype=np.float64)
    return np.trace(table, axis1=-2, axis2=-1), table.sum(axis=-1), table.sum(axis=-2)


def _ratio(over: Floats, under: Floats, scale: Floats | float = 1.0) -> Floats:
    """The quotient, NaN where the divisor is nothing beside its scale."""
    defined = np.asarray(under > _NOTHING * np.asarray(scale))
    quotient: Floats = np.full(np.shape(under), np.nan)
    np.divide(over, under, out=quotient, where=defined)
    return quotient
