"""Measures, and the loop that computes those with changed values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.config.job import Job
from tasks.console import advance, progress
from tasks.rules.statistics.intervals import none_if_nan
from warehouse import Reader, Warehouse

Row = dict[str, Any]
Columns = Mapping[str, NDArray[Any]]
Steps = tuple[Mapping[str, str], Row]
"""CTEs that replace stored relations in a query, and their parameters (`sql.with_ctes`)."""
STORED: Steps = ({}, {})
_PROGRESS = "measures"
"""The unit on the progress line."""
_FIGURES_AT_A_TIME = 1_000


@dataclass(frozen=True, slots=True)
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
        figures: the relation of figures, with `figure_id` and `basis`, the fingerprint of their
            values.
        values: the relation of the figures' values.
        columns: the columns of values for `compute`, which are also the sort order.
        compute: figures that are computed together, and their values (`figure` is the index of a
            value's figure)
            -> the results of each figure.
        method: the name of the method, with a version: figures of another method are stale.
        key: the columns that values share with figures, also for `compute`; without any, values
            have `figure_id`.
        group_by: the columns of figures that are equal in all figures that are computed together.
        condition: selects the rows of `figures` to measure.
        of: the columns of a figure with the ids of the figures whose values it uses.
    """

    name: str
    figures: str
    values: str
    columns: str
    compute: Callable[[Sequence[Row], Columns], Iterable[Results]]
    method: str
    key: str = ""
    group_by: tuple[str, ...] = ("figure_id",)
    condition: str = "true"
    of: tuple[str, ...] = ("figure_id",)

    def stale(self, reader: Reader, on: Steps = STORED, **where: Any) -> list[Row]:
        """Return the figures whose current values are not measured yet; `where` selects figures by
        their columns.
        """
        columns = dict.fromkeys(
            (*self.group_by, *self.of, "figure_id", "basis", *filter(None, self.key.split(", ")))
        )
        query = sql.template(
            "queries/measures/stale",
            figures=self.figures,
            columns=", ".join(f"figures.{name}" for name in columns),
            condition=" and ".join(
                (self.condition, *(f"figures.{name} = ${name}" for name in where))
            ),
        )
        given = {
            **on[1],
            **where,
            "measure": self.name,
            "method": self.method,
        }
        return reader.rows(sql.with_ctes(query, on[0]), given)

    def rows(self, reader: Reader, figures: Sequence[Row], on: Steps = STORED) -> Iterator[Row]:
        """Compute stale figures in blocks; yield the rows of `measures`."""
        joined = (
            f"{self.figures} inner join {self.values} using ({self.key})"
            if self.key
            else self.values
        )
        query = sql.template("queries/measures/values", columns=self.columns, values=joined)
        for block in _blocks(figures, self.group_by):
            ids = [
                list(dict.fromkeys(row[name] for row in group for name in self.of))
                for group in block
            ]
            values = reader.arrays(
                sql.with_ctes(query, on[0]), {**on[1], "figures": [*chain(*ids)]}
            )
            ends = np.cumsum([0, *map(len, ids)])
            bounds = np.searchsorted(values["figure"], ends)
            for group, first, (begin, end) in zip(block, ends, pairwise(bounds), strict=False):
                own = {name: column[begin:end] for name, column in values.items()}
                own["figure"] = own["figure"] - first
                for figure, results in zip(group, self.compute(group, own), strict=True):
                    yield from (self._row(figure, name, result) for name, result in results.items())
                    advance(_PROGRESS, succeeded=True)

    def _row(self, figure: Row, name: str, result: MeasureResult) -> Row:
        fields = {
            key: none_if_nan(each) if isinstance(each, float) else each
            for key, each in asdict(result).items()
        }
        key = {
            "figure_id": figure["figure_id"],
            "basis": figure["basis"],
            "method": self.method,
            "measure": name,
        }
        return {
            **key,
            **fields,
            "created_at": datetime.now(UTC),
        }

    def fresh(self, reader: Reader, on: Steps = STORED, **where: Any) -> list[Row]:
        """Compute the stale figures without writing them."""
        return [*self.rows(reader, self.stale(reader, on, **where), on)]


def renew(job: Job, measures: Sequence[Measure]) -> Counter[str]:
    """Compute, store and publish the stale figures of some measures; return their number by the
    measure's name.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        stale = [(measure, measure.stale(reader)) for measure in measures]
        with progress(
            _PROGRESS, {"": sum(len(figures) for _, figures in stale)}, is_quiet=job.is_quiet
        ):
            rows = [row for measure, figures in stale for row in measure.rows(reader, figures)]
    warehouse.write("measures", rows)
    warehouse.publish()
    return Counter(measure.name for measure, figures in stale for _ in figures)


def _blocks(figures: Sequence[Row], group_by: Sequence[str]) -> Iterator[list[list[Row]]]:
    """Yield blocks of groups of figures that are computed together."""
    block: list[list[Row]] = []
    for _, run in groupby(figures, key=itemgetter(*group_by)):
        block.append(list(run))
        if sum(map(len, block)) >= _FIGURES_AT_A_TIME:
            yield block
            block = []
    if block:
        yield block
