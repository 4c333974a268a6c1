"""Intervals of leaderboards, paired tests, and scores corrected by people's labels.

The tests are of differences between conditions, and from the first model of a board.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.measures.measure import Columns, MeasureResult, Results, Row
from tasks.rules.statistics import debiased
from tasks.rules.statistics.comparison import PairedDifference, paired_difference
from tasks.rules.statistics.intervals import (
    Draws,
    Floats,
    draws,
    ratio_intervals,
    repeated_interval,
    rest_on_few,
)


def score_intervals(figures: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean of each figure under one label of a task set, and the share of criteria met.

    All figures of a task set share its draws; those under a label use only the label's tasks.
    """
    sampled = draws(int(values["n_tasks_of_set"][0]))
    tasks, tasks_at = np.unique(values["task"], return_inverse=True)
    at = (tasks_at, values["figure"])
    scores, counted, met, judged = np.zeros((4, len(tasks), len(figures)))
    scores[at] = values["value"]
    counted[at] = 1.0
    met[at] = values["n_met"]
    judged[at] = values["n_judged"]
    of_label = sampled if len(tasks) == sampled.shape[1] else sampled.T[tasks].T
    for score, share in zip(
        _pooled(scores, counted, of_label), _pooled(met, judged, of_label), strict=True
    ):
        yield {"score": score, "met": share}


def _pooled(numerators: Floats, denominators: Floats, sampled: Draws) -> list[MeasureResult]:
    """Return the sum of numerators / the sum of denominators, for each column."""
    # Many figures have the same values: two scores that do not differ here, and the share of
    # criteria met.
    columns, which = np.unique(
        np.concatenate([numerators, denominators]), axis=1, return_inverse=True
    )
    over, under = np.split(columns, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = over / under
        pooled = over.sum(axis=0) / under.sum(axis=0)
    ends = ratio_intervals(over, under, sampled=sampled).tolist()
    are_small = rest_on_few(shares).tolist()
    parts = zip(pooled.tolist(), ends, are_small, strict=True)
    results = [
        MeasureResult(value, low, high, is_small=is_small) for value, (low, high), is_small in parts
    ]
    return [results[index] for index in which.reshape(-1).tolist()]


def trial_means(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the mean of the repeated evaluations of a figure, with an interval if there are
    several.
    """
    scores = [float(each) for each in values["mean_score"]]
    yield {"trials": MeasureResult(*(repeated_interval(scores) or scores[:1]))}


def condition_test(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the test of a difference from the baseline, by the rule of `prbench diff`."""
    test = paired_difference(values["baseline_value"], values["value"])
    yield {
        "difference": _difference(test),
        "smallest_detectable": MeasureResult(test.smallest_detectable),
    }


def lead_test(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the test of a difference from the first model of a board, by the rule of `prbench
    diff`.
    """
    yield {"lead": _difference(paired_difference(values["leader_value"], values["value"]))}


def _difference(test: PairedDifference) -> MeasureResult:
    return MeasureResult(
        test.difference, test.ci_low, test.ci_high, test.p_value, test.n_differing, test.is_small
    )


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure: tasks, the judge's values, values corrected with and without the judge, or why
    there are none.
    """

    tasks: NDArray[Any]
    judged: Floats
    estimates: tuple[debiased.Corrected, ...]
    no_figure: str | None


def debiased_score(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield a score corrected by labels."""
    figure = _figure(values)
    estimates = [] if figure.no_figure else [debiased.estimate(each) for each in figure.estimates]
    results = _results(figure.judged, figure.no_figure, estimates)
    if figure.estimates:
        results["effective_labels"] = MeasureResult(figure.estimates[0].effective_labels)
        if not figure.no_figure:
            results["judge_power"] = MeasureResult(figure.estimates[0].power)
    yield results


def debiased_differences(pairs: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the difference of two models corrected by labels, second minus first, for each pair of
    a ranking.
    """
    ids = list(dict.fromkeys(row[name] for row in pairs for name in ("figure_a", "figure_b")))
    ends = np.searchsorted(values["figure"], range(len(ids) + 1))
    figures = {
        name: _figure(
            {column: each[ends[index] : ends[index + 1]] for column, each in values.items()}
        )
        for index, name in enumerate(ids)
    }
    for pair in pairs:
        first = figures[pair["figure_a"]]
        second = figures[pair["figure_b"]]
        common, a, b = np.intersect1d(first.tasks, second.tasks, return_indices=True)
        reason = (
            first.no_figure
            or second.no_figure
            or (None if len(common) > 1 else "no task in common")
        )
        sides = () if reason else zip(first.estimates, second.estimates, strict=False)
        estimates = [debiased.estimated_difference(one, other, (a, b)) for one, other in sides]
        yield _results(second.judged[b] - first.judged[a], reason, estimates)


def _figure(values: Columns) -> _Figure:
    names, first, task = np.unique(values["task"], return_index=True, return_inverse=True)
    of_tasks = ("known_offset", "positive", "negative", "judged")
    known = debiased.KnownTasks(*(values[name][first].astype(float) for name in of_tasks))
    counts = {name: column[0] for name, column in values.items()}
    reason = _without_labels(counts)
    if reason:
        return _Figure(names, known.judged, (), reason)
    has_label = ~np.ma.getmaskarray(values["contribution"])
    of_labels = ("contribution", "label_value", "judge_value", "factor")
    labels = debiased.Labels(
        task[has_label], *(np.asarray(values[name][has_label], dtype=float) for name in of_labels)
    )
    estimates = tuple(
        debiased.corrected(known, labels, uses_judge=uses_judge) for uses_judge in (True, False)
    )
    return _Figure(
        names, known.judged, estimates, debiased.outweighed(estimates[0].effective_labels)
    )


def _without_labels(counts: Row) -> str | None:
    """Return the reason why a figure has no debiased score, if its counts give one."""
    if counts["without_labels"] and counts["without_labels"] is not np.ma.masked:
        return str(counts["without_labels"])
    return debiased.too_few_labels(
        n_tasks=counts["n_tasks"],
        n_tasks_uncovered=counts["n_tasks_uncovered"],
        n_labels=counts["n_labels"],
        n_tasks_labelled=counts["n_tasks_labelled"],
    )


def _results(
    judged: Floats, no_figure: str | None, estimates: Sequence[debiased.DebiasedEstimate]
) -> dict[str, MeasureResult]:
    """Return the judge's own figure and its corrections by labels."""
    results = {"judge_score": MeasureResult(float(np.mean(judged)) if len(judged) else None)}
    results["debiased"] = MeasureResult(n=len(judged), note=no_figure)
    if not no_figure:
        corrected, alone = estimates
        results["debiased"] = MeasureResult(
            corrected.mean, corrected.low, corrected.high, n=len(judged)
        )
        results["labels_alone"] = MeasureResult(alone.mean, alone.low, alone.high)
    return results
