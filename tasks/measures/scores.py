"""Intervals of leaderboards, paired tests, and scores corrected by people's labels.

The tests are of differences between conditions, and from the first model of a board.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.measures.measure import (
    FigureRow,
    MeasureResult,
    Results,
    ValueColumns,
    values_of_figures,
)
from tasks.rules.statistics import debiased
from tasks.rules.statistics.comparison import PairedDifference, paired_difference
from tasks.rules.statistics.intervals import (
    Draws,
    Floats,
    Ints,
    draws,
    have_few_tasks,
    quotient,
    ratio_intervals,
    repeated_interval,
)


def score_intervals(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the mean of each figure under one label of a task set, and the share of criteria met.

    All figures of a task set share its draws; those under a label use only the label's tasks.
    """
    sampled = draws(int(values["n_tasks_of_set"][0]))
    tasks, task_index = np.unique(values["task"], return_inverse=True)
    if len(tasks) != sampled.shape[1]:
        # The draws of each task are contiguous, so these are selected faster as rows.
        sampled = sampled.T[tasks].T
    cell = (task_index, values["figure"])
    shape = (len(tasks), len(figures))
    scores = np.zeros(shape)
    is_scored = np.zeros(shape)
    criteria_met = np.zeros(shape)
    criteria_judged = np.zeros(shape)
    scores[cell] = values["value"]
    is_scored[cell] = 1.0
    criteria_met[cell] = values["n_met"]
    criteria_judged[cell] = values["n_judged"]
    mean_scores = pooled_shares(scores, is_scored, sampled)
    met_shares = pooled_shares(criteria_met, criteria_judged, sampled)
    for mean_score, met_share in zip(mean_scores, met_shares, strict=True):
        yield {"score": mean_score, "met": met_share}


def pooled_shares(numerators: Floats, denominators: Floats, sampled: Draws) -> list[MeasureResult]:
    """Return the sum of numerators / the sum of denominators with its interval, for each column.

    Args:
        numerators: shape (n_tasks, n_figures).
        denominators: the same shape.
        sampled: draws of the tasks.
    """
    # Many figures have the same values: two scores that do not differ here, and the share of
    # criteria met.
    stacked = np.concatenate([numerators, denominators])
    columns, column_index = np.unique(stacked, axis=1, return_inverse=True)
    numerators, denominators = np.split(columns, 2)
    pooled = quotient(numerators.sum(axis=0), denominators.sum(axis=0)).tolist()
    ends = ratio_intervals(numerators, denominators, sampled=sampled).tolist()
    are_small = have_few_tasks(quotient(numerators, denominators)).tolist()
    results = [
        MeasureResult(value, low, high, is_small=is_small)
        for value, (low, high), is_small in zip(pooled, ends, are_small, strict=True)
    ]
    return [results[index] for index in column_index.reshape(-1).tolist()]


def trial_means(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the mean of a figure's repeated evaluations, with an interval if there are several."""
    scores = [float(score) for score in values["mean_score"]]
    mean_and_ends = repeated_interval(scores) or scores[:1]
    yield {"trials": MeasureResult(*mean_and_ends)}


def condition_test(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the test of a difference from the baseline, by the rule of `prbench diff`."""
    test = paired_difference(values["baseline_value"], values["value"])
    yield {
        "difference": _difference(test),
        "smallest_detectable": MeasureResult(test.smallest_detectable),
    }


def lead_test(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the test of a difference from the first model, by the rule of `prbench diff`."""
    test = paired_difference(values["leader_value"], values["value"])
    yield {"lead": _difference(test)}


def _difference(test: PairedDifference) -> MeasureResult:
    return MeasureResult(
        value=test.difference,
        ci_low=test.ci_low,
        ci_high=test.ci_high,
        p_value=test.p_value,
        n=test.n_differing,
        is_small=test.is_small,
    )


@dataclass(frozen=True)
class _Estimates:
    """What labels make of a figure: its tasks with their values by the judge, and corrected ones.

    Attributes:
        tasks: shape (n_tasks,), sorted.
        judged: shape (n_tasks,).
        corrected: corrected with the judge, and from labels alone; empty if there are too few.
        no_figure: the reason why there is no debiased figure.
    """

    tasks: Ints
    judged: Floats
    corrected: tuple[debiased.Corrected, ...]
    no_figure: str | None


def debiased_score(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield a score corrected by labels."""
    estimates = _estimates(values)
    means = []
    if not estimates.no_figure:
        means = [debiased.estimate(corrected) for corrected in estimates.corrected]
    results = _results(estimates.judged, estimates.no_figure, means)
    if estimates.corrected:
        with_judge = estimates.corrected[0]
        results["effective_labels"] = MeasureResult(with_judge.effective_labels)
        if not estimates.no_figure:
            results["judge_power"] = MeasureResult(with_judge.power)
    yield results


def debiased_differences(pairs: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the difference of two models corrected by labels, for each pair of a ranking.

    It is second minus first. Values come figure by figure, in the order of their first pairs.
    """
    figures: dict[str, _Estimates] = {}
    for pair in pairs:
        for figure_id in (pair["figure_a"], pair["figure_b"]):
            if figure_id not in figures:
                index = len(figures)
                figures[figure_id] = _estimates(values_of_figures(values, index, index + 1))
    for pair in pairs:
        yield _difference_of_models(figures[pair["figure_a"]], figures[pair["figure_b"]])


def _difference_of_models(model_a: _Estimates, model_b: _Estimates) -> Results:
    """Return the second model's score minus the first's, on the tasks that both have."""
    shared_tasks, indices_a, indices_b = np.intersect1d(
        model_a.tasks, model_b.tasks, return_indices=True
    )
    reason = model_a.no_figure or model_b.no_figure
    if reason is None and len(shared_tasks) < 2:
        reason = "no task in common"
    differences = []
    if reason is None:
        for corrected_a, corrected_b in zip(model_a.corrected, model_b.corrected, strict=True):
            difference = debiased.estimated_difference(
                corrected_a, corrected_b, (indices_a, indices_b)
            )
            differences.append(difference)
    judged = model_b.judged[indices_b] - model_a.judged[indices_a]
    return _results(judged, reason, differences)


def _estimates(values: ValueColumns) -> _Estimates:
    tasks, rows, task_index = np.unique(values["task"], return_index=True, return_inverse=True)
    known_tasks = debiased.KnownTasks(
        offset=values["known_offset"][rows].astype(float),
        positive=values["positive"][rows].astype(float),
        negative=values["negative"][rows].astype(float),
        judged=values["judged"][rows].astype(float),
    )
    reason = _why_too_few_labels(values)
    if reason:
        return _Estimates(tasks, known_tasks.judged, (), reason)
    has_label = ~np.ma.getmaskarray(values["contribution"])
    labels = debiased.Labels(
        task=task_index[has_label],
        contribution=np.asarray(values["contribution"][has_label], dtype=float),
        label=np.asarray(values["label_value"][has_label], dtype=float),
        judge=np.asarray(values["judge_value"][has_label], dtype=float),
        factor=np.asarray(values["factor"][has_label], dtype=float),
    )
    with_judge = debiased.corrected(known_tasks, labels)
    labels_alone = debiased.corrected(known_tasks, labels, uses_judge=False)
    reason = debiased.outweighed(with_judge.effective_labels)
    return _Estimates(tasks, known_tasks.judged, (with_judge, labels_alone), reason)


def _why_too_few_labels(values: ValueColumns) -> str | None:
    """Return the reason why the labels of a figure are too few; None if they suffice."""
    reason = values["without_labels"][0]
    if reason and reason is not np.ma.masked:
        return str(reason)
    return debiased.too_few_labels(
        n_tasks=values["n_tasks"][0],
        n_tasks_uncovered=values["n_tasks_uncovered"][0],
        n_labels=values["n_labels"][0],
        n_tasks_labelled=values["n_tasks_labelled"][0],
    )


def _results(
    judged: Floats,
    no_figure: str | None,
    estimates: Sequence[debiased.DebiasedEstimate],
) -> dict[str, MeasureResult]:
    """Return the judge's own figure and its corrections by labels: with the judge, and without."""
    n_tasks = len(judged)
    judge_mean = float(np.mean(judged)) if n_tasks else None
    results = {
        "judge_score": MeasureResult(judge_mean),
        "debiased": MeasureResult(n=n_tasks, note=no_figure),
    }
    if not no_figure:
        with_judge, alone = estimates
        results["debiased"] = MeasureResult(
            with_judge.mean,
            with_judge.low,
            with_judge.high,
            n=n_tasks,
        )
        results["labels_alone"] = MeasureResult(alone.mean, alone.low, alone.high)
    return results
