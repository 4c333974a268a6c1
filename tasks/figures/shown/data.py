"""The page of data: tasks, rubrics, weights, and the results of checks."""

from datetime import UTC
from typing import Any

from tasks.figures import charts
from tasks.figures.charts import Charts, at_least
from tasks.figures.columns import Column, Rows, columns
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
    tasks = {row["task_id"] for row in rows}
    checks = dict.fromkeys(row["check_name"] for row in rows)
    counts = [f"{sum(row['check_name'] == check for row in rows)} by {check}" for check in checks]
    return [f"{counted(len(tasks), 'task')} refused: {', '.join(counts)}."]


QUALITY = Figure(
    "quality",
    "Data quality",
    "Every check of the last run of each suite. Its policy applies if it fails: quarantine refuses the task, warn "
    "only reports it, fail stops the run.",
    (
        *columns("outcome policy check_name meaning table_name"),
        *columns("n_evaluated n_failed", "Rows"),
        *columns("some_keys n_more suite"),
    ),
    empty="No check has been run yet; `prbench check` runs them.",
    notes=_summary,
    reach="warehouse",
)
REFUSALS = Figure(
    "refusals",
    "Refused tasks",
    "Tasks that failed a check with the policy quarantine or fail. They are not sampled and have no scores.",
    (*columns("check_name"), Column("task_id", "Task"), *columns("splits policy detail")),
    empty="No task was refused.",
    listed=lambda rows: rows[:_MOST_REFUSALS],
    notes=_reasons,
)


_NO_LABELS = {"n_criteria", "weight"}
"""Columns by which tasks and criteria are counted although they are not labels."""
_SPLITS = (
    *columns("split"),
    *columns(
        "n_tasks n_refused expert_share multi_turn_share with_negative_share n_with_references", "Tasks", n_tasks="All"
    ),
    *columns("n_criteria", "Criteria", n_criteria="All"),
    *columns(
        "criteria_min criteria_25 criteria_50 criteria_75 criteria_max turns_min turns_25 turns_50 turns_75 turns_max"
    ),
)


def _shares(of: str, name: str = "label", **how: Any) -> Charts:
    """Declare a chart for each split: a bar for each label, as long as its share; all splits on one scale."""
    return charts.bars(
        "split", name=name, value="share", title=f"Share of the {of}", percent=True, domain=at_least(0, 0, "share"),
        **how,
    )  # fmt: skip


_OF_TASKS, _OF_CRITERIA = (_shares(of, wrapped=True) for of in ("tasks", "criteria"))


def _over_numbers(what: str, of: str = "tasks") -> Charts:
    """Declare upright bars over numbers in their order; a missing number has no bar."""
    return _shares(of, "number", rows=_numbered, known="number", is_upright=True, name_title=what)


def _numbered(rows: Rows) -> list[dict[str, Any]]:
    numbered = ({**row, "number": _number(row["label"])} for row in rows)
    return sorted(numbered, key=lambda row: (row["is_hard"], row["split"], row["number"] or 0))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


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
            _SPLITS,
        ),
        QUALITY,
        REFUSALS,
        _counts(
            Breakdown("topic", "Topics", of_criteria=False), "task_topics", "Topic", _OF_TASKS,
            "The share of each split's tasks on each topic.",
        ),
        _counts(
            Breakdown("decision_type", "Decision types", of_criteria=False), "task_decision_types", "Decision type",
            _OF_TASKS,
            "The kind of decision that the task asks about. A task may have several labels, so shares can add up to "
            "more than 100 %.",
        ),
        _counts(
            Breakdown("economic_pathway", "Economic pathways", of_criteria=False), "task_economic_pathways",
            "Economic pathway", _OF_TASKS,
            "The economic consequence of the decision. A task may have several labels.",
        ),
        _counts(
            Breakdown("expert", "Who asks", of_criteria=False), "task_experts", "Who asks", _OF_TASKS,
            "The share of tasks that are asked as an expert would ask them.",
        ),
        _counts(
            Breakdown("turns", "User turns", of_criteria=False), "task_turns", "User turns",
            _over_numbers("User turns"),
            "The number of user turns in a conversation; only the response to the last one is judged.",
        ),
        _counts(
            Breakdown("n_criteria", "Criteria per task", of_criteria=False), "task_criteria", "Criteria",
            _over_numbers("Criteria of a task"), "The number of criteria of a task.",
        ),
        _counts(
            Breakdown("weight", "Weights", of_criteria=True), "weights", "Weight",
            _over_numbers("Weight", "criteria"),
            "The share of criteria with each weight. Criteria below 0 are mistakes that cost points; those above 0 "
            "earn points.",
        ),
        _counts(
            Breakdown("severity", "Severities", of_criteria=True), "criterion_severities", "Severity", _OF_CRITERIA,
            "The share of criteria of each severity (weight class), most severe at both ends.",
        ),
        _counts(
            Breakdown("category", "Rubric categories", of_criteria=True), "criterion_categories", "Category",
            _OF_CRITERIA, "What the criteria ask for.",
        ),
    ),
    own=own_counts,
)  # fmt: skip
