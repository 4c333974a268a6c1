"""Declarations of charts: which rows of a figure each chart shows, and with which options.

Pages draw them (`tasks/report/assets/kinds.js`), for the models and the judge that are chosen
there.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tasks.figures.figure import Chart, Charts, Row, Rows, on_full_splits, usual


def _charts(
    kind: str,
    column: str = "",
    subject: str = "",
    *,
    required: str = "",
    only: Callable[[Row], Any] = lambda row: True,
    rows: Callable[[Rows], Rows] = lambda rows: rows,
    **options: Any,
) -> Charts:
    """Declare charts of one kind.

    Args:
        kind: the function that draws them.
        column: each of its values has a chart, in the order of the rows. With `split`, hard
            splits are left out, because they are a part of full ones, and each judge has its own
            charts; the page shows those of the chosen judge only.
        subject: the subject of the charts, for their titles, if the figure has charts on several
            subjects.
        required: rows without a value in this column are left out.
        only: tells which rows the charts have.
        rows: selects rows, or adds columns to them.
        options: options of the chart, by name, as `kinds.js` reads them. Titles of axes are by
            default the usual headings of their columns, tips are columns, and a share is in
            percent.
    """
    for axis, title in (("value", "title"), ("x", "x_title"), ("y", "y_title")):
        if axis in options:
            options.setdefault(title, usual(options[axis]).heading)
    options.setdefault("percent", usual(options.get("value", "")).kind == "share")
    if "tips" in options:
        options["tips"] = {name: usual(name).heading for name in options["tips"]}

    def charts(figure_rows: Rows) -> list[Chart]:
        chart_rows: Rows = [row for row in rows(figure_rows) if only(row)]
        if required:
            chart_rows = [row for row in chart_rows if row[required] is not None]
        if column == "split":
            chart_rows = on_full_splits(chart_rows)
        groups = _groups(chart_rows, column, subject)
        return [Chart(title, kind, group, options) for title, group in groups.items()]

    return charts


bars = partial(_charts, "bars")
scatter = partial(_charts, "scatter")
heat = partial(_charts, "heat")
over_time = partial(_charts, "over_time")
control = partial(_charts, "control")
dots = partial(_charts, "dots")
intervals = partial(_charts, "intervals", value="mean_score")


def _groups(rows: Rows, column: str, subject: str) -> dict[str, list[Row]]:
    """Return the title of each chart with its rows."""
    judges = {_judge(row) for row in rows}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        parts = [subject, row[column] if column else ""]
        if column == "split" and len(judges) > 1:
            parts.append(f"judged by {_judge(row)}")
        groups.setdefault(", ".join(filter(None, parts)), []).append(row)
    return groups


def _judge(row: Row) -> Any:
    return row.get("judged_by", row.get("judge_config"))
