"""Measures, and the loop that computes those with changed values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import sql
from tasks.config.job import Job
from tasks.console import advance, progress
from tasks.rules.statistics import intervals
from warehouse import Reader, Warehouse

FigureRow = dict[str, Any]
"""A row of a relation of figures."""
MeasureRow = dict[str, Any]
"""A row of `measures`."""
ValueColumns = Mapping[str, NDArray[Any]]
"""Columns of the values of figures; `figure` is the index of a value's figure."""
_PROGRESS = "measures"
"""The unit on the progress line."""
_FIGURES_AT_A_TIME = 1_000
"""Number of figures after which a block of groups ends (see `_blocks`)."""


class Steps(NamedTuple):
    """CTEs that replace stored relations in a query, and their parameters (`sql.with_ctes`)."""

    ctes: Mapping[str, str]
    parameters: Mapping[str, Any]


_NO_STEPS = Steps({}, {})


@dataclass(frozen=True)
class MeasureResult:
    """A value with its interval and a note; an undefined one is None or NaN."""

    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    n: int | None = None
    is_small: bool | None = None
    note: str | None = None


Results = Mapping[str, MeasureResult]
"""Name of a measure -> its result for one figure."""


@dataclass(frozen=True)
class Measure:
    """A measure: computed outside SQL for each figure of a relation, and stored with an interval.

    Attributes:
        name: of the measure; `compute` may return others too.
        compute: figures that are computed together, and their values -> the results of each figure.
        figures: the relation of figures, with `figure_id` and `basis`, the fingerprint of their
            values.
        values: the relation of the figures' values.
        columns: the columns of values for `compute`; values are sorted by them.
        method: the name of the method, with a version: figures of another method are stale.
        key: the columns by which values are joined to figures, which `compute` gets too; without
            any, values have `figure_id`.
        group_by: the columns of figures that are equal in all figures that are computed together.
        condition: selects the rows of `figures` to measure.
        id_columns: the columns of a figure with the ids of the figures whose values it uses.
    """

    name: str
    compute: Callable[[Sequence[FigureRow], ValueColumns], Iterable[Results]]
    figures: str
    values: str
    columns: str
    method: str = intervals.METHOD
    key: str = ""
    group_by: tuple[str, ...] = ("figure_id",)
    condition: str = "true"
    id_columns: tuple[str, ...] = ("figure_id",)

    def stale(self, reader: Reader, steps: Steps = _NO_STEPS, **filters: Any) -> list[FigureRow]:
        """Return the figures whose current values are not measured yet.

        `filters` select figures by their columns.
        """
        columns = [*self.group_by, *self.id_columns, "figure_id", "basis"]
        if self.key:
            columns += self.key.split(", ")
        conditions = [self.condition, *(f"figures.{name} = ${name}" for name in filters)]
        query = sql.template(
            "queries/measures/stale",
            figures=self.figures,
            columns=", ".join(f"figures.{name}" for name in dict.fromkeys(columns)),
            condition=" and ".join(conditions),
        )
        parameters = {
            **steps.parameters,
            **filters,
            "measure": self.name,
            "method": self.method,
        }
        return reader.rows(sql.with_ctes(query, steps.ctes), parameters)

    def rows(
        self,
        reader: Reader,
        figures: Sequence[FigureRow],
        steps: Steps = _NO_STEPS,
    ) -> Iterator[MeasureRow]:
        """Compute stale figures in blocks; yield the rows of `measures`."""
        relation = self.values
        if self.key:
            relation = f"{self.figures} inner join {self.values} using ({self.key})"
        query = sql.template("queries/measures/values", columns=self.columns, values=relation)
        query = sql.with_ctes(query, steps.ctes)
        for groups in _blocks(figures, self.group_by):
            figure_ids = [self._figure_ids(group) for group in groups]
            parameters = {**steps.parameters, "figures": [*chain(*figure_ids)]}
            values = reader.arrays(query, parameters)
            start = 0
            for group, ids in zip(groups, figure_ids, strict=True):
                yield from self._group_rows(
                    group, values_of_figures(values, start, start + len(ids))
                )
                start += len(ids)

    def _figure_ids(self, group: Sequence[FigureRow]) -> list[str]:
        """Return the ids of the figures whose values a group uses."""
        return list(dict.fromkeys(figure[name] for figure in group for name in self.id_columns))

    def _group_rows(self, group: Sequence[FigureRow], values: ValueColumns) -> Iterator[MeasureRow]:
        for figure, results in zip(group, self.compute(group, values), strict=True):
            for name, result in results.items():
                row: MeasureRow = {
                    "figure_id": figure["figure_id"],
                    "basis": figure["basis"],
                    "method": self.method,
                    "measure": name,
                }
                for column, value in asdict(result).items():
                    is_float = isinstance(value, float)
                    row[column] = intervals.none_if_nan(value) if is_float else value
                row["created_at"] = datetime.now(UTC)
                yield row
            advance(_PROGRESS, succeeded=True)

    def fresh(self, reader: Reader, steps: Steps = _NO_STEPS, **filters: Any) -> list[MeasureRow]:
        """Compute the stale figures without writing them."""
        return [*self.rows(reader, self.stale(reader, steps, **filters), steps)]


def values_of_figures(values: ValueColumns, start: int, end: int) -> dict[str, NDArray[Any]]:
    """Return the values of the figures from index `start` up to (not including) `end`.

    Values are sorted by figure. The indices of the result begin at 0.
    """
    first_row, end_row = np.searchsorted(values["figure"], [start, end])
    columns = {name: column[first_row:end_row] for name, column in values.items()}
    columns["figure"] = columns["figure"] - start
    return columns


def renew(job: Job, measures: Sequence[Measure]) -> Counter[str]:
    """Compute, store and publish the stale figures of some measures.

    Returns:
        The number of these figures by the measure's name.
    """
    warehouse = Warehouse(job.warehouse)
    counts: Counter[str] = Counter()
    rows: list[MeasureRow] = []
    with warehouse.reader() as reader:
        stale = [(measure, measure.stale(reader)) for measure in measures]
        for measure, figures in stale:
            if figures:
                counts[measure.name] += len(figures)
        with (
            progress(_PROGRESS, {"": counts.total()}, is_quiet=job.is_quiet),
            # Matrix products are short: a second thread would mostly wait, which costs CPU too.
            threadpool_limits(limits=1, user_api="blas"),
        ):
            for measure, figures in stale:
                rows += measure.rows(reader, figures)
    warehouse.write("measures", rows)
    warehouse.publish()
    return counts


def _blocks(
    figures: Sequence[FigureRow], group_by: Sequence[str]
) -> Iterator[list[list[FigureRow]]]:
    """Yield blocks of groups of figures.

    The figures of a group are computed together; the values of a block are read by one query.
    """
    block: list[list[FigureRow]] = []
    n_figures = 0
    for _, group in groupby(figures, key=itemgetter(*group_by)):
        block.append(list(group))
        n_figures += len(block[-1])
        if n_figures >= _FIGURES_AT_A_TIME:
            yield block
            block = []
            n_figures = 0
    if block:
        yield block
