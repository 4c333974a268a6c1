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
    by: str = "",
    what: str = "",
    *,
    required: str = "",
    rows: Callable[[Rows], Rows] | None = None,
    **options: Any,
) -> Charts:
    """Declare charts of one kind.

    Args:
        kind: the function that draws them.
        by: a column; each of its values has a chart, in the order of the rows. With `split`, hard
            splits are left out, because they are a part of full ones, and each judge has its own
            charts; the page shows those of the chosen judge only.
        what: the subject of the charts, for their titles, if the figure has charts on several
            subjects.
        required: rows without a value in this column are left out.
        rows: selects rows, or adds columns to them.
        options: options of the chart, by name. Titles of axes are the usual headings of their columns,
            tips are names of columns, and a share is in percent.
    """
    for axis, title in (("value", "title"), ("x", "x_title"), ("y", "y_title")):
        if axis in options:
            options.setdefault(title, usual(options[axis])[1])
    options.setdefault("percent", usual(options.get("value", ""))[0] == "share")
    if "tips" in options:
        options["tips"] = {name: usual(name)[1] for name in options["tips"].split()}

    def charts(figure_rows: Rows) -> list[Chart]:
        chart_rows = rows(figure_rows) if rows else figure_rows
        if required:
            chart_rows = [row for row in chart_rows if row[required] is not None]
        if by == "split":
            chart_rows = on_full_splits(chart_rows)
        groups = _groups(chart_rows, by, what)
        return [Chart(title, kind, group, options) for title, group in groups.items()]

    return charts


bars, scatter, heat, over_time, control, dots = (
    partial(_charts, kind) for kind in ("bars", "scatter", "heat", "over_time", "control", "dots")
)
intervals = partial(_charts, "intervals", value="mean_score")


def _groups(rows: Rows, by: str, what: str) -> dict[str, list[Row]]:
    """Return the title of each chart with its rows."""
    judges = (
        [row.get("judged_by", row.get("judge_config")) for row in rows]
        if by == "split"
        else [""] * len(rows)
    )
    has_several = len(set(judges)) > 1
    groups: dict[str, list[Row]] = {}
    for row, judge in zip(rows, judges, strict=True):
        parts = (what, row[by] if by else "", f"judged by {judge}" if has_several else "")
        groups.setdefault(", ".join(filter(None, parts)), []).append(row)
    return groups
