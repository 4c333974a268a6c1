"""Debiased scores, each column computed again in plain Python, and what is shown where there is no figure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tests.builders import job_on
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld
from warehouse import Reader, Warehouse

Row = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> LabelledWorld:
    return LabelledWorld(seed=5)


def measured(tables: Any, folder: Path) -> Reader:
    warehouse = Warehouse(folder)
    for table_name, rows in tables.items():
        warehouse.write(table_name, rows)
    aggregate(job_on("sample", folder))
    return warehouse.reader()


@pytest.fixture(scope="module")
def reader(made: LabelledWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with measured(made.tables(), tmp_path_factory.mktemp("debiased")) as opened:
        yield opened


def figure(reader: Reader, model: str, score: str = "score", category: str = "") -> Row:
    (found,) = reader.rows(
        "select * from debiased_scores where model = ? and score_name = ? and label = ?", [model, score, category]
    )
    return found


@pytest.mark.parametrize("model", ["ada", "bob"])
@pytest.mark.parametrize(("score", "category"), [
    ("score", ""), ("min_normalized", ""), ("min_normalized", CATEGORIES[0]), ("min_normalized", CATEGORIES[1]),
])  # fmt: skip
def test_a_debiased_score_is_what_plain_python_makes_of_the_labels(
    reader: Reader, made: LabelledWorld, model: str, score: str, category: str
) -> None:
    found, expected = figure(reader, model, score, category), made.expected(model, score, category or None)

    assert found["no_figure"] is None
    assert found["n_labels"] == expected.n_labels
    assert found["n_tasks_labelled"] == expected.n_tasks_labelled
    assert found["n_people"] == 2
    assert found["judge_score"] == pytest.approx(expected.judge_score)
    assert found["judge_power"] == pytest.approx(expected.power)
    assert found["effective_labels"] == pytest.approx(expected.effective)
    assert found["debiased"] == pytest.approx(expected.debiased)
    assert found["debiased_ci_high"] - found["debiased"] == pytest.approx(expected.half)
    assert found["debiased"] - found["debiased_ci_low"] == pytest.approx(expected.half)
    assert found["labels_alone"] == pytest.approx(expected.alone)
    assert found["labels_alone_ci_high"] - found["labels_alone"] == pytest.approx(expected.alone_half)
    assert found["judge_ci_low"] < found["judge_score"] < found["judge_ci_high"]


def test_a_label_that_no_sheet_drew_is_beside_and_not_in_the_figure(reader: Reader, made: LabelledWorld) -> None:
    _, model, *_ = made.unsampled
    other = {"ada": "bob", "bob": "ada"}[model]

    assert figure(reader, model)["n_unsampled_labels"] == 1
    assert (
        figure(reader, model)["unsampled_mean_error"]
        == made.decided["eva"][made.unsampled] - made.judge[made.unsampled]
    )
    assert figure(reader, other)["n_unsampled_labels"] == 0
    assert figure(reader, other)["unsampled_mean_error"] is None


@pytest.mark.slow
def test_labels_in_two_steps_correct_a_judge_of_three_steps_only_where_it_is_read_in_two(
    made: LabelledWorld, tmp_path: Path
) -> None:
    tables = dict(made.tables())
    tables["verdicts"] = [
        each | ({} if each["source"] == "imported" else {"grading": "ternary"}) for each in tables["verdicts"]
    ]
    expected = made.expected("ada")
    with measured(tables, tmp_path) as reader:
        found = reader.rows(
            "select grading, debiased from debiased_scores where model = 'ada' and score_name = 'score' and label = ''"
        )

    assert ["ternary_as_binary"] == [row["grading"] for row in found]
    assert found[0]["debiased"] == pytest.approx(expected.debiased)


@pytest.mark.slow
def test_a_sheet_that_left_tasks_out_gives_no_figure_and_the_reason(made: LabelledWorld, tmp_path: Path) -> None:
    tables = dict(made.tables())
    tables["label_sheets"] = [
        each | {"covered_responses": [name for name in each["covered_responses"] if not name.startswith("t1/")]}
        for each in tables["label_sheets"]
    ]
    with measured(tables, tmp_path) as reader:
        found = figure(reader, "ada")

    assert found["no_figure"] == "no sheet covers 1 of its 60 tasks"
    assert found["debiased"] is None
    assert found["judge_score"] == pytest.approx(made.expected("ada").judge_score)
