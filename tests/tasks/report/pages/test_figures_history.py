"""The history's page, against samplings that are written out, and runs that are added up by hand."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.figures.shown.history import HISTORY as PAGE
from tests.kit import at, row
from tests.tasks.report.synthetic.samplings import DRIFT, FIRST, SCENARIOS, SECOND, Rows, rows_by_table
from tests.tasks.report.synthetic.scopes import rows_of, scope_of

FIGURES = {figure.name: figure for figure in PAGE.figures}


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The figure's rows by model, of one warehouse in which all of it happened."""
    samplings = [replace(each, model=model) for model, of_model in SCENARIOS.items() for each in of_model]
    scope = scope_of(tmp_path_factory.mktemp("histories"), {**rows_by_table(samplings), **DRIFT})
    actual: dict[str, Rows] = defaultdict(list)
    for each in rows_of(FIGURES["history"], scope):
        actual[each["label"]].append(each)
    scope.reader.close()
    return actual


@pytest.mark.parametrize(("what", "expected", "n_lines"), [
    ("going on", [("base", None, None), ("n1", 0.25, None), ("n2", 0.25, None), ("n3", 0.25, None)], 1),
    *((word, [("n1", None, None), ("n2", None, word), ("n3", 0.25, None)], 2)
      for word in ("data set", "model", "judge", "template", "grading", "data set, template")),
    ("changed back", [("n1", None, None), ("n2", None, "template"), ("n3", None, "template")], 3),
    ("judged by both",
     [("n1", None, None), ("n2", 0.25, None), ("n2", None, "template"), ("n3", -0.25, None)], 2),
    # A night without a complete task is neither a step nor a break.
    ("a night lost", [("n1", None, None), ("n3", 0.5, None)], 1),
    ("two judges", [("n1", None, None), ("n2", 0.25, None), ("n1", None, None), ("n2", -0.25, None)], 2),
    ("taken over", [("n1", None, None), ("n2", 0.25, None), ("n3", None, "judge (before: judge)")], 2),
    ("people", [("n1", None, None), ("n2", None, None)], 2),
])  # fmt: skip
def test_a_line_goes_on_in_order_and_ends_where_something_changed(
    histories: dict[str, Rows], what: str, expected: list[tuple[str, float | None, str | None]], n_lines: int
) -> None:
    # Of each point the sampling, the step to it, and what changed before it.
    assert expected == [(each["vintage"], each["change"], each["changed"]) for each in histories[what]]
    assert n_lines == len({each["line"] for each in histories[what]})


def test_each_judge_has_its_history_with_the_nights_in_which_it_was_out_of_control(histories: dict[str, Rows]) -> None:
    columns = ("judged_by", "judge_config", "is_drifted")
    of_judge, of_second = ("judge", ["judge"]), ("second", ["second"], False)
    assert [(*of_judge, False), (*of_judge, True), of_second, of_second] == [
        tuple(each[name] for name in columns) for each in histories["two judges"]
    ]


RUNS = [
    row("runs", run_id="first", command="prbench run", outcome="done", started_at=at(0), ended_at=at(600),
        responses_made=4, verdicts_made=9, cost_usd=1.5, config='{"benchmark": "prbench"}'),
    row("runs", run_id="second", command="prbench nightly", night="n1", outcome="killed", started_at=at(1000)),
    row("runs", run_id="third", command="prbench nightly", night="n2", outcome="running", started_at=at(2000)),
    row("runs", run_id="elsewhere", command="prbench nightly", night="n1", outcome="done", started_at=at(3000),
        responses_made=1, verdicts_made=1, cost_usd=1.0, config='{"benchmark": "another"}'),
]  # fmt: skip


SPEND = [
    row("spend", run_id=run_id, day="2026-01-01", purpose=purpose, called_model=model, calls=calls, failed_calls=1,
        unpriced_calls=unpriced, cost_usd=cost_usd, prompt_tokens=10, cached_tokens=5, completion_tokens=2)
    for run_id, purpose, model, cost_usd, calls, unpriced in (
        ("second", "judge", "one", 0.5, 10, 0), ("second", "judge", "two", 0.25, 5, 2),
        ("second", "sample", "three", 0.0, 4, 4), ("third", "drift", "one", 0.125, 1, 0),
        ("first", "judge", "one", 8.0, 9, 0), ("elsewhere", "judge", "one", 16.0, 9, 0),
    )
]  # fmt: skip


def test_what_a_killed_run_made_is_counted_and_every_run_cost_what_its_calls_did(tmp_path: Path) -> None:
    tables = rows_by_table([FIRST, SECOND])
    for each in (*tables["responses"], *tables["verdicts"]):
        is_killed = each["vintage"] == "n1"
        each |= {"run_id": "second" if is_killed else "third", "cost_usd": 0.25 if is_killed else None}
    rows = rows_of(FIGURES["runs"], scope_of(tmp_path, {**tables, "runs": RUNS, "spend": SPEND}))

    columns = ("run_id", "responses", "verdicts", "cost_usd", "unpriced_calls", "minutes")
    assert [
        ("third", 2, 4, 0.125, 0, None), ("second", 2, 4, 0.75, 6, None), ("first", 4, 9, 8.0, 0, 10.0),
    ] == [tuple(each[name] for name in columns) for each in rows]  # fmt: skip
    assert at(2000).replace(tzinfo=None) == rows[0]["started_at"]


def test_a_score_below_0_goes_on_unclipped(tmp_path: Path) -> None:
    tables = rows_by_table([FIRST, replace(SECOND, values=(1, 0, 1, 0))])
    for each in tables["criteria"]:
        each["weight"] = 5.0 if each["position"] else -10.0
    scope = scope_of(tmp_path, tables)

    first, second = rows_of(FIGURES["history"], scope)
    assert [(0.0, -1.0), (0.0, -2.0)] == [(each["mean_score"], each["raw_mean_score"]) for each in (first, second)]
    assert -1.0 == second["change"]
