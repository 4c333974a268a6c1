"""Agreement of graders, from counts of their labels.

Measures of agreement take tables of shape (..., k, k), k labels, and return values of the leading
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import (
    Draws,
    Flags,
    Floats,
    draws,
    expanded_tails,
    mean_intervals,
    means,
    quantile_pairs,
    quotient,
    ratio_intervals,
)

Counts = NDArray[Any]
TableMeasure = Callable[[Floats], Floats]
"""A function of tables that returns a value of each."""
VOTES_METHOD = "effective-votes-1"
"""The name of the method of effective votes, stored with figures; increase the number when the
method changes.
"""
# The averages, where a label's name would stand.
MICRO = "(micro average)"
MACRO = "(macro average)"
TASKS = "(mean over tasks)"
_ROUNDING = 1e-12
"""A smaller share of all pairs is only a rounding error."""
_NO_VARIANCE = 1e-9
"""Share of the squares below which a variance is only a rounding error."""
_COLUMNS_AT_A_TIME = 400
"""Columns of a matrix product, each a cell of a figure's table."""


def raw_agreement(tables: Counts) -> Floats:
    """Return the share of cases with the same label of both graders; NaN without cases.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    agreed, rows, _ = _sums(tables)
    return quotient(agreed, rows.sum(axis=-1), _ROUNDING)


def kappa(tables: Counts) -> Floats:
    """Return Cohen's kappa without weights (1960): agreement beyond chance.

    1 for full agreement, 0 for chance. NaN without cases, or if both graders use only one label,
    the same one: then agreement by chance is 1.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    agreed, rows, columns = _sums(tables)
    total = rows.sum(axis=-1)
    # (observed - expected) / (1 - expected), multiplied by the square of the total so that counts
    # stay whole.
    expected = (rows * columns).sum(axis=-1)
    return quotient(total * agreed - expected, total**2 - expected, _ROUNDING * total**2)


def macro_f1(tables: Counts) -> Floats:
    """Return the mean of the labels' F1, 2tp / (2tp + fp + fn); either grader may be the truth.

    It covers the labels that either grader used, as in scikit-learn's `f1_score(average="macro")`.
    NaN without cases.

    Args:
        tables: counts, rows by the label of one grader, columns by the other's.
    """
    _, rows, columns = _sums(tables)
    n_uses = rows + columns  # (..., k)
    is_used = n_uses > 0
    f1 = quotient(2.0 * np.diagonal(tables, axis1=-2, axis2=-1), n_uses, _ROUNDING)
    total = np.where(is_used, f1, 0.0).sum(axis=-1)
    return quotient(total, is_used.sum(axis=-1))


AGREEMENT_MEASURES: dict[str, TableMeasure] = {
    "kappa": kappa,
    "macro_f1": macro_f1,
    "agreement": raw_agreement,
}
"""The measures of the agreement of two graders, by name."""


def krippendorff_alpha(coincidences: Counts) -> Floats:
    """Return Krippendorff's alpha for nominal data: 1 for full agreement, 0 for chance.

    Source: "Computing Krippendorff's Alpha-Reliability", 2011. NaN without pairs, or if only one
    value occurs.

    Args:
        coincidences: for each two values, the sum over units of the ordered pairs of labels divided
            by the unit's number of labels less one. A unit with one label adds nothing.
    """
    agreed, values, _ = _sums(coincidences)
    total = values.sum(axis=-1)
    expected = total**2 - (values**2).sum(axis=-1)
    disagreement: Floats = (total - 1.0) * quotient(total - agreed, expected, _ROUNDING * total**2)
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
    sums = np.moveaxis(np.asarray(moments, dtype=float), -1, 0)
    n, sum_a, sum_b, sum_aa, sum_bb, sum_ab = sums  # (..., n_pairs)
    spread_a = n * sum_aa - sum_a * sum_a
    spread_b = n * sum_bb - sum_b * sum_b
    varies_a = spread_a > _NO_VARIANCE * n * sum_aa
    varies_b = spread_b > _NO_VARIANCE * n * sum_bb
    is_defined = varies_a & varies_b
    correlation = quotient(n * sum_ab - sum_a * sum_b, np.sqrt(spread_a * spread_b))
    total = np.where(is_defined, correlation, 0.0).sum(axis=-1)
    rho = quotient(total, is_defined.sum(axis=-1))
    return n_voters / (1.0 + (n_voters - 1) * np.clip(rho, 0.0, 1.0))


def agreement_intervals(
    task_tables: Counts,
    *measures: TableMeasure,
    sampled: Draws | None = None,
) -> list[Floats]:
    """Return 95 % intervals of measures of agreement, pooled over tasks.

    Cases of a task depend on each other, so whole tasks are drawn with replacement, once for all
    measures. The interval is percentiles of the resampled measure, with tails expanded for few
    tasks; resamples with an undefined measure are left out.

    Args:
        task_tables: shape (n_tasks, n_figures, rows, columns), the tables of each task; a figure's
            table is their sum.
        measures: functions of tables, such as those of this module.
        sampled: draws of these tasks, shape (n_resamples, n_tasks); new ones if absent.

    Returns:
        For each measure shape (n_figures, 2): low and high, NaN for a figure with fewer than two
        tasks with counts.
    """
    tables = np.asarray(task_tables, dtype=float)
    n_tasks, n_figures, *shape = tables.shape
    if sampled is None:
        sampled = draws(n_tasks)
    weights = sampled.astype(float)
    n_counted = (tables.sum(axis=(2, 3)) > 0).sum(axis=0)  # (n_figures,)
    intervals_by_measure = [np.full((n_figures, 2), np.nan) for _ in measures]
    block_size = max(1, _COLUMNS_AT_A_TIME // math.prod(shape))
    for start in range(0, n_figures, block_size):
        block = start + np.flatnonzero(n_counted[start : start + block_size] >= 2)
        if not len(block):
            continue
        sums = weights @ tables[:, block].reshape(n_tasks, -1)
        resampled_tables = sums.reshape(len(weights), len(block), *shape)
        tails = expanded_tails(n_counted[block].astype(float))
        for measure, ends in zip(measures, intervals_by_measure, strict=True):
            resampled = np.ascontiguousarray(measure(resampled_tables).T)
            resampled.sort(axis=1)
            ends[block] = quantile_pairs(resampled, tails)
    return intervals_by_measure


def _sums(tables: Counts) -> tuple[Floats, Floats, Floats]:
    """Return the diagonal's sum, shape (...), and the sums of rows and columns, shape (..., k)."""
    table = np.asarray(tables, dtype=float)
    return np.trace(table, axis1=-2, axis2=-1), table.sum(axis=-1), table.sum(axis=-2)


def failing_rate(tables: Counts) -> Floats:
    """Return the rate of the outcome if the check fails: its share of the cases that fail."""
    return quotient(tables[..., 0, 0], tables[..., 0, :].sum(axis=-1))


def passing_rate(tables: Counts) -> Floats:
    """Return the rate of the outcome if the check passes: its share of the cases that pass."""
    return quotient(tables[..., 1, 0], tables[..., 1, :].sum(axis=-1))


def rate_difference(tables: Counts) -> Floats:
    """Return the failing rate minus the passing rate: above 0 if the check predicts the outcome."""
    return failing_rate(tables) - passing_rate(tables)


def odds_ratio(tables: Counts) -> Floats:
    """Return the odds of the outcome if the check fails / the odds if it passes.

    NaN if a divisor is 0.
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
    return (sensitivity + specificity) / 2.0


class LabelMeasure(NamedTuple):
    """A measure of a label or an average; the value and the ends are NaN if undefined.

    Attributes:
        n_labels: number of labels: given ones for precision, expected ones for recall, else those
            in both.
    """

    value: float
    ci_low: float
    ci_high: float
    n_labels: int


def label_agreement(
    annotated: Flags,
    expected: Flags,
    labels: Sequence[str],
) -> dict[str, dict[str, LabelMeasure]]:
    """Return the agreement of annotated labels with expected ones.

    Tasks are the sample. Measures of a label and micro averages are pooled shares over tasks, with
    intervals by `ratio_intervals`; the interval of the macro average is percentiles of resampled
    tasks with expanded tails.

    Args:
        annotated: shape (n_tasks, n_labels), true if a task has a label; every task has at least
            one.
        expected: the same for the labels that they are compared with.
        labels: the names of the columns.

    Returns:
        The measures by name, for each label that either uses, and for each average.
    """
    columns = np.flatnonzero(annotated.any(axis=0) | expected.any(axis=0))
    in_both = _with_total(annotated[:, columns] & expected[:, columns])
    in_annotated = _with_total(annotated[:, columns])
    in_expected = _with_total(expected[:, columns])
    in_either = in_annotated + in_expected
    # Numerators, denominators, and numbers of labels.
    parts = {
        "precision": (in_both, in_annotated, in_annotated),
        "recall": (in_both, in_expected, in_expected),
        "f1": (2.0 * in_both, in_either, in_both),
        "jaccard": (in_both, in_either - in_both, in_both),
    }
    names = [*(labels[column] for column in columns.tolist()), MICRO, MACRO, TASKS]
    agreement: dict[str, dict[str, LabelMeasure]] = {name: {} for name in names}
    sampled = draws(len(annotated))
    for measure, (numerators, denominators, counts) in parts.items():
        results = _label_measures(numerators, denominators, counts, sampled)
        for name, result in zip(names, results, strict=True):
            agreement[name][measure] = result
    return agreement


def _with_total(flags: Flags) -> Floats:
    """Return counts by task and label, with a last column for all labels."""
    counts = flags.astype(float)
    return np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1)


def _label_measures(
    numerators: Floats,
    denominators: Floats,
    counts: Floats,
    sampled: Draws,
) -> list[LabelMeasure]:
    """Return a measure of each label, and its micro average, macro average and mean over tasks.

    Args:
        numerators: shape (n_tasks, n_labels + 1), the last column for all labels together.
        denominators: the same shape.
        counts: numbers of labels, the same shape.
        sampled: draws of the tasks.
    """
    pooled = quotient(numerators.sum(axis=0), denominators.sum(axis=0))
    task_values = quotient(numerators[:, -1:], denominators[:, -1:])
    values = [*pooled.tolist(), float(np.nanmean(pooled[:-1])), float(np.nanmean(task_values))]

    pooled_ends = ratio_intervals(numerators, denominators, sampled=sampled)
    mean_ends = mean_intervals(task_values, sampled=sampled)
    macro_ends = _macro_interval(numerators[:, :-1], denominators[:, :-1], sampled)
    # As few tasks as are too few for the mean are too few for the macro average.
    macro_ends = np.where(np.isnan(mean_ends), np.nan, macro_ends)
    ends = np.concatenate([pooled_ends, macro_ends, mean_ends]).tolist()

    n_labels = counts.sum(axis=0).astype(int).tolist()
    n_labels += [n_labels[-1], n_labels[-1]]
    return [
        LabelMeasure(value, low, high, n)
        for value, (low, high), n in zip(values, ends, n_labels, strict=True)
    ]


def _macro_interval(numerators: Floats, denominators: Floats, sampled: Draws) -> Floats:
    """Return the interval of the mean over labels, shape (1, 2), from (n_tasks, n_labels)."""
    weights = sampled.astype(float)
    label_values = quotient(weights @ numerators, weights @ denominators)  # (n_resamples, n_labels)
    resampled = np.sort(means(label_values, axis=1))
    tails = expanded_tails(np.array([max(2.0, len(numerators))]))
    return quantile_pairs(resampled[None], tails)
