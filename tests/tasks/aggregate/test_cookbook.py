"""Every recipe of the cookbook has an answer on a small world in which everything happens that one asks about."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from sql.cookbook import recipes
from tests.kit import Rows, aggregated, row
from tests.tasks.aggregate.world import random_world
from warehouse import Reader


def small_world(seed: int) -> Rows:
    dice, rows = random.Random(seed), random_world(seed, n_tasks=12)
    for answer in rows["responses"]:
        answer |= {"chars_alnum": dice.randint(100, 900), "completion_tokens": dice.randint(50, 300), "cost_usd": 0.01}
    for each in rows["verdicts"]:
        each |= {"cost_usd": 0.001, "error": "no answer within 60 s" if each["value"] is None else None}
        if each["criterion_id"] == "t000-c0":  # out of reach
            each |= {"value": 0.0, "status": "unmet"}
    first, labelled = rows["verdicts"][0], [each for each in rows["verdicts"] if each["judge"] == "a-judge"]
    for each in labelled:
        other = {0.0: (1.0, "met"), 1.0: (0.0, "unmet")}.get(each["value"])
        said = dict(zip(("value", "status"), other, strict=True)) if other and dice.random() < 0.2 else {}
        expert = {"verdict_id": f"{each['verdict_id']}/expert", "judge": "expert", "source": "imported"}
        rows["verdicts"].append(each | expert | said)
    rows["conversation_turns"] = [
        row("conversation_turns", task_id=task["task_id"], position=0, prompt="Why?", reference_texts=[])
        for task in rows["task_rows"]
    ]
    rows["evidence"] = [
        row("evidence", **{name: first[name] for name in ("verdict_id", "response_id", "task_id", "criterion_id")},
            round=1, chunk_number=1, n_chunks=1, first_char=0, n_chars=9, status="ok", evidence=["It says so."])
    ]  # fmt: skip
    rows["stopping_looks"] = [
        row("stopping_looks", stopping_id="s", score_name="score", model="ada", compared_model="bell",
            compared_vintage="base", block=block, decision=decision, mean_difference=0.1, n_tasks_evaluated=20 * block,
            n_tasks_planned=60)
        for block, decision in ((1, "open"), (2, "different"))
    ]  # fmt: skip
    return rows


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
