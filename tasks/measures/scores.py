"""Intervals of leaderboards, and tests of differences between conditions."""

from collections.abc import Iterator, Sequence

import numpy as np

from tasks.measures.measure import Columns, MeasureResult, Results, Row
from tasks.rules.statistics.comparison import paired_difference
from tasks.rules.statistics.intervals import (
    Draws,
    Floats,
    draws,
    few_to_rest_on,
    ratio_intervals,
    repeated_interval,
)


def score_intervals(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean of each figure under one label of a task set, and the share of criteria met.

    All figures of a task set share its draws; those under a label use only the label's tasks.
    """
    sampled = draws(int(values["n_tasks_of_set"][0]))
    tasks, tasks_at = np.unique(values["task"], return_inverse=True)
    at = (tasks_at, values["figure"])
    scores, counted, met, judged = np.zeros((4, len(tasks), len(figures)))
    scores[at], counted[at], met[at], judged[at] = values["value"], 1.0, values["n_met"], values["n_judged"]
    of_label = sampled if len(tasks) == sampled.shape[1] else sampled.T[tasks].T
    for score, share in zip(_pooled(scores, counted, of_label), _pooled(met, judged, of_label), strict=True):
        yield {"score": score, "met": share}


def _pooled(numerators: Floats, denominators: Floats, sampled: Draws) -> list[MeasureResult]:
    """Return the sum of numerators / the sum of denominators, for each column."""
    # Many figures have the same values: two scores that do not differ here, and the share of criteria met.
    columns, which = np.unique(np.concatenate([numerators, denominators]), axis=1, return_inverse=True)
    over, under = np.split(columns, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares, pooled = over / under, over.sum(axis=0) / under.sum(axis=0)
    ends, are_small = ratio_intervals(over, under, sampled=sampled).tolist(), few_to_rest_on(shares).tolist()
    results = [
        MeasureResult(value, low, high, is_small=is_small)
        for value, (low, high), is_small in zip(pooled.tolist(), ends, are_small, strict=True)
    ]
    return [results[index] for index in which.reshape(-1).tolist()]


def trial_means(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean of the repeated evaluations of a figure, with an interval if there are several."""
    scores = [float(each) for each in values["mean_score"]]
    yield {"trials": MeasureResult(*(repeated_interval(scores) or scores[:1]))}


def condition_test(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the test of a difference from the baseline, by the rule of `prbench diff`."""
    paired = paired_difference(values["baseline_value"], values["value"])
    yield {
        "difference": MeasureResult(
            paired.difference, paired.ci_low, paired.ci_high, paired.p_value, paired.n_differing, paired.is_small
        ),
        "smallest_detectable": MeasureResult(paired.smallest_detectable),
    }
