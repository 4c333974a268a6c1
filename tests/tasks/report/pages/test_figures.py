"""Figures in small cases computed by hand; charts; and histories of samplings."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tasks.benchmarks import load_benchmark
from tasks.figures.csv_rows import as_csv
from tasks.figures.scope import Scope
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.categories import CATEGORIES
from tasks.figures.shown.corrections import DECISIONS
from tasks.report.build import served_page
from tests.kit import Row, admitted, at, criterion, response, row, verdict
from tests.tasks.report.synthetic.contenders import CONTENDERS, IMPORTED_MODEL, JUDGES, PEOPLE
from tests.tasks.report.synthetic.samplings import (
    DRIFT,
    FIRST,
    SCENARIOS,
    SECOND,
    Rows,
    rows_by_table,
)
from tests.tasks.report.synthetic.scopes import rows_of, scope_of
from warehouse import Warehouse

FIGURES = {figure.name: figure for page in PAGES for figure in page.figures}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["world", "research"])
def test_every_figure_is_what_its_sql_gives(name: str, request: pytest.FixtureRequest) -> None:
    job, site = (request.getfixturevalue(f"{name}_{what}") for what in ("job", "site"))
    with duckdb.connect(str(Warehouse(job.warehouse).database), read_only=True) as connection:
        connection.execute("set timezone = 'Pacific/Auckland'")
        for path in sorted((site / "figures").glob("*.sql")):
            cursor = connection.execute(path.read_text(encoding="utf-8"))
            columns = [column[0] for column in cursor.description or []]
            rows = [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
            assert path.with_suffix(".csv").read_text(encoding="utf-8") == as_csv(columns, rows), (
                path.name
            )
            figure = FIGURES.get(path.stem)
            assert figure is None or {column.name for column in figure.columns} <= set(columns), (
                path.name
            )
            if name == "world":
                assert rows or path.stem == "cascade_decisions", (
                    f"{path.stem} has no rows to look at"
                )


@pytest.mark.slow
@pytest.mark.parametrize("name", [figure.name for figure in CATEGORIES.figures])
def test_no_chart_shows_two_judges_or_splits_or_a_hard_split_beside_its_full_one(
    name: str, scope: Scope
) -> None:
    rows = rows_of(FIGURES[name], scope)
    plots = FIGURES[name].drawn(rows)

    titles = [plot.title for plot in plots]
    assert all(len({each["judge_config"] for each in drawn([plot])}) == 1 for plot in plots)
    assert len(titles) == len(set(titles))
    assert not [title for title in titles if "_hard" in title]
    for split in ("finance", "legal"):
        assert any(title.endswith(f"{split}, judged by {JUDGES[0]}") for title in titles)
    listed = FIGURES[name].listed(rows)
    assert {each["split"] for each in listed} == {"finance", "legal"}


def drawn(plots: list[Any]) -> list[Row]:
    """The rows of all charts."""
    return [each for plot in plots for each in plot.declared["rows"]]


def test_no_chart_of_cost_shows_a_model_without_a_price_or_people(scope: Scope) -> None:
    unpriced = {IMPORTED_MODEL, *(each.label for each in CONTENDERS if each.usd_per_mtok is None)}
    rows = rows_of(FIGURES["costs"], scope)
    shown = drawn(FIGURES["costs"].drawn(rows))

    assert {each["model"] for each in rows} - unpriced == {each["model"] for each in shown}
    assert all(each["usd" if "part" in each else "response_usd"] > 0 for each in shown)
    judges = {each["judge_config"] for each in shown if "part" in each}
    assert judges
    assert PEOPLE not in judges, "what people cost is not known"


def one_response_each(
    costs: dict[str, list[float | None]], **of_verdict: Any
) -> dict[str, list[Row]]:
    """Models with responses to two tasks at these costs, all judged as met."""
    criteria = {task: criterion(task, 0, 5.0) for task in ("t0", "t1")}
    responses = [
        response(task, model, cost_usd=cost, chars_alnum=10)
        for model, of_model in costs.items()
        for task, cost in zip(criteria, of_model, strict=True)
    ]
    verdicts = [
        verdict(each, criteria[each["task_id"]], 1.0, cost_usd=0.01, **of_verdict)
        for each in responses
    ]
    rows = {
        "criteria": [*criteria.values()],
        "responses": responses,
        "verdicts": verdicts,
    }
    return admitted([*criteria], n_criteria=1) | rows


def test_a_cost_that_is_partly_unknown_is_the_mean_of_what_is_known_and_no_sum(
    tmp_path: Path,
) -> None:
    scope = scope_of(
        tmp_path,
        one_response_each(
            {
                "dear": [2.0, None],
                "free": [0.0, 0.0],
                "odd": [None, None],
            }
        ),
    )
    rows = rows_of(FIGURES["costs"], scope)

    columns = ("response_usd", "n_unpriced_responses", "all_responses_usd", "task_usd")
    assert {each["model"]: tuple(each[name] for name in columns) for each in rows} == {
        "dear": (2.0, 1, None, pytest.approx(2.01)),
        "free": (0.0, 0, 0.0, pytest.approx(0.01)),
        "odd": (None, 2, None, None),
    }
    assert [each["model"] for each in drawn(FIGURES["costs"].drawn(rows)[:1])] == ["dear"]


def test_a_verdict_without_a_price_makes_no_judging_cheaper(tmp_path: Path) -> None:
    tables = one_response_each({"one": [1.0, 1.0]}, source="judged")
    tables["verdicts"] = [each | {"cost_usd": None} for each in tables["verdicts"]]
    scope = scope_of(tmp_path, tables)
    (cost,), (judge,) = (rows_of(FIGURES[name], scope) for name in ("costs", "judge_costs"))

    assert cost["response_usd"] == 1.0
    assert cost["verdicts_usd"] is None
    assert cost["task_usd"] is None
    columns = ("thousand_usd", "cost_usd", "n_unpriced", "cached_share")
    assert tuple(judge[name] for name in columns) == (None, None, 2, None)
    assert FIGURES["judge_costs"].drawn([judge]) == []


def test_around_the_border_are_the_last_inside_and_the_first_outside() -> None:
    rows: list[Row] = [
        {
            "field": field,
            "is_selected": i < 20,
            "rank": i,
        }
        for field in ("A", "B")
        for i in range(40)
    ]

    actual = FIGURES["hard_border"].listed(rows)

    assert [(f, i) for f in ("A", "B") for i in range(12, 28)] == [
        (each["field"], each["rank"]) for each in actual
    ]


def checked(
    run_id: str, suite: str, check_name: str, seconds: float, keys: list[str], **values: Any
) -> Row:
    given = {
        "expectation": "odd: in(values=[True])",
        "table_name": "rubrics",
        "severity": "warn",
    } | values
    return row(
        "checks",
        run_id=run_id,
        suite=suite,
        check_name=check_name,
        success=not keys,
        n_evaluated=100,
        n_failed=len(keys),
        failing_keys=keys,
        created_at=at(seconds),
        **given,
    )


def test_the_last_run_of_each_suite_counts_and_failures_come_first_the_gravest_before_all(
    tmp_path: Path,
) -> None:
    keys = [f"t{i}" for i in range(7)]
    scope = scope_of(
        tmp_path,
        admitted(["t1"])
        | {
            "checks": [
                checked("old", "ingest", "healed", 1, ["t1"]),
                checked("old", "judge", "verdict_value", 1, ["v1"], severity="fail"),
                checked("new", "ingest", "healed", 2, []),
                checked("new", "ingest", "many", 2, keys),
                checked("new", "ingest", "grave", 2, ["t1"], severity="quarantine"),
            ]
        },
    )
    rows = rows_of(FIGURES["quality"], scope)
    notes = FIGURES["quality"].notes(rows)  # type: ignore[misc]

    columns = ("outcome", "check_name", "run_id", "n_failed", "some_keys", "n_more")
    assert [
        ("failed", "verdict_value", "old", 1, ["v1"], None),
        ("failed", "grave", "new", 1, ["t1"], None),
        ("failed", "many", "new", 7, keys[:5], 2),
        ("passed", "healed", "new", 0, [], None),
    ] == [tuple(each[name] for name in columns) for each in rows]
    assert notes[0].startswith("3 of 4 checks failed")
    assert "ingest 2026-01-01 00:00 UTC" in notes[1]


def test_each_reason_is_counted_with_its_failures_and_an_unknown_cost_stays_unknown(
    tmp_path: Path,
) -> None:
    row = response("t1")
    criteria = [criterion("t1", position, 5.0) for position in range(5)]
    decided = [
        verdict(
            row,
            criteria[0],
            1.0,
            judge="careful",
            decided_by="cheap",
            cost_usd=0.1,
        ),
        verdict(
            row,
            criteria[1],
            0.0,
            judge="careful",
            decided_by="cheap",
            cost_usd=0.2,
        ),
        verdict(
            row,
            criteria[2],
            1.0,
            judge="careful",
            decided_by="strong",
            cost_usd=0.5,
            escalated_because=["weight", "disagreement"],
        ),
        verdict(
            row,
            criteria[3],
            None,
            judge="careful",
            decided_by="strong",
            escalated_because=["weight"],
            status="refused",
        ),
        verdict(row, criteria[4], 1.0, judge="careful plain"),
    ]
    scope = scope_of(tmp_path, admitted(["t1"]) | {"responses": [row], "verdicts": decided})

    columns = ("reason", "decided_by", "n", "n_failed", "cost_usd", "share")
    assert {tuple(each[name] for name in columns) for each in rows_of(DECISIONS, scope)} == {
        ("decided at once", "cheap", 2, 0, 0.3, 0.5),
        ("weight", "strong", 2, 1, None, 0.5),
        ("disagreement", "strong", 1, 0, 0.5, 0.25),
    }


def test_a_served_page_leads_only_to_pages_that_are_there(tmp_path: Path) -> None:
    for name in ("index", "judges"):
        (tmp_path / f"{name}.html").write_text("a page")
    html = served_page(COMPARE, load_benchmark("prbench"), tmp_path, (), comparison=None)

    assert "judges.html" in html
    assert "reviews.html" not in html


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The rows of the figure `history` by model, for a warehouse with all scenarios."""
    samplings = [
        replace(each, model=model) for model, of_model in SCENARIOS.items() for each in of_model
    ]
    scope = scope_of(tmp_path_factory.mktemp("histories"), {**rows_by_table(samplings), **DRIFT})
    actual: dict[str, Rows] = defaultdict(list)
    for each in rows_of(FIGURES["history"], scope):
        actual[each["label"]].append(each)
    scope.reader.close()
    return actual


@pytest.mark.parametrize(
    ("what", "expected", "n_lines"),
    [
        (
            "going on",
            [("base", None, None), ("n1", 0.25, None), ("n2", 0.25, None), ("n3", 0.25, None)],
            1,
        ),
        *(
            (word, [("n1", None, None), ("n2", None, word), ("n3", 0.25, None)], 2)
            for word in ("data set", "model", "judge", "template", "grading", "data set, template")
        ),
        (
            "changed back",
            [("n1", None, None), ("n2", None, "template"), ("n3", None, "template")],
            3,
        ),
        (
            "judged by both",
            [("n1", None, None), ("n2", 0.25, None), ("n2", None, "template"), ("n3", -0.25, None)],
            2,
        ),
        # A night without a complete task is skipped, and does not end the line.
        ("a night lost", [("n1", None, None), ("n3", 0.5, None)], 1),
        (
            "two judges",
            [("n1", None, None), ("n2", 0.25, None), ("n1", None, None), ("n2", -0.25, None)],
            2,
        ),
        (
            "taken over",
            [("n1", None, None), ("n2", 0.25, None), ("n3", None, "judge (before: judge)")],
            2,
        ),
        ("people", [("n1", None, None), ("n2", None, None)], 2),
    ],
)
def test_a_line_ends_where_something_changed(
    histories: Any, what: str, expected: list[Any], n_lines: int
) -> None:
    # of each point: the sampling, the change of the score, and what changed in the setup
    assert [
        (each["vintage"], each["change"], each["changed"]) for each in histories[what]
    ] == expected
    assert n_lines == len({each["line"] for each in histories[what]})


def test_each_judge_has_its_history_with_the_nights_in_which_it_was_out_of_control(
    histories: dict[str, Rows],
) -> None:
    rows = histories["two judges"]

    expected = [("judge", False), ("judge", True), ("second", False), ("second", False)]
    assert [(each["judged_by"], each["is_drifted"]) for each in rows] == expected
    assert [each["judge_config"] for each in rows][2:] == [["second"], ["second"]]


RUNS = [
    row(
        "runs",
        run_id="first",
        command="prbench run",
        outcome="done",
        started_at=at(0),
        ended_at=at(600),
        responses_made=4,
        verdicts_made=9,
        cost_usd=1.5,
        config='{"benchmark": "prbench"}',
    ),
    row(
        "runs",
        run_id="second",
        command="prbench nightly",
        night="n1",
        outcome="killed",
        started_at=at(1000),
    ),
    row(
        "runs",
        run_id="third",
        command="prbench nightly",
        night="n2",
        outcome="running",
        started_at=at(2000),
    ),
    row(
        "runs",
        run_id="elsewhere",
        command="prbench nightly",
        night="n1",
        outcome="done",
        started_at=at(3000),
        responses_made=1,
        verdicts_made=1,
        cost_usd=1.0,
        config='{"benchmark": "another"}',
    ),
]


SPEND = [
    row(
        "spend",
        run_id=run_id,
        day="2026-01-01",
        purpose=purpose,
        called_model=model,
        calls=calls,
        failed_calls=1,
        unpriced_calls=unpriced,
        cost_usd=cost_usd,
        prompt_tokens=10,
        cached_tokens=5,
        completion_tokens=2,
    )
    for run_id, purpose, model, cost_usd, calls, unpriced in (
        ("second", "judge", "one", 0.5, 10, 0),
        ("second", "judge", "two", 0.25, 5, 2),
        ("second", "sample", "three", 0.0, 4, 4),
        ("third", "drift", "one", 0.125, 1, 0),
        ("first", "judge", "one", 8.0, 9, 0),
        ("elsewhere", "judge", "one", 16.0, 9, 0),
    )
]


def test_what_a_killed_run_made_is_counted_and_every_run_cost_what_its_calls_did(
    tmp_path: Path,
) -> None:
    tables = rows_by_table([FIRST, SECOND])
    for each in (*tables["responses"], *tables["verdicts"]):
        is_killed = each["vintage"] == "n1"
        each |= {
            "run_id": "second" if is_killed else "third",
            "cost_usd": 0.25 if is_killed else None,
        }
    rows = rows_of(
        FIGURES["runs"],
        scope_of(
            tmp_path,
            {
                **tables,
                "runs": RUNS,
                "spend": SPEND,
            },
        ),
    )

    columns = ("run_id", "responses", "verdicts", "cost_usd", "unpriced_calls", "minutes")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("third", 2, 4, 0.125, 0, None),
        ("second", 2, 4, 0.75, 6, None),
        ("first", 4, 9, 8.0, 0, 10.0),
    ]
    assert at(2000).replace(tzinfo=None) == rows[0]["started_at"]


def test_a_score_below_0_goes_on_unclipped(tmp_path: Path) -> None:
    tables = rows_by_table([FIRST, replace(SECOND, values=(1, 0, 1, 0))])
    for each in tables["criteria"]:
        each["weight"] = 5.0 if each["position"] else -10.0
    scope = scope_of(tmp_path, tables)

    first, second = rows_of(FIGURES["history"], scope)
    assert [(each["mean_score"], each["raw_mean_score"]) for each in (first, second)] == [
        (0.0, -1.0),
        (0.0, -2.0),
    ]
    assert second["change"] == -1.0
