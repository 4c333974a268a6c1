"""Vintages beside each other: which is a model's latest, how the latest are ranked, and how a score went on."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import Rows, admitted, at, criterion, response, verdict
from warehouse import Reader

TASKS = [f"t{i}" for i in range(12)]
BEGUN = {"base": 0.0, "2026-11-20": 100.0, "2026-11-21": 200.0, "2026-11-22": 300.0}
SAMPLED = {
    "pinned": ["base"],
    "fresh": ["base", "2026-11-20", "2026-11-21"],
    "newest": ["2026-11-21", "2026-11-22"],
    "late": ["2026-11-22"],
}
"""Model -> the vintages that it was sampled in."""


@pytest.fixture(scope="module")
def values() -> dict[tuple[str, str, str], list[float]]:
    """(model, vintage, task) -> the decisions on its four criteria; `late` lacks two tasks."""
    dice = random.Random(20261122)
    return {
        (model, vintage, task): [float(dice.random() < 0.5) for _ in range(4)]
        for model, vintages in SAMPLED.items()
        for vintage in vintages
        for task in (TASKS[2:] if model == "late" else TASKS)
    }


@pytest.fixture
def reader(values: dict[tuple[str, str, str], list[float]], published: Callable[[Rows], Reader]) -> Reader:
    criteria = {task: [criterion(task, i, 5.0) for i in range(4)] for task in TASKS}
    rows: dict[str, list[dict[str, Any]]] = {**admitted(TASKS, n_criteria=4), "responses": [], "verdicts": []}
    rows["criteria"] = [each for of_task in criteria.values() for each in of_task]
    for (model, vintage, task), decisions in values.items():
        answer = response(task, model, vintage=vintage, created_at=at(BEGUN[vintage])) | {
            "response_id": f"{task}/{model}/{vintage}"
        }
        rows["responses"].append(answer)
        rows["verdicts"] += [verdict(answer, c, value) for c, value in zip(criteria[task], decisions, strict=True)]
    return published(rows)


def mean(values: dict[tuple[str, str, str], list[float]], model: str, vintage: str, tasks: list[str]) -> float:
    return sum(sum(values[model, vintage, task]) / 4 for task in tasks) / len(tasks)


def test_the_latest_vintage_of_every_model_is_known(reader: Reader) -> None:
    rows = reader.rows("select model, vintage from leaderboard where is_primary and is_latest order by model")
    assert [(row["model"], row["vintage"]) for row in rows] == [
        (model, vintages[-1]) for model, vintages in sorted(SAMPLED.items())
    ]


def test_the_latest_are_ranked_together_on_the_tasks_that_all_of_them_have(
    reader: Reader, values: dict[tuple[str, str, str], list[float]]
) -> None:
    rows = reader.rows("select model, latest_rank, n_tasks_latest_ranked from leaderboard where is_primary")
    found = {row["model"]: row["latest_rank"] for row in rows if row["latest_rank"] is not None}
    means = {model: round(mean(values, model, of[-1], TASKS[2:]), 12) for model, of in SAMPLED.items()}
    assert found == {model: 1 + sum(other > of for other in means.values()) for model, of in means.items()}
    assert {row["n_tasks_latest_ranked"] for row in rows} == {10, None}


def test_a_change_below_zero_is_seen_in_the_history(published: Callable[[Rows], Reader]) -> None:
    fault = [criterion("t0", 0, 4.0), criterion("t0", 1, -1.0), criterion("t0", 2, -2.0)]
    decided = {"base": (0.0, 0.0, 1.0), "2026-11-20": (0.0, 1.0, 0.0)}
    rows: Rows = {**admitted(["t0"], n_criteria=3), "criteria": fault, "responses": [], "verdicts": []}
    for vintage, values in decided.items():
        answer = response("t0", vintage=vintage, created_at=at(BEGUN[vintage])) | {"response_id": vintage}
        rows["responses"].append(answer)
        rows["verdicts"] += [verdict(answer, c, value) for c, value in zip(fault, values, strict=True)]
    found = published(rows).rows(
        "select mean_score, change from score_history where is_primary order by first_answered_at"
    )
    assert [(0.0, None), (0.0, 0.25)] == [tuple(row.values()) for row in found]
