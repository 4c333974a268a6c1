"""Measures of what the variance of a mean score comes from, and what more calls would change."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tasks.measures.measure import FigureRow, MeasureResult, Results, ValueColumns
from tasks.rules.statistics import uncertainty
from tasks.rules.statistics.intervals import Ints
from tasks.rules.statistics.uncertainty import Source

_QUANTITIES = ("share", "width", "width_after", "single_width")
"""The attributes of a source that are measures of their own."""


def score_sources(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the sources of the variance of a model's mean score under one judge."""
    sources = uncertainty.sources(values["task"], _responses(values), values["value"])
    yield _results(sources)


def judge_choice(_: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the choice of judge as a source, on the responses that all judges decided."""
    judges, judge_index = np.unique(values["judge_key"], return_inverse=True)
    responses, first_rows, response_index = np.unique(
        _responses(values), return_index=True, return_inverse=True
    )
    shape = (len(responses), len(judges))
    sums = np.zeros(shape)
    n_scores = np.zeros(shape)
    np.add.at(sums, (response_index, judge_index), values["value"])
    np.add.at(n_scores, (response_index, judge_index), 1.0)
    is_shared = n_scores.all(axis=1)
    response_means = sums[is_shared] / n_scores[is_shared]
    tasks, task_index = np.unique(values["task"][first_rows][is_shared], return_inverse=True)
    means = np.zeros((len(tasks), len(judges)))
    np.add.at(means, task_index, response_means)
    means /= np.bincount(task_index)[:, None]
    if len(tasks) < 2:
        source = Source(note="too few shared tasks")
    else:
        source = uncertainty.judge_choice(means)
    yield _results({"judges": source})


def _responses(values: ValueColumns) -> Ints:
    """Return a number for the response of each score."""
    responses: Ints = values["task"] * (values["trial"].max() + 1) + values["trial"]
    return responses


def _results(sources: Mapping[str, Source]) -> Results:
    """Return sources as measures, named `source:quantity`."""
    results = {}
    for name, source in sources.items():
        results[f"{name}:variance"] = MeasureResult(
            source.variance,
            source.ci_low,
            source.ci_high,
            is_small=source.is_small,
            note=source.note,
        )
        for quantity in _QUANTITIES:
            value = getattr(source, quantity)
            if value is not None:
                results[f"{name}:{quantity}"] = MeasureResult(value)
    return results
