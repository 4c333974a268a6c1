"""Public tables say which rows are current, so that nothing is counted twice; a task has the same
names everywhere.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import (
    Row,
    admitted,
    at,
    combined,
    criterion,
    reading,
    response,
    row,
    verdict,
)
from warehouse import Reader

LINES = [criterion("t1", 0, 5.0), criterion("t1", 1, -5.0)]


def night(vintage: str, second: int, **values: Any) -> dict[str, Any]:
    columns = {"vintage": vintage, "created_at": at(second), **values}
    return response("t1", **columns) | {
        "response_id": f"t1/{vintage}/{values.get('model_config_hash', '')}"
    }


def judged(sampled: Row, seconds: int, **values: Any) -> list[Row]:
    name = "/".join(map(str, values.values()))
    verdicts = [
        verdict(sampled, line, 1.0, created_at=at(seconds), **values)
        for line in LINES
    ]
    for judgement in verdicts:
        judgement["verdict_id"] += f"/{name}"
    return verdicts


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Iterator[Reader]:
    """A model on two nights, before that under other parameters; a judge whose template changed;
    another judge.
    """
    earlier_config = night("base", 1, model_config_hash="earlier parameters")
    earlier = night("2026-11-20", 2)
    second = night("2026-11-21", 3)
    rows = {
        "criteria": LINES,
        "responses": [earlier_config, earlier, second],
        "verdicts": [
            *judged(earlier_config, 4),
            *judged(earlier, 5),
            *judged(second, 6, template_hash="earlier template"),
            *judged(second, 7),
            *judged(second, 8, judge="another"),
        ],
    }
    tasks = admitted(["t1"], topic="Tax")
    tasks["split_members"].append(
        row("split_members", split="hard", task_id="t1", position=0)
    )
    with reading(tmp_path_factory.mktemp("current"), tasks, rows) as opened:
        yield opened


@pytest.mark.parametrize("table", ["verdict_details", "scores", "task_scores"])
def test_current_rows_have_one_vintage_and_one_configuration_of_each_label(
    reader, table
):
    rows = reader.rows(
        f"select distinct vintage, model_config_hash, judge, template_hash from {table} where"
        " is_current order by judge"
    )

    assert rows == [
        {
            "vintage": "2026-11-21",
            "model_config_hash": "a-configuration",
            "judge": judge,
            "template_hash": "a-template",
        }
        for judge in ("a-judge", "another")
    ]


def test_the_latest_vintage_of_each_configuration_is_marked_under_one_name(reader):
    tables = (
        "verdict_details",
        "scores",
        "category_scores",
        "task_scores",
        "leaderboard",
        "score_history",
    )
    query = (
        "select distinct vintage from {} where is_latest and judge = 'a-judge' and template_hash ="
        " 'a-template'"
    )

    for table in tables:
        vintages = {row["vintage"] for row in reader.rows(query.format(table))}
        assert vintages == {"base", "2026-11-21"}, table


def test_a_task_has_one_row_with_its_splits_field_and_topic(reader):
    (task,) = reader.rows(
        "select field, topic, splits, mean_score, value from task_scores where is_primary and"
        " is_current and judge = 'a-judge'"
    )

    assert task["field"] == "Finance"
    assert task["topic"] == "Tax"
    assert task["splits"] == ["finance", "hard"]
    assert task["mean_score"] == task["value"]


def test_current_is_what_was_used_last_on_the_revision(tmp_path):
    first_response = night("base", 1, model_config_hash="earlier, and again at last")
    last_response = first_response | {
        "response_id": "last",
        "trial": 2,
        "created_at": at(9),
    }
    response_between = night("base", 5, model_config_hash="in between")
    response_elsewhere = night("base", 1, dataset_revision="another") | {
        "response_id": "another"
    }
    rows = {
        "criteria": LINES,
        "responses": [
            first_response,
            last_response,
            response_between,
            response_elsewhere,
        ],
        "verdicts": [
            *judged(first_response, 10, template_hash="earlier template"),
            *judged(first_response, 11),
            *judged(last_response, 11),
            *judged(response_between, 11),
            *judged(
                response_elsewhere,
                12,
                template_hash="earlier template",
                dataset_revision="another",
            ),
        ],
    }

    with reading(tmp_path, admitted(["t1"]), rows) as opened:
        current = opened.rows(
            "select distinct model_config_hash, template_hash from scores where is_current and"
            " dataset_revision <> 'another'"
        )

    assert current == [
        {
            "model_config_hash": "earlier, and again at last",
            "template_hash": "a-template",
        }
    ]


def test_the_judge_with_most_scored_tasks_is_the_main_one(reader):
    main = reader.rows(
        "select judge, template_hash from judge_configurations where is_main"
    )

    assert main == [{"judge": "a-judge", "template_hash": "a-template"}]


def test_of_configurations_with_equally_many_tasks_the_one_used_last_is_the_main_one(
    tmp_path,
):
    tonight = night("base", 1)
    rows = {
        "criteria": LINES,
        "responses": [tonight],
        "verdicts": [
            *judged(tonight, 2, template_hash="A-template"),
            *judged(tonight, 3),
        ],
    }

    with reading(tmp_path, combined(admitted(["t1"]), rows)) as opened:
        main = opened.rows(
            "select template_hash from judge_configurations where is_main"
        )

    assert main == [{"template_hash": "a-template"}]


def test_a_person_who_labels_is_no_main_judge(tmp_path):
    tonight = night("base", 1)
    rows = {
        "criteria": LINES,
        "responses": [tonight],
        "verdicts": [
            *judged(tonight, 2, judge="a person", source="imported"),
            *judged(tonight, 3, judge="z-judge"),
        ],
        "labellers": [row("labellers", judge="a person", import_batch="a-batch")],
    }

    with reading(tmp_path, combined(admitted(["t1"]), rows)) as opened:
        judges = opened.rows(
            "select judge, is_person, is_main from judge_configurations order by judge"
        )

    assert judges == [
        {"judge": "a person", "is_person": True, "is_main": False},
        {"judge": "z-judge", "is_person": False, "is_main": True},
    ]
