"""How far graders agree, measured where their decisions have changed since the last time."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.aggregate.rows import Row, known
from tasks.rules.statistics.agreement import agreement_intervals, kappa, krippendorff_alpha, macro_f1, raw_agreement
from tasks.rules.statistics.intervals import draws
from warehouse import Reader

METHOD = "expanded-percentile-1"
_LABELS = 3
"""Decisions that there are: unmet, partial, met."""


def stale_agreement(reader: Reader) -> list[Row]:
    """The rows of `agreement_measures` for every pair of graders whose decisions are new."""
    pair = ("benchmark", "dataset_revision", "grader_a", "grader_b")
    measures = {"kappa": kappa, "macro_f1": macro_f1, "agreement": raw_agreement}
    found = []
    for key, figures in _groups(reader, "stale_pairs", pair):
        given = dict(zip(("benchmark", "revision", "a", "b"), key, strict=True))
        tables = _tables(reader, "stale_pair", given, figures)
        found += _measured(figures, tables, measures)
    return found


def stale_reliability(reader: Reader) -> list[Row]:
    """The rows of `reliability_measures` for every set of graders whose decisions are new."""
    found = []
    for key, figures in _groups(reader, "stale_sets", ("benchmark", "dataset_revision", "grader_set")):
        given = dict(zip(("benchmark", "revision", "set"), key, strict=True))
        tables = _tables(reader, "stale_set", given, figures)
        found += _measured(figures, tables, {"alpha": krippendorff_alpha})
    return found


def _groups(reader: Reader, question: str, names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    """The stale figures of graders that were compared, with the key of the comparison."""
    stale = reader.rows(sql.read(f"questions/aggregate/{question}"), {"method": METHOD})
    for key, run in groupby(stale, key=itemgetter(*names)):
        yield key, list(run)


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


def _measured(figures: list[Row], tables: NDArray[np.float64], measures: dict[str, Any]) -> list[Row]:
    """A row for each figure, with each measure and its interval, all from the same draws."""
    drawn, now = draws(len(tables)), datetime.now(UTC)
    rows = [{"figure_id": f["figure_id"], "basis": f["basis"], "method": METHOD, "created_at": now} for f in figures]
    drawn_intervals = agreement_intervals(tables, *measures.values(), drawn=drawn)
    for (name, measure), intervals in zip(measures.items(), drawn_intervals, strict=True):
        values = measure(tables.sum(axis=0))
        for row, value, (low, high) in zip(rows, values, intervals, strict=True):
            row |= {name: known(value), f"{name}_ci_low": known(low), f"{name}_ci_high": known(high)}
    return rows
