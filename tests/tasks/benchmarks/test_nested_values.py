"""Rows from exports of tables, whose nested values are JSON in texts."""

import json
from typing import Any

import pytest

from tasks.benchmarks import healthbench, prbench, researchrubrics
from tasks.benchmarks.base import RowError
from tests.tasks.benchmarks.research import research_row
from tests.tasks.dataset.rows import hub_row

HEALTH_ROW = {
    "prompt_id": "h1",
    "prompt": [
        {"role": "user", "content": "It hurts."},
        {"role": "assistant", "content": "Since when?"},
        {"role": "user", "content": "Yesterday. [1, 2]"},
    ],
    "rubrics": [
        {
            "criterion": 'Asks "where".',
            "points": 5,
            "tags": ["axis:accuracy", "level:example"],
        }
    ],
    "example_tags": ["theme:hedging", "loose"],
}
ROWS = {
    "prbench": (prbench.BENCHMARK, hub_row("t")),
    "healthbench": (healthbench.BENCHMARK, HEALTH_ROW),
    "researchrubrics": (researchrubrics.BENCHMARK, research_row(1)),
}


def flat(value: Any) -> Any:
    """A value as an export of a table has it."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


@pytest.mark.parametrize("name", ROWS)
def test_a_row_whose_nested_values_are_json_in_texts_is_the_same_task(name):
    benchmark, row = ROWS[name]

    task = benchmark.parse_row({column: flat(value) for column, value in row.items()})

    assert task.criteria
    assert task == benchmark.parse_row(row)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_whose_criteria_are_json_in_texts_is_the_same_task(name):
    benchmark, row = ROWS[name]
    column = "rubric" if name == "prbench" else "rubrics"
    criteria = [flat(criterion) for criterion in row[column]]

    task = benchmark.parse_row(row | {column: criteria})

    assert task == benchmark.parse_row(row)


def test_texts_that_look_like_json_stay_texts():
    title = '{"a": [1]}'
    criterion = {
        "criterion": title,
        "points": 5,
        "tags": [],
    }
    messages = [{"role": "user", "content": "[1, 2]"}]

    task = healthbench.parse_row(
        HEALTH_ROW | {"prompt": messages, "rubrics": json.dumps([criterion])}
    )

    assert task.criteria[0].title == title
    assert task.conversation[0].prompt == "[1, 2]"


def test_a_conversation_that_is_no_list_of_messages_is_refused():
    with pytest.raises(RowError, match="role None"):
        healthbench.parse_row(HEALTH_ROW | {"prompt": "It hurts."})
