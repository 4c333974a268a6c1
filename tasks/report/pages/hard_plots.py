"""The charts of the hard subset's page, and which tasks its tables list."""

import altair as alt

from tasks.report.content.figures import Plot, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.chart_parts import chart_of, hue, number_tips, sign
from tasks.report.drawing.plots import names_in_order, range_of

_MOST_AROUND = 8
"""Tasks on either side of the border that are drawn."""
_PLACES = ("inside", "outside")
_OTHERS = {"official": "", "earlier": "selected ", "leave_one_out": "without "}


def _fields(rows: Rows) -> list[tuple[str, Rows]]:
    return [(field, [row for row in rows if row["field"] == field]) for field in names_in_order(rows, "field")]


def panels_of_models(rows: Rows) -> list[str]:
    """Which models chose."""
    return [f"{row['field']} was chosen by {', '.join(row['panel'])}." for row in rows]


def certainty(rows: Rows) -> list[Plot]:
    """A dot for each task, a chart for each field: how hard it is, and how surely it is selected."""
    return [Plot(field, _certainty(of_field)) for field, of_field in _fields(_known(rows))]


def _known(rows: Rows) -> Rows:
    return [row for row in rows if row["inclusion_probability"] is not None]


def _certainty(rows: Rows) -> alt.TopLevelMixin:
    columns = ("task_id", "topic", "mean_score", "inclusion_probability", "rank")
    drawn = [{"place": _PLACES[not row["is_selected"]], **{name: row[name] for name in columns}} for row in rows]
    base = chart_of(drawn)
    bounds = [base.mark_rule(strokeDash=[4, 3], color="gray").encode(y=alt.datum(share)) for share in (0.05, 0.95)]
    dots = base.mark_point(filled=True, size=45, opacity=0.75).encode(
        x=alt.X("mean_score:Q", title="Mean score over the panel", scale=alt.Scale(zero=False, padding=10)),
        y=alt.Y("inclusion_probability:Q", title="Selected by", axis=alt.Axis(format=".0%")),
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
    for _, of_field in _fields(rows):
        inside = [row for row in of_field if row["is_selected"]]
        outside = [row for row in of_field if not row["is_selected"]]
        found += [*inside[-_MOST_AROUND:], *outside[:_MOST_AROUND]]
    return found


def border(rows: Rows) -> list[Plot]:
    """A bar for each task around the border, to the left where it is inside."""
    near = [row for row in around_border(rows) if row["from_border"] is not None]
    return [
        Plot(
            field,
            charts.bars(
                [{**row, "place": _PLACES[not row["is_selected"]]} for row in of_field], name="task_id",
                value="from_border", title="Mean score above the border", colour="place",
                order=names_in_order(of_field, "task_id"),
            ),
        )
        for field, of_field in _fields(near)
    ]  # fmt: skip


def topics(rows: Rows) -> list[Plot]:
    """A bar for each topic, a chart for each field."""
    return [
        Plot(
            field,
            charts.bars(
                of_field, name="topic", value="selected_share", title="Share that is hard",
                percent=True, wrapped=True, order=names_in_order(of_field, "topic"),
            ),
        )
        for field, of_field in _fields(rows)
    ]  # fmt: skip


def overlaps(rows: Rows) -> list[Plot]:
    """A bar for each other selection, a chart for each field."""
    named = [{**row, "other": f"{_OTHERS[row['kind']]}{row['compared_with']}"} for row in rows]
    return [
        Plot(
            field,
            charts.bars(
                of_field, name="other", value="shared_share", title="Share in both",
                percent=True, order=names_in_order(of_field, "other"),
            ),
        )
        for field, of_field in _fields(named)
    ]  # fmt: skip


def leaderboard(rows: Rows) -> list[Plot]:
    """Models with their intervals, a chart for each field and judge."""
    groups = dict.fromkeys((row["judging"], row["split"]) for row in rows)
    several = len({judging for judging, _ in groups}) > 1
    plots = []
    for judging, split in groups:
        of_judge = [row for row in rows if row["judging"] == judging]
        drawn = [row for row in of_judge if row["split"] == split]
        chart = charts.intervals(
            drawn, sort=names_in_order(drawn, "model"), domain=range_of(of_judge, "ci_low", "ci_high", "mean_score")
        )
        plots.append(Plot(f"{split}, judged by {judging}" if several else split, chart))
    return plots
