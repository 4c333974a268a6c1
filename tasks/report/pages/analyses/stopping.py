"""Stopping: the comparisons that end their evaluation when they are settled."""

import altair as alt

from tasks.report.content.columns import Column, columns
from tasks.report.content.figures import Figure, Page, Plot, Rows
from tasks.report.drawing import charts
from tasks.report.drawing.plots import by_value, picked


def last_looks(rows: Rows) -> list[Plot]:
    """The differences with their intervals, a chart for each judge."""

    def draw(of_judge: Rows) -> alt.TopLevelMixin:
        known = [row for row in of_judge if row["difference"] is not None]
        return charts.intervals(
            picked(known, "comparison", "difference", "ci_low", "ci_high", "n_tasks", "decision"),
            value="difference", name="comparison", title="Difference", zero=True,
        )  # fmt: skip

    return by_value(rows, "judge", draw)


STOPPING = Page(
    "stopping",
    "Stopping",
    "Comparisons that end their evaluation when they are settled: after how many tasks, and what they found.",
    (
        Figure(
            "stopped_comparisons",
            "Last look at each comparison",
            "Mean $score of the first model minus that of the other, on the tasks evaluated by then, in random order. "
            "The interval holds at every look together, for all comparisons with the configured chance of any false "
            "decision. A comparison is `different` if its interval leaves out 0, and `equal` if it lies within the "
            "least difference; of a night, `dropped` if it lies below minus the least difference. `open` is what all "
            "tasks did not settle. A difference that ended its own evaluation is too large on average; the one "
            "without the bias of stopping is not.",
            (
                Column("model", "Model"), Column("compared_with", "Compared with"), Column("judge", "Judged by"),
                Column("decision", "Decision"), *columns("difference"),
                Column("ci_low", "from", "signed", "Interval at every look"),
                Column("ci_high", "to", "signed", "Interval at every look"),
                Column("unbiased_difference", "Without the bias of stopping", "signed"),
                Column("n_tasks", "With both", "count", "Tasks"),
                Column("n_tasks_evaluated", "Evaluated", "count", "Tasks"),
                Column("n_tasks_planned", "Of", "count", "Tasks"),
                Column("least_difference", "Least difference", "score"),
                Column("comparison_alpha", "Chance of a false decision", "p"),
                Column("looked_at", "Looked at (UTC)", "time"),
            ),
            last_looks,
            is_table=True,
            query="stopping/comparisons",
        ),
    ),
    needs="stopping_looks",
    has_judging=False,
)  # fmt: skip
