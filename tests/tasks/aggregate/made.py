"""Made-up rows: small rubrics with what was decided on them, written to a warehouse, aggregated, and read."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tasks.aggregate import aggregate
from tasks.rules.statistics.agreement import agreement_intervals
from tasks.rules.statistics.intervals import draws
from tests.kit import admitted, criterion, job_on, response, verdict, written
from warehouse import Warehouse

Rows = dict[str, list[dict[str, Any]]]


def rubric_of(weights: Mapping[str, Sequence[int]]) -> Rows:
    """Admitted tasks with the given weights, by task."""
    tables = admitted(list(weights))
    for task_row in tables["task_rows"]:
        task_row["n_criteria"] = len(weights[task_row["task_id"]])
    criteria = [criterion(task, i, w) for task, of_task in weights.items() for i, w in enumerate(of_task)]
    return tables | {"criteria": criteria, "responses": [], "verdicts": []}


def answered(tables: Rows, decisions: Mapping[str, Sequence[float | None]], **of_response: Any) -> Rows:
    """Add a response to each task, with its criteria decided in their order."""
    for task, values in decisions.items():
        of_task = [c for c in tables["criteria"] if c["task_id"] == task]
        tables["responses"].append(response(task, **of_response))
        tables["verdicts"] += [verdict(tables["responses"][-1], c, v) for c, v in zip(of_task, values, strict=True)]
    return tables


def aggregated(folder: Path, tables: Mapping[str, list[dict[str, Any]]], **settings: Any) -> Warehouse:
    """A warehouse with these rows, published and measured."""
    warehouse = written(folder, tables)
    aggregate(job_on("sample", folder, **settings))
    return warehouse


def are_close(wanted: Any, actual: Any, tolerance: float = 1e-9) -> bool:
    """Whether two figures are the same; what is not defined is None."""
    if wanted is None or actual is None:
        return wanted is actual
    return abs(float(wanted) - float(actual)) <= tolerance


def differing(
    wanted: Mapping[Any, Mapping[str, Any]], rows: Mapping[Any, Mapping[str, Any]], tolerance: float = 1e-9
) -> list[tuple[Any, str, Any, Any]]:
    """Where rows are not what is wanted of them, so that a failure names the figures; NaN is what is not defined."""
    return [
        (key, column, value, rows[key][column])
        for key, columns in wanted.items()
        for column, value in columns.items()
        if not are_close(None if value is None or math.isnan(value) else value, rows[key][column], tolerance)
    ]


@contextmanager
def few_resamples(resamples: int) -> Iterator[None]:
    """Draw few resamples where many figures are measured together, whose time matters and last digits do not."""
    few = partial(draws, resamples=resamples)

    def with_few(tables: Any, *measures: Any, drawn: Any) -> Any:
        return agreement_intervals(tables, *measures, drawn=few(len(tables)) if tables.shape[1] > 1 else drawn)

    with patch("tasks.measures.scores.draws", few), patch("tasks.measures.agreement.agreement_intervals", with_few):
        yield
