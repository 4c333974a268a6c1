"""Scores corrected by people's labels, computed where what they rest on has changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.aggregate.intervals import Row, key_of
from tasks.rules.statistics.debiased import (
    FEWEST_LABELLED_TASKS,
    FEWEST_LABELS,
    METHOD,
    Corrected,
    Estimate,
    KnownTasks,
    Labels,
    corrected,
    estimate,
    estimated_difference,
    too_few,
)
from warehouse import Reader

_FIGURES_AT_A_TIME = 200
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure with its tasks in their order, or why it has no debiased score."""

    tasks: NDArray[Any]
    judged: NDArray[np.float64]
    debiased: Corrected | None
    alone: Corrected | None
    no_figure: str | None


def stale_debiased(reader: Reader) -> list[Row]:
    """The rows of `debiased_measures` for every score and difference whose labels or verdicts are new."""
    stale = reader.rows(sql.read("questions/aggregate/debiased/stale_figures"), {"method": METHOD})
    if not stale:
        return []
    figures = {row["figure_id"]: figure for row, figure in _figures(reader, stale)}
    made = [key_of(row, METHOD) | _of_figure(figures[row["figure_id"]]) for row in stale if row["is_stale"]]
    pairs = reader.rows(sql.read("questions/aggregate/debiased/stale_pairs"), {"method": METHOD})
    for row in pairs:
        made.append(key_of(row, METHOD) | _of_pair(figures[row["figure_a"]], figures[row["figure_b"]]))
    return made


def _figures(reader: Reader, stale: Sequence[Row]) -> Iterator[tuple[Row, _Figure]]:
    for first in range(0, len(stale), _FIGURES_AT_A_TIME):
        rows = stale[first : first + _FIGURES_AT_A_TIME]
        given = {"figures": [row["figure_id"] for row in rows]}
        tasks, labels = (
            reader.arrays(sql.read(f"questions/aggregate/debiased/{name}"), given) for name in ("task_values", "labels")
        )
        for row in rows:
            yield row, _figure(row, *(_of(columns, row["figure_id"]) for columns in (tasks, labels)))


def _of(columns: Columns, figure_id: str) -> Columns:
    """The rows of one figure."""
    places = slice(*(np.searchsorted(columns["figure_id"].astype(str), figure_id, side) for side in ("left", "right")))
    return {name: values[places] for name, values in columns.items()}


def _figure(row: Row, tasks: Columns, labels: Columns) -> _Figure:
    names = tasks["task_id"].astype(str)
    known = KnownTasks(*(tasks[name].astype(float) for name in ("known_offset", "positive", "negative", "judged")))
    reason = _refused(row)
    if reason is not None:
        return _Figure(names, known.judged, None, None, reason)
    given = Labels(
        np.searchsorted(names, labels["task_id"].astype(str)),
        *(labels[name].astype(float) for name in ("contribution", "label_value", "judge_value", "factor")),
    )
    debiased, alone = (corrected(known, given, uses_judge=uses_judge) for uses_judge in (True, False))
    return _Figure(names, known.judged, debiased, alone, too_few(debiased))


def _refused(row: Row) -> str | None:
    """Why a figure has no debiased score, if its counts say so."""
    if row["without_labels"]:
        return str(row["without_labels"])
    if row["n_tasks_uncovered"]:
        return f"no sheet covers {row['n_tasks_uncovered']} of its {row['n_tasks']} tasks"
    if row["n_labels"] < FEWEST_LABELS:
        return f"too few labels: {row['n_labels']}, not {FEWEST_LABELS}"
    if row["n_tasks_labelled"] < FEWEST_LABELLED_TASKS:
        return f"too few tasks with labels: {row['n_tasks_labelled']}, not {FEWEST_LABELLED_TASKS}"
    return None


def _of_figure(figure: _Figure) -> Row:
    row = {"n_tasks": len(figure.judged), "judge_score": float(np.mean(figure.judged)), **_NOTHING}
    row |= {"no_figure": figure.no_figure}
    if figure.debiased is not None:
        row |= {"effective_labels": figure.debiased.effective_labels}
    if figure.no_figure or figure.debiased is None or figure.alone is None:
        return row
    row |= {"judge_power": figure.debiased.power}
    return row | _measured(estimate(figure.debiased), estimate(figure.alone))


def _of_pair(first: _Figure, second: _Figure) -> Row:
    common, a, b = np.intersect1d(first.tasks, second.tasks, return_indices=True)
    difference = float(np.mean(second.judged[b] - first.judged[a])) if len(common) else None
    row = {"n_tasks": len(common), "judge_score": difference, **_NOTHING}
    reason = first.no_figure or second.no_figure or (None if len(common) > 1 else "no task in common")
    pairs = ((first.debiased, second.debiased), (first.alone, second.alone))
    measured = [
        estimated_difference(one, other, (a, b))
        for one, other in pairs
        if reason is None and one is not None and other is not None
    ]
    return row | ({"no_figure": reason} if reason else _measured(*measured))


_NOTHING: Mapping[str, Any] = dict.fromkeys((
    "debiased", "debiased_ci_low", "debiased_ci_high", "labels_alone", "labels_alone_ci_low", "labels_alone_ci_high",
    "judge_power", "effective_labels", "no_figure",
))  # fmt: skip


def _measured(debiased: Estimate, alone: Estimate) -> Row:
    return {
        f"{name}{end}": value
        for name, found in (("debiased", debiased), ("labels_alone", alone))
        for end, value in (("", found.mean), ("_ci_low", found.low), ("_ci_high", found.high))
    }
