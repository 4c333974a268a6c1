"""Debiased scores: each column against plain Python, and what is shown instead of a missing
figure.
"""

from collections.abc import Iterator

import pytest

from tests.kit import Row, aggregated, differing, few_published, rows_in
from tests.tasks.aggregate.debiased_oracle import (
    CATEGORIES,
    LabelledWorld,
    without_labels_on,
)
from tests.tasks.report.synthetic.resamples import few_resamples
from warehouse import Reader


@pytest.fixture(scope="module", autouse=True)
def _few_measures() -> Iterator[None]:
    """Measure only debiased scores, and the judge's scores with few resamples."""
    names = ("debiased_scores", "debiased_differences")
    with few_published(*names), few_resamples(200):
        yield


@pytest.fixture(scope="module")
def labelled() -> LabelledWorld:
    return LabelledWorld(seed=5)


@pytest.fixture(scope="module")
def reader(labelled: LabelledWorld, tmp_path_factory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("debiased")
    with aggregated(folder, labelled.tables()).reader() as opened:
        yield opened


def figure_of(
    reader: Reader, model: str, score_name: str = "score", category: str = ""
) -> Row:
    (figure,) = reader.select(
        "debiased_scores", model=model, score_name=score_name, label=category
    )
    return figure


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
def test_a_debiased_score_is_that_of_plain_python(
    reader, labelled, model, score, category
):
    figure = figure_of(reader, model, score, category)

    expected = labelled.expected(model, score, category or None)
    ends = {name: expected.pop(name) for name in list(expected) if "_ci_" in name}
    # The quantiles of two sets of resamples differ by a few hundredths of the interval.
    tolerance = 0.04 * (ends["labels_alone_ci_high"] - ends["labels_alone_ci_low"])
    assert figure["no_figure"] is None
    assert figure["n_people"] == 2
    assert differing({model: expected}, {model: figure}) == []
    assert differing({model: ends}, {model: figure}, tolerance) == []
    assert figure["judge_ci_low"] < figure["judge_score"] < figure["judge_ci_high"]


@pytest.mark.parametrize("model", ["ada", "bob"])
def test_an_expected_score_lies_in_its_interval(reader, model):
    figure = figure_of(reader, model)

    assert figure["expected_score_ci_low"] < figure["expected_score"]
    assert figure["expected_score"] < figure["expected_score_ci_high"]


def test_a_label_that_no_sheet_drew_is_beside_and_not_in_the_figure(reader, labelled):
    cell = labelled.unsampled
    model_without = {"ada": "bob", "bob": "ada"}[cell.model]

    figure = figure_of(reader, cell.model)
    figure_without = figure_of(reader, model_without)

    assert figure["n_unsampled_labels"] == 1
    assert figure["unsampled_mean_error"] == 1.0 - 2.0 * labelled.judge[cell]
    assert figure_without["n_unsampled_labels"] == 0
    assert figure_without["unsampled_mean_error"] is None


@pytest.mark.slow
def test_binary_labels_correct_only_the_binary_reading(labelled, tmp_path):
    tables = labelled.tables()
    for verdict in tables["verdicts"]:
        if verdict["source"] == "judged":
            verdict["grading"] = "ternary"

    with aggregated(tmp_path, tables).reader() as reader:
        figure = figure_of(reader, "ada")

    assert figure["grading"] == "ternary_as_binary"
    assert figure["debiased"] == pytest.approx(labelled.expected("ada")["debiased"])


@pytest.mark.slow
def test_a_sheet_that_left_tasks_out_gives_no_figure_and_the_reason(
    labelled, tmp_path
):
    tables = labelled.tables()
    for sheet in tables["label_sheets"]:
        sheet["covered_responses"] = [
            response_id
            for response_id in sheet["covered_responses"]
            if not response_id.startswith("t1/")
        ]

    with aggregated(tmp_path, tables).reader() as reader:
        figure = figure_of(reader, "ada")

    assert figure["no_figure"] == "no sheet covers 1 of its 60 tasks"
    assert figure["debiased"] is None
    assert figure["judge_score"] == pytest.approx(
        labelled.expected("ada")["judge_score"]
    )


@pytest.mark.slow
def test_a_sheet_counts_for_nothing_once_a_label_that_it_took_as_known_is_gone(
    tmp_path,
):
    """The second sheet left out verdicts with labels of the first; the first sheet covers
    everything alone.
    """
    world = LabelledWorld(seed=5)
    removed = next(cell for cell in world.known if cell.model == "ada")
    for labels in world.decided.values():
        labels.pop(removed, None)
    tables = world.tables()

    with aggregated(tmp_path, tables).reader() as reader:
        figure = figure_of(reader, "ada")

    for person, labels in world.decided.items():
        world.decided[person] = {
            cell: value for cell, value in labels.items() if cell in world.first_sheet
        }
    world.second_sheet = {}
    world.known = []
    expected = world.expected("ada")
    assert figure["n_labels"] == expected["n_labels"]
    assert figure["debiased"] == pytest.approx(expected["debiased"])
    assert figure["n_unsampled_labels"] > 50


@pytest.fixture(scope="module")
def partly_labelled(labelled: LabelledWorld, tmp_path_factory) -> Iterator[Reader]:
    """A warehouse without labels of one model, and on the criteria of one category."""
    tables = without_labels_on(labelled.tables(), {"bob"}, {0, 2, 4})
    with aggregated(tmp_path_factory.mktemp("partly"), tables).reader() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "category"),
    [
        ("bob", ""),
        ("ada", CATEGORIES[0]),
    ],
)
def test_a_model_or_category_without_a_label_is_shown_to_have_none(
    partly_labelled, model, category
):
    figure = figure_of(partly_labelled, model, "min_normalized", category)

    assert figure["no_figure"] == "no label"
    assert figure["n_labels"] == 0
    assert figure["judge_score"] is not None


@pytest.mark.slow
def test_a_category_with_labels_has_a_figure_beside_one_without(partly_labelled):
    figure = figure_of(partly_labelled, "ada", "min_normalized", CATEGORIES[1])

    assert figure["n_labels"] > 50


@pytest.mark.slow
def test_a_difference_from_a_model_without_a_label_is_shown_to_have_none(
    partly_labelled,
):
    differences = partly_labelled.select(
        "debiased_differences", score_name="min_normalized"
    )

    unlabelled = [
        row for row in differences if 0 in (row["n_labels_a"], row["n_labels_b"])
    ]
    assert {row["no_figure"] for row in unlabelled} == {"no label"}
    assert None not in {row["judge_difference"] for row in differences}


@pytest.mark.slow
def test_no_measure_of_a_figure_without_labels_is_stored(partly_labelled):
    n_unlabelled = partly_labelled.value(
        "select count(*) from intermediate.debiased_figures join measures using (figure_id, basis)"
        " where n_labels = 0"
    )

    assert n_unlabelled == 0


@pytest.mark.slow
def test_a_second_judge_whose_verdicts_were_imported_labels_nothing(
    labelled, tmp_path
):
    tables = {
        name: rows
        for name, rows in labelled.tables().items()
        if not name.startswith("label")
    }
    verdicts = [
        verdict for verdict in tables["verdicts"] if verdict["source"] != "imported"
    ]
    tables["verdicts"] = list(verdicts)
    for judge in ("a-judge-elsewhere", "another-elsewhere"):
        for verdict in verdicts:
            imported = verdict | {
                "verdict_id": f"{judge}/{verdict['verdict_id']}",
                "judge": judge,
                "source": "imported",
                "judge_config_hash": "imported",
                "template_hash": "imported",
                "import_batch": judge,
            }
            tables["verdicts"].append(imported)

    aggregated(tmp_path, tables)

    assert rows_in(tmp_path, "from debiased_scores") == []
    assert rows_in(tmp_path, "from measures where measure = 'debiased'") == []
