"""Charts: rows in, a Vega-Lite specification out. Colours, fonts and sizes are the page's (`assets/charts.js`).

Each chart takes the width that its place on the page has, and shows of the rows those whose `model` and `judging` are
chosen at the top of the page.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from tasks.report.figures import Rows

_ROW_HEIGHT = 22
"""Pixels for a line of a chart that has one line a model."""


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """A chart as JSON, as wide as its place; `usermeta` says what decides how high it is (see `assets/charts.js`)."""
    with alt.data_transformers.enable(consolidate_datasets=False):  # the rows stay at one known place, `data.values`
        return chart.to_dict() | {"autosize": {"type": "fit-x", "contains": "padding"}}


def intervals(
    rows: Rows,
    *,
    value: str = "mean_score",
    low: str = "ci_low",
    high: str = "ci_high",
    name: str = "model",
    title: str = "Mean score",
    sort: str | None = None,
    domain: Sequence[float] | None = None,
    zero: bool = False,
) -> alt.TopLevelMixin:
    """A dot with its interval for each name, one below the other; `zero` draws the line where nothing differs."""
    across = alt.Y(f"{name}:N", title=None, sort=alt.SortField(sort) if sort else None, axis=_names())
    scale = alt.Scale(domain=domain) if domain else alt.Scale(zero=zero, nice=True)
    tips = [alt.Tooltip(f"{name}:N", title=name), *_numbers({value: title, low: "from", high: "to"})]
    chart = _chart(rows)
    base = chart.encode(y=across)
    rule = base.mark_rule(strokeWidth=2).encode(x=alt.X(f"{low}:Q", title=title, scale=scale), x2=f"{high}:Q")
    dot = base.mark_point(filled=True, size=70).encode(x=alt.X(f"{value}:Q", title=title), tooltip=tips)
    nothing = [chart.mark_rule(strokeDash=[4, 3], color="gray").encode(x=alt.datum(0))] if zero else []
    return alt.layer(*nothing, rule, dot).properties(usermeta=_a_line_for(name))


def bars(
    rows: Rows,
    *,
    name: str,
    value: str,
    title: str,
    name_title: str | None = None,
    colour: str | None = None,
    order: Sequence[Any] | None = None,
    is_upright: bool = False,
    percent: bool = False,
) -> alt.TopLevelMixin:
    """A bar for each name: lying, or upright for what has an order of its own (a distribution)."""
    names: dict[str, Any] = {"shorthand": f"{name}:{'O' if is_upright else 'N'}", "title": name_title}
    values: dict[str, Any] = {"shorthand": f"{value}:Q", "title": title}
    if percent:
        values["axis"] = alt.Axis(format=".0%")
    names["sort"] = list(order) if order else None
    tips = [alt.Tooltip(f"{name}:N", title=name_title or name), *_numbers({value: title})]
    chart: alt.Chart = _chart(rows).mark_bar().encode(tooltip=tips)
    if colour:
        chart = chart.encode(color=_colour(colour))
        tips.insert(0, alt.Tooltip(f"{colour}:N", title=colour))
    if is_upright:
        return chart.encode(x=alt.X(**names), y=alt.Y(**values)).properties(height=180)
    lying = alt.Y(**names, axis=_names()) if name_title is None else alt.Y(**names)
    return chart.encode(y=lying, x=alt.X(**values)).properties(usermeta=_a_line_for(name))


def scatter(
    rows: Rows,
    *,
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    name: str = "model",
    low: str | None = None,
    high: str | None = None,
    log: bool = False,
) -> alt.TopLevelMixin:
    """A named point for each row, with the interval of its height where there is one."""
    across = alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(type="log" if log else "linear", zero=False, padding=30))
    base = _chart(rows).encode(x=across, y=alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(zero=False)))
    tips = [alt.Tooltip(f"{name}:N", title=name), *_numbers({x: x_title, y: y_title})]
    layers = [base.mark_point(filled=True, size=70).encode(tooltip=tips)]
    layers.append(base.mark_text(align="left", dx=8, dy=-6).encode(text=f"{name}:N"))
    if low and high:
        layers.insert(0, base.mark_rule().encode(y=alt.Y(f"{low}:Q", title=y_title), y2=f"{high}:Q"))
    return alt.layer(*layers).properties(height=300)


def lines(
    rows: Rows,
    *,
    x: str,
    y: str,
    y_title: str,
    colour: str = "model",
    low: str | None = None,
    high: str | None = None,
    x_title: str | None = None,
    order: Sequence[Any] | None = None,
    marked: str | None = None,
) -> alt.TopLevelMixin:
    """A line for each name over an ordered axis, with intervals; a row whose `marked` is set gets a sign."""
    across = alt.X(f"{x}:O", title=x_title, sort=list(order) if order else None)
    base = _chart(rows).encode(x=across, color=_colour(colour))
    tips = [
        alt.Tooltip(f"{colour}:N", title=colour),
        alt.Tooltip(f"{x}:N", title=x_title or x),
        *_numbers({y: y_title}),
    ]
    up = alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(zero=False))
    layers: list[alt.Chart] = [base.mark_line(point=True).encode(y=up, tooltip=tips)]
    if low and high:
        layers.insert(0, base.mark_rule(opacity=0.5).encode(y=alt.Y(f"{low}:Q", title=y_title), y2=f"{high}:Q"))
    if marked:
        flagged = base.transform_filter(f"isValid(datum[{marked!r}])")
        tips = [alt.Tooltip(f"{marked}:N", title="changed"), *tips]
        layers.append(flagged.mark_point(shape="triangle-down", size=90, yOffset=-14).encode(y=up, tooltip=tips))
    return alt.layer(*layers).properties(height=240)


def heat(rows: Rows, *, x: str, y: str, value: str, title: str, diverging: bool = False) -> alt.TopLevelMixin:
    """A coloured cell with its number for each pair of names."""
    shade = alt.Color(f"{value}:Q", title=title, legend=None, scale=alt.Scale(
        scheme="blueorange" if diverging else "blues", domainMid=0 if diverging else alt.Undefined,
    ))  # fmt: skip
    base = _chart(rows).encode(x=alt.X(f"{x}:N", title=None), y=alt.Y(f"{y}:N", title=None, axis=_names()))
    cells = base.mark_rect().encode(color=shade, tooltip=[f"{y}:N", f"{x}:N", *_numbers({value: title})])
    return alt.layer(cells).properties(usermeta=_a_line_for(y))


def _chart(rows: Rows) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]), width="container")


def _a_line_for(name: str) -> dict[str, Any]:
    return {"line": name, "lineHeight": _ROW_HEIGHT}


def _colour(name: str) -> alt.Color:
    return alt.Color(f"{name}:N", title=None, legend=alt.Legend(orient="top", columns=2, labelLimit=220))


def _names() -> alt.Axis:
    return alt.Axis(labelLimit=180)


def _numbers(titles: Mapping[str, str]) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{column}:Q", title=title, format=",.3~f") for column, title in titles.items()]
