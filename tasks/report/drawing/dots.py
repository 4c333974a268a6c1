"""A chart of several models under each of several labels, distinguished by colours, signs and a line each."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from tasks.report.content.figures import Rows
from tasks.report.drawing.chart_parts import (
    a_line_for,
    chart_of,
    hue,
    number_tips,
    points,
    shared_axis,
    sign,
    wrapped_axis,
)

_STEP = 13
"""Pixels for the line of one name under a label."""


def dots(
    rows: Rows,
    *,
    label: str,
    value: str,
    low: str,
    high: str,
    title: str,
    labels: Sequence[Any],
    hollow: str,
    domain: Sequence[float] | None = None,
    name: str = "model",
    names: Sequence[Any] | None = None,
    percent: bool = False,
    from_zero: bool = False,
    zero: bool = False,
) -> alt.TopLevelMixin:
    """Under each label a dot with its interval for each name; not filled where the column `hollow` is true.

    `labels` and `names` are in the order in which they are shown; models have the order of the page. Without a `domain`
    the charts of a figure have one axis over what is chosen of all of them, which begins at 0 with `from_zero`. `zero`
    draws the line where nothing differs.
    """
    axis = alt.Axis(format=".0%") if percent else alt.Undefined
    scale = alt.Scale(domain=list(domain) if domain else alt.Undefined, zero=False)
    shared = {} if domain else shared_axis(value, low, high, zero=from_zero or zero)
    empty = chart_of(rows)
    base = empty.encode(
        y=alt.Y(f"{label}:N", title=None, sort=list(labels), axis=wrapped_axis()),
        yOffset=alt.YOffset(f"{name}:N", sort=list(names) if names else alt.Undefined),
        color=hue(name, names),
    )
    # In both layers, since one without a value that is chosen is left out on the page.
    along: dict[str, Any] = {"title": title, "scale": scale, "axis": axis}
    rule = base.mark_rule(strokeWidth=1.5).encode(x=alt.X(f"{low}:Q", **along), x2=f"{high}:Q")
    marks = base.encode(
        x=alt.X(f"{value}:Q", **along),
        shape=sign(name, names),
        tooltip=[f"{label}:N", f"{name}:N", *number_tips({value: title, low: "from", high: "to"}, percent)],
    )
    nothing = [empty.mark_rule(strokeDash=[4, 3], color="gray").encode(x=alt.datum(0))] if zero else []
    chart = alt.layer(*nothing, rule, *points(marks, hollow, 45))
    return chart.properties(usermeta=a_line_for([label, name], _STEP) | shared)
