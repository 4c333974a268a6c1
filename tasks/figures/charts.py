"""Declarations of charts: the rows of a figure that each shows, and its options; a chart for each split and judge.

`tasks.report.drawing` draws them. Declarations need no chart library, because commands would wait for its import.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tasks.figures.columns import Row, Rows


@dataclass(frozen=True)
class Chart:
    """A chart: the name of the function that draws it (`tasks.report.drawing.charts`), its rows, and its options."""

    kind: str
    rows: Rows
    how: Mapping[str, Any]


@dataclass(frozen=True)
class Plot:
    """A chart of a figure, with the heading that distinguishes it from the figure's other charts."""

    title: str
    chart: Chart


Draw = Callable[..., Chart]
"""Returns a chart of rows and named options."""


def _chart(kind: str, rows: Rows, **how: Any) -> Chart:
    return Chart(kind, rows, how)


intervals, bars, scatter, heat, over_time, control, certainty = (
    partial(_chart, kind) for kind in ("intervals", "bars", "scatter", "heat", "over_time", "control", "certainty")
)


def on_full_splits(rows: Rows) -> Rows:
    """Return the rows on full splits, of which hard splits are a part; all rows if there are only hard splits."""
    return [row for row in rows if not row["is_hard"]] or rows


def by_value(rows: Rows, column: str, draw: Draw, **how: Any) -> list[Plot]:
    """Return a chart for each value of a column, in the order of the rows."""
    values = names_in_order(rows, column)
    return [Plot(value, draw([row for row in rows if row[column] == value], **how)) for value in values]


def by_split(rows: Rows, draw: Draw, what: str = "", known: str = "", **how: Any) -> list[Plot]:
    """Return a chart for each full split, and for each judge if there are several (`by_judge_and_split`).

    Rows without a value in the column `known` are left out.
    """
    known_rows = [row for row in rows if row[known] is not None] if known else rows
    return by_judge_and_split(on_full_splits(known_rows), draw, what, **how)


def by_judge_and_split(rows: Rows, draw: Draw, what: str = "", judge: str = "judge_config", **how: Any) -> list[Plot]:
    """Return a chart for each split, and for each judge if there are several: no chart mixes judges.

    A chart whose judge is not chosen on the page is hidden there.

    Args:
        rows: with `split`, and a column for the judge if judges matter.
        draw: returns a chart of the rows of one split and judge, and of `how`.
        what: the subject of the charts, if a split has several.
        judge: the column of the judge.
        how: options of the chart, by name.
    """
    groups: dict[tuple[Any, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get(judge), row["split"]), []).append(row)
    has_several = len({judge_config for judge_config, _ in groups}) > 1
    return [
        Plot(
            (f"{what}, {split}" if what else split) + (f", judged by {judge_config}" if has_several else ""),
            draw(of_group, **how),
        )
        for (judge_config, split), of_group in groups.items()
    ]


def names_in_order(rows: Rows, column: str) -> list[Any]:
    """Return the values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def range_of(rows: Rows, *columns: str) -> Sequence[float]:
    """Return the lowest and the highest value of some columns; 0 and 1 if there is none."""
    values = [row[column] for row in rows for column in columns if row[column] is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)
