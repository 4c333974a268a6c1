"""Calibration of a judge's probabilities in the marts, on a few decisions that are counted by
hand.
"""

from typing import Any

import pytest

from tests.kit import (
    Rows,
    admitted,
    aggregated,
    combined,
    criterion,
    reading,
    response,
    row,
    rows_in,
    verdict,
)
from warehouse import Reader

RESPONSE = response("t0")
CRITERIA = (criterion("t0", 0, 5, "Accuracy"), criterion("t0", 1, -3, "Utility"))
MET, UNMET = CRITERIA
"""The judge calls the first one met with 95 %, and the second one with 5 %."""


def decided(
    judge: str, values: dict[int, float], **columns: Any
) -> list[dict[str, Any]]:
    """A grader's verdicts, by the index of the criterion."""
    return [
        verdict(RESPONSE, CRITERIA[index], value, judge=judge, **columns)
        for index, value in values.items()
    ]


def rows_with(*graders: list[dict[str, Any]]) -> Rows:
    """A response to one task of two criteria, with a judge's probabilities and others' verdicts."""
    judge = [
        verdict(RESPONSE, MET, 1.0, probability=0.95, confidence=0.95),
        verdict(RESPONSE, UNMET, 0.0, probability=0.05, confidence=0.95),
    ]
    world = {"criteria": list(CRITERIA), "responses": [RESPONSE], "verdicts": judge}
    return combined(
        admitted(["t0"]), world, *({"verdicts": verdicts} for verdicts in graders)
    )


def curve(
    reader: Reader, reference: str, breakdown: str = "all"
) -> dict[tuple[str, int], tuple[int, float, float]]:
    """Return the label and bin of each point, with its number of cases, mean probability and share
    met.
    """
    rows = reader.rows(
        "from calibration_curve where judge = 'a-judge' and reference = ? and breakdown = ?",
        [reference, breakdown],
    )
    return {
        (row["label"], row["bin"]): (
            row["n"],
            row["mean_probability"],
            row["met_share"],
        )
        for row in rows
    }


def test_each_decision_is_counted_once_and_only_under_the_labels_of_its_own_criterion(
    tmp_path,
):
    strong = decided("strong", {0: 0.0, 1: 1.0})

    with reading(tmp_path, rows_with(strong)) as reader:
        all_points = curve(reader, "strong")
        points_by_category = curve(reader, "strong", "category")
        points_by_sign = curve(reader, "strong", "sign")

    assert all_points == {("", 9): (1, 0.95, 0.0), ("", 0): (1, 0.05, 1.0)}
    assert points_by_category == {
        ("Accuracy", 9): (1, 0.95, 0.0),
        ("Utility", 0): (1, 0.05, 1.0),
    }
    assert points_by_sign == {
        ("positive weight", 9): (1, 0.95, 0.0),
        ("negative weight", 0): (1, 0.05, 1.0),
    }


def test_people_together_are_a_reference_in_which_each_decision_of_a_person_counts(
    tmp_path,
):
    eva = decided("eva", {0: 1.0, 1: 0.0}, source="imported")
    bo = decided("bo", {0: 0.0}, source="imported")
    strong = decided("strong", {0: 0.0, 1: 1.0})

    aggregated(tmp_path, rows_with(eva, bo, strong))

    query = """
        from calibration where breakdown = 'all' and judge = 'a-judge' order by reference
    """
    measured = rows_in(tmp_path, query)
    people = measured[0]
    references = [figure["reference"] for figure in measured]
    assert references == ["(people together)", "bo", "eva", "strong"]
    assert people["n"] == 3
    assert people["met_share"] == pytest.approx(1 / 3)
    assert people["brier"] == pytest.approx((0.05**2 + 0.95**2 + 0.05**2) / 3)


def test_one_person_has_no_row_for_people_together(tmp_path):
    eva = decided("eva", {0: 1.0, 1: 0.0}, source="imported")

    with reading(
        tmp_path, rows_with(eva, decided("strong", {0: 0.0, 1: 1.0}))
    ) as reader:
        references = reader.rows(
            "select distinct reference from calibration_curve where judge = 'a-judge' order by 1"
        )

    assert [figure["reference"] for figure in references] == ["eva", "strong"]


def test_a_judge_that_ran_elsewhere_is_not_among_the_people_who_label(tmp_path):
    graders = [
        decided(name, {0: 1.0, 1: 0.0}, source="imported") for name in ("eva", "bo")
    ]
    elsewhere = decided("elsewhere", {0: 0.0, 1: 1.0}, source="imported")
    labellers = {
        "labellers": [
            row("labellers", judge=name, import_batch="b") for name in ("eva", "bo")
        ]
    }

    with reading(tmp_path, rows_with(*graders, elsewhere), labellers) as reader:
        people_points = curve(reader, "(people together)")
        elsewhere_points = curve(reader, "elsewhere")

    assert people_points == {("", 9): (2, 0.95, 1.0), ("", 0): (2, 0.05, 0.0)}
    assert elsewhere_points == {("", 9): (1, 0.95, 0.0), ("", 0): (1, 0.05, 1.0)}
