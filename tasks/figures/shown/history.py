"""The page of history: each model's scores over time, changes of the setup, and the runs with their cost."""

from itertools import groupby
from operator import itemgetter

from tasks.figures import charts
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Figure, Page

_MOST_POINTS = 10
"""Largest number of vintages of a model in the table; the CSV has all."""
_MOST_RUNS = 200


def latest_points(rows: Rows) -> Rows:
    """Return the latest vintages of each model on each split under each judge."""
    by_line = groupby(rows, itemgetter("split", "judged_by", "label"))
    return [row for _, of_line in by_line for row in [*of_line][-_MOST_POINTS:]]


_HISTORY = Figure(
    "history",
    "Score over time",
    "Mean score of each model from vintage to vintage, with its 95 % interval. Points on one line are comparable: it "
    "ends where the data set, model configuration, judge, template or grading changed, as a dashed line says. A red "
    "triangle is a night in which the judge had drifted. The complete tasks may differ from night to night; the "
    "overview says which changes are significant.",
    columns(
        "judged_by split label first_response_at vintage mean_score ci_low ci_high raw_mean_score raw_ci_low "
        "raw_ci_high change changed is_drifted n_tasks n_tasks_wanted coverage revision configuration "
        "judge_configuration template grading",
        judged_by="Judge",
        label="Model",
    ),
    charts.over_time(
        "split", rows=lambda rows: [row for row in rows if row["n_points"] > 1], x="first_response_at",
        value="mean_score", colour="label", line="line", changed="changed", marked="is_drifted",
        tips="label vintage mean_score ci_low ci_high n_tasks changed",
    ),
    listed=latest_points,
)  # fmt: skip
_COSTS = Figure(
    "night_costs",
    "Cost of each night",
    "Cost of each night's calls by purpose, with discarded attempts, without calls of unknown price.",
    columns(
        "night purpose cost_usd calls failed_calls unpriced_calls",
        "Tokens: prompt_tokens cached_tokens completion_tokens", prompt_tokens="in", completion_tokens="out",
    ),
    charts.bars(known="cost_usd", name="night", value="cost_usd", colour="purpose", is_upright=True),
    empty="No night has made a call yet; prbench nightly and prbench serve run nights.",
    reach="warehouse",
)  # fmt: skip
_RUNS = Figure(
    "runs",
    "Runs",
    "All runs but the one that writes the report, latest first, and how each ended: below_bar means done, but with "
    "data quality or coverage below the minimum. The cost leaves out calls of unknown price.",
    columns("started_at night command outcome responses verdicts calls cost_usd unpriced_calls minutes run_id"),
    listed=lambda rows: rows[:_MOST_RUNS],
    reach="warehouse",
)

HISTORY = Page(
    "history",
    "History",
    "The score of each model over time, other changes, and the output and cost of the runs.",
    (_HISTORY, _COSTS, _RUNS),
)
