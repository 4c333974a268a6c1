"""Every recipe of the cookbook has an answer on a small world in which everything happens that one asks about."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from sql.cookbook import recipes
from tasks.benchmarks.prbench import SEVERITIES
from tests.kit import EPOCH, admitted, aggregated, criterion, response, row, verdict
from warehouse import Reader

TASKS = [f"t{number:02d}" for number in range(12)]
MODELS = ("ada", "bell", "curie", "dirac")
WEIGHTS = (9.0, 5.0, 2.0, -2.0, -9.0)


def small_world(seed: int) -> dict[str, list[dict[str, Any]]]:
    dice = random.Random(seed)
    rows = admitted(TASKS, n_criteria=len(WEIGHTS), topic="A topic", positive_weight=16.0, negative_weight=-11.0)
    rows["conversation_turns"] = [
        row("conversation_turns", task_id=task, position=0, prompt="Why?", reference_texts=[]) for task in TASKS
    ]
    rubrics = {task: [_criterion(task, place, weight) for place, weight in enumerate(WEIGHTS)] for task in TASKS}
    responses = [
        response(task, model, trial, chars_alnum=dice.randint(100, 900), completion_tokens=dice.randint(50, 300),
                 cost_usd=0.01)
        for task in TASKS for model in MODELS for trial in (1, 2)
    ]  # fmt: skip
    verdicts = []
    for answer in responses:
        for item in rubrics[answer["task_id"]]:
            # The first criterion of the first task is out of reach.
            truth = dice.random() < 0.6 and item["criterion_id"] != "t00-c0"
            for judge, source in (("a-judge", "judged"), ("b-judge", "judged"), ("expert", "imported")):
                said = truth if item["criterion_id"] == "t00-c0" or dice.random() < 0.8 else not truth
                verdicts.append(verdict(answer, item, float(said), judge=judge, source=source, cost_usd=0.001))
    for failed in (verdicts[-1], verdicts[-4]):  # the expert's last two
        failed |= {"status": "timeout", "value": None, "error": "no answer within 60 s"}
    selected = [
        row("hard_subset", selection_id="s", field="Finance", task_id=task, rank=place, mean_score=0.1, n_models=4,
            selected_at=EPOCH)
        for place, task in enumerate(TASKS[:6], start=1)
    ]  # fmt: skip
    bands = [
        row("severities", severity=name, min_weight=low, max_weight=high) for name, (low, high) in SEVERITIES.items()
    ]
    evidence = [
        row("evidence", verdict_id=verdicts[0]["verdict_id"], response_id=verdicts[0]["response_id"], task_id="t00",
            criterion_id="t00-c0", round=1, chunk_number=1, n_chunks=1, first_char=0, n_chars=9, status="ok",
            evidence=["It says so."])
    ]  # fmt: skip
    looks = [
        row("stopping_looks", stopping_id="s", score_name="score", model="ada", compared_model="bell",
            compared_vintage="base", block=block, decision=decision, mean_difference=0.1, n_tasks_evaluated=20 * block,
            n_tasks_planned=60)
        for block, decision in ((1, "open"), (2, "different"))
    ]  # fmt: skip
    return rows | {
        "evidence": evidence, "stopping_looks": looks,
        "criteria": [item for rubric in rubrics.values() for item in rubric], "responses": responses,
        "verdicts": verdicts, "hard_subset": selected, "severities": bands,
    }  # fmt: skip


def _criterion(task: str, place: int, weight: float) -> dict[str, Any]:
    severity = next(name for name, (low, high) in SEVERITIES.items() if low <= weight <= high)
    return criterion(task, place, weight, "Accuracy") | {"severity": severity}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with aggregated(tmp_path_factory.mktemp("cookbook"), small_world(seed=7)).reader() as opened:
        yield opened


def test_there_are_at_least_fifteen_recipes() -> None:
    assert len(recipes()) >= 15


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_every_recipe_has_an_answer(reader: Reader, recipe: Any) -> None:
    columns, rows = reader.table(recipe.query)

    assert rows
    assert len(columns) == len(set(columns))
