"""Charts from rows, as Vega-Lite specifications. Colours, fonts and sizes are the page's (`assets/charts.js`).

Each chart is as wide as its container, and shows the rows of the models and the judge chosen at the top of the page.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import altair as alt

from tasks.figures.charts import Chart, names_in_order, range_of
from tasks.figures.columns import Rows

_ROW_HEIGHT = 22
"""Height in pixels of a line in a chart with one line for each label."""
_STEP = 13
"""Height in pixels of a line in a chart with a line for each name under each label."""
_LINE_HEIGHT = 11
"""Line height in pixels of axis labels with several lines."""
_MARK_RADIUS = 5
"""Pixels that a mark may reach beyond the end of an axis."""


def chart_of(rows: Rows, *columns: str | None) -> alt.Chart:
    """Return a chart of some columns, still without marks, as wide as its container; all charts build on it.

    Its rows also keep the columns by which a page chooses models and judges.
    """
    names = [name for name in (*columns, "model", "judge_config") if name]
    kept = [{name: row[name] for name in names if name in row} for row in rows]
    return alt.Chart(alt.InlineData(values=kept), width="container")


def a_line_for(name: str | Sequence[str], height: int) -> dict[str, Any]:
    """Return the `usermeta` by which a page sets the height of a chart: `height` for each line.

    The chart has a line for each value of the column `name`, or for each combination of several columns.
    """
    return {"line": name, "lineHeight": height}


def named(channel: Any, name: str, order: Sequence[Any] | None = None) -> Any:
    """Return an encoding of names by colour or shape; both encodings share a legend above the chart."""
    # They share one only if both list the names; sorted names are not enough. `assets/charts.js` sets its columns.
    scale = alt.Scale(domain=list(order) if order else alt.Undefined)
    legend = alt.Legend(orient="top", labelLimit=220, symbolOpacity=1)
    return channel(f"{name}:N", title=None, scale=scale, legend=legend)


def points(base: alt.Chart, hollow: str | None, size: float) -> list[alt.Chart]:
    """Return dots, hollow where the column `hollow` is true."""
    if hollow is None:
        return [base.mark_point(filled=True, size=size)]
    full = base.transform_filter(f"!datum[{hollow!r}]").mark_point(filled=True, size=size)
    empty = base.transform_filter(f"datum[{hollow!r}]").mark_point(filled=False, size=size, strokeWidth=1.5)
    return [full, empty]


def wrapped_axis() -> alt.Axis:
    """Return an axis of names that may be long: they wrap over several lines, centred on their marks."""
    lines = r"split(replace(datum.label, regexp('(.{18,}?) ', 'g'), '$1\n'), '\n')"
    # The first line would be centred on the mark, so each further line raises the label by half a line.
    lifted = [{"test": f"length({lines}) === {n}", "value": -_LINE_HEIGHT * (n - 1) / 2} for n in (2, 3, 4)]
    return alt.Axis(
        labelExpr=lines, labelLimit=150, labelLineHeight=_LINE_HEIGHT, ticks=False,
        labelPadding=_MARK_RADIUS,  # so that a mark at the end of the axis does not cover the label
        labelOffset={"condition": lifted, "value": 0},
    )  # fmt: skip


def name_tips(titles: Mapping[str, str]) -> list[alt.Tooltip]:
    """Return the tooltips of names: column -> title."""
    return [alt.Tooltip(f"{column}:N", title=title) for column, title in titles.items()]


def number_tips(titles: Mapping[str, str], percent: bool = False) -> list[alt.Tooltip]:
    """Return the tooltips of numbers: column -> title."""
    form = ".1%" if percent else ",.3~f"
    return [alt.Tooltip(f"{column}:Q", title=title, format=form) for column, title in titles.items()]


_CELL_HEIGHT = 30
"""Height in pixels of a line in a heat map: enough for two lines of text, or for a finger."""
_WRAPPED_HEIGHT = 36
"""Height in pixels of a line in a chart whose names may take three lines of text."""


def intervals(
    rows: Rows,
    *,
    value: str = "mean_score",
    ends: str = "",
    title: str = "Mean score",
    label: str = "model",
    is_sorted: bool = False,
    name: str | None = None,
    names: Sequence[Any] | None = None,
    domain: Sequence[float] | None = None,
    zero: bool = False,
    from_zero: bool = False,
    percent: bool = False,
    hollow: str | None = None,
) -> alt.TopLevelMixin:
    """Return a dot with its interval for each label, one below the other; `zero` draws the line of no difference.

    With `name`, each label has a dot for each name. Labels are in the order of the rows, or sorted; names are in the
    order of `names`; models are in the order of the page. A dot is hollow where the column `hollow` is true. Without a
    `domain`, the charts of a figure share an axis that fits all chosen values, and with `from_zero` starts at 0.
    """
    low, high = _ends(rows, value, ends)
    chart = chart_of(rows, label, name, value, low, high, hollow)
    axis = wrapped_axis() if name else alt.Axis(labelLimit=180)
    labels = names_in_order(rows, label)
    base = chart.encode(y=alt.Y(f"{label}:N", title=None, sort=sorted(labels) if is_sorted else labels, axis=axis))
    # Both layers have this axis, because the page leaves out a layer without a chosen value.
    along: dict[str, Any] = {
        "title": title, "scale": alt.Scale(domain=list(domain) if domain else alt.Undefined, zero=False),
        "axis": alt.Axis(format=".0%") if percent else alt.Undefined,
    }  # fmt: skip
    tips = [f"{each}:N" for each in (label, name) if each]
    marks = base.encode(
        x=alt.X(f"{value}:Q", **along),
        tooltip=[*tips, *number_tips({value: title, low: "from", high: "to"}, percent)],
    )
    if name:
        offset = alt.YOffset(f"{name}:N", sort=list(names) if names else alt.Undefined)
        base, marks = (each.encode(yOffset=offset, color=named(alt.Color, name, names)) for each in (base, marks))
        marks = marks.encode(shape=named(alt.Shape, name, names))
    rule = base.mark_rule(strokeWidth=1.5 if name else 2).encode(x=alt.X(f"{low}:Q", **along), x2=f"{high}:Q")
    nothing = [chart.mark_rule(strokeDash=[4, 3], color="gray").encode(x=alt.datum(0))] if zero else []
    lines = a_line_for([label, name], _STEP) if name else a_line_for(label, _ROW_HEIGHT)
    shared = {} if domain else {"domain": [value, low, high], "zero": from_zero or zero}
    layers = (*nothing, rule, *points(marks, hollow, 45 if name else 70))
    return alt.layer(*layers).properties(usermeta=lines | shared)


def _ends(rows: Rows, value: str, ends: str = "") -> tuple[str, str]:
    """Return the columns of an interval's ends: with the prefix `ends`, else the value's own, else the row's."""
    stem = ends or (f"{value}_ci" if f"{value}_ci_low" in rows[0] else "ci")
    return f"{stem}_low", f"{stem}_high"


def bars(
    rows: Rows,
    *,
    name: str,
    value: str,
    title: str,
    name_title: str | None = None,
    colour: str | None = None,
    is_upright: bool = False,
    percent: bool = False,
    domain: Sequence[float] | None = None,
    whole: bool = False,
    wrapped: bool = False,
) -> alt.TopLevelMixin:
    """Return a bar for each name: horizontal, or upright for names with an order of their own (a distribution).

    `whole` is for values that are counts, `wrapped` for names that may be long.
    """
    names: dict[str, Any] = {"shorthand": f"{name}:{'O' if is_upright else 'N'}", "title": name_title}
    values: dict[str, Any] = {"shorthand": f"{value}:Q", "title": title}
    if percent or whole:
        values["axis"] = alt.Axis(format=".0%") if percent else alt.Axis(format=",d", tickMinStep=1)
    if domain:
        values["scale"] = alt.Scale(domain=list(domain))
    names["sort"] = names_in_order(rows, name)
    titles = ({colour: colour} if colour else {}) | {name: name_title or name}
    chart: alt.Chart = chart_of(rows, name, value, colour).mark_bar()
    chart = chart.encode(tooltip=[*name_tips(titles), *number_tips({value: title}, percent)])
    if colour:
        chart = chart.encode(color=named(alt.Color, colour))
    if is_upright:
        if all(isinstance(row[name], int | float) for row in rows):
            names["axis"] = alt.Axis(labelAngle=0, labelOverlap="greedy")
        return chart.encode(x=alt.X(**names), y=alt.Y(**values)).properties(height=180)
    axis = wrapped_axis() if wrapped else alt.Axis(labelLimit=180)
    line = a_line_for(name, _WRAPPED_HEIGHT if wrapped else _ROW_HEIGHT)
    return chart.encode(y=alt.Y(**names, axis=axis), x=alt.X(**values)).properties(usermeta=line)


def scatter(
    rows: Rows,
    *,
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    name: str = "model",
    usd: bool = False,
) -> alt.TopLevelMixin:
    """Return a named point for each row, with a vertical interval.

    With `usd` the x axis is US dollars on a logarithmic scale. Names are placed in free positions
    (`assets/charts.js`).
    """
    scale = alt.Scale(type="log", padding=30, nice=False) if usd else alt.Scale(zero=False, padding=30, nice=False)
    axis = alt.Axis(tickCount=5, format="$,.2~r", grid=False) if usd else alt.Axis(tickCount=5)
    low, high = _ends(rows, y)
    base = chart_of(rows, name, x, y, low, high).encode(
        x=alt.X(f"{x}:Q", title=x_title, scale=scale, axis=axis),
        y=alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(zero=False)),
    )
    tips = [alt.Tooltip(f"{name}:N", title=name), *number_tips({x: x_title, y: y_title})]
    point = base.mark_point(filled=True, size=70, style="named").encode(tooltip=tips)
    rule = base.mark_rule().encode(y=alt.Y(f"{low}:Q", title=y_title), y2=f"{high}:Q")
    return alt.layer(rule, point).properties(height=300, usermeta={"names": name})


def diagonal(rows: Rows, *, x: str, y: str, n: str, x_title: str, y_title: str, name: str) -> alt.TopLevelMixin:
    """Return points of two shares, larger for more criteria, joined by a line; and the diagonal of equal shares."""
    base = chart_of(rows, name, x, y, n).encode(
        x=alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(domain=(0, 1))),
        y=alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(domain=(0, 1))),
    )
    equal = base.mark_rule(strokeDash=[4, 4], strokeOpacity=0.5).encode(
        x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1)
    )  # fmt: skip
    tips = [*number_tips({x: x_title, y: y_title}), alt.Tooltip(f"{n}:Q", title="criteria")]
    colour = alt.Color(f"{name}:N", title=None)
    points = base.mark_point(filled=True).encode(size=alt.Size(f"{n}:Q", legend=None), color=colour, tooltip=tips)
    return alt.layer(equal, base.mark_line().encode(color=colour), points).properties(height=300)


def heat(
    rows: Rows,
    *,
    x: str,
    y: str,
    value: str,
    title: str,
    domain: Sequence[float],
    diverging: bool = False,
    across: Sequence[Any] | None = None,
    down: Sequence[Any] | None = None,
    marked: str | None = None,
    tips: Mapping[str, str] | None = None,
    percent: bool = False,
) -> alt.TopLevelMixin:
    """Return a coloured cell with its number for each pair of names, with an asterisk where `marked` is true.

    `across` and `down` give the order of the names in each direction, by default that of the page and that of the rows.
    `tips` are further columns for a cell's tooltip, with their titles.
    """
    lowest, neutral, highest = domain[0], domain[-2], domain[-1]
    known = f"datum[{value!r}]"
    end = f"({known} < {neutral} ? {lowest} : {highest})"
    share = f"100 * clamp(({known} - {neutral}) / ({end} - {neutral}), 0, 1)"
    hot = f"'var(--heat-' + ({known} < {neutral} ? 'minus' : 'high') + ') '"
    shade = f"isValid({known}) ? 'color-mix(in srgb, ' + {hot} + {share} + '%, var(--heat-low))' : 'transparent'"
    slanted: dict[str, Any] = {"labelAngle": 40, "labelAlign": "right", "labelBaseline": "bottom"}
    top = alt.Axis(orient="top", labelLimit=110, ticks=False, domain=False, **slanted)
    tips = tips or {}
    base = chart_of(rows, x, y, value, marked, *tips).encode(
        x=alt.X(f"{x}:N", title=None, sort=list(across) if across else None, axis=top),
        y=alt.Y(f"{y}:N", title=None, sort=list(down) if down else names_in_order(rows, y), axis=wrapped_axis()),
    )
    tooltip = [f"{y}:N", f"{x}:N", *number_tips({value: title, **tips})]
    cells = base.mark_rect(color=alt.expr(shade)).encode(tooltip=tooltip)
    star = f" + (datum[{marked!r}] ? '*' : '')" if marked else ""
    form = f"{'+' if diverging else ''}{'.0%' if percent else '.2f'}"
    number = f"isValid({known}) ? format({known}, '{form}'){star} : ''"
    # A cell that is too narrow for its number shows only its colour.
    text = base.transform_calculate(shown=number).mark_text(
        fontSize=alt.expr("clamp(bandwidth('x') / 3.4, 7, 11)"), opacity=alt.expr("bandwidth('x') < 22 ? 0 : 1")
    )
    return alt.layer(cells, text.encode(text="shown:N")).properties(
        usermeta=a_line_for(y, _CELL_HEIGHT) | {"needed": [[value]]}
    )


_HEIGHT = 240
_SCORE = "Mean score"
_ALARM: dict[str, Any] = {"filled": True, "size": 150, "opacity": 1, "shape": "triangle-down", "style": "alarm"}
"""The mark of a night in which a judge was out of control; `assets/charts.js` sets its colour."""


def over_time(rows: Rows) -> alt.TopLevelMixin:
    """Return scores over time with their intervals; a `label` has a colour, and a `line` one stroke.

    If the setup changes, a stroke ends and the next one begins; a dashed line between them says what `changed`. A night
    in which the judge was out of control has a red triangle.
    """
    points = Counter(row["line"] for row in rows)
    moments = [row["first_response_at"] for row in rows]
    timed = [
        {
            **row,
            "first_response_at": f"{row['first_response_at']:%Y-%m-%dT%H:%M:%SZ}",
            "is_alone": points[row["line"]] == 1,
        }
        for row in rows
    ]
    form = "%-d %b %H:%M" if max(moments) - min(moments) < timedelta(days=3) else "%-d %b"
    across = alt.X(
        "first_response_at:T", title=None, scale=alt.Scale(type="utc", padding=12),
        axis=alt.Axis(format=form, tickCount=6, labelOverlap="greedy"),
    )  # fmt: skip
    heights = alt.Scale(domain=range_of(rows, "mean_score", "ci_low", "ci_high"), nice=True, zero=False)
    low, up = alt.Y("ci_low:Q", title=_SCORE), alt.Y("mean_score:Q", title=_SCORE, scale=heights)
    base = chart_of(
        timed, "first_response_at", "label", "vintage", "mean_score", "ci_low", "ci_high", "n_tasks", "changed",
        "is_drifted", "line", "is_alone",
    ).encode(x=across)  # fmt: skip
    of_model = base.encode(color=named(alt.Color, "label"))
    of_line = of_model.encode(detail="line:N")
    tips = [
        *name_tips({"label": "model", "vintage": "vintage"}),
        *number_tips({"mean_score": _SCORE, "ci_low": "from", "ci_high": "to", "n_tasks": "tasks"}),
        *name_tips({"changed": "new"}),
    ]
    # Each layer has all rows, because a layer without rows could not find the ends of its axes. A screen reader reads
    # each row once, from its dot.
    alone = alt.condition("datum.is_alone", alt.value(0.35), alt.value(0))
    alarm = alt.condition("datum.is_drifted", alt.value(150), alt.value(0))
    return alt.layer(
        *_breaks(base),
        of_line.mark_area(opacity=0.15, aria=False).encode(y=low, y2="ci_high:Q"),
        of_model.mark_rule(strokeWidth=3, aria=False).encode(y=low, y2="ci_high:Q", opacity=alone),
        of_line.mark_line(aria=False).encode(y=up),
        of_model.mark_point(filled=True, size=55, opacity=1).encode(y=up, tooltip=tips),
        base.mark_point(aria=False, **_ALARM).encode(y=up, tooltip=tips, size=alarm),
    ).properties(height=_HEIGHT)


def _breaks(base: alt.Chart) -> list[alt.Chart]:
    """Return lines that mark changes, each labelled; all models that changed on one day share a line."""
    once = (
        base.transform_calculate(
            moment="time(datum.first_response_at)", day="floor(time(datum.first_response_at) / 86400000)",
            new="datum.changed ? 'new ' + datum.changed : ''",
        )
        .transform_aggregate(moment="min(moment)", groupby=["day", "new"])
        .transform_calculate(day="toDate(datum.moment)")
        .encode(x=alt.X("day:T", title=None))
    )  # fmt: skip
    shown = alt.condition("datum.new", alt.value(1), alt.value(0))
    rule = once.mark_rule(strokeDash=[3, 3], color="gray", aria=False).encode(opacity=shown)
    text = once.mark_text(aria=False, angle=270, align="right", baseline="bottom", dx=-4, dy=-3, fontSize=11)
    return [rule, text.encode(y=alt.value(0), text="new:N")]


def control(rows: Rows) -> alt.TopLevelMixin:
    """Return a judge's agreement with its first verdicts in each night, and the expected agreement.

    A short line in each night is the control limit; if the agreement is below it, or below the configured minimum, the
    dot is a red triangle.
    """
    nights = alt.Scale(type="band", padding=0.1, domain=names_in_order(rows, "night"))
    lowest, _ = range_of(rows, "agreement", "lower_limit", "min_agreement", "centre")
    axis = alt.Axis(labelAngle=-40, labelOverlap="greedy")
    base = chart_of(rows, "night", "agreement", "lower_limit", "min_agreement", "centre", "cause", "is_out_of_control")
    dated = base.encode(x=alt.X("night:N", title=None, scale=nights, axis=axis))
    up = alt.Y(
        "agreement:Q", title="Agreement", scale=alt.Scale(domain=[lowest, 1.0], nice=True, zero=False),
        axis=alt.Axis(format=".0%"),
    )  # fmt: skip
    numbers = {"agreement": "agreement", "lower_limit": "limit", "centre": "expected"}
    tips = [*name_tips({"night": "night"}), *number_tips(numbers, percent=True), *name_tips({"cause": "below"})]
    dots = dated.encode(y=up, tooltip=tips)
    return alt.layer(
        _across(base, "min_agreement", "configured minimum", nights),
        _across(base, "lower_limit", "control limit", nights),
        _across(base, "centre", "expected", nights),
        dated.mark_line(aria=False).encode(y=up),
        dots.transform_filter("!datum.is_out_of_control").mark_point(filled=True, size=60, opacity=1),
        dots.transform_filter("datum.is_out_of_control").mark_point(**_ALARM),
    ).properties(height=_HEIGHT)


def _across(base: alt.Chart, column: str, what: str, nights: alt.Scale) -> alt.Chart:
    """Return a line across each night at the height of a column, named in the legend."""
    named = base.transform_filter(f"isValid(datum.{column})").transform_calculate(what=f"'{what}'")
    line: alt.Chart = named.mark_rule(strokeWidth=2, color="gray").encode(
        x=alt.X("night:N", title=None, scale=nights, bandPosition=0),
        x2=alt.X2("night:N", bandPosition=1),
        y=alt.Y(f"{column}:Q", title="Agreement"),
        strokeDash=alt.StrokeDash(
            "what:N", title=None, legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=300, columns=3),
            scale=alt.Scale(domain=["expected", "control limit", "configured minimum"], range=[[1, 0], [6, 3], [2, 2]]),
        ),
    )  # fmt: skip
    return line


_SIDES = ("inside", "outside")


def certainty(rows: Rows) -> alt.TopLevelMixin:
    """Return a dot for each task: its mean score, and the share of panels that select it."""
    sided = [{**row, "side": _SIDES[not row["is_selected"]]} for row in rows]
    base = chart_of(sided, "side", "task_id", "topic", "mean_score", "inclusion_probability", "rank")
    bounds = [base.mark_rule(strokeDash=[4, 3], color="gray").encode(y=alt.datum(share)) for share in (0.05, 0.95)]
    dots = base.mark_point(filled=True, size=45, opacity=0.75).encode(
        x=alt.X("mean_score:Q", title="Mean score over the panel", scale=alt.Scale(zero=False, padding=10)),
        y=alt.Y("inclusion_probability:Q", title="Selected by share of panels", axis=alt.Axis(format=".0%")),
        color=named(alt.Color, "side", _SIDES),
        shape=named(alt.Shape, "side", _SIDES),
        tooltip=[
            *name_tips({"task_id": "task", "topic": "topic"}),
            *number_tips({"rank": "rank", "mean_score": "mean score"}),
            *number_tips({"inclusion_probability": "selected by"}, percent=True),
        ],
    )  # fmt: skip
    return alt.layer(*bounds, dots).properties(height=240)


_CHARTS = {each.__name__: each for each in (intervals, bars, scatter, heat, over_time, control, certainty, diagonal)}


def altair_chart(chart: Chart) -> alt.TopLevelMixin:
    """Return the Altair chart of a declared chart."""
    specification: alt.TopLevelMixin = _CHARTS[chart.kind](chart.rows, **chart.how)
    return specification


def specification(chart: Chart) -> dict[str, Any]:
    """Return a chart as JSON, as wide as its container.

    `usermeta` names the columns that set its height and those that it needs (see `assets/charts.js`).
    """
    with alt.data_transformers.enable(consolidate_datasets=False):  # the rows stay in `data.values`
        vega_lite = altair_chart(chart).to_dict(validate=False)
    vega_lite["autosize"] = {"type": "fit-x", "contains": "padding"}
    # The columns on each numeric axis: a chart is empty if one of its axes has no value.
    columns: dict[str, set[str]] = {"x": set(), "y": set()}
    for layer in (vega_lite, *vega_lite.get("layer", ())):
        for channel, of_channel in columns.items():
            definition = layer.get("encoding", {}).get(channel, {})
            if definition.get("type") == "quantitative" and "field" in definition:
                of_channel.add(definition["field"])
    needed = [sorted(of_channel) for of_channel in columns.values() if of_channel]
    return vega_lite | {"usermeta": {"needed": needed, **vega_lite.get("usermeta", {})}}


def shows_anything(specification: Mapping[str, Any]) -> bool:
    """Return whether each axis of a chart has a value."""
    rows, needed = specification["data"]["values"], specification["usermeta"]["needed"]
    return all(any(row.get(column) is not None for row in rows for column in of) for of in needed)
