"""Scores corrected by people's labels, and differences of two of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.measures.measure import Columns, MeasureResult, Results, Row
from tasks.rules.statistics.debiased import (
    FEWEST_LABELLED_TASKS,
    FEWEST_LABELS,
    Corrected,
    DebiasedEstimate,
    KnownTasks,
    Labels,
    corrected,
    estimate,
    estimated_difference,
    too_few,
)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure: tasks, the judge's values, values corrected with and without the judge, or why there are none."""

    tasks: NDArray[Any]
    judged: NDArray[np.float64]
    estimates: tuple[Corrected, ...]
    no_figure: str | None


def debiased_score(_: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield a score corrected by labels."""
    figure = _figure(values)
    estimates = [] if figure.no_figure else [estimate(each) for each in figure.estimates]
    results = _results(figure.judged, figure.no_figure, estimates)
    if figure.estimates:
        results["effective_labels"] = MeasureResult(figure.estimates[0].effective_labels)
        if not figure.no_figure:
            results["judge_power"] = MeasureResult(figure.estimates[0].power)
    yield results


def debiased_differences(pairs: Sequence[Row], values: Columns) -> Iterator[Results]:
    """Yield the difference of two models corrected by labels, second minus first, for each pair of a ranking."""
    ids = list(dict.fromkeys(row[name] for row in pairs for name in ("figure_a", "figure_b")))
    ends = np.searchsorted(values["figure"], range(len(ids) + 1))
    figures = {
        name: _figure({column: each[ends[index] : ends[index + 1]] for column, each in values.items()})
        for index, name in enumerate(ids)
    }
    for pair in pairs:
        first, second = figures[pair["figure_a"]], figures[pair["figure_b"]]
        common, a, b = np.intersect1d(first.tasks, second.tasks, return_indices=True)
        reason = first.no_figure or second.no_figure or (None if len(common) > 1 else "no task in common")
        estimates = [
            estimated_difference(one, other, (a, b))
            for one, other in zip(first.estimates, second.estimates, strict=False)
            if reason is None
        ]
        yield _results(second.judged[b] - first.judged[a], reason, estimates)


def _figure(values: Columns) -> _Figure:
    names, first, task = np.unique(values["task"], return_index=True, return_inverse=True)
    known = KnownTasks(
        *(values[name][first].astype(float) for name in ("known_offset", "positive", "negative", "judged"))
    )
    if reason := _refused({name: column[0] for name, column in values.items()}):
        return _Figure(names, known.judged, (), reason)
    has_label = ~np.ma.getmaskarray(values["contribution"])
    labels = Labels(
        task[has_label],
        *(np.asarray(values[name][has_label], dtype=float)
          for name in ("contribution", "label_value", "judge_value", "factor")),
    )  # fmt: skip
    estimates = tuple(corrected(known, labels, uses_judge=uses_judge) for uses_judge in (True, False))
    return _Figure(names, known.judged, estimates, too_few(estimates[0]))


def _refused(row: Row) -> str | None:
    """Return the reason why a figure has no debiased score, if its counts give one."""
    if row["without_labels"] and row["without_labels"] is not np.ma.masked:
        return str(row["without_labels"])
    if row["n_tasks_uncovered"]:
        return f"no sheet covers {row['n_tasks_uncovered']} of its {row['n_tasks']} tasks"
    if row["n_labels"] < FEWEST_LABELS:
        return f"too few labels: {row['n_labels']}, not {FEWEST_LABELS}"
    if row["n_tasks_labelled"] < FEWEST_LABELLED_TASKS:
        return f"too few tasks with labels: {row['n_tasks_labelled']}, not {FEWEST_LABELLED_TASKS}"
    return None


def _results(
    judged: NDArray[np.float64], no_figure: str | None, estimates: Sequence[DebiasedEstimate]
) -> dict[str, MeasureResult]:
    """Return the judge's own figure and its corrections by labels."""
    results = {"judge_score": MeasureResult(float(np.mean(judged)) if len(judged) else None)}
    results["debiased"] = MeasureResult(n=len(judged), note=no_figure)
    if not no_figure:
        debiased, alone = estimates
        results["debiased"] = MeasureResult(debiased.mean, debiased.low, debiased.high, n=len(judged))
        results["labels_alone"] = MeasureResult(alone.mean, alone.low, alone.high)
    return results
