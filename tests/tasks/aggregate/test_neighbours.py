"""Changes of verdicts between arrangements of criteria in calls, in the marts, counted by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from tasks.figures.scope import Scope
from tasks.figures.shown import figure_of
from tests.kit import (
    Row,
    Rows,
    admitted,
    combined,
    criterion,
    reading,
    response,
    row,
    verdict,
)
from tests.tasks.report.synthetic.scopes import scope_of


def arranged(
    line: Row, value: float, arrangement: str, position: int = 1, n_in_call: int = 1
) -> Row:
    """The verdict of `a-judge` on a criterion in an arrangement of calls."""
    decided = verdict(response(line["task_id"]), line, value)
    columns = (
        "response_id",
        "task_id",
        "criterion_id",
        "criterion_hash",
        "value",
        "status",
    )
    return row(
        "neighbour_verdicts",
        verdict_id=f"{line['criterion_id']} {arrangement}",
        arrangement=arrangement,
        position_in_call=position,
        n_in_call=n_in_call,
        **{name: decided[name] for name in columns},
    )


def responses_to(criteria: Sequence[Row], **tables: list[Row]) -> Rows:
    """The tasks of criteria with one response each, and more rows by table."""
    task_ids = sorted({line["task_id"] for line in criteria})
    responses = [response(task_id) for task_id in task_ids]
    return combined(
        admitted(task_ids), {"criteria": criteria, "responses": responses}, tables
    )


def verdicts_of(judge: str, criteria: Sequence[Row], **columns: Any) -> list[Row]:
    """A grader's verdicts, which call every criterion met."""
    return [
        verdict(response(line["task_id"]), line, 1.0, judge=judge, **columns)
        for line in criteria
    ]


CRITERIA = (criterion("t0", 0, 5), criterion("t0", 1, 3))
ARRANGED = [
    *(arranged(line, 1.0, "alone") for line in CRITERIA),
    arranged(CRITERIA[0], 1.0, "grouped", position=1, n_in_call=2),
    arranged(CRITERIA[1], 0.0, "grouped", position=2, n_in_call=2),
]
"""In a group, the judge changes its verdict on the second criterion."""


@pytest.mark.parametrize("is_judged", [False, True])
def test_agreement_needs_one_other_grader_and_no_verdict_of_the_judge_itself(
    is_judged, tmp_path
):
    verdicts = verdicts_of("other", CRITERIA)
    if is_judged:
        verdicts += verdicts_of("a-judge", CRITERIA)

    with reading(
        tmp_path,
        responses_to(CRITERIA, neighbour_verdicts=ARRANGED, verdicts=verdicts),
    ) as reader:
        effects = reader.rows(
            "from neighbour_effects where breakdown = 'all' order by measure_of desc"
        )

    met, agreement = effects
    assert met["measure_of"] == "met"
    assert agreement["measure_of"] == "agreement with other"
    assert agreement["n"] == 2
    assert agreement["before"] == 1.0
    assert agreement["after"] == 0.5


def test_agreement_with_a_ternary_grader_is_with_its_binary_reading(tmp_path):
    verdicts = verdicts_of("other", CRITERIA, grading="ternary")

    with reading(
        tmp_path,
        responses_to(CRITERIA, neighbour_verdicts=ARRANGED, verdicts=verdicts),
    ) as reader:
        effects = reader.rows(
            "select measure_of from neighbour_effects where breakdown = 'all' order by all"
        )

    measures = [effect["measure_of"] for effect in effects]
    assert measures == ["agreement with other (as binary)", "met"]


@pytest.mark.parametrize(
    ("names", "judges", "measures"),
    [
        ((), {"a-judge"}, {"met", "agreement with other"}),
        (("a-judge",), {"a-judge"}, {"met", "agreement with other"}),
        (("other",), set(), set()),
    ],
)
def test_the_figure_shows_a_judge_without_any_other_verdict(
    names, judges, measures, tmp_path
):
    rows = responses_to(
        CRITERIA, neighbour_verdicts=ARRANGED, verdicts=verdicts_of("other", CRITERIA)
    )
    scope = scope_of(tmp_path, rows)
    scope = Scope(scope.job.model_copy(update={"named_judges": names}), scope.reader)

    effects = scope.rows_of(figure_of("neighbour_effects"))

    total_effects = [effect for effect in effects if effect["breakdown"] == "all"]
    assert {effect["judge_config"] for effect in effects} == judges
    assert {effect["measure_of"] for effect in total_effects} == measures


def test_the_figure_of_a_named_judge_shows_no_other_revision_of_the_data_set(
    tmp_path,
):
    arranged_elsewhere = [
        decision | {"dataset_revision": "another-revision"} for decision in ARRANGED
    ]
    scope = scope_of(
        tmp_path, responses_to(CRITERIA, neighbour_verdicts=arranged_elsewhere)
    )
    scope = Scope(
        scope.job.model_copy(update={"named_judges": ("a-judge",)}), scope.reader
    )

    assert scope.rows_of(figure_of("neighbour_effects")) == []


THIRDS = {
    2: "",
    3: "first middle last",
    4: "first middle last last",
    5: "first middle middle last last",
    6: "first first middle middle last last",
    7: "first first middle middle last last last",
}
"""Number of criteria in a call -> the third of each position; fewer than three have none."""


def test_a_position_belongs_to_the_third_of_its_call(tmp_path):
    calls = {}
    for n in THIRDS:
        for position in range(1, n + 1):
            calls[f"{position} of {n}"] = (position, n)
    criteria = {task_id: criterion(task_id, 0, 5) for task_id in calls}
    alone_verdicts = [arranged(line, 0.0, "alone") for line in criteria.values()]
    grouped = [
        arranged(criteria[task_id], 1.0, "grouped", *call)
        for task_id, call in calls.items()
    ]

    tables = responses_to(
        list(criteria.values()), neighbour_verdicts=alone_verdicts + grouped
    )
    with reading(tmp_path, tables) as reader:
        rows = reader.rows(
            "from intermediate.neighbour_changes where breakdown = 'position'"
        )

    expected = {}
    for n, thirds in THIRDS.items():
        for position, third in enumerate(thirds.split(), start=1):
            expected[f"{position} of {n}"] = f"{third} third"
    assert {change["task_id"]: change["label"] for change in rows} == expected
