"""Intervals of leaderboards, and tests of differences between conditions."""

from collections.abc import Iterator, Sequence

import numpy as np

from tasks.measures.measure import Columns, Result, Results, Row
from tasks.rules.statistics.comparison import paired_difference
from tasks.rules.statistics.intervals import (
    distinct_columns,
    draws,
    few_to_rest_on,
    mean_intervals,
    ratio_intervals,
    repeated_interval,
)


def score_intervals(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean of each figure under one label of a task set, and the share of criteria met.

    All figures of a task set share its draws; those under a label are measured on its tasks alone.
    """
    drawn = draws(int(values["n_tasks_of_set"][0]))
    tasks, places = np.unique(values["task"], return_inverse=True)
    at = (places, values["figure"])
    scores, met, judged = (np.full((len(tasks), len(figures)), empty) for empty in (np.nan, 0.0, 0.0))
    scores[at], met[at], judged[at] = (values[name] for name in ("value", "n_met", "n_judged"))
    of_label = drawn if len(tasks) == drawn.shape[1] else drawn.T[tasks].T
    # Many figures have the same values: two scores that differ in nothing here, and the share of criteria met.
    scores, which = distinct_columns(scores)
    counts, which_share = distinct_columns(np.concatenate([met, judged]))
    met, judged = counts[: len(tasks)], counts[len(tasks) :]
    shares = np.divide(met, judged, out=np.full(met.shape, np.nan), where=judged > 0)
    of_scores = zip(
        np.nanmean(scores, axis=0), mean_intervals(scores, drawn=of_label).tolist(), few_to_rest_on(scores), strict=True
    )  # fmt: skip
    n_judged = judged.sum(axis=0)
    pooled = np.divide(met.sum(axis=0), n_judged, out=np.full(n_judged.shape, np.nan), where=n_judged > 0)
    of_shares = zip(
        pooled, ratio_intervals(met, judged, drawn=of_label).tolist(), few_to_rest_on(shares), strict=True
    )  # fmt: skip
    found = [
        [Result(float(value), low, high, is_small=bool(is_small)) for value, (low, high), is_small in each]
        for each in (of_scores, of_shares)
    ]
    for place, place_of_share in zip(which, which_share, strict=True):
        yield {"score": found[0][place], "met": found[1][place_of_share]}


def trial_means(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean of the repeated evaluations of a figure, with an interval where there are several."""
    scores = [float(each) for each in values["mean_score"]]
    yield {"trials": Result(*(repeated_interval(scores) or scores[:1]))}


def condition_test(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the test of a difference from the baseline, by the rule of `prbench diff`."""
    found = paired_difference(values["baseline_value"], values["value"])
    yield {
        "difference": Result(
            found.difference, found.ci_low, found.ci_high, found.p_value, found.n_differing, found.is_small
        ),
        "smallest_detectable": Result(found.smallest_detectable),
    }
