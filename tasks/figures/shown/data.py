"""The page of data: tasks, rubrics, weights, and the results of checks."""

from collections import Counter
from datetime import UTC
from typing import Any

from tasks.figures import charts
from tasks.figures.charts import Charts
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


def _reasons(rows: Rows) -> list[str]:
    tasks, checks = {row["task_id"] for row in rows}, Counter(row["check_name"] for row in rows)
    counts = ", ".join(f"{n} by {check}" for check, n in checks.items())
    return [f"{counted(len(tasks), 'task')} refused: {counts}."]


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
    empty="No task was refused.",
    listed=lambda rows: rows[:_MOST_REFUSALS],
    notes=_reasons,
)


_NO_LABELS = {"n_criteria", "weight"}
"""Columns by which tasks and criteria are counted although they are not labels."""


def _shares(of: str, **how: Any) -> Charts:
    """Declare a chart for each split: a bar for each label, as long as its share; all splits on one scale."""
    return charts.bars(
        "split", name="label", value="share", title=f"Share of the {of}", percent=True, least=(0, 0), **how,
    )  # fmt: skip


_OF_TASKS, _OF_CRITERIA = (_shares(of, wrapped=True) for of in ("tasks", "criteria"))


def _over_numbers(what: str, of: str = "tasks") -> Charts:
    """Declare upright bars over numbers in their order; a missing number has no bar."""
    return _shares(of, is_upright=True, name_title=what)


def _counts(breakdown: Breakdown, name: str, label: str, drawn: Charts, says: str) -> Figure:
    """Return a figure: the distribution of tasks or criteria over labels."""
    what = "criteria" if breakdown.of_criteria else "tasks"
    return Figure(
        name, breakdown.title, says, columns(f"split label n_{what} share", label=label), drawn,
        query="data/label_counts", given={"breakdown": breakdown.kind, "of_criteria": breakdown.of_criteria},
        breakdown="" if breakdown.kind in _NO_LABELS else breakdown.kind,
    )  # fmt: skip


def own_counts(breakdown: Breakdown) -> Figure:
    """Return the figure of a distribution over a kind of label that only this benchmark has."""
    what, draw = ("criteria", _OF_CRITERIA) if breakdown.of_criteria else ("tasks", _OF_TASKS)
    says = f"The share of each split's {what} with each label; those with several labels count under each."
    return _counts(breakdown, f"labels_{breakdown.kind}", breakdown.title, draw, says)


_DISTRIBUTIONS = (
    (False, "topic", "task_topics", "Topics", "Topic", _OF_TASKS, "The share of each split's tasks on each topic."),
    (False, "decision_type", "task_decision_types", "Decision types", "Decision type", _OF_TASKS,
     "The kind of decision that the task asks about. A task may have several labels, so shares can add up to more than "
     "100 %."),
    (False, "economic_pathway", "task_economic_pathways", "Economic pathways", "Economic pathway", _OF_TASKS,
     "The economic consequence of the decision. A task may have several labels."),
    (False, "expert", "task_experts", "Who asks", "Who asks", _OF_TASKS,
     "The share of tasks that are asked as an expert would ask them."),
    (False, "turns", "task_turns", "User turns", "User turns", _over_numbers("User turns"),
     "The number of user turns in a conversation; only the response to the last one is judged."),
    (False, "n_criteria", "task_criteria", "Criteria per task", "Criteria", _over_numbers("Criteria of a task"),
     "The number of criteria of a task."),
    (True, "weight", "weights", "Weights", "Weight", _over_numbers("Weight", "criteria"),
     "The share of criteria with each weight. Criteria below 0 are mistakes that cost points; those above 0 earn "
     "points."),
    (True, "severity", "criterion_severities", "Severities", "Severity", _OF_CRITERIA,
     "The share of criteria of each severity (weight class), most severe at both ends."),
    (True, "category", "criterion_categories", "Rubric categories", "Category", _OF_CRITERIA,
     "What the criteria ask for."),
)  # fmt: skip
"""The distributions over labels: whether criteria have them, the kind, the figure's name and title, the heading of the
labels, the charts, and the explanation."""


DATA = Page(
    "data",
    "Data",
    "What the models are asked, how criteria are weighted, and which data checks failed. Refused tasks are counted "
    "too.",
    (
        Figure(
            "splits",
            "Splits",
            "The number of tasks and criteria in each split, and the number of tasks that come from experts or have "
            "several user turns, negative criteria or reference texts. A hard split is a part of its full split, so "
            "never add up the two.",
            columns(
                "split",
                "Tasks: n_tasks n_refused expert_share multi_turn_share with_negative_share n_with_references",
                "Criteria: n_criteria", "criteria_min criteria_25 criteria_50 criteria_75 criteria_max",
                "turns_min turns_25 turns_50 turns_75 turns_max", n_tasks="All", n_criteria="All",
            ),
        ),
        QUALITY,
        REFUSALS,
        *(_counts(Breakdown(kind, title, of_criteria=of_criteria), name, label, drawn, says)
          for of_criteria, kind, name, title, label, drawn, says in _DISTRIBUTIONS),
    ),
    own=own_counts,
)  # fmt: skip
