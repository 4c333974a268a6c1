"""The judges' page where little is decided: what is not defined is missing, and what never happened is 0."""

import math
from pathlib import Path

import pytest

from tasks.report.content.edition import Edition
from tasks.report.pages.judges import JUDGES as PAGE
from tests.builders import admitted, criterion, response, row, verdict
from tests.tasks.report.made_up.editions import edition_of, rows_of

FIGURES = {figure.name: figure for figure in PAGE.figures}


@pytest.fixture
def alike(tmp_path: Path) -> Edition:
    """Two graders who call everything met, of a judge with two repetitions; of one model."""
    criteria = [criterion("t1", i, 5.0) for i in range(4)]
    answer = response("t1")
    verdicts = [
        verdict(answer, each, 1.0, judge=judge, judge_trial=trial)
        for each in criteria
        for judge, trial in (("ada", 1), ("ada", 2), ("bell", 1))
    ]
    verdicts.append(verdict(answer, criterion("t1", 4, 5.0), None, judge="ada"))
    return edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=5), "criteria": [*criteria, criterion("t1", 4, 5.0)], "responses": [answer],
        "verdicts": verdicts,
    })  # fmt: skip


def test_a_kappa_that_is_not_defined_stays_missing(alike: Edition) -> None:
    rows = rows_of(FIGURES["judge_agreement"], alike)

    pairs = [(each["grader_a"], each["grader_b"], each["n"]) for each in rows]
    assert pairs == [("ada", "ada#2", 4), ("ada", "bell", 4)]
    assert all(each["kappa"] is None for each in rows)


def test_a_failed_verdict_is_no_decision_in_a_cell(alike: Edition) -> None:
    rows = rows_of(FIGURES["judge_confusion"], alike)

    assert [(each["says_a"], each["says_b"], each["n"], each["share"]) for each in rows] == [("met", "met", 4, 1.0)] * 2


def test_of_a_single_model_no_judge_is_partial_to_it(tmp_path: Path) -> None:
    criteria = [criterion("t1", 0, 4.0), criterion("t1", 1, -2.0)]
    answer = response("t1")
    given = {"ada": (1.0, 1.0), "bell": (1.0, 0.0)}
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=2), "criteria": criteria, "responses": [answer],
        "verdicts": [
            verdict(answer, each, value, judge=judge)
            for judge, values in given.items()
            for each, value in zip(criteria, values, strict=True)
        ],
    })  # fmt: skip

    rows = rows_of(FIGURES["judge_favours"], edition)

    assert [(each["grader"], each["difference"], each["favour"]) for each in rows] == [
        ("ada", pytest.approx(-0.5), None), ("bell", pytest.approx(0.5), None),
    ]  # fmt: skip


def test_what_meets_never_counts_zero_times(tmp_path: Path) -> None:
    criteria = [criterion("t1", i, 1.0) for i in range(3)]
    answer = response("t1")
    given = {"ada": (1.0, 0.0, 0.0), "bell": (0.5, 0.0, 0.0)}
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=3), "criteria": criteria, "responses": [answer],
        "verdicts": [
            verdict(answer, each, value, judge=judge, grading="ternary")
            for judge, values in given.items()
            for each, value in zip(criteria, values, strict=True)
        ],
    })  # fmt: skip

    rows = [each for each in rows_of(FIGURES["judge_confusion"], edition) if each["grader_a"] == "ada"]

    cells = {(each["says_a"], each["says_b"]): each["n"] for each in rows}
    words = ("met", "partly met", "not met")
    assert cells == {(a, b): 0 for a in words for b in words} | {("met", "partly met"): 1, ("not met", "not met"): 2}
    assert math.fsum(each["share"] for each in rows) == pytest.approx(1.0)


def test_a_control_set_of_another_template_is_another_line(tmp_path: Path) -> None:
    sets = {"set-one": "template-one", "set-two": "template-two"}
    same = {"response_id": "t1/a-model/1", "task_id": "t1", "criterion_id": "t1-c0", "criterion_hash": "a-hash"}
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=1),
        "control_set": [
            row("control_set", set_id=each, verdict_id=each, template_hash=template, first_value=1.0, **same)
            for each, template in sets.items()
        ],
        "control_verdicts": [
            row(
                "control_verdicts", set_id=each, judge_vintage="night", template_hash=template, status="met",
                value=1.0 if each == "set-one" else 0.0, **same,
            )
            for each, template in sets.items()
        ],
    })  # fmt: skip

    rows = rows_of(FIGURES["judge_drift"], edition)

    assert [(each["grader"], each["agreement"]) for each in rows] == [
        ("a-judge set set-one", 1.0), ("a-judge set set-two", 0.0),
    ]  # fmt: skip
    assert all(each["lower_limit"] is None and each["min_agreement"] is None for each in rows)
    assert len(FIGURES["judge_drift"].plots(rows)) == 2  # type: ignore[misc]
