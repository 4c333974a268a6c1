"""Figures of reviews, measured where what they rest on has changed.

How far people agree with criteria, how far reviewers agree with each other, and how well checks predict disagreement.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.aggregate.rows import Row, known
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
    METHOD,
    SMALL,
    few_to_rest_on,
    ratio_intervals,
)
from warehouse import Reader

AGREEMENT_METHOD = "expanded-percentile-1"
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
    return [_share_row(figure, rows) for figure, rows in _values(reader, "stale_review_values", METHOD)]


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
    for figure, rows in _values(reader, "stale_reviewer_pairs", AGREEMENT_METHOD):
        places = {task: place for place, task in enumerate(dict.fromkeys(row["task_id"] for row in rows))}
        tables = np.zeros((len(places), 1, 2, 2))
        for row in rows:
            tables[places[row["task_id"]], 0, int(row["value_a"]), int(row["value_b"])] += row["n"]
        found.append(figure | _measured(tables, {"kappa": kappa, "macro_f1": macro_f1, "agreement": raw_agreement}))
    return found


def stale_reviewer_sets(reader: Reader) -> list[Row]:
    """The rows of `reliability_measures` for the reviewers of each check, where their decisions are new."""
    found = []
    for figure, rows in _values(reader, "stale_reviewer_sets", AGREEMENT_METHOD):
        tables = np.array([
            [[[row["fail_fail"], row["fail_pass"]], [row["fail_pass"], row["pass_pass"]]]] for row in rows
        ])  # fmt: skip
        found.append(figure | _measured(tables, {"alpha": krippendorff_alpha}))
    return found


def stale_predictions(reader: Reader) -> list[Row]:
    """The rows of `prediction_measures` for every check whose outcomes are new.

    Where fewer than `FEWEST_OTHERS` tasks have a criterion that fails the check, or one that passes it, or less than
    that many criteria in all have the outcome, or lack it, nothing is measured, and every figure is NULL.
    """
    return [
        figure | _prediction(np.array([[row[name] for name in _CELLS] for row in rows]))
        for figure, rows in _values(reader, "stale_predictions", AGREEMENT_METHOD)
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
        return row | _measured(tables, _PREDICTION)
    return row | {f"{name}{end}": None for name in _PREDICTION for end in ("", "_ci_low", "_ci_high")}


def _measured(tables: NDArray[np.float64], measures: dict[str, Any]) -> Row:
    """Measures of one figure with their intervals, from the tables of each task, shape (n_tasks, 1, k, k)."""
    row: Row = {}
    intervals = agreement_intervals(tables, *measures.values())
    for (name, measure), of_measure in zip(measures.items(), intervals, strict=True):
        low, high = of_measure[0]
        value = known(measure(tables.sum(axis=0))[0])
        row |= {name: value, f"{name}_ci_low": known(low), f"{name}_ci_high": known(high)}
    return row


def _values(reader: Reader, question: str, method: str) -> Iterator[tuple[Row, list[Row]]]:
    """Each stale figure, as the first columns of its row, with the values of its tasks."""
    rows = reader.rows(sql.read(f"questions/aggregate/{question}"), {"method": method})
    now = datetime.now(UTC)
    for (figure_id, basis), run in groupby(rows, key=itemgetter("figure_id", "basis")):
        yield {"figure_id": figure_id, "basis": basis, "method": method, "created_at": now}, list(run)
