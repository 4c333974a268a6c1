"""Measures of graders and reviewers: their agreement, effective votes, and what checks predict.

Also of single judges: calibration of their probabilities, and changes of verdicts by other criteria
in a call.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tasks.measures.measure import Columns, MeasureResult, Results, Row
from tasks.rules.statistics import agreement, calibration
from tasks.rules.statistics.agreement import (
    Measure,
    agreement_intervals,
    kappa,
    macro_f1,
    raw_agreement,
)
from tasks.rules.statistics.calibration import brier, reliability, resolution, uncertainty
from tasks.rules.statistics.intervals import (
    FEW_OTHERS,
    FEWEST_OTHERS,
    SMALL,
    draws,
    ratio_intervals,
    rest_on_few,
)

METHOD = "expanded-percentile-1"
_DECISIONS = ("unmet", "partial", "met")
_PREDICTION = {
    "difference": agreement.rate_difference,
    "odds_ratio": agreement.odds_ratio,
    "auc": agreement.check_auc,
}
_CELLS = ("fail_disagree", "fail_agree", "pass_disagree", "pass_agree")
_MOMENTS = ("n", "sum_a", "sum_b", "sum_aa", "sum_bb", "sum_ab")
_UNLABELLED = (
    "nobody labelled, so votes are held against the majority of the other members: errors that all"
    " share are not seen, which gives too many votes, and errors of that majority look shared,"
    " which gives too few"
)


def pair_agreement(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Return the agreement of two graders, from the counts of their pairs of decisions on each
    task.
    """
    tables, task = _empty(figures, values)
    a, b = ((2 * values[name]).astype(np.int64) for name in ("value_a", "value_b"))
    np.add.at(tables, (task, values["figure"], a, b), values["n"])
    return _measured(
        tables,
        {
            "kappa": kappa,
            "macro_f1": macro_f1,
            "agreement": raw_agreement,
        },
    )


def set_reliability(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Return the agreement of a set of graders, from the coincidences of decisions on each task."""
    tables, task = _empty(figures, values)
    for a, one in enumerate(_DECISIONS):
        for b, other in enumerate(_DECISIONS[a:], a):
            name = f"{one}_{other}"
            if name in values:
                tables[task, values["figure"], a, b] = tables[task, values["figure"], b, a] = (
                    values[name]
                )
    return _measured(tables, {"alpha": agreement.krippendorff_alpha})


def _empty(
    figures: Sequence[Row], values: Columns
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return tables of zeros (n_tasks, n_figures, labels, labels), and the index of each value's
    task.
    """
    tasks, task = np.unique(values["task"], return_inverse=True)
    return np.zeros((len(tasks), len(figures), len(_DECISIONS), len(_DECISIONS))), task


def _measured(tables: NDArray[np.float64], measures: Mapping[str, Measure]) -> Iterator[Results]:
    """Yield measures of each figure with their intervals, all from the same draws."""
    # Most graders are binary; an unused third decision would more than double the work.
    used = np.flatnonzero(tables.any(axis=(0, 1, 3)) | tables.any(axis=(0, 1, 2)))
    tables = tables[:, :, used][:, :, :, used]
    intervals = agreement_intervals(tables, *measures.values(), sampled=draws(len(tables)))
    pooled = [measure(tables.sum(axis=0)) for measure in measures.values()]
    parts = list(zip(measures, pooled, intervals, strict=True))
    for index in range(tables.shape[1]):
        yield {
            name: MeasureResult(float(values[index]), *ends[index].tolist())
            for name, values, ends in parts
        }


def labels_agreement(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Return the agreement of two sources of labels, by label and on average; `n` is a share's
    number of labels.

    F1 and Jaccard have the number of labels that both give.
    """
    tasks, task = np.unique(values["task"], return_inverse=True)
    given, expected = np.zeros((2, len(tasks), len(figures)), dtype=np.bool_)
    given[task, values["figure"]] = values["is_annotated"]
    expected[task, values["figure"]] = values["is_compared"]
    results = agreement.label_agreement(given, expected, [row["label"] for row in figures])
    for row in figures:
        measured = results[row["label"]].items()
        yield {
            name: MeasureResult(value, low, high, n=n) for name, (value, low, high, n) in measured
        }


def votes_of_set(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Return the effective votes of a set, from the correlation of its members' errors."""
    tasks, task = np.unique(values["task"], return_inverse=True)
    members, indices = np.unique(
        np.stack([values["grader_a"], values["grader_b"]]), return_inverse=True
    )
    pairs = np.zeros((len(tasks), 1, len(members), len(members), len(_MOMENTS)))
    pairs[task, 0, *indices.reshape(2, -1)] = np.stack([values[name] for name in _MOMENTS], axis=-1)
    moments = pairs[:, :, *np.triu_indices(len(members), 1)]
    rule = partial(agreement.effective_votes, n_voters=len(members))
    ((low, high),) = agreement_intervals(moments, rule, sampled=draws(len(tasks)))[0].tolist()
    n = int(moments[..., 0].sum(axis=0).max())
    note = None if values["is_labelled"].all() else _UNLABELLED
    value = float(rule(moments.sum(axis=0))[0])
    yield {
        "effective_votes": MeasureResult(
            value,
            low,
            high,
            n=n,
            is_small=len(tasks) < SMALL,
            note=note,
        )
    }


def review_share(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the share of criteria that people agree with.

    The share is Hajek's ratio: the sum of the weights of the criteria that people agree with / the
    sum of all weights, where a weight is 1 / probability of being sampled (Saerndal, Swensson and
    Wretman, "Model Assisted Survey Sampling", 1992, section 5.7). Its interval is that of a ratio
    of sums over tasks, with whole tasks as the sample, so reviews of one task may be correlated; it
    ignores the gain from strata, so it may be too wide.
    """
    agreed, weights = (values[name][:, None] for name in ("weight_agreed", "sample_weights"))
    ((low, high),) = ratio_intervals(agreed, weights).tolist()
    (is_small,) = rest_on_few(agreed / weights).tolist()
    yield {
        "agreeing_share": MeasureResult(
            float(agreed.sum() / weights.sum()), low, high, is_small=is_small
        )
    }


def check_prediction(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield how well a check predicts disagreement, from the counts of both on each task.

    Every figure is NULL if fewer than `FEWEST_OTHERS` tasks have a criterion that fails (or passes)
    the check, or if fewer criteria in sum have (or lack) the outcome.
    """
    tables = np.stack([values[name] for name in _CELLS], axis=-1).reshape(-1, 1, 2, 2)
    total = tables.sum(axis=0)
    n_tasks = min((tables[:, 0, row].sum(axis=-1) > 0).sum() for row in (0, 1))
    is_enough = n_tasks >= FEWEST_OTHERS and total[0].sum(axis=0).min() >= FEWEST_OTHERS
    is_small = bool(len(tables) < SMALL or n_tasks < FEW_OTHERS or total.min() < FEWEST_OTHERS)
    rates = {"failing_rate": agreement.failing_rate, "passing_rate": agreement.passing_rate}
    results = {
        name: MeasureResult(float(rate(total)[0]) if is_enough else None, is_small=is_small)
        for name, rate in rates.items()
    }
    yield results | dict(next(_measured(tables, _PREDICTION)) if is_enough else {})


SUMS = ("n", "sum_p", "sum_y", "sum_pp", "sum_py", "sum_yy")


def calibration_of(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the Brier score with its parts and the calibration error of a judge's probabilities
    under each label.
    """
    tasks, task = np.unique(values["task"], return_inverse=True)
    sums = np.zeros((len(tasks), len(figures), calibration.BINS, len(SUMS)))
    sums[task, values["figure"], values["bin"]] = np.stack([values[name] for name in SUMS], axis=-1)
    ends = ratio_intervals(*calibration.squared_errors(sums)).tolist()
    for index in range(len(figures)):
        own = sums[sums[:, index, :, 0].any(axis=1), index]
        total = own.sum(axis=0)
        n = int(own[..., 0].sum())
        error, low, high = calibration.corrected_error(own, draws(len(own))).tolist()
        is_small = len(own) < SMALL
        parts = {
            "reliability": reliability,
            "resolution": resolution,
            "uncertainty": uncertainty,
        }
        yield {
            "brier": MeasureResult(
                float(brier(total)), ends[index][0], ends[index][1], n=n, is_small=is_small
            ),
            **{name: MeasureResult(float(part(total))) for name, part in parts.items()},
            "plain_error": MeasureResult(float(calibration.calibration_error(total))),
            "calibration_error": MeasureResult(error, low, high, n=n, is_small=is_small),
        }


def change_of(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean change of paired verdicts from one arrangement to another, with its interval
    over tasks.
    """
    changes, n = (values[name][:, None].astype(np.float64) for name in ("sum_change", "n"))
    ((low, high),) = ratio_intervals(changes, n).tolist()
    is_small = bool(rest_on_few(changes / n)[0])
    yield {
        "change": MeasureResult(
            float(changes.sum() / n.sum()), low, high, n=int(n.sum()), is_small=is_small
        )
    }
