"""Figures in small cases computed by hand; charts; and histories of samplings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.figures.csv_rows import as_csv
from tasks.figures.figure import Chart, grouped
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.categories import CATEGORIES
from tasks.figures.shown.corrections import DECISIONS
from tasks.report.build import served_page
from tests.kit import Row, admitted, at, criterion, response, row, verdict
from tests.tasks.report.synthetic.contenders import (
    CONTENDERS,
    IMPORTED_MODEL,
    JUDGES,
    PEOPLE,
)
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


def columns_of(rows: Sequence[Row], *names: str) -> list[tuple[Any, ...]]:
    """Return the values of some columns."""
    return [tuple(row[name] for name in names) for row in rows]


def drawn_rows(charts: Sequence[Chart]) -> list[Row]:
    """Return the rows of all charts."""
    rows = []
    for chart in charts:
        rows += chart.declared["rows"]
    return rows


def refuse_other_rows(job: Job, site: Path) -> dict[str, list[Row]]:
    """Run the SQL file of each figure, refuse other rows than those in its CSV file, and return
    them.
    """
    rows_by_figure = {}
    database = str(Warehouse(job.warehouse).database)
    with duckdb.connect(database, read_only=True) as connection:
        connection.execute("set timezone = 'Pacific/Auckland'")
        for path in sorted((site / "figures").glob("*.sql")):
            relation = connection.sql(path.read_text())
            rows = [
                dict(zip(relation.columns, values, strict=True))
                for values in relation.fetchall()
            ]
            content = path.with_suffix(".csv").read_text()
            assert content == as_csv(relation.columns, rows), path.name
            if path.stem in FIGURES:
                names = {column.name for column in FIGURES[path.stem].columns}
                assert names <= set(relation.columns), path.name
            rows_by_figure[path.stem] = rows
    return rows_by_figure


def test_every_figure_is_what_its_sql_gives(world_job, world_site):
    rows_by_figure = refuse_other_rows(world_job, world_site)

    empty_figures = [name for name, rows in rows_by_figure.items() if not rows]
    assert empty_figures == []


def test_every_figure_of_another_benchmark_is_what_its_sql_gives(
    research_job, research_site
):
    assert refuse_other_rows(research_job, research_site)


@pytest.mark.parametrize("name", [figure.name for figure in CATEGORIES.figures])
def test_a_chart_shows_one_judge_on_one_full_split(name, scope):
    figure = FIGURES[name]

    charts = figure.drawn(rows_of(figure, scope))

    titles = [chart.title for chart in charts]
    assert len(titles) == len(set(titles))
    for split in ("finance", "legal"):
        ending = f"{split}, judged by {JUDGES[0]}"
        assert any(title.endswith(ending) for title in titles)
    for chart in charts:
        assert "_hard" not in chart.title
        assert len({row["judge_config"] for row in chart.declared["rows"]}) == 1


@pytest.mark.parametrize("name", [figure.name for figure in CATEGORIES.figures])
def test_a_table_lists_full_splits(name, scope):
    figure = FIGURES[name]

    table_rows = figure.listed(rows_of(figure, scope))

    assert {row["split"] for row in table_rows} == {"finance", "legal"}


def test_no_chart_of_cost_shows_a_model_without_a_price(scope):
    unpriced = {
        contender.label for contender in CONTENDERS if contender.usd_per_mtok is None
    }
    rows = rows_of(FIGURES["costs"], scope)

    charted_rows = drawn_rows(FIGURES["costs"].drawn(rows))

    priced = {row["model"] for row in rows} - unpriced - {IMPORTED_MODEL}
    assert {row["model"] for row in charted_rows} == priced
    for charted_row in charted_rows:
        assert charted_row["usd" if "part" in charted_row else "response_usd"] > 0


def test_no_chart_of_cost_shows_people(scope):
    rows = rows_of(FIGURES["costs"], scope)

    charted_rows = drawn_rows(FIGURES["costs"].drawn(rows))

    judges = {row["judge_config"] for row in charted_rows if "part" in row}
    assert judges
    assert PEOPLE not in judges


def priced_responses(
    costs: Mapping[str, Sequence[float | None]],
) -> dict[str, list[Row]]:
    """Models with responses to two tasks at these costs, all judged as met."""
    tables = admitted(["t0", "t1"], n_criteria=1)
    tables |= {"criteria": [], "responses": [], "verdicts": []}
    for number in range(2):
        criterion_row = criterion(f"t{number}", 0, 5.0)
        tables["criteria"].append(criterion_row)
        for model, model_costs in costs.items():
            cost = model_costs[number]
            response_row = response(
                f"t{number}",
                model,
                cost_usd=cost,
                chars_alnum=10,
            )
            verdict_row = verdict(response_row, criterion_row, 1.0, cost_usd=0.01)
            tables["responses"].append(response_row)
            tables["verdicts"].append(verdict_row)
    return tables


def test_a_cost_that_is_partly_unknown_is_the_mean_of_what_is_known_and_no_sum(
    tmp_path,
):
    tables = priced_responses(
        {"dear": [2.0, None], "free": [0.0, 0.0], "odd": [None, None]}
    )

    rows = rows_of(FIGURES["costs"], scope_of(tmp_path, tables))

    names = (
        "model",
        "response_usd",
        "n_unpriced_responses",
        "all_responses_usd",
        "task_usd",
    )
    assert sorted(columns_of(rows, *names)) == [
        ("dear", 2.0, 1, None, pytest.approx(2.01)),
        ("free", 0.0, 0, 0.0, pytest.approx(0.01)),
        ("odd", None, 2, None, None),
    ]
    score_chart = FIGURES["costs"].drawn(rows)[0]
    assert columns_of(score_chart.rows, "model") == [("dear",)]


def test_a_verdict_without_a_price_makes_no_judging_cheaper(tmp_path):
    tables = priced_responses({"one": [1.0, 1.0]})
    for verdict_row in tables["verdicts"]:
        verdict_row["cost_usd"] = None
    scope = scope_of(tmp_path, tables)

    [cost] = rows_of(FIGURES["costs"], scope)
    [judge] = rows_of(FIGURES["judge_costs"], scope)

    assert cost["response_usd"] == 1.0
    assert cost["verdicts_usd"] is None
    assert cost["task_usd"] is None
    assert judge["thousand_usd"] is None
    assert judge["cost_usd"] is None
    assert judge["cached_share"] is None
    assert judge["n_unpriced"] == 2
    assert FIGURES["judge_costs"].drawn([judge]) == []


def test_around_the_border_are_the_last_inside_and_the_first_outside():
    rows = []
    for field in ("A", "B"):
        for rank in range(40):
            rows.append({"field": field, "rank": rank, "is_selected": rank < 20})

    actual = FIGURES["hard_border"].listed(rows)

    ranks = grouped(actual, "field")
    assert columns_of(ranks["A"], "rank") == [(rank,) for rank in range(12, 28)]
    assert columns_of(ranks["B"], "rank") == [(rank,) for rank in range(12, 28)]


def check_row(
    run_id: str,
    check_name: str,
    seconds: float,
    keys: Sequence[str] = (),
    **values: Any,
) -> Row:
    """The result of a check, which failed for some keys."""
    usual = {
        "suite": "ingest",
        "expectation": "odd: in(values=[True])",
        "table_name": "rubrics",
        "severity": "warn",
    }
    return row(
        "checks",
        run_id=run_id,
        check_name=check_name,
        success=not keys,
        n_evaluated=100,
        n_failed=len(keys),
        failing_keys=list(keys),
        created_at=at(seconds),
        **usual | values,
    )


def test_the_last_run_of_each_suite_counts_and_the_gravest_failures_come_first(
    tmp_path,
):
    keys = [f"t{number}" for number in range(7)]
    checks = [
        check_row("old", "healed", 1, ["t1"]),
        check_row(
            "old",
            "verdict_value",
            1,
            ["v1"],
            suite="judge",
            severity="fail",
        ),
        check_row("new", "healed", 2),
        check_row("new", "many", 2, keys),
        check_row("new", "grave", 2, ["t1"], severity="quarantine"),
    ]

    scope = scope_of(tmp_path, admitted(["t1"]) | {"checks": checks})
    rows = rows_of(FIGURES["quality"], scope)

    names = ("outcome", "check_name", "run_id", "n_failed", "some_keys", "n_more")
    assert columns_of(rows, *names) == [
        (
            "failed",
            "verdict_value",
            "old",
            1,
            ["v1"],
            None,
        ),
        (
            "failed",
            "grave",
            "new",
            1,
            ["t1"],
            None,
        ),
        (
            "failed",
            "many",
            "new",
            7,
            keys[:5],
            2,
        ),
        ("passed", "healed", "new", 0, [], None),
    ]
    assert FIGURES["quality"].notes_on(rows) == [
        "3 of 4 checks failed; they come first.",
        "Checked: judge 2026-01-01 00:00 UTC, ingest 2026-01-01 00:00 UTC.",
    ]


def test_each_reason_is_counted_with_its_failures_and_an_unknown_cost_stays_unknown(
    tmp_path,
):
    response_row = response("t1")

    def decided(position, value, **values):
        usual = {"judge": "careful"}
        return verdict(
            response_row,
            criterion("t1", position, 5.0),
            value,
            **usual | values,
        )

    verdicts = [
        decided(0, 1.0, decided_by="cheap", cost_usd=0.1),
        decided(1, 0.0, decided_by="cheap", cost_usd=0.2),
        decided(
            2,
            1.0,
            decided_by="strong",
            cost_usd=0.5,
            escalated_because=["weight", "disagreement"],
        ),
        decided(
            3,
            None,
            decided_by="strong",
            escalated_because=["weight"],
            status="refused",
        ),
        decided(4, 1.0, judge="careful plain"),
    ]
    tables = {"responses": [response_row], "verdicts": verdicts}

    rows = rows_of(DECISIONS, scope_of(tmp_path, admitted(["t1"]) | tables))

    names = ("reason", "decided_by", "n", "n_failed", "cost_usd", "share")
    assert sorted(columns_of(rows, *names)) == [
        ("decided at once", "cheap", 2, 0, 0.3, 0.5),
        ("disagreement", "strong", 1, 0, 0.5, 0.25),
        ("weight", "strong", 2, 1, None, 0.5),
    ]


def test_a_served_page_links_only_to_existing_pages(tmp_path):
    for name in ("index", "judges"):
        (tmp_path / f"{name}.html").write_text("a page")

    html = served_page(
        COMPARE,
        load_benchmark("prbench"),
        tmp_path,
        (),
        comparison=None,
    )

    assert "judges.html" in html
    assert "reviews.html" not in html


@pytest.fixture(scope="module")
def histories(tmp_path_factory) -> dict[str, Rows]:
    """The rows of the figure `history` by model, for a warehouse with all scenarios."""
    samplings = []
    for model, model_samplings in SCENARIOS.items():
        samplings += [replace(sampling, model=model) for sampling in model_samplings]
    tables = {**rows_by_table(samplings), **DRIFT}
    scope = scope_of(tmp_path_factory.mktemp("histories"), tables)
    rows = rows_of(FIGURES["history"], scope)
    scope.reader.close()
    return grouped(rows, "label")


def changed_after_first(cause: str) -> list[tuple[str, float | None, str | None]]:
    """The points of three nights if something changed after the first."""
    return [("n1", None, None), ("n2", None, cause), ("n3", 0.25, None)]


@pytest.mark.parametrize(
    ("scenario", "points", "n_lines"),
    [
        (
            "going on",
            [
                ("base", None, None),
                ("n1", 0.25, None),
                ("n2", 0.25, None),
                ("n3", 0.25, None),
            ],
            1,
        ),
        ("data set", changed_after_first("data set"), 2),
        ("model", changed_after_first("model"), 2),
        ("judge", changed_after_first("judge"), 2),
        ("template", changed_after_first("template"), 2),
        ("grading", changed_after_first("grading"), 2),
        ("data set, template", changed_after_first("data set, template"), 2),
        (
            "changed back",
            [("n1", None, None), ("n2", None, "template"), ("n3", None, "template")],
            3,
        ),
        (
            "judged by both",
            [
                ("n1", None, None),
                ("n2", 0.25, None),
                ("n2", None, "template"),
                ("n3", -0.25, None),
            ],
            2,
        ),
        # A night without a complete task is skipped, and does not end the line.
        ("a night lost", [("n1", None, None), ("n3", 0.5, None)], 1),
        (
            "two judges",
            [
                ("n1", None, None),
                ("n2", 0.25, None),
                ("n1", None, None),
                ("n2", -0.25, None),
            ],
            2,
        ),
        (
            "taken over",
            [
                ("n1", None, None),
                ("n2", 0.25, None),
                ("n3", None, "judge (before: judge)"),
            ],
            2,
        ),
        ("people", [("n1", None, None), ("n2", None, None)], 2),
    ],
)
def test_a_line_ends_where_something_changed(histories, scenario, points, n_lines):
    rows = histories[scenario]

    assert columns_of(rows, "vintage", "change", "changed") == points
    assert len({row["line"] for row in rows}) == n_lines


def test_each_judge_has_its_history_with_the_nights_in_which_it_was_out_of_control(
    histories,
):
    rows = histories["two judges"]

    assert columns_of(rows, "judged_by", "is_drifted") == [
        ("judge", False),
        ("judge", True),
        ("second", False),
        ("second", False),
    ]
    assert columns_of(rows[2:], "judge_config") == [(["second"],), (["second"],)]


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


def spend_row(
    run_id: str,
    model: str,
    cost_usd: float,
    calls: int,
    unpriced_calls: int,
    purpose: str,
) -> Row:
    """The calls of a run to a model."""
    return row(
        "spend",
        run_id=run_id,
        day="2026-01-01",
        purpose=purpose,
        called_model=model,
        calls=calls,
        failed_calls=1,
        unpriced_calls=unpriced_calls,
        cost_usd=cost_usd,
        prompt_tokens=10,
        cached_tokens=5,
        completion_tokens=2,
    )


SPEND = [
    spend_row("second", "one", 0.5, 10, 0, "judge"),
    spend_row("second", "two", 0.25, 5, 2, "judge"),
    spend_row("second", "three", 0.0, 4, 4, "sample"),
    spend_row("third", "one", 0.125, 1, 0, "drift"),
    spend_row("first", "one", 8.0, 9, 0, "judge"),
    spend_row("elsewhere", "one", 16.0, 9, 0, "judge"),
]


def test_the_output_of_a_killed_run_is_counted_and_a_run_costs_what_its_calls_did(
    tmp_path,
):
    tables = rows_by_table([FIRST, SECOND])
    for stored_row in (*tables["responses"], *tables["verdicts"]):
        is_killed = stored_row["vintage"] == "n1"
        stored_row["run_id"] = "second" if is_killed else "third"
        stored_row["cost_usd"] = 0.25 if is_killed else None
    tables |= {"runs": RUNS, "spend": SPEND}

    rows = rows_of(FIGURES["runs"], scope_of(tmp_path, tables))

    names = (
        "run_id",
        "responses",
        "verdicts",
        "cost_usd",
        "unpriced_calls",
        "minutes",
    )
    assert columns_of(rows, *names) == [
        ("third", 2, 4, 0.125, 0, None),
        ("second", 2, 4, 0.75, 6, None),
        ("first", 4, 9, 8.0, 0, 10.0),
    ]
    assert rows[0]["started_at"] == at(2000).replace(tzinfo=None)


def test_a_score_below_0_goes_on_unclipped(tmp_path):
    tables = rows_by_table([FIRST, replace(SECOND, values=(1, 0, 1, 0))])
    for criterion_row in tables["criteria"]:
        criterion_row["weight"] = 5.0 if criterion_row["position"] else -10.0

    rows = rows_of(FIGURES["history"], scope_of(tmp_path, tables))

    assert columns_of(rows, "mean_score", "hidden_mean_score", "change") == [
        (0.0, -1.0, None),
        (0.0, -2.0, -1.0),
    ]
