"""Agreement of graders with people: with the pooled decisions of all people, and as the mean of the pairs."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.agreement import agreement_intervals, kappa, macro_f1, raw_agreement
from tasks.rules.statistics.intervals import few_to_rest_on, known

Row = dict[str, Any]
_MEASURES = {"kappa": kappa, "macro_f1": macro_f1, "agreement": raw_agreement}
_LABELS = 3
"""The possible decisions: unmet, partial, met."""


def against_people(counts: Sequence[Row]) -> list[Row]:
    """Return one row for each grader and label.

    Its measures compare all decisions of the grader with people's, so a person with more decisions counts more.

    Args:
        counts: decisions of graders and people on the same criteria (`sql/figures/people.sql`).
    """
    measured = [
        {"grader": grader, "label": label} | _figures(list(rows))
        for (grader, label), rows in groupby(counts, key=itemgetter("grader", "label"))
    ]
    return sorted(measured, key=lambda row: (row["label"], row["kappa"] is None, -(row["kappa"] or 0.0), row["grader"]))


def _figures(counts: Sequence[Row]) -> Row:
    tasks = _tables(counts, "task_id")
    pairs = _tables(counts, "pair_grader", "person")
    if len(pairs) > 1 and counts[0]["grader"] != counts[0]["pair_grader"]:
        # The order of two people has no meaning, so if there are several pairs, each counts in both orders.
        tasks = (tasks + tasks.swapaxes(1, 2)) / 2.0
    pooled = tasks.sum(axis=0)
    intervals = agreement_intervals(tasks[:, None], *_MEASURES.values())
    measured: Row = {}
    for (name, measure), ((low, high),) in zip(_MEASURES.items(), intervals, strict=True):
        measured |= {name: known(measure(pooled)), f"{name}_ci_low": known(low), f"{name}_ci_high": known(high)}
    people = {row["person"] for row in counts}
    people |= {row["pair_grader"] for row in counts if row["pair_grader"] != row["grader"]}
    of_tasks = macro_f1(tasks)
    n_used = ((tasks.sum(axis=1) + tasks.sum(axis=2)) > 0).sum(axis=1)
    return measured | {
        "macro_f1_task_mean": float(of_tasks.mean()),
        "macro_f1_task_mean_absent_as_0": float((of_tasks * n_used / counts[0]["n_classes"]).mean()),
        **{f"{name}_pair_mean": _mean(measure(pairs)) for name, measure in _MEASURES.items()}, "n_people": len(people),
        "n_pairs": len(pairs), "n_tasks": len(tasks), "n": int(pooled.sum()),
        "is_small": bool(few_to_rest_on(raw_agreement(tasks)[:, None])[0]),
    }  # fmt: skip


def _tables(counts: Sequence[Row], *names: str) -> NDArray[np.float64]:
    """Return the counts of pairs of decisions, a table for each task or pair: shape (n, labels, labels)."""
    keys = [tuple(row[name] for name in names) for row in counts]
    indices = {key: index for index, key in enumerate(sorted(set(keys)))}
    tables = np.zeros((len(indices), _LABELS, _LABELS))
    for key, row in zip(keys, counts, strict=True):
        tables[indices[key], int(2 * row["a"]), int(2 * row["b"])] += row["n"]
    return tables


def _mean(values: NDArray[np.float64]) -> float | None:
    """Return the mean of the defined values."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
