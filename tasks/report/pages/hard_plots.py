"""The charts of the hard subset's page, and which tasks its tables list."""

from typing import Any

import altair as alt

from tasks.report.content.figures import Plot, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.chart_parts import chart_of, hue, number_tips, sign
from tasks.report.drawing.plots import by_judge_and_split, by_value, names_in_order

_MOST_AROUND = 8
"""Tasks on either side of the border that are drawn."""
_PLACES = ("inside", "outside")
_OTHERS = {"official": "", "earlier": "selected ", "leave_one_out": "without "}


def panels_of_models(rows: Rows) -> list[str]:
    """Which models chose."""
    return [f"{row['field']} was chosen with the panel {', '.join(row['panel'])}." for row in rows]


def certainty(rows: Rows) -> list[Plot]:
    """A dot for each task, a chart for each field: how hard it is, and how surely it is selected."""
    return by_value([row for row in rows if row["inclusion_probability"] is not None], "field", _certainty)


def _certainty(rows: Rows) -> alt.TopLevelMixin:
    columns = ("task_id", "topic", "mean_score", "inclusion_probability", "rank")
    drawn = [{"place": _PLACES[not row["is_selected"]], **{name: row[name] for name in columns}} for row in rows]
    base = chart_of(drawn)
    bounds = [base.mark_rule(strokeDash=[4, 3], color="gray").encode(y=alt.datum(share)) for share in (0.05, 0.95)]
    dots = base.mark_point(filled=True, size=45, opacity=0.75).encode(
        x=alt.X("mean_score:Q", title="Mean score over the panel", scale=alt.Scale(zero=False, padding=10)),
        y=alt.Y("inclusion_probability:Q", title="Selected by share of panels", axis=alt.Axis(format=".0%")),
        color=hue("place", _PLACES),
        shape=sign("place", _PLACES),
        tooltip=[
            alt.Tooltip("task_id:N", title="task"), alt.Tooltip("topic:N", title="topic"),
            *number_tips({"rank": "rank", "mean_score": "mean score"}),
            *number_tips({"inclusion_probability": "selected by"}, percent=True),
        ],
    )  # fmt: skip
    return alt.layer(*bounds, dots).properties(height=240)


def members_and_border(rows: Rows) -> Rows:
    """The tasks that are selected, and those outside that could have been."""
    return [row for row in rows if row["is_selected"] or row["is_border"]]


def around_border(rows: Rows) -> Rows:
    """The last tasks inside and the first ones outside."""
    found = []
    for field in names_in_order(rows, "field"):
        inside = [row for row in rows if row["field"] == field and row["is_selected"]]
        outside = [row for row in rows if row["field"] == field and not row["is_selected"]]
        found += [*inside[-_MOST_AROUND:], *outside[:_MOST_AROUND]]
    return found


def border(rows: Rows) -> list[Plot]:
    """A bar for each task around the border, to the left where it is inside."""
    near = [
        {**row, "place": _PLACES[not row["is_selected"]]}
        for row in around_border(rows)
        if row["from_border"] is not None
    ]
    return _bars(near, "task_id", "from_border", "Distance of the mean score from the border", colour="place")


def topics(rows: Rows) -> list[Plot]:
    """A bar for each topic, a chart for each field."""
    return _bars(rows, "topic", "selected_share", "Share selected", percent=True, wrapped=True)


def overlaps(rows: Rows) -> list[Plot]:
    """A bar for each other selection, a chart for each field."""
    named = [{**row, "other": f"{_OTHERS[row['kind']]}{row['compared_with']}"} for row in rows]
    return _bars(named, "other", "shared_share", "Share in both", percent=True)


def _bars(rows: Rows, name: str, value: str, title: str, **how: Any) -> list[Plot]:
    """A bar for each name, a chart for each field."""

    def draw(of_field: Rows) -> alt.TopLevelMixin:
        return charts.bars(of_field, name=name, value=value, title=title, order=names_in_order(of_field, name), **how)

    return by_value(rows, "field", draw)


def leaderboard(rows: Rows) -> list[Plot]:
    """Models with their intervals, a chart for each field and judge."""

    def draw(drawn: Rows) -> alt.TopLevelMixin:
        return charts.intervals(drawn, sort=names_in_order(drawn, "model"))

    return by_judge_and_split(rows, draw)
