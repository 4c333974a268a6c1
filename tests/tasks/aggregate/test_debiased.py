"""Debiased scores: each column against plain Python, and what is shown instead of a missing
figure.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tests.kit import aggregated, differing, job_on, rows_in, written
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld, without_labels_on
from warehouse import Reader

Row = dict[str, Any]


@pytest.fixture(scope="module")
def labelled() -> LabelledWorld:
    return LabelledWorld(seed=5)


@pytest.fixture(scope="module")
def reader(labelled: LabelledWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with aggregated(tmp_path_factory.mktemp("debiased"), labelled.tables()).reader() as opened:
        yield opened


def figure(reader: Reader, model: str, score: str = "score", category: str = "") -> Row:
    query = "select * from debiased_scores where model = ? and score_name = ? and label = ?"
    (actual,) = reader.rows(query, [model, score, category])
    return actual


@pytest.mark.parametrize("model", ["ada", "bob"])
@pytest.mark.parametrize(
    ("score", "category"),
    [
        ("score", ""),
        ("min_normalized", ""),
        ("min_normalized", CATEGORIES[0]),
        ("min_normalized", CATEGORIES[1]),
    ],
)
def test_it_is_that_of_python(
    reader: Reader, labelled: LabelledWorld, model: str, score: str, category: str
) -> None:
    actual = figure(reader, model, score, category)
    expected = labelled.expected(model, score, category or None)

    assert actual["no_figure"] is None
    assert actual["n_people"] == 2
    # The quantiles of two sets of resamples differ by a few hundredths of the interval.
    off = 0.04 * (expected["labels_alone_ci_high"] - expected["labels_alone_ci_low"])
    assert (
        differing(
            {1: {name: value for name, value in expected.items() if "_ci_" not in name}},
            {1: actual},
        )
        == []
    )
    assert (
        differing(
            {1: {name: value for name, value in expected.items() if "_ci_" in name}},
            {1: actual},
            off,
        )
        == []
    )
    assert actual["judge_ci_low"] < actual["judge_score"] < actual["judge_ci_high"]
    if (score, category) == ("score", ""):
        assert (
            actual["expected_score_ci_low"]
            < actual["expected_score"]
            < actual["expected_score_ci_high"]
        )


def test_a_label_that_no_sheet_drew_is_beside_and_not_in_the_figure(
    reader: Reader, labelled: LabelledWorld
) -> None:
    _, model, *_ = labelled.unsampled
    other = {"ada": "bob", "bob": "ada"}[model]

    error = labelled.decided["eva"][labelled.unsampled] - labelled.judge[labelled.unsampled]
    for name, wanted in ((model, (1, error)), (other, (0, None))):
        actual = figure(reader, name)
        assert wanted == (actual["n_unsampled_labels"], actual["unsampled_mean_error"])


@pytest.mark.slow
def test_binary_labels_correct_only_the_binary_reading(
    labelled: LabelledWorld, tmp_path: Path
) -> None:
    tables = dict(labelled.tables())
    steps = {"judged": {"grading": "ternary"}, "imported": {}}
    tables["verdicts"] = [each | steps[each["source"]] for each in tables["verdicts"]]
    expected = labelled.expected("ada")
    query = (
        "select grading, debiased from debiased_scores where model = 'ada' and score_name = 'score'"
        " and label = ''"
    )
    actual = rows_in(aggregated(tmp_path, tables).root, query)

    assert [row["grading"] for row in actual] == ["ternary_as_binary"]
    assert pytest.approx(expected["debiased"]) == actual[0]["debiased"]


@pytest.mark.slow
def test_a_sheet_that_left_tasks_out_gives_no_figure_and_the_reason(
    labelled: LabelledWorld, tmp_path: Path
) -> None:
    tables = dict(labelled.tables())
    for sheet in tables["label_sheets"]:
        sheet["covered_responses"] = [
            each for each in sheet["covered_responses"] if not each.startswith("t1/")
        ]
    with aggregated(tmp_path, tables).reader() as reader:
        actual = figure(reader, "ada")

    assert actual["no_figure"] == "no sheet covers 1 of its 60 tasks"
    assert actual["debiased"] is None
    assert pytest.approx(labelled.expected("ada")["judge_score"]) == actual["judge_score"]


@pytest.mark.slow
def test_a_sheet_counts_for_nothing_once_a_label_that_it_took_as_known_is_gone(
    tmp_path: Path,
) -> None:
    """The second sheet left out verdicts with labels of the first; the first sheet covers
    everything alone.
    """
    world = LabelledWorld(seed=5)
    gone = next(cell for cell in world.known if cell[1] == "ada")
    for decided in world.decided.values():
        decided.pop(gone, None)
    tables = world.tables()
    world.decided = {
        person: {c: v for c, v in decided.items() if c in world.first}
        for person, decided in world.decided.items()
    }
    world.second = {}
    world.known = []
    expected = world.expected("ada")
    with aggregated(tmp_path, tables).reader() as reader:
        actual = figure(reader, "ada")

    assert expected["n_labels"] == actual["n_labels"]
    assert pytest.approx(expected["debiased"]) == actual["debiased"]
    assert actual["n_unsampled_labels"] > 50


@pytest.mark.slow
def test_models_and_categories_without_a_label_are_shown_to_have_none(
    labelled: LabelledWorld, tmp_path: Path
) -> None:
    tables = without_labels_on(labelled.tables(), {"bob"}, {0, 2, 4})
    with aggregated(tmp_path, tables).reader() as reader:
        rows = reader.rows("select * from debiased_scores where score_name = 'min_normalized'")
        pairs = reader.rows(
            "select * from debiased_differences where score_name = 'min_normalized'"
        )
        stored = reader.rows(
            "from intermediate.debiased_figures join measures using (figure_id, basis)"
        )

    actual = {(row["model"], row["label"]): row for row in rows}
    for key in [("bob", ""), *(("bob", each) for each in CATEGORIES), ("ada", CATEGORIES[0])]:
        assert actual[key]["no_figure"] == "no label"
        assert actual[key]["n_labels"] == 0
        assert actual[key]["judge_score"] is not None
    assert actual["ada", CATEGORIES[1]]["n_labels"] > 50
    assert {
        row["no_figure"] for row in pairs if row["n_labels_a"] == 0 or row["n_labels_b"] == 0
    } == {"no label"}
    assert all(row["judge_difference"] is not None for row in pairs)
    assert all(row["n_labels"] for row in stored)


@pytest.mark.slow
def test_a_second_judge_whose_verdicts_were_imported_labels_nothing(
    labelled: LabelledWorld, tmp_path: Path
) -> None:
    tables = {
        name: rows for name, rows in labelled.tables().items() if not name.startswith("label")
    }
    judged = [each for each in tables["verdicts"] if each["source"] != "imported"]
    others = [
        each
        | {
            "verdict_id": f"{name}/{each['verdict_id']}",
            "judge": name,
            "source": "imported",
            "judge_config_hash": "imported",
            "template_hash": "imported",
            "import_batch": name,
        }
        for name in ("a-judge-elsewhere", "another-elsewhere")
        for each in judged
    ]
    written(tmp_path, {**tables, "verdicts": [*judged, *others]})
    assert "debiased" not in aggregate(job_on("sample", tmp_path)).line
    assert rows_in(tmp_path, "select * from debiased_scores") == []
    assert rows_in(tmp_path, "from measures where measure = 'debiased'") == []
