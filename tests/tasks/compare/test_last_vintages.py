"""The vintage that a night is compared with."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.kit import (
    REVISION,
    Fill,
    Row,
    admitted,
    at,
    criterion,
    response,
    row,
    verdict,
)
from warehouse import Reader

CRITERIA = [criterion("t", position, 5.0) for position in range(10)]
VINTAGES = ["base", "2026-11-20", "2026-11-21", "2026-11-22"]
"""The last one is tonight's."""
without_scores = pytest.mark.usefixtures("without_scores")


def response_in(vintage: str) -> Row:
    response_row = response(
        "t",
        vintage=vintage,
        created_at=at(VINTAGES.index(vintage)),
    )
    response_row["response_id"] = vintage
    return response_row


def all_responses() -> list[Row]:
    return [response_in(vintage) for vintage in VINTAGES]


def verdicts_on(
    response_row: Row,
    n_verdicts: int = 10,
    template_hash: str = "a-template",
    judge: str = "a-judge",
) -> list[Row]:
    rows = []
    for criterion_row in CRITERIA[:n_verdicts]:
        verdict_row = verdict(
            response_row,
            criterion_row,
            1.0,
            template_hash=template_hash,
            judge=judge,
            run_id=response_row["vintage"],
        )
        verdict_row["verdict_id"] += f" {template_hash} {judge}"
        rows.append(verdict_row)
    return rows


def state_of_tonight(
    published: Fill,
    responses: list[Row],
    verdicts: Iterable[list[Row]],
    **other_rows: Any,
) -> Reader:
    rows = {
        **admitted(["t"], n_criteria=10),
        "criteria": CRITERIA,
        "responses": responses,
        "verdicts": [row for verdict_rows in verdicts for row in verdict_rows],
        "runs": [
            row("runs", run_id=night, night=night, started_at=at(number))
            for number, night in enumerate(VINTAGES[1:])
        ],
        **other_rows,
    }
    return published(rows)


def last_vintages(
    published: Fill,
    responses: list[Row],
    verdicts: Iterable[list[Row]],
    **other_rows: Any,
) -> list[tuple[str, str | None]]:
    """The template and the last vintage of each model run of tonight."""
    reader = state_of_tonight(published, responses, verdicts, **other_rows)
    parameters = {
        "benchmark": "prbench",
        "dataset_revision": REVISION,
        "vintage": VINTAGES[-1],
    }
    pairs = reader.query("queries/nightly/pairs", parameters)
    return [(pair["template_hash"], pair["last_vintage"]) for pair in pairs]


@pytest.mark.usefixtures("only_leaderboard")
def test_a_night_is_compared_with_a_vintage_at_the_bar_rather_than_with_a_later_one_below(
    published,
):
    responses = all_responses()
    verdicts = map(verdicts_on, responses, [10, 10, 8, 10])

    assert last_vintages(published, responses, verdicts) == [
        ("a-template", "2026-11-20")
    ]


@without_scores
@pytest.mark.parametrize(
    ("n_verdicts", "last_vintage"),
    [
        ([10, 10, 10, 10], "2026-11-21"),
        ([0, 10, 5, 10], "2026-11-21"),
        ([0, 10, 4, 10], "2026-11-20"),
    ],
)
def test_a_night_is_compared_with_the_last_one_with_half_as_many_verdicts(
    published,
    n_verdicts,
    last_vintage,
):
    responses = all_responses()
    verdicts = map(verdicts_on, responses, n_verdicts)

    assert last_vintages(published, responses, verdicts) == [
        ("a-template", last_vintage)
    ]


@without_scores
def test_the_first_night_is_compared_with_the_base_and_not_with_a_vintage_of_ones_own(
    published,
):
    responses = [
        response_in("base"),
        response_in("2026-11-21") | {"vintage": "an-experiment"},
        response_in("2026-11-22"),
    ]
    verdicts = map(verdicts_on, responses)

    assert last_vintages(published, responses, verdicts) == [("a-template", "base")]


@without_scores
def test_each_judge_configuration_has_its_own_last_night_and_the_first_of_one_has_none(
    published,
):
    responses = all_responses()
    _, first_night, second_night, tonight = responses
    verdicts = [
        verdicts_on(first_night),
        verdicts_on(tonight),
        verdicts_on(second_night, template_hash="newer"),
        verdicts_on(tonight, template_hash="newer"),
        verdicts_on(tonight, template_hash="newest"),
    ]

    assert last_vintages(published, responses, verdicts) == [
        ("a-template", "2026-11-20"),
        ("newer", "2026-11-21"),
        ("newest", None),
    ]


@without_scores
def test_a_night_in_which_the_judge_had_drifted_is_not_compared_with(published):
    criterion_key = {
        "set_id": "set",
        "response_id": "r",
        "criterion_id": "c",
        "criterion_hash": "h",
    }
    control = row(
        "control_set",
        **criterion_key,
        verdict_id="v",
        task_id="t",
        model="m",
        first_value=1.0,
    )
    drifted = row(
        "control_verdicts",
        **criterion_key,
        judge_vintage="2026-11-21",
        status="unmet",
        value=0.0,
    )
    limit = row(
        "control_limits",
        set_id="set",
        night="2026-11-21",
        n_decided=1,
        n_agreeing=0,
        cause="bar",
    )
    responses = all_responses()

    result = last_vintages(
        published,
        responses,
        map(verdicts_on, responses),
        control_set=[control],
        control_verdicts=[drifted],
        control_limits=[limit],
    )

    assert result == [("a-template", "2026-11-20")]


@without_scores
@pytest.mark.parametrize(
    ("judges_by_night", "changes"),
    [
        ([["old"], ["old"], ["new"]], ["old → new"]),
        ([["old", "kept"], ["old", "kept"], ["kept", "new"]], ["old → new"]),
        ([["old"], ["old"], ["old", "new"]], []),
        ([["old"], ["old", "new"], ["new"]], []),
        ([["old"], [], ["new"]], ["old → new"]),
        ([[], [], ["new"]], []),
    ],
)
def test_a_judge_has_changed_if_one_of_the_last_night_is_gone_and_another_is_there(
    published, judges_by_night, changes
):
    responses = [response_in(vintage) for vintage in VINTAGES[1:]]
    verdicts = []
    for response_row, judges in zip(responses, judges_by_night, strict=True):
        verdicts += [verdicts_on(response_row, judge=judge) for judge in judges]

    reader = state_of_tonight(published, responses, verdicts)
    parameters = {"benchmark": "prbench", "night": VINTAGES[-1]}
    rows = reader.query("queries/nightly/judge_change", parameters)

    assert [row["change"] for row in rows] == changes
