"""The intervals of all leaderboard figures, drawn where the values that they rest on have changed."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.rules.statistics.intervals import (
    METHOD,
    distinct_columns,
    draws,
    few_to_rest_on,
    known,
    mean_intervals,
    ratio_intervals,
    repeated_interval,
)
from warehouse import Reader

Row = dict[str, Any]


def key_of(figure: Row, method: str) -> Row:
    """The first columns of a measured figure: its id, the fingerprint of what it rests on, the method, and now."""
    return {
        "figure_id": figure["figure_id"], "basis": figure["basis"], "method": method, "created_at": datetime.now(UTC),
    }  # fmt: skip


Columns = dict[str, NDArray[Any]]


def stale_intervals(reader: Reader, breakdown: str | None = None, score: str | None = None) -> list[Row]:
    """The rows of `intervals` for every figure whose values have none yet; `breakdown` and `score` narrow them."""
    given = {"method": METHOD, "breakdown": breakdown, "score": score}
    trials = {row["figure_id"]: row["scores"] for row in reader.rows(_on_stale("stale_figure_trials"), given)}
    stale = reader.rows(sql.read("questions/aggregate/stale_figures"), given)
    found = []
    for task_set, run in groupby(stale, key=itemgetter("task_set_id")):
        figures = list(run)
        for figure, intervals in zip(figures, _measured(reader, task_set, figures, given), strict=True):
            scores = trials.get(figure["figure_id"], [])
            mean, low, high = repeated_interval(scores) or (scores[0] if scores else None, None, None)
            of_trials = {"trials_mean": mean, "trials_ci_low": low, "trials_ci_high": high}
            found.append(key_of(figure, METHOD) | of_trials | intervals)
    return found


def has_stale_figures(reader: Reader) -> bool:
    """Whether a figure of a leaderboard has no interval for the values that it rests on now."""
    given = {"method": METHOD, "breakdown": None, "score": None}
    return bool(reader.rows(sql.read("questions/aggregate/stale_figures") + "\nlimit 1", given))


def _on_stale(question: str) -> str:
    """A question about the figures that have no interval yet."""
    stale = sql.read("questions/aggregate/stale_figures")
    return sql.with_steps(sql.read(f"questions/aggregate/{question}"), {"stale_figures": stale})


def _measured(reader: Reader, task_set: int, figures: list[Row], given: Row) -> Iterator[Row]:
    """The intervals of a task set's stale figures in their order: of the mean, and of the share of criteria met.

    All figures of a task set share its draws. Those under one label are measured together, on its tasks alone.
    """
    columns = reader.arrays(_on_stale("stale_figure_values"), {**given, "task_set": task_set})
    drawn = draws(reader.value("select count(*) from staging.task_set_members where task_set_id = ?", [task_set]))
    bounds = np.searchsorted(columns["figure"], np.arange(len(figures) + 1))
    for first, last in _under_one_label(figures):
        rows = slice(bounds[first], bounds[last])
        tasks, places = np.unique(columns["task"][rows], return_inverse=True)
        at = (places, columns["figure"][rows] - first)
        values, met, judged = (np.full((len(tasks), last - first), empty) for empty in (np.nan, 0.0, 0.0))
        values[at], met[at], judged[at] = (columns[name][rows] for name in ("value", "n_met", "n_judged"))
        of_label = drawn if len(tasks) == drawn.shape[1] else drawn.T[tasks].T
        # Many figures have the same values: two scores that differ in nothing here, and the share of criteria met.
        values, which_value = distinct_columns(values)
        shares, which_share = distinct_columns(np.concatenate([met, judged]))
        met, judged = shares[: len(tasks)], shares[len(tasks) :]
        yield from _intervals(
            mean_intervals(values, drawn=of_label)[which_value],
            few_to_rest_on(values)[which_value],
            ratio_intervals(met, judged, drawn=of_label)[which_share],
            few_to_rest_on(np.divide(met, judged, out=np.full(met.shape, np.nan), where=judged > 0))[which_share],
        )


def _intervals(
    means: NDArray[Any], are_few: NDArray[Any], shares: NDArray[Any], are_shares_few: NDArray[Any]
) -> Iterator[Row]:
    for mean, is_small, share, is_met_small in zip(means, are_few, shares, are_shares_few, strict=True):
        yield {
            "ci_low": known(mean[0]), "ci_high": known(mean[1]), "is_small": bool(is_small),
            "met_ci_low": known(share[0]), "met_ci_high": known(share[1]), "is_met_small": bool(is_met_small),
        }  # fmt: skip


def _under_one_label(figures: list[Row]) -> Iterator[tuple[int, int]]:
    """Runs of neighbouring figures under one label, as the first figure and the one after the last."""
    first = 0
    for _, run in groupby(figures, key=itemgetter("breakdown", "label")):
        last = first + sum(1 for _ in run)
        yield first, last
        first = last
