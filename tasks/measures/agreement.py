"""Measures of graders and reviewers: their agreement, effective votes, and what checks predict.

Also of single judges: calibration of their probabilities, and changes of verdicts by other criteria
in a call.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tasks.measures.measure import FigureRow, MeasureResult, Results, ValueColumns
from tasks.measures.scores import pooled_shares
from tasks.rules.statistics import agreement, calibration
from tasks.rules.statistics.agreement import (
    AGREEMENT_MEASURES,
    TableMeasure,
    agreement_intervals,
)
from tasks.rules.statistics.intervals import (
    FEW_DIFFERING,
    FEWEST_DIFFERING,
    SMALL,
    Floats,
    Ints,
    draws,
    ratio_intervals,
)

METHOD = "expanded-percentile-1"
"""The name of the method of `agreement_intervals`, stored with measures."""
_DECISIONS = ("unmet", "partial", "met")
_PREDICTION = {
    "difference": agreement.rate_difference,
    "odds_ratio": agreement.odds_ratio,
    "auc": agreement.check_auc,
}
"""Measures of how well a check predicts disagreement, with intervals."""
_RATES = {"failing_rate": agreement.failing_rate, "passing_rate": agreement.passing_rate}
"""Rates of the outcome, which have no intervals."""
_CELLS = ("fail_disagree", "fail_agree", "pass_disagree", "pass_agree")
"""Counts of a task: its criteria that fail or pass the check, and have (`disagree`) or lack
(`agree`) the outcome.
"""
_MOMENTS = ("n", "sum_a", "sum_b", "sum_aa", "sum_bb", "sum_ab")
"""The moments of two graders' errors, in the order of `effective_votes`."""
_BRIER_PARTS = {
    "reliability": calibration.reliability,
    "resolution": calibration.resolution,
    "uncertainty": calibration.uncertainty,
    "plain_error": calibration.calibration_error,
}
SUMS = ("n", "sum_p", "sum_y", "sum_pp", "sum_py", "sum_yy")
"""The columns of the sums of `calibration`, in its order."""
_UNLABELLED = (
    "nobody labelled, so votes are held against the majority of the other members: errors that all"
    " share are not seen, which gives too many votes, and errors of that majority look shared,"
    " which gives too few"
)


def pair_agreement(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Return the agreement of two graders, from counts of their pairs of decisions by task."""
    tables, task_index = _empty_tables(figures, values)
    label_a = (2 * values["value_a"]).astype(np.int64)
    label_b = (2 * values["value_b"]).astype(np.int64)
    np.add.at(tables, (task_index, values["figure"], label_a, label_b), values["n"])
    return _table_results(tables, AGREEMENT_MEASURES)


def set_reliability(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Return the agreement of a set of graders, from the coincidences of decisions by task."""
    tables, task_index = _empty_tables(figures, values)
    for row, decision in enumerate(_DECISIONS):
        for column in range(row, len(_DECISIONS)):
            name = f"{decision}_{_DECISIONS[column]}"
            if name in values:  # reviewers decide nothing in part
                tables[task_index, values["figure"], row, column] = values[name]
                tables[task_index, values["figure"], column, row] = values[name]
    return _table_results(tables, {"alpha": agreement.krippendorff_alpha})


def _empty_tables(figures: Sequence[FigureRow], values: ValueColumns) -> tuple[Floats, Ints]:
    """Return tables of zeros, and the index of each value's task.

    The tables have the shape (n_tasks, n_figures, labels, labels).
    """
    tasks, task_index = np.unique(values["task"], return_inverse=True)
    n_labels = len(_DECISIONS)
    return np.zeros((len(tasks), len(figures), n_labels, n_labels)), task_index


def _table_results(tables: Floats, measures: Mapping[str, TableMeasure]) -> Iterator[Results]:
    """Yield measures of each figure with their intervals, all from the same draws.

    Args:
        tables: shape (n_tasks, n_figures, labels, labels).
        measures: by name.
    """
    # Most graders are binary; an unused third decision would more than double the work.
    is_used = tables.any(axis=(0, 1, 3)) | tables.any(axis=(0, 1, 2))
    tables = tables[:, :, is_used][:, :, :, is_used]
    total = tables.sum(axis=0)  # (n_figures, labels, labels)
    functions = list(measures.values())
    ends_by_measure = agreement_intervals(tables, *functions)
    values_by_measure = [measure(total) for measure in functions]
    for figure in range(len(total)):
        results = {}
        for name, values, ends in zip(measures, values_by_measure, ends_by_measure, strict=True):
            results[name] = MeasureResult(float(values[figure]), *ends[figure].tolist())
        yield results


def labels_agreement(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the agreement of two sources of labels, by label and on average.

    `n` is a share's number of labels; F1 and Jaccard have the number of labels that both give.
    """
    tasks, task_index = np.unique(values["task"], return_inverse=True)
    cell = (task_index, values["figure"])
    is_annotated = np.zeros((len(tasks), len(figures)), dtype=bool)
    is_compared = np.zeros_like(is_annotated)
    is_annotated[cell] = values["is_annotated"]
    is_compared[cell] = values["is_compared"]
    labels = [figure["label"] for figure in figures]
    measures_by_label = agreement.label_agreement(is_annotated, is_compared, labels)
    for label in labels:
        yield {
            name: MeasureResult(measure.value, measure.ci_low, measure.ci_high, n=measure.n_labels)
            for name, measure in measures_by_label[label].items()
        }


def votes_of_set(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the effective votes of a set, from the correlation of its members' errors."""
    tasks, task_index = np.unique(values["task"], return_inverse=True)
    graders = np.stack([values["grader_a"], values["grader_b"]])
    members, member_index = np.unique(graders, return_inverse=True)
    index_a, index_b = member_index.reshape(2, -1)
    n_members = len(members)
    pairs = np.zeros((len(tasks), 1, n_members, n_members, len(_MOMENTS)))
    pairs[task_index, 0, index_a, index_b] = np.stack([values[name] for name in _MOMENTS], axis=-1)
    moments = pairs[:, :, *np.triu_indices(n_members, 1)]  # (n_tasks, 1, n_pairs, moments)
    measure = partial(agreement.effective_votes, n_voters=n_members)
    ((low, high),) = agreement_intervals(moments, measure)[0].tolist()
    total = moments.sum(axis=0)
    result = MeasureResult(
        value=float(measure(total)[0]),
        ci_low=low,
        ci_high=high,
        n=int(total[..., 0].max()),
        is_small=len(tasks) < SMALL,
        note=None if values["is_labelled"].all() else _UNLABELLED,
    )
    yield {"effective_votes": result}


def review_share(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the share of criteria that people agree with.

    The share is Hajek's ratio: the sum of the weights of the criteria that people agree with / the
    sum of all weights, where a weight is 1 / probability of being sampled (Saerndal, Swensson and
    Wretman, "Model Assisted Survey Sampling", 1992, section 5.7). Its interval is that of a ratio
    of sums over tasks, with whole tasks as the sample, so reviews of one task may be correlated; it
    ignores the gain from strata, so it may be too wide.
    """
    yield {"agreeing_share": _ratio(values["weight_agreed"], values["sample_weights"])}


def _ratio(numerators: Floats, denominators: Floats, n: int | None = None) -> MeasureResult:
    """Return a pooled share with its interval, from sums by task."""
    sampled = draws(len(numerators))
    (share,) = pooled_shares(numerators[:, None], denominators[:, None], sampled)
    return replace(share, n=n)


def check_prediction(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield how well a check predicts disagreement, from the counts of both on each task.

    The rates are None, and the other measures absent, if fewer than `FEWEST_DIFFERING` tasks have a
    criterion that fails (or passes) the check, or if fewer criteria in sum have (or lack) the
    outcome.
    """
    counts = np.stack([values[name] for name in _CELLS], axis=-1)
    tables = counts.reshape(-1, 1, 2, 2)  # (n_tasks, 1, fails or passes, has or lacks the outcome)
    total = tables.sum(axis=0)
    n_tasks = (tables[:, 0].sum(axis=-1) > 0).sum(axis=0).min()
    is_enough = n_tasks >= FEWEST_DIFFERING and total[0].sum(axis=0).min() >= FEWEST_DIFFERING
    is_small = bool(
        len(tables) < SMALL or n_tasks < FEW_DIFFERING or total.min() < FEWEST_DIFFERING
    )
    results = {}
    for name, rate in _RATES.items():
        value = float(rate(total)[0]) if is_enough else None
        results[name] = MeasureResult(value, is_small=is_small)
    if is_enough:
        results |= next(_table_results(tables, _PREDICTION))
    yield results


def calibration_of(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the Brier score with its parts, and the calibration error, of a judge's probabilities.

    There is a figure for each label.
    """
    tasks, task_index = np.unique(values["task"], return_inverse=True)
    sums = np.zeros((len(tasks), len(figures), calibration.BINS, len(SUMS)))
    cell = (task_index, values["figure"], values["bin"])
    sums[cell] = np.stack([values[name] for name in SUMS], axis=-1)
    ends = ratio_intervals(*calibration.squared_errors(sums)).tolist()
    for figure in range(len(figures)):
        has_cases = sums[:, figure, :, 0].any(axis=1)
        low, high = ends[figure]
        yield _calibration_results(sums[has_cases, figure], low, high)


def _calibration_results(sums: Floats, low: float, high: float) -> Results:
    """Return the measures of one figure.

    Args:
        sums: shape (n_tasks, bins, sums).
        low, high: the interval of the Brier score.
    """
    total = sums.sum(axis=0)
    n = int(sums[..., 0].sum())
    is_small = len(sums) < SMALL
    brier = float(calibration.brier(total))
    results = {"brier": MeasureResult(brier, low, high, n=n, is_small=is_small)}
    for name, part in _BRIER_PARTS.items():
        results[name] = MeasureResult(float(part(total)))
    error, low, high = calibration.corrected_error(sums, draws(len(sums))).tolist()
    results["calibration_error"] = MeasureResult(error, low, high, n=n, is_small=is_small)
    return results


def change_of(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the mean change of paired verdicts from one arrangement to another."""
    changes = values["sum_change"].astype(float)
    counts = values["n"].astype(float)
    yield {"change": _ratio(changes, counts, n=int(counts.sum()))}
