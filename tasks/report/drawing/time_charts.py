"""Charts over time: a score from vintage to vintage, and a judge from night to night."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt

from tasks.report.content.figures import Rows
from tasks.report.drawing.charts import chart_of, hue, number_tips
from tasks.report.drawing.plots import names_in_order, range_of

_HEIGHT = 240
_SCORE = "Mean score"
_ALARM: dict[str, Any] = {"filled": True, "size": 150, "opacity": 1, "shape": "triangle-down", "style": "alarm"}
"""The sign of a night in which a judge was out of control; `assets/charts.js` has its colour."""


def over_time(rows: Rows) -> alt.TopLevelMixin:
    """Scores over time with their intervals, a colour for each `label` and a stroke for each `line`.

    Where something that was measured with, or on, is another than before, a stroke ends and the next one begins: there
    stands a dashed line that says what `changed`. A night in which the judge was out of control has a red triangle.
    """
    points = Counter(row["line"] for row in rows)
    timed = [{**row, "answered_at": _as_text(row["answered_at"]), "is_alone": points[row["line"]] == 1} for row in rows]
    heights = alt.Scale(domain=range_of(rows, "mean_score", "ci_low", "ci_high"), nice=True, zero=False)
    low, up = alt.Y("ci_low:Q", title=_SCORE), alt.Y("mean_score:Q", title=_SCORE, scale=heights)
    base = chart_of(timed).encode(x=_time_axis([row["answered_at"] for row in rows]))
    of_model = base.encode(color=hue("label"))
    of_line = of_model.encode(detail="line:N")
    tips = [
        alt.Tooltip("label:N", title="model"),
        alt.Tooltip("vintage:N", title="vintage"),
        *number_tips({"mean_score": _SCORE, "ci_low": "from", "ci_high": "to", "n_tasks": "tasks"}),
        alt.Tooltip("changed:N", title="new"),
    ]
    # All rows are in each layer: one without any would look in vain for where its axes end. A screen reader hears of
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


def _time_axis(moments: Sequence[datetime]) -> alt.X:
    form = "%-d %b %H:%M" if max(moments) - min(moments) < timedelta(days=3) else "%-d %b"
    return alt.X(
        "answered_at:T", title=None, scale=alt.Scale(type="utc", padding=12),
        axis=alt.Axis(format=form, tickCount=6, labelOverlap="greedy"),
    )  # fmt: skip


def _breaks(base: alt.Chart) -> list[alt.Chart]:
    """A line with what changed, once a day for all models that it concerns."""
    once = (
        base.transform_calculate(
            moment="time(datum.answered_at)", day="floor(time(datum.answered_at) / 86400000)",
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


def _as_text(moment: datetime) -> str:
    """A moment as all browsers read it; what has no time zone is UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def control(rows: Rows) -> alt.TopLevelMixin:
    """A judge's agreement with its first verdicts night by night, beside what was to be expected.

    A short line stands in each night where the control limit is; where the agreement is below it, or below the
    configured minimum, the dot is a red triangle.
    """
    nights = alt.Scale(type="band", padding=0.1, domain=names_in_order(rows, "night"))
    lowest, _ = range_of(rows, "agreement", "lower_limit", "min_agreement", "centre")
    axis = alt.Axis(labelAngle=-40, labelOverlap="greedy")
    base = chart_of(rows)
    dated = base.encode(x=alt.X("night:N", title=None, scale=nights, axis=axis))
    up = alt.Y(
        "agreement:Q", title="Agreement", scale=alt.Scale(domain=[lowest, 1.0], nice=True, zero=False),
        axis=alt.Axis(format=".0%"),
    )  # fmt: skip
    tips = [
        alt.Tooltip("night:N", title="night"),
        *number_tips({"agreement": "agreement", "lower_limit": "limit", "centre": "expected"}, percent=True),
        alt.Tooltip("cause:N", title="below"),
    ]
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
    """A line from one end of each night to the other at the height of a column, named in the legend."""
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
