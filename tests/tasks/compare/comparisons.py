"""Rows of judged responses for tests that compare, and the arithmetic of a comparison written out
in fractions.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any

from tasks.compare.differences import ComparisonResult, compare, difference_details
from tasks.compare.pairs import Comparison
from tasks.config.job import DataRevision
from tests.kit import (
    REVISION,
    Row,
    Rows,
    admitted,
    criterion,
    job_on,
    response,
    verdict,
)
from warehouse import Reader

Rubric = Sequence[tuple[int, str]]
"""Weight and category of each criterion."""
Rubrics = Mapping[str, Rubric]
Decisions = Mapping[str, Sequence[float | None]]
"""Task -> the value of each criterion."""

RUBRICS: dict[str, Rubric] = {
    "t1": [(10, "Accuracy"), (6, "Risk"), (4, "Risk"), (-5, "Accuracy")],
    "t2": [(8, "Accuracy"), (2, "Risk")],
    "t3": [(3, "Accuracy"), (7, "Risk"), (5, "Clarity")],
    "t4": [(9, "Clarity"), (-10, "Risk")],
}
MANY: dict[str, Rubric] = {
    f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(30)
}
"""Thirty tasks with two criteria each."""
ALL_MET: Decisions = {
    "t1": [1.0, 1.0, 1.0, 0.0],
    "t2": [1.0, 1.0],
    "t3": [1.0, 1.0, 1.0],
    "t4": [1.0, 0.0],
}
"""The decisions with which every task has the score 1."""
WORSE_IN_RISK: Decisions = {
    "t1": [1.0, 0.0, 1.0, 0.0],
    "t2": [1.0, 0.0],
    "t3": [1.0, 0.0, 1.0],
    "t4": [1.0, 1.0],
}
"""`ALL_MET` with four criteria of the category Risk handled wrongly, one in each task."""
MIXED: Decisions = {
    "t1": [0.0, 1.0, 1.0, 1.0],
    "t2": [1.0, 1.0],
    "t3": [0.0, 0.0, 1.0],
    "t4": [0.0, 0.0],
}


def tasks_of(
    rubrics: Rubrics,
    split: str = "finance",
    revision: str = REVISION,
    **values: Any,
) -> Rows:
    """The rows that put the tasks of these rubrics into a split."""
    rows = admitted(list(rubrics), split, **values)
    for task_row in rows["task_rows"]:
        task_row["n_criteria"] = len(rubrics[task_row["task_id"]])
    rows["criteria"] = []
    for task, rubric in rubrics.items():
        rows["criteria"] += criteria_of(task, rubric)
    for table in ("task_rows", "split_members", "checks", "criteria"):
        for row in rows[table]:
            row["dataset_revision"] = revision
    return rows


def criteria_of(task: str, rubric: Rubric) -> list[Row]:
    return [
        criterion(task, position, weight, category)
        for position, (weight, category) in enumerate(rubric)
    ]


def judged(
    decisions: Decisions,
    model: str = "a",
    *,
    rubrics: Rubrics = RUBRICS,
    trial: int = 1,
    criteria: Mapping[str, Sequence[Row]] | None = None,
    of_response: Row | None = None,
    **verdict_values: Any,
) -> Rows:
    """A response to each task, and a verdict on each criterion.

    `of_response` are further columns of the responses, the other names those of the verdicts. An
    explanation says which model a verdict is on, and its value.
    """
    response_values = of_response or {}
    rows = {"responses": [], "verdicts": []}
    for task, values in decisions.items():
        response_id = "/".join(
            [task, model, str(trial), *map(str, response_values.values())]
        )
        response_row = response(task, model, trial, **response_values)
        response_row["response_id"] = response_id
        rows["responses"].append(response_row)
        rubric = criteria[task] if criteria else criteria_of(task, rubrics[task])
        for criterion_row, value in zip(rubric, values, strict=True):
            columns = {"explanation": f"why in {model}: {value}", **verdict_values}
            verdict_row = verdict(response_row, criterion_row, value, **columns)
            verdict_row["dataset_revision"] = response_row["dataset_revision"]
            verdict_row["verdict_id"] = "/".join(
                [
                    response_id,
                    criterion_row["criterion_id"],
                    *map(str, verdict_values.values()),
                ]
            )
            rows["verdicts"].append(verdict_row)
    return rows


def score(rubric: Rubric, values: Sequence[float | None]) -> Fraction:
    """Equation 1, in fractions."""
    points = Fraction(0)
    most_points = 0
    for (weight, _), value in zip(rubric, values, strict=True):
        assert value is not None
        points += weight * Fraction(value)
        most_points += max(weight, 0)
    return points / most_points


def mean_change(
    base: Decisions,
    compared: Decisions,
    tasks: Iterable[str] = tuple(RUBRICS),
) -> float:
    """The mean over tasks of the compared score minus the base score."""
    changes = [
        score(RUBRICS[task], compared[task]) - score(RUBRICS[task], base[task])
        for task in tasks
    ]
    return float(mean(changes))


def ask(
    reader: Reader,
    *names: str,
    revision: str = REVISION,
    models: Sequence[str] | None = None,
    judges: Sequence[str] | None = None,
    splits: Sequence[str] = ("finance",),
    configured: Sequence[Row] = (),
    **options: Any,
) -> ComparisonResult:
    """Compare names; `models` and `judges` are those that options name, `configured` are models in
    the configuration.
    """
    dataset = {"source": "unused", "splits": list(splits)}
    job = job_on("unused", Path("unused"), dataset=dataset, models=list(configured))
    job = job.model_copy(update={"named_models": models, "named_judges": judges})
    data = DataRevision(name="unused", revision=revision, splits=("finance",))
    return compare(reader, Comparison(job.looking_up(lambda: data), names, **options))


def verdicts_behind(reader: Reader, result: ComparisonResult) -> list[Row]:
    """For each difference the counts of its verdicts, with categories, tasks and flips."""
    rows = []
    for difference in result.differences:
        parts = difference_details(reader, result, [difference])
        rows.append(parts["verdicts"][0] | parts)
    return rows
