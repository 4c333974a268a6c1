"""Which earlier vintage a night is compared with: the last one that is a measure for it, judging by judging."""

from typing import Any

import sql
from tests.kit import REVISION, Fill, admitted, at, criterion, response, row, verdict

CRITERIA = [criterion("t", i, 5.0) for i in range(10)]
NIGHTS = ["base", "2026-11-20", "2026-11-21", "2026-11-22"]


def answered(vintage: str, model: str = "fresh", **values: Any) -> dict[str, Any]:
    return response("t", model, vintage=vintage, created_at=at(NIGHTS.index(vintage)), **values) | {
        "response_id": f"{model} {vintage}"
    }


def judged(answer: dict[str, Any], n: int = 10, **values: Any) -> list[dict[str, Any]]:
    found = [verdict(answer, each, 1.0, **values) for each in CRITERIA[:n]]
    template = values.get("template_hash", "")
    return [each | {"verdict_id": f"{each['verdict_id']} {template}"} for each in found]


def pairs(published: Fill, answers: list[dict[str, Any]], verdicts: list[dict[str, Any]], **more: Any) -> list[Any]:
    rows = {
        **admitted(["t"], n_criteria=10), "criteria": CRITERIA, "responses": answers, "verdicts": verdicts,
        "runs": [row("runs", run_id=night, night=night) for night in NIGHTS[1:]], **more,
    }  # fmt: skip
    asked = {"benchmark": "prbench", "revision": REVISION, "night": "2026-11-22"}
    found = published(rows).rows(sql.read("queries/nightly/pairs"), asked)
    return [(each["template_hash"], each["last_vintage"]) for each in found]


def test_a_night_is_compared_with_the_one_before(published: Fill) -> None:
    answers = [answered(night) for night in NIGHTS]
    verdicts = [each for answer in answers for each in judged(answer)]
    assert pairs(published, answers, verdicts) == [("a-template", "2026-11-21")]


def test_a_night_that_was_answered_and_hardly_judged_is_no_measure(published: Fill) -> None:
    answers = [answered(night) for night in NIGHTS]
    verdicts = [*judged(answers[1]), *judged(answers[2], 4), *judged(answers[3])]
    assert pairs(published, answers, verdicts) == [("a-template", "2026-11-20")]


def test_a_night_that_was_judged_by_half_is_one(published: Fill) -> None:
    answers = [answered(night) for night in NIGHTS]
    verdicts = [*judged(answers[1]), *judged(answers[2], 5), *judged(answers[3])]
    assert pairs(published, answers, verdicts) == [("a-template", "2026-11-21")]


def test_each_judging_has_its_own_last_night_and_the_first_of_one_has_none(published: Fill) -> None:
    answers = [answered(night) for night in NIGHTS]
    verdicts = [
        *judged(answers[1]), *judged(answers[3]), *judged(answers[2], template_hash="newer"),
        *judged(answers[3], template_hash="newer"), *judged(answers[3], template_hash="newest"),
    ]  # fmt: skip
    assert pairs(published, answers, verdicts) == [
        ("a-template", "2026-11-20"), ("newer", "2026-11-21"), ("newest", None),
    ]  # fmt: skip


def test_the_pinned_sampling_stands_in_for_the_first_night_and_vintages_of_ones_own_do_not(published: Fill) -> None:
    trial = answered("2026-11-21") | {"vintage": "an-experiment"}
    answers = [answered("base"), trial, answered("2026-11-22")]
    verdicts = [each for answer in answers for each in judged(answer)]
    assert pairs(published, answers, verdicts) == [("a-template", "base")]


def test_a_night_in_which_the_judge_had_drifted_is_no_measure(published: Fill) -> None:
    answers = [answered(night) for night in NIGHTS]
    verdicts = [each for answer in answers for each in judged(answer)]
    same = {"set_id": "set", "response_id": "r", "criterion_id": "c", "criterion_hash": "h"}
    night = "2026-11-21"
    drift = {
        "control_set": [row("control_set", **same, verdict_id="v", task_id="t", model="m", first_value=1.0)],
        "control_verdicts": [row("control_verdicts", **same, judge_vintage=night, status="unmet", value=0.0)],
        "control_limits": [row("control_limits", set_id="set", night=night, n_decided=1, n_agreeing=0, cause="bar")],
    }
    assert pairs(published, answers, verdicts, **drift) == [("a-template", "2026-11-20")]
