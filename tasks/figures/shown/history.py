"""The page of history: each model's scores over time, changes of the setup, and the runs with their cost."""

from typing import Any

from tasks.figures import charts
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Figure, Page

_MOST_POINTS = 10
"""Largest number of vintages of a model in the table; the CSV has all."""
_MOST_RUNS = 200


def latest_points(rows: Rows) -> Rows:
    """Return the latest vintages of each model on each split under each judge."""
    left: dict[Any, int] = {}
    changes = []
    for row in reversed(rows):
        key = row["split"], row["judged_by"], row["label"]
        left[key] = left.get(key, 0) + 1
        if left[key] <= _MOST_POINTS:
            changes.append(row)
    return changes[::-1]


_HISTORY = Figure(
    "history",
    "Score over time",
    "Mean score of each model from vintage to vintage, with its 95 % interval for other tasks of the same kind. "
    "Points on one line are comparable. A line ends where the data set, model configuration, judge, template or "
    "grading changed; a dashed line says what changed, and a step across it is not a change of the model. A red "
    "triangle is a night in which the judge had drifted (page Judges). A model with only one judged vintage has no "
    "line; it is in the table. The complete tasks may differ from night to night; the overview says which changes are "
    "significant.",
    columns(
        "judged_by split label first_response_at vintage mean_score ci_low ci_high raw_mean_score raw_ci_low "
        "raw_ci_high change changed is_drifted n_tasks n_tasks_wanted coverage revision configuration "
        "judge_configuration template grading",
        judged_by="Judge",
        label="Model",
    ),
    charts.over_time(
        "split", rows=lambda rows: [row for row in rows if row["n_points"] > 1], x="first_response_at",
        value="mean_score", title="Mean score", colour="label", line="line", changed="changed", marked="is_drifted",
        tips={"label": "model", "vintage": "vintage", "mean_score": "Mean score", "ci_low": "from", "ci_high": "to",
              "n_tasks": "tasks", "changed": "new"},
    ),
    listed=latest_points,
)  # fmt: skip
_COSTS = Figure(
    "night_costs",
    "Cost of each night",
    "Cost of each night's calls in US dollars by purpose (responses, verdicts, verdicts on the control sets), "
    "including discarded attempts. Calls of unknown price are not included; the table counts them.",
    columns(
        "night purpose cost_usd calls failed_calls unpriced_calls",
        "Tokens: prompt_tokens cached_tokens completion_tokens", prompt_tokens="in", completion_tokens="out",
    ),
    charts.bars(
        known="cost_usd", name="night", value="cost_usd", title="US dollars", colour="purpose", is_upright=True
    ),
    empty="No night has made a call yet; prbench nightly and prbench serve run nights.",
    reach="warehouse",
)  # fmt: skip
_RUNS = Figure(
    "runs",
    "Runs",
    "All runs, latest first, and how each ended: below_bar means done, but with data quality or coverage below the "
    "configured minimum. The run that writes the report is not listed. The cost includes discarded attempts, but not "
    "calls of unknown price.",
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
