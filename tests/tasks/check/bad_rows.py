"""Rows that each break one rule, and the check that must find each."""

from typing import Any

from tests.kit import good_row, good_rubric
from tests.tasks.dataset.rows import hub_criterion

Row = dict[str, Any]


def spoiled(task_id: str, **changes: Any) -> Row:
    """A good row whose first criterion is changed, annotations and all."""
    rubric = good_rubric(task_id)
    annotations = rubric[0]["annotations"]
    for name, value in changes.items():
        if name in annotations:
            annotations[name] = value
        else:
            rubric[0][name] = value
    return good_row(task_id, rubric=rubric)


def all_negative(task_id: str) -> Row:
    rubric = [hub_criterion(f"{task_id}-c{i}", "detrimental", -5) for i in range(10)]
    return good_row(task_id, rubric=rubric)


def twice_the_same_id(task_id: str) -> Row:
    rubric = good_rubric(task_id)
    return good_row(task_id, rubric=[*rubric, rubric[0] | {"title": "Another one."}])


REFUSED: dict[str, tuple[Row, set[str]]] = {
    "weight-0": (spoiled("weight-0", important_weight=0), {"weight_range"}),
    "weight-11": (spoiled("weight-11", important_weight=11), {"weight_range"}),
    "weight-half": (spoiled("weight-half", important_weight=2.5), {"weight_range"}),
    "weight-text": (
        spoiled("weight-text", important_weight="five points"),
        {"weight_range"},
    ),
    "weight-none": (spoiled("weight-none", important_weight=None), {"weight_range"}),
    "class-unknown": (
        spoiled("class-unknown", weight_class="vital"),
        {"weight_range", "weight_class_known"},
    ),
    "no-positive": (all_negative("no-positive"), {"positive_criterion"}),
    "criteria-9": (
        good_row("criteria-9", rubric=good_rubric("criteria-9", 9)),
        {"criteria_per_task"},
    ),
    "criteria-31": (
        good_row("criteria-31", rubric=good_rubric("criteria-31", 31)),
        {"criteria_per_task"},
    ),
    "criteria-0": (
        good_row("criteria-0", rubric=[]),
        {"criteria_per_task", "positive_criterion"},
    ),
    "criteria-none": (
        good_row("criteria-none", rubric=None),
        {"criteria_per_task", "positive_criterion"},
    ),
    "same-criterion": (twice_the_same_id("same-criterion"), {"unique_criterion_id"}),
    "title-empty": (spoiled("title-empty", title=""), {"title_not_empty"}),
    "title-blank": (spoiled("title-blank", title=" \n\t"), {"title_not_empty"}),
    "turns-gap": (
        good_row("turns-gap", turns=2, prompt_1="And then?"),
        {"turns_contiguous"},
    ),
    "turns-wrong": (good_row("turns-wrong", turns=2), {"turns_contiguous"}),
    "turns-end": (
        good_row("turns-end", response_0="A response."),
        {"turns_contiguous"},
    ),
    "prompt-empty": (good_row("prompt-empty", prompt_0=" "), {"prompt_not_empty"}),
}

TWICE = {
    "same-task-same-content": good_row("same-task-same-content"),
    "same-task": good_row("same-task"),
}
"""Rows that occur twice; the second row of `same-task` has different content."""

WARNED: dict[str, tuple[Row, str]] = {
    "band": (spoiled("band", important_weight=9), "weight_in_band"),
    "category": (spoiled("category", criteria_category="Elegance"), "category_known"),
    "label": (good_row("label", decision_type="Planning & Forecast"), "labels_known"),
}

GOOD: dict[str, Row] = {
    "good-10": good_row("good-10"),
    "good-30": good_row("good-30", rubric=good_rubric("good-30", 30)),
    "good-limits": good_row(
        "good-limits",
        rubric=[
            *good_rubric("good-limits"),
            hub_criterion("good-limits-high", "critically important", 10),
            hub_criterion("good-limits-low", "critically detrimental", -10),
        ],
    ),
    "good-turns": good_row(
        "good-turns",
        turns=2,
        response_0="It is cheap.",
        prompt_1="Why?",
    ),
}

EXPECTED = {task: checks for task, (_, checks) in REFUSED.items()}
"""Task -> the checks that refuse it."""
EXPECTED |= {task: {"unique_task_id"} for task in TWICE}
ADMITTED = sorted([*GOOD, *WARNED])


def all_rows() -> list[Row]:
    """All of them in one data set."""
    rows_by_task = GOOD | TWICE
    for task, (row, _) in (REFUSED | WARNED).items():
        rows_by_task[task] = row
    duplicates = [
        TWICE["same-task-same-content"],
        good_row("same-task", prompt_0="Another one?"),
    ]
    return list(rows_by_task.values()) + duplicates
