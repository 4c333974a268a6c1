"""Measures of judges: calibration of their probabilities, and changes of verdicts by other criteria in a call."""

from collections.abc import Iterator, Sequence

import numpy as np

from tasks.measures.measure import Columns, MeasureResult, Results, Row
from tasks.rules.statistics.calibration import (
    BINS,
    brier,
    calibration_error,
    corrected_error,
    reliability,
    resolution,
    squared_errors,
    uncertainty,
)
from tasks.rules.statistics.intervals import SMALL, draws, few_to_rest_on, ratio_intervals

SUMS = ("n", "sum_p", "sum_y", "sum_pp", "sum_py", "sum_yy")


def calibration_of(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the Brier score with its parts and the calibration error of a judge's probabilities under each label."""
    tasks, task = np.unique(values["task"], return_inverse=True)
    sums = np.zeros((len(tasks), len(figures), BINS, len(SUMS)))
    sums[task, values["figure"], values["bin"]] = np.stack([values[name] for name in SUMS], axis=-1)
    ends = ratio_intervals(*squared_errors(sums)).tolist()
    for index in range(len(figures)):
        own = sums[sums[:, index, :, 0].any(axis=1), index]
        total, n = own.sum(axis=0), int(own[..., 0].sum())
        error, low, high = corrected_error(own, draws(len(own))).tolist()
        is_small = len(own) < SMALL
        parts = {"reliability": reliability, "resolution": resolution, "uncertainty": uncertainty}
        yield {
            "brier": MeasureResult(float(brier(total)), ends[index][0], ends[index][1], n=n, is_small=is_small),
            **{name: MeasureResult(float(part(total))) for name, part in parts.items()},
            "plain_error": MeasureResult(float(calibration_error(total))),
            "calibration_error": MeasureResult(error, low, high, n=n, is_small=is_small),
        }


def change_of(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean change of paired verdicts from one arrangement to another, with its interval over tasks."""
    changes, n = (values[name][:, None].astype(np.float64) for name in ("sum_change", "n"))
    ((low, high),) = ratio_intervals(changes, n).tolist()
    is_small = bool(few_to_rest_on(changes / n)[0])
    yield {"change": MeasureResult(float(changes.sum() / n.sum()), low, high, n=int(n.sum()), is_small=is_small)}
