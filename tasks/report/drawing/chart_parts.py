"""The parts that charts are made of: rows, axes of names, colours and signs, tips."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tasks.report.content.figures import Rows

ROW_HEIGHT = 22
"""Pixels for a line of a chart that has one line a model."""
_LINE_HEIGHT = 11
"""Pixels for a line of an axis label that has several."""
_MARK_RADIUS = 5
"""Pixels that a mark may reach beyond the end of an axis."""


def chart_of(rows: Rows) -> alt.Chart:
    """An empty chart on rows, as wide as its place; all charts of the report begin with it."""
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]), width="container")


def a_line_for(name: str | Sequence[str], height: int = ROW_HEIGHT) -> dict[str, Any]:
    """What makes a chart as high as it has names: `usermeta` of one with a line for each, or for each under each."""
    return {"line": name, "lineHeight": height}


def shared_axis(*columns: str, zero: bool = False) -> dict[str, Any]:
    """What gives the charts of a figure one axis, over what is chosen of all of them: `usermeta` beside the lines."""
    return {"domain": list(columns), "zero": zero}


def hue(name: str, order: Sequence[Any] | None = None) -> alt.Color:
    """A colour for each name, with a legend above the chart."""
    return alt.Color(f"{name}:N", title=None, scale=_names_scale(order), legend=legend())


def sign(name: str, order: Sequence[Any] | None = None) -> alt.Shape:
    """A sign for each name, in one legend with its colour (`hue` of the same names)."""
    return alt.Shape(f"{name}:N", title=None, scale=_names_scale(order), legend=legend())


def _names_scale(order: Sequence[Any] | None) -> alt.Scale:
    # Named and not only sorted, since only then colours and signs share one legend.
    return alt.Scale(domain=list(order) if order else alt.Undefined)


def legend() -> alt.Legend:
    """The legend of names, above the chart; `assets/charts.js` says in how many columns."""
    return alt.Legend(orient="top", labelLimit=220, symbolOpacity=1)


def points(base: alt.Chart, hollow: str | None, size: float) -> list[alt.Chart]:
    """Dots, not filled where the column `hollow` is true."""
    if hollow is None:
        return [base.mark_point(filled=True, size=size)]
    full = base.transform_filter(f"!datum[{hollow!r}]").mark_point(filled=True, size=size)
    empty = base.transform_filter(f"datum[{hollow!r}]").mark_point(filled=False, size=size, strokeWidth=1.5)
    return [full, empty]


def name_axis() -> alt.Axis:
    """The axis of names."""
    return alt.Axis(labelLimit=180)


def wrapped_axis() -> alt.Axis:
    """The axis of names that may be long: they go over several lines, in the middle of what they name."""
    lines = r"split(replace(datum.label, regexp('(.{18,}?) ', 'g'), '$1\n'), '\n')"
    # The first line stands in the middle; each further one lifts it by half a line.
    lifted = [{"test": f"length({lines}) === {n}", "value": -_LINE_HEIGHT * (n - 1) / 2} for n in (2, 3, 4)]
    return alt.Axis(
        labelExpr=lines, labelLimit=150, labelLineHeight=_LINE_HEIGHT, ticks=False,
        labelPadding=_MARK_RADIUS,  # a mark at the end of the axis does not cover the label
        labelOffset={"condition": lifted, "value": 0},
    )  # fmt: skip


def number_tips(titles: Mapping[str, str], percent: bool = False) -> list[alt.Tooltip]:
    """What is shown of numbers under the pointer: column -> title."""
    form = ".1%" if percent else ",.3~f"
    return [alt.Tooltip(f"{column}:Q", title=title, format=form) for column, title in titles.items()]
