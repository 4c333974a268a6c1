"""How far graders and reviewers agree, and what checks predict, measured where what they rest on has changed."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.aggregate.intervals import Row, key_of
from tasks.rules.statistics.agreement import (
    agreement_intervals,
    check_auc,
    failing_rate,
    kappa,
    krippendorff_alpha,
    macro_f1,
    odds_ratio,
    passing_rate,
    rate_difference,
    raw_agreement,
)
from tasks.rules.statistics.intervals import (
    FEW_OTHERS,
    FEWEST_OTHERS,
    SMALL,
    draws,
    few_to_rest_on,
    known,
    ratio_intervals,
)
from tasks.rules.statistics.intervals import METHOD as INTERVAL_METHOD
from warehouse import Reader

METHOD = "expanded-percentile-1"
_LABELS = 3
"""Decisions that there are: unmet, partial, met."""
_PAIR = {"kappa": kappa, "macro_f1": macro_f1, "agreement": raw_agreement}
_SET = {"alpha": krippendorff_alpha}


def stale_agreement(reader: Reader) -> list[Row]:
    """The rows of `agreement_measures` for every pair of graders whose decisions are new."""
    return _of_graders(reader, "pair", {"revision": "dataset_revision", "a": "grader_a", "b": "grader_b"}, _PAIR)


def stale_reliability(reader: Reader) -> list[Row]:
    """The rows of `reliability_measures` for every set of graders whose decisions are new."""
    return _of_graders(reader, "set", {"revision": "dataset_revision", "set": "grader_set"}, _SET)


def _of_graders(reader: Reader, what: str, names: Mapping[str, str], measures: Mapping[str, Any]) -> list[Row]:
    """The measures of stale figures, one comparison of graders after the other; `names` are parameter -> column."""
    found: list[Row] = []
    stale = reader.rows(sql.read(f"questions/aggregate/stale_{what}s"), {"method": METHOD})
    for key, run in groupby(stale, key=itemgetter("benchmark", *names.values())):
        figures = list(run)
        tables = _tables(reader, f"stale_{what}", dict(zip(("benchmark", *names), key, strict=True)), figures)
        found += [
            key_of(figure, METHOD) | row
            for figure, row in zip(figures, _measured(tables, measures, draws(len(tables))), strict=True)
        ]
    return found


def _tables(reader: Reader, what: str, given: Row, figures: list[Row]) -> NDArray[np.float64]:
    """How often which decisions meet, of shape (n_tasks, n_figures, labels, labels)."""
    stale = {f"{what}s": sql.read(f"questions/aggregate/{what}s")}
    counts = sql.with_steps(sql.read(f"questions/aggregate/{what}_counts"), stale)
    cells = reader.arrays(counts, {"method": METHOD, **given})
    places = {figure["figure_id"]: place for place, figure in enumerate(figures)}
    figure = np.array([places[name] for name in cells["figure_id"]], dtype=np.int64)
    tasks, task = np.unique(cells["task_id"].astype(str), return_inverse=True)
    tables = np.zeros((len(tasks), len(figures), _LABELS, _LABELS))
    a, b = (cells[name].astype(np.int64) for name in ("a", "b"))
    np.add.at(tables, (task, figure, a, b), cells["n"])
    # Most graders know two decisions; a third that nobody takes would more than double the work.
    used = np.flatnonzero(tables.any(axis=(0, 1, 3)) | tables.any(axis=(0, 1, 2)))
    return tables[:, :, used][:, :, :, used]


def _measured(
    tables: NDArray[np.float64], measures: Mapping[str, Any], drawn: NDArray[np.float32] | None = None
) -> list[Row]:
    """Measures of each figure with their intervals, all from the same draws; tables (n_tasks, n_figures, k, k)."""
    rows: list[Row] = [{} for _ in range(tables.shape[1])]
    drawn_intervals = agreement_intervals(tables, *measures.values(), drawn=drawn)
    for (name, measure), intervals in zip(measures.items(), drawn_intervals, strict=True):
        for row, value, (low, high) in zip(rows, measure(tables.sum(axis=0)), intervals, strict=True):
            row |= {name: known(value), f"{name}_ci_low": known(low), f"{name}_ci_high": known(high)}
    return rows


_PREDICTION = {"difference": rate_difference, "odds_ratio": odds_ratio, "auc": check_auc}
_OF_LEADERBOARDS = (
    "trials_mean", "trials_ci_low", "trials_ci_high", "met_ci_low", "met_ci_high", "is_met_small",
)  # fmt: skip
"""The columns of `intervals` that only a leaderboard's figures have."""
_CELLS = ("fail_disagree", "fail_agree", "pass_disagree", "pass_agree")


def stale_review_intervals(reader: Reader) -> list[Row]:
    """The rows of `intervals` for every share of agreement whose reviews are new.

    The share is Hajek's ratio: the weights of the criteria that are agreed with over all weights, a weight being one
    over the probability of being sampled (Saerndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992,
    section 5.7). Its interval is that of a ratio of sums over tasks, with whole tasks as the sample, so reviews of one
    task may hang together; what stratifying gains is not counted, so it is rather too wide than too narrow.
    """
    return [_share_row(figure, rows) for figure, rows in _values(reader, "stale_review_values", INTERVAL_METHOD)]


def _share_row(figure: Row, rows: Sequence[Row]) -> Row:
    agreed = np.array([[row["weight_agreed"]] for row in rows])
    weights = np.array([[row["sample_weights"]] for row in rows])
    low, high = ratio_intervals(agreed, weights)[0]
    return {
        **figure, **dict.fromkeys(_OF_LEADERBOARDS),
        "ci_low": known(low), "ci_high": known(high), "is_small": bool(few_to_rest_on(agreed / weights)[0]),
    }  # fmt: skip


def stale_reviewer_pairs(reader: Reader) -> list[Row]:
    """The rows of `agreement_measures` for every two reviewers whose decisions on the same criteria are new."""
    found = []
    for figure, rows in _values(reader, "stale_reviewer_pairs", METHOD):
        places = {task: place for place, task in enumerate(dict.fromkeys(row["task_id"] for row in rows))}
        tables = np.zeros((len(places), 1, 2, 2))
        for row in rows:
            tables[places[row["task_id"]], 0, int(row["value_a"]), int(row["value_b"])] += row["n"]
        found.append(figure | _measured(tables, _PAIR)[0])
    return found


def stale_reviewer_sets(reader: Reader) -> list[Row]:
    """The rows of `reliability_measures` for the reviewers of each check, where their decisions are new."""
    found = []
    for figure, rows in _values(reader, "stale_reviewer_sets", METHOD):
        tables = np.array([
            [[[row["fail_fail"], row["fail_pass"]], [row["fail_pass"], row["pass_pass"]]]] for row in rows
        ])  # fmt: skip
        found.append(figure | _measured(tables, _SET)[0])
    return found


def stale_predictions(reader: Reader) -> list[Row]:
    """The rows of `prediction_measures` for every check whose outcomes are new.

    Where fewer than `FEWEST_OTHERS` tasks have a criterion that fails the check, or one that passes it, or less than
    that many criteria in all have the outcome, or lack it, nothing is measured, and every figure is NULL.
    """
    return [
        figure | _prediction(np.array([[row[name] for name in _CELLS] for row in rows]))
        for figure, rows in _values(reader, "stale_predictions", METHOD)
    ]


def _prediction(cells: NDArray[np.float64]) -> Row:
    """What predicts what, from the cells of a table for each task, shape (n_tasks, 4)."""
    tables = cells.reshape(-1, 1, 2, 2)
    n_tasks = min((tables[:, 0, row].sum(axis=-1) > 0).sum() for row in (0, 1))
    is_enough = n_tasks >= FEWEST_OTHERS and tables[:, 0].sum(axis=(0, 1)).min() >= FEWEST_OTHERS
    total = tables.sum(axis=0)
    rates = {"failing_rate": failing_rate, "passing_rate": passing_rate}
    row: Row = {name: known(rate(total)[0]) if is_enough else None for name, rate in rates.items()}
    row["is_small"] = bool(len(cells) < SMALL or n_tasks < FEW_OTHERS or total.min() < FEWEST_OTHERS)
    if is_enough:
        return row | _measured(tables, _PREDICTION)[0]
    return row | {f"{name}{end}": None for name in _PREDICTION for end in ("", "_ci_low", "_ci_high")}


def _values(reader: Reader, question: str, method: str) -> Iterator[tuple[Row, list[Row]]]:
    """Each stale figure, as the first columns of its row, with the values of its tasks."""
    rows = reader.rows(sql.read(f"questions/aggregate/{question}"), {"method": method})
    for _, run in groupby(rows, key=itemgetter("figure_id", "basis")):
        of_figure = list(run)
        yield key_of(of_figure[0], method), of_figure
