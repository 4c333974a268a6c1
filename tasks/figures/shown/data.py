"""The page of data: tasks, rubrics, weights, and the results of checks."""

from datetime import UTC

from tasks.figures import charts
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Breakdown, Figure, Page
from tasks.rules.text.numbers import counted

_MOST_REFUSALS = 200
"""Largest number of rows in the table; further rows usually have the same cause."""


def _summary(rows: Rows) -> list[str]:
    n_failed = sum(row["outcome"] == "failed" for row in rows)
    all_passed = f"All {counted(len(rows), 'check')} passed."
    summary = f"{n_failed} of {counted(len(rows), 'check')} failed; they come first." if n_failed else all_passed
    last = {row["suite"]: row["created_at"].astimezone(UTC) for row in rows}
    return [summary, f"Checked: {', '.join(f'{suite} {at:%Y-%m-%d %H:%M} UTC' for suite, at in last.items())}."]


QUALITY = Figure(
    "quality",
    "Data quality",
    "Every check of the last run of each suite. Its policy applies if it fails: quarantine refuses the task, warn "
    "only reports it, fail stops the run.",
    columns("outcome policy check_name meaning table_name", "Rows: n_evaluated n_failed", "some_keys n_more suite"),
    empty="No check has been run yet; `prbench check` runs them.",
    notes=_summary,
    reach="warehouse",
)
REFUSALS = Figure(
    "refusals",
    "Refused tasks",
    "Tasks that failed a check with the policy quarantine or fail. They are not sampled and have no scores.",
    columns("check_name task_id splits policy detail", task_id=("text", "Task")),
    listed=lambda rows: rows[:_MOST_REFUSALS],
)


def own_counts(breakdown: Breakdown, name: str = "", label: str = "") -> Figure:
    """Return the distribution of tasks or criteria over labels: a chart for each split, all on one scale."""
    what, heading = "criteria" if breakdown.of_criteria else "tasks", label or breakdown.title
    return Figure(
        name or f"labels_{breakdown.kind}",
        breakdown.title,
        f"The share of each split's {what} with each label; those with several labels count under each.",
        columns(f"split label n_{what} share", label=heading),
        charts.bars(
            "split", name="label", value="share", name_title=heading,
            is_upright=breakdown.kind in {"turns", *_COUNTED},
        ),
        query="data/label_counts",
        given={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
        breakdown="" if breakdown.kind in _COUNTED else breakdown.kind,
    )  # fmt: skip


_COUNTED = {"n_criteria", "weight"}
"""Numbers by which tasks and criteria are counted although they are not labels."""
_DISTRIBUTIONS = (
    (Breakdown("topic", "Topics"), "task_topics", "Topic"),
    (Breakdown("decision_type", "Decision types"), "task_decision_types", "Decision type"),
    (Breakdown("economic_pathway", "Economic pathways"), "task_economic_pathways", "Economic pathway"),
    (Breakdown("expert", "Who asks"), "task_experts", "Who asks"),
    (Breakdown("turns", "User turns"), "task_turns", "User turns"),
    (Breakdown("n_criteria", "Criteria per task"), "task_criteria", "Criteria"),
    (Breakdown("weight", "Weights", of_criteria=True), "weights", "Weight"),
    (Breakdown("severity", "Severities", of_criteria=True), "criterion_severities", "Severity"),
    (Breakdown("category", "Rubric categories", of_criteria=True), "criterion_categories", "Category"),
)
"""The distributions over labels: the kind, the figure's name, the heading of the labels."""


DATA = Page(
    "data",
    "Data",
    "Tasks, rubrics, weights, and failed checks of the data. Refused tasks are counted too.",
    (
        Figure(
            "splits",
            "Splits",
            "Tasks and criteria of each split. A hard split is a part of its full split, so never add up the two.",
            columns(
                "split",
                "Tasks: n_tasks n_refused expert_share multi_turn_share with_negative_share n_with_references",
                "Criteria: n_criteria", "criteria_min criteria_25 criteria_50 criteria_75 criteria_max",
                "turns_min turns_25 turns_50 turns_75 turns_max", n_tasks="All", n_criteria="All",
            ),
        ),
        QUALITY,
        REFUSALS,
        *(own_counts(*each) for each in _DISTRIBUTIONS),
    ),
    own=own_counts,
)  # fmt: skip
