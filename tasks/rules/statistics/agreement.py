"""Agreement of graders, from counts of their labels.

Measures of agreement take tables of shape (..., k, k), k labels, and return figures of the leading
shape, NaN where undefined.

Measures of a check's prediction of an outcome take tables of shape (..., 2, 2): rows are cases that
fail and that pass the check, columns cases with and without the outcome. Entries are sums of
weights, because a case may fail in one repetition and pass in another. These measures work with
`agreement_intervals` too.

Effective votes are the number of independent votes that graders with correlated errors are worth.

Agreement of two sources of labels, with several labels per task, is precision, recall, F1 and
Jaccard, with intervals. Averages have the names of scikit-learn: micro pools all labels, macro is
the mean over labels, and the mean over tasks is its `samples`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics import intervals
from tasks.rules.statistics.intervals import Draws, Floats, draws, quantile_pairs, quotient

Counts = NDArray[Any]
Measure = Callable[[Floats], Floats]
_NOTHING = 1e-12
"""A smaller share of all pairs is only a rounding error."""
VOTES_METHOD = "effective-votes-1"
"""The name of the method of effective votes, stored with figures; increase the number when the
method changes.
"""
_NO_VARIANCE = 1e-9
"""Share of the squares below which a variance is only a rounding error."""


def raw_agreement(tables: Counts) -> Floats:
    """Return the share of cases with the same label of both graders, from 0 to 1; NaN without
    cases.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    alike, rows, _ = _sums(tables)
    return quotient(alike, rows.sum(axis=-1), _NOTHING)


def kappa(tables: Counts) -> Floats:
    """Return Cohen's kappa without weights (1960): agreement beyond chance, 1 for full, 0 for
    chance.

    NaN without cases, or if both graders use only one label, the same one: then agreement by chance
    is 1.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    alike, rows, columns = _sums(tables)
    total = rows.sum(axis=-1)
    # (observed - expected) / (1 - expected), multiplied by the square of the total so that counts
    # stay whole.
    expected = (rows * columns).sum(axis=-1)
    return quotient(total * alike - expected, total**2 - expected, _NOTHING * total**2)


def macro_f1(tables: Counts) -> Floats:
    """Return the mean of the labels' F1, 2tp / (2tp + fp + fn), from 0 to 1; either grader may be
    the truth.

    It covers the labels that either grader used, as in scikit-learn's `f1_score(average="macro")`.
    NaN without cases.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    table = np.asarray(tables, dtype=np.float64)
    _, rows, columns = _sums(table)
    used = rows + columns
    each = np.where(
        used > 0, quotient(2.0 * np.diagonal(table, axis1=-2, axis2=-1), used, _NOTHING), 0.0
    )
    return quotient(each.sum(axis=-1), (used > 0).sum(axis=-1))


def krippendorff_alpha(coincidences: Counts) -> Floats:
    """Return Krippendorff's alpha for nominal data ("Computing Krippendorff's Alpha-Reliability",
    2011).

    1 for full agreement, 0 for chance. NaN without pairs, or if only one value occurs.

    Args:
        coincidences: for each two values, the sum over units of the ordered pairs of labels divided
            by the unit's number of labels less one. A unit with one label adds nothing.
    """
    alike, values, _ = _sums(coincidences)
    total = values.sum(axis=-1)
    expected = total**2 - (values**2).sum(axis=-1)
    disagreement: Floats = (total - 1.0) * quotient(total - alike, expected, _NOTHING * total**2)
    return 1.0 - disagreement


def effective_votes(moments: NDArray[Any], *, n_voters: int) -> Floats:
    """Return Kish's effective number of votes: k / (1 + (k - 1) rho) for k voters, from 1 to k.

    rho is the mean pairwise correlation of their errors. The mean of their votes varies as much as
    the mean of this number of independent votes (the design effect of Kish, "Survey Sampling",
    1965, section 5.4; for panels of judges arXiv 2605.29800). Pairs with a voter who never errs, or
    always by the same amount, have no correlation and are left out. A negative mean counts as 0.
    NaN if no pair has a correlation.

    Args:
        moments: shape (..., n_pairs, 6): for each pair the number of cases, the sums of both
            voters' errors, of their squares, and of the products.
        n_voters: k, at least two.
    """
    n, a, b, aa, bb, ab = np.moveaxis(np.asarray(moments, dtype=np.float64), -1, 0)
    first = n * aa - a * a
    second = n * bb - b * b
    is_defined = (first > _NO_VARIANCE * n * aa) & (second > _NO_VARIANCE * n * bb)
    correlation = np.where(is_defined, quotient(n * ab - a * b, np.sqrt(first * second)), 0.0)
    mean = quotient(correlation.sum(axis=-1), is_defined.sum(axis=-1))
    return np.asarray(n_voters / (1.0 + (n_voters - 1) * np.clip(mean, 0.0, 1.0)))


def agreement_intervals(
    task_tables: Counts, *measures: Measure, sampled: Draws | None = None
) -> list[Floats]:
    """Return 95 % intervals of measures of agreement pooled over tasks, whose cases depend on each
    other.

    Whole tasks are drawn with replacement, once for all measures. The interval is percentiles of
    the resampled measure, with tails expanded for few tasks; resamples with an undefined measure
    are left out.

    Args:
        task_tables: shape (n_tasks, n_figures, rows, columns), the tables of each task; a figure's
            table is their sum.
        measures: functions of tables, such as those of this module.
        sampled: draws of these tasks, shape (n_resamples, n_tasks); new ones if absent.

    Returns: For each measure shape (n_figures, 2): low and high, NaN for a figure with fewer than
        two tasks with counts.
    """
    tables = np.asarray(task_tables, dtype=np.float64)
    n_tasks, n_figures, *shape = tables.shape
    weights = (draws(n_tasks) if sampled is None else sampled).astype(np.float64)
    with_counts = (tables.sum(axis=(2, 3)) > 0).sum(axis=0)
    ends = [np.full((n_figures, 2), np.nan) for _ in measures]
    at_a_time = max(
        1, 400 // math.prod(shape)
    )  # columns of a matrix product, each a cell of a figure's table
    for start in range(0, n_figures, at_a_time):
        chosen = start + np.flatnonzero(with_counts[start : start + at_a_time] >= 2)
        if len(chosen):
            sums = (weights @ tables[:, chosen].reshape(n_tasks, -1)).reshape(
                len(weights), len(chosen), *shape
            )
            tails = intervals.expanded_tails(with_counts[chosen].astype(np.float64))
            for measure, of_measure in zip(measures, ends, strict=True):
                of_measure[chosen] = quantile_pairs(np.ascontiguousarray(measure(sums).T), tails)
    return ends


def _sums(tables: Counts) -> tuple[Floats, Floats, Floats]:
    """Return the diagonal's sum of shape (...), and the sums of rows and of columns of shape (...,
    k).
    """
    table = np.asarray(tables, dtype=np.float64)
    return np.trace(table, axis1=-2, axis2=-1), table.sum(axis=-1), table.sum(axis=-2)


def failing_rate(tables: Counts) -> Floats:
    """Return the share with the outcome among the cases that fail the check."""
    return quotient(tables[..., 0, 0], tables[..., 0, :].sum(axis=-1))


def passing_rate(tables: Counts) -> Floats:
    """Return the share with the outcome among the cases that pass the check."""
    return quotient(tables[..., 1, 0], tables[..., 1, :].sum(axis=-1))


def rate_difference(tables: Counts) -> Floats:
    """Return the failing rate minus the passing rate: above 0 if the check predicts the outcome."""
    return np.asarray(failing_rate(tables) - passing_rate(tables))


def odds_ratio(tables: Counts) -> Floats:
    """Return the odds of the outcome if the check fails / the odds if it passes; NaN if a divisor
    is 0.
    """
    return quotient(tables[..., 0, 0] * tables[..., 1, 1], tables[..., 0, 1] * tables[..., 1, 0])


def check_auc(tables: Counts) -> Floats:
    """Return the area under the ROC curve of a check that only fails or passes.

    It is the mean of sensitivity and specificity: for a case with the outcome and a case without,
    the probability that the check fails the first and passes the second, plus half of the
    probability of equal results (Hanley and McNeil, 1982).
    """
    sensitivity = quotient(tables[..., 0, 0], tables[..., :, 0].sum(axis=-1))
    specificity = quotient(tables[..., 1, 1], tables[..., :, 1].sum(axis=-1))
    return np.asarray((sensitivity + specificity) / 2.0)


Flags = NDArray[np.bool_]
MICRO = "(micro average)"
MACRO = "(macro average)"
TASKS = "(mean over tasks)"


def label_agreement(
    given: Flags, expected: Flags, labels: Sequence[str]
) -> dict[str, dict[str, tuple[float, float, float, int]]]:
    """Return the agreement of given labels with expected ones: for each label that either uses, and
    on average.

    Tasks are the sample. Measures of a label and micro averages are pooled shares over tasks, with
    intervals by `ratio_intervals`; the interval of the macro average is percentiles of resampled
    tasks with expanded tails.

    Args:
        given: shape (n_tasks, n_labels), true if a task has a label; every task has at least one.
        expected: the same for the labels that they are compared with.
        labels: the names of the columns.

    Returns: By label or average, for each measure the value, the ends of its interval (NaN if
        undefined, or with too few tasks), and the number of labels: given ones for precision,
        expected ones for recall, else those in both.
    """
    used = np.flatnonzero(given.any(axis=0) | expected.any(axis=0))
    counts = np.stack([given & expected, given, expected])[:, :, used].astype(np.float64)
    # The last column: all labels.
    both, ours, theirs = np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2)
    parts = {
        "precision": (both, ours, ours),
        "recall": (both, theirs, theirs),
        "f1": (2.0 * both, ours + theirs, both),
        "jaccard": (both, ours + theirs - both, both),
    }
    agreement: dict[str, dict[str, tuple[float, float, float, int]]]
    agreement = {
        name: {} for name in (*(labels[column] for column in used.tolist()), MICRO, MACRO, TASKS)
    }
    sampled = draws(len(given))
    for measure, (over, under, counted) in parts.items():
        values, ends = _measured(over, under, sampled)
        n = counted.sum(axis=0).astype(int)
        rows = zip(
            agreement.values(),
            values.tolist(),
            ends.tolist(),
            [*n.tolist(), n[-1], n[-1]],
            strict=True,
        )
        for of_name, value, (low, high), n_labels in rows:
            of_name[measure] = (value, low, high, int(n_labels))
    return agreement


def _measured(over: Floats, under: Floats, sampled: Draws) -> tuple[Floats, Floats]:
    """Return a measure of each label, its micro and macro average and mean over tasks, and the ends
    of their intervals.

    Args: over, under: numerator and denominator, shape (n_tasks, n_labels + 1), the last for all
        labels together.
        sampled: draws of the tasks.
    """
    pooled = quotient(over.sum(axis=0), under.sum(axis=0))
    of_tasks = quotient(over[:, -1:], under[:, -1:])
    ends = intervals.ratio_intervals(over, under, sampled=sampled)
    of_mean = intervals.mean_intervals(of_tasks, sampled=sampled)
    values = np.array([*pooled, np.nanmean(pooled[:-1]), np.nanmean(of_tasks)])
    weights = sampled.astype(np.float64)
    tails = intervals.expanded_tails(np.array([max(2.0, len(over))]))
    resampled = intervals.means(quotient(weights @ over[:, :-1], weights @ under[:, :-1]), axis=1)
    # As few tasks as are too few for the mean are too few for the macro average.
    of_macro = np.where(np.isnan(of_mean), np.nan, quantile_pairs(resampled[None], tails))
    return values, np.concatenate([ends, of_macro, of_mean])
