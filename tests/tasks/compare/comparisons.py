"""Rows of judged responses for tests that compare, and the arithmetic of a comparison written out
in fractions.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tasks.compare.differences import ComparisonResult, compare
from tasks.compare.differences import apart as taken_apart
from tasks.compare.pairs import Comparison
from tasks.config.job import DataRevision
from tests.kit import REVISION, Row, Rows, admitted, criterion, job_on, response, verdict
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
ALL_MET: dict[str, list[float | None]] = {
    task: [1.0 if weight > 0 else 0.0 for weight, _ in rubric] for task, rubric in RUBRICS.items()
}
WORSE_IN_RISK: Decisions = {
    "t1": [1, 0, 1, 0],
    "t2": [1, 0],
    "t3": [1, 0, 1],
    "t4": [1, 1],
}
"""`ALL_MET` with four criteria of the category Risk handled wrongly, one in each task."""
MIXED: Decisions = {
    "t1": [0, 1, 1, 1],
    "t2": [1, 1],
    "t3": [0, 0, 1],
    "t4": [0, 0],
}


def tasks_of(
    rubrics: Rubrics, split: str = "finance", revision: str = REVISION, **values: Any
) -> Rows:
    """The rows that put the tasks of these rubrics into a split."""
    rows: Rows = dict(admitted(list(rubrics), split, **values))
    for task_row in rows["task_rows"]:
        task_row["n_criteria"] = len(rubrics[task_row["task_id"]])
    rows["criteria"] = [
        each for task, rubric in rubrics.items() for each in criteria_of(task, rubric)
    ]
    for name in ("task_rows", "split_members", "checks", "criteria"):
        rows[name] = [each | {"dataset_revision": revision} for each in rows[name]]
    return rows


def criteria_of(task: str, rubric: Rubric) -> list[dict[str, Any]]:
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
    **of_verdict: Any,
) -> Rows:
    """A response to each task, and a verdict on each criterion; further columns of both are given
    by name.
    """
    given = dict(of_response or {})
    rows: Rows = {"responses": [], "verdicts": []}
    for task, values in decisions.items():
        name = "/".join([task, model, str(trial), *map(str, given.values())])
        result = response(task, model, trial, **given) | {"response_id": name}
        rows["responses"].append(result)
        rubric = criteria[task] if criteria else criteria_of(task, rubrics[task])
        for each, value in zip(rubric, values, strict=True):
            cell = "/".join([name, each["criterion_id"], *map(str, of_verdict.values())])
            decided = {"explanation": f"why in {model}: {value}", **of_verdict}
            of_row = {"verdict_id": cell, "dataset_revision": result["dataset_revision"]}
            rows["verdicts"].append(verdict(result, each, value, **decided) | of_row)
    return rows


def score(rubric: Rubric, values: Sequence[float | None]) -> Fraction:
    """Equation 1, in fractions."""
    points = sum(
        (weight * exact(value) for (weight, _), value in zip(rubric, values, strict=True)),
        Fraction(),
    )
    return points / sum(weight for weight, _ in rubric if weight > 0)


def exact(value: float | None) -> Fraction:
    assert value is not None
    return Fraction(value).limit_denominator(1000)


def changes(first: Decisions, second: Decisions) -> list[Fraction]:
    """The score differences of the tasks, second minus first."""
    return [
        score(RUBRICS[task], second[task]) - score(RUBRICS[task], first[task]) for task in first
    ]


def ask(reader: Reader, *names: str, revision: str = REVISION, **options: Any) -> ComparisonResult:
    named = {f"named_{name}": options.pop(name, None) for name in ("models", "judges")}
    dataset = {"source": "unused", "splits": options.pop("splits", ["finance"])}
    models = options.pop("configured", [])
    job = job_on("unused", Path("unused"), dataset=dataset, models=models).model_copy(update=named)
    data = DataRevision(
        name="unused",
        revision=revision,
        splits=("finance",),
    )
    return compare(reader, Comparison(job.looking_up(lambda: data), names, **options))


def apart(reader: Reader, result: ComparisonResult) -> list[dict[str, Any]]:
    """For each difference the counts of its verdicts, with categories, tasks and flips."""
    parts = [taken_apart(reader, result, [each]) for each in result.differences]
    return [part["verdicts"][0] | part for part in parts]
