"""Declarations of charts: which rows of a figure each chart shows, and with which options.

`tasks.report.drawing` draws them. Declarations import no chart library, because its import would slow down every
command.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tasks.figures.columns import Row, Rows


@dataclass(frozen=True)
class Chart:
    """A chart: its heading among the figure's charts, the function that draws it, its rows, and its options.

    `kind` is the name of the function in `tasks.report.drawing.charts`.
    """

    title: str
    kind: str
    rows: Rows
    how: Mapping[str, Any]


Charts = Callable[[Rows], list[Chart]]
"""A declaration: a function from the rows of a figure to its charts."""


def _charts(
    kind: str, by: str = "", what: str = "", *, known: str = "", rows: Callable[[Rows], Rows] | None = None, **how: Any
) -> Charts:
    """Declare charts of one kind.

    Args:
        kind: the function that draws them.
        by: a column; each of its values has a chart, in the order of the rows. With `split`, hard splits are left out,
            because they are a part of full ones, and each judge has its own charts; the page shows those of the chosen
            judge only.
        what: the subject of the charts, for their titles, if the figure has charts on several subjects.
        known: rows without a value in this column are left out.
        rows: selects rows, or adds columns to them.
        how: options of the chart, by name; a function computes an option from all drawn rows.
    """

    def charts(of_figure: Rows) -> list[Chart]:
        shown = rows(of_figure) if rows else of_figure
        shown = [row for row in shown if row[known] is not None] if known else shown
        shown = on_full_splits(shown) if by == "split" else shown
        given = {name: option(shown) if callable(option) and shown else option for name, option in how.items()}
        return [Chart(title, kind, group, given) for title, group in _groups(shown, by, what).items()]

    return charts


intervals, bars, scatter, heat, over_time, control, certainty, diagonal = (
    partial(_charts, kind)
    for kind in ("intervals", "bars", "scatter", "heat", "over_time", "control", "certainty", "diagonal")
)


def _groups(rows: Rows, by: str, what: str) -> dict[str, list[Row]]:
    """Return the title of each chart with its rows."""
    judges = [row.get("judged_by", row.get("judge_config")) for row in rows] if by == "split" else [""] * len(rows)
    has_several = len(set(judges)) > 1
    groups: dict[str, list[Row]] = {}
    for row, judge in zip(rows, judges, strict=True):
        parts = (what, row[by] if by else "", f"judged by {judge}" if has_several else "")
        groups.setdefault(", ".join(filter(None, parts)), []).append(row)
    return groups


def on_full_splits(rows: Rows) -> Rows:
    """Return the rows on full splits, of which hard splits are a part; all rows if there are only hard splits."""
    return [row for row in rows if not row.get("is_hard")] or rows


def names_in_order(rows: Rows, column: str) -> list[Any]:
    """Return the values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def order_of(column: str) -> Callable[[Rows], list[Any]]:
    """Return an option: the names in a column, in the order of the figure's rows, so that all charts share colours."""
    return partial(names_in_order, column=column)


def sorted_names(column: str) -> Callable[[Rows], list[Any]]:
    """Return an option: the names in a column, in alphabetical order."""
    return lambda rows: sorted(names_in_order(rows, column))


def range_of(rows: Rows, *columns: str) -> Sequence[float]:
    """Return the lowest and the highest value of some columns; 0 and 1 if there is none."""
    values = [row[column] for row in rows for column in columns if row[column] is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def at_least(low: float, high: float, *columns: str) -> Callable[[Rows], tuple[float, float]]:
    """Return an option: an axis from `low` to `high`, or further if values of these columns are beyond."""

    def covered(rows: Rows) -> tuple[float, float]:
        least, most = range_of(rows, *columns)
        return min(low, least), max(high, most)

    return covered


def around_zero(column: str) -> Callable[[Rows], tuple[float, float, float]]:
    """Return an option: the range of a column's values around 0, as wide on both sides."""

    def around(rows: Rows) -> tuple[float, float, float]:
        most = max((abs(row[column]) for row in rows if row[column] is not None), default=0.0) or 1.0
        return -most, 0.0, most

    return around
