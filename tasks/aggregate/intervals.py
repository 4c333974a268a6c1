"""The intervals of all leaderboard figures, drawn where the values that they rest on have changed."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.aggregate.rows import Row, known
from tasks.rules.statistics import METHOD, draws, few_to_rest_on, mean_intervals, ratio_intervals, repeated_interval
from warehouse import Reader

Columns = dict[str, NDArray[Any]]

_STALE = """
    select board_id, series_id, cut, label, score_name, figure_id, basis, n_tasks
    from cut_rows
    anti join (select * from intervals where method = $method) as drawn
        on cut_rows.figure_id = drawn.figure_id and cut_rows.basis = drawn.basis
    where basis is not null
"""

_VALUES = f"""
    with figures as (
        select *, row_number() over (order by cut, label, figure_id) - 1 as figure
        from ({_STALE}) where board_id = $board
    ),
    places as (
        select benchmark, dataset_revision, task_id, row_number() over (order by task_id) - 1 as task
        from boards where board_id = $board
    )
    select figure, task, value, n_met, n_judged
    from cut_values
    inner join places using (benchmark, dataset_revision, task_id)
    inner join figures using (series_id, cut, label, score_name)
    where value is not null
    order by figure
"""

_TRIALS = f"""
    select figure_id, list(trial_scores.mean_score order by trial) as scores
    from trial_scores
    inner join ({_STALE}) using (board_id, series_id, cut, label, score_name)
    group by figure_id
"""


def stale_intervals(reader: Reader) -> list[Row]:
    """The rows of `intervals` for every figure whose values have none yet."""
    given = {"method": METHOD}
    trials = {row["figure_id"]: row["scores"] for row in reader.rows(_TRIALS, given)}
    stale = reader.rows(f"from ({_STALE}) order by board_id, cut, label, figure_id", given)
    now = datetime.now(UTC)
    found = []
    for board, figures in _by_board(stale):
        measured = _measured(reader, board, figures)
        for figure, intervals in zip(figures, measured, strict=True):
            found.append(_row(figure, trials.get(figure["figure_id"], [])) | intervals | {"created_at": now})
    return found


def _by_board(stale: list[Row]) -> Iterator[tuple[int, list[Row]]]:
    boards: dict[int, list[Row]] = {}
    for figure in stale:
        boards.setdefault(figure["board_id"], []).append(figure)
    yield from boards.items()


def _measured(reader: Reader, board: int, figures: list[Row]) -> Iterator[Row]:
    """The intervals of a board's stale figures in their order: of the mean, and of the share of criteria met.

    All figures of a board share its draws. Those under one label are measured together, on its tasks alone.
    """
    columns = reader.arrays(_VALUES, {"method": METHOD, "board": board})
    drawn = draws(reader.value("select count(*) from boards where board_id = ?", [board]))
    bounds = np.searchsorted(columns["figure"], np.arange(len(figures) + 1))
    for first, last in _under_one_label(figures):
        rows = slice(bounds[first], bounds[last])
        tasks, places = np.unique(columns["task"][rows], return_inverse=True)
        at = (places, columns["figure"][rows] - first)
        values, met, judged = (np.full((len(tasks), last - first), empty) for empty in (np.nan, 0.0, 0.0))
        values[at], met[at], judged[at] = (columns[name][rows] for name in ("value", "n_met", "n_judged"))
        of_label = drawn.T[tasks].T
        # The share of criteria met is the same for every score.
        shares, which = np.unique(np.concatenate([met, judged]), axis=1, return_inverse=True)
        met, judged = shares[: len(tasks)], shares[len(tasks) :]
        yield from _intervals(
            mean_intervals(values, drawn=of_label),
            few_to_rest_on(values),
            ratio_intervals(met, judged, drawn=of_label)[which],
            few_to_rest_on(np.divide(met, judged, out=np.full(met.shape, np.nan), where=judged > 0))[which],
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
    for _, run in itertools.groupby(figures, key=itemgetter("cut", "label")):
        last = first + sum(1 for _ in run)
        yield first, last
        first = last


def _row(figure: Row, scores: list[float]) -> Row:
    trials = repeated_interval(scores)
    trials_mean, trials_low, trials_high = trials or (scores[0] if scores else None, None, None)
    return {
        "figure_id": figure["figure_id"],
        "basis": figure["basis"],
        "method": METHOD,
        "trials_mean": trials_mean,
        "trials_ci_low": trials_low,
        "trials_ci_high": trials_high,
    }
