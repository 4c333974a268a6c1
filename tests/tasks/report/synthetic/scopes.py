"""Scopes of made-up warehouses, and the rows of figures."""

from pathlib import Path
from typing import Any

from tasks.config.job import DataRevision
from tasks.figures.figure import Figure
from tasks.figures.scope import Scope
from tests.kit import REVISION, job_on, written


def scope_of(
    folder: Path,
    rows: dict[str, list[dict[str, Any]]],
) -> Scope:
    """Store rows by table in a fresh warehouse, publish, and open the scope of their revision."""
    warehouse = written(folder, rows)
    warehouse.publish()
    data = DataRevision(
        name="sample",
        revision=REVISION,
        splits=("sample",),
    )
    return Scope(
        job_on("sample", folder).looking_up(lambda: data),
        warehouse.reader(),
    )


def rows_of(figure: Figure, scope: Scope) -> list[dict[str, Any]]:
    """The rows of a figure."""
    return scope.reader.rows(scope.query_of(figure))
