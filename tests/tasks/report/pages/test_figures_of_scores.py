"""Figures of scores, lengths, costs and the hard subset, in small cases that are worked out by hand; and charts."""

from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.figures.scope import Scope, criterion_key, open_scope
from tasks.figures.shown import PAGES
from tasks.figures.shown.categories import CATEGORIES
from tasks.figures.shown.conditions import CONDITIONS, with_addresses
from tasks.report.build import build
from tasks.report.drawing.charts import specification
from tests.kit import admitted, criterion, response, row, verdict
from tests.tasks.aggregate.breakdowns_oracle import severity_rows
from tests.tasks.report.made_up.contenders import CONTENDERS, IMPORTED_MODEL, JUDGES, PEOPLE
from tests.tasks.report.made_up.scopes import Row, check_sources, rows_of, scope_of
from warehouse import Warehouse

FIGURES = {figure.name: figure for page in PAGES for figure in page.figures}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"cascade_decisions"}))  # of which the world has none
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, scope: Scope, tmp_path: Path) -> None:
    check_sources(FIGURES[name], scope, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [figure.name for figure in CATEGORIES.figures])
def test_no_chart_shows_two_judges_or_splits_or_a_hard_split_beside_its_full_one(name: str, scope: Scope) -> None:
    rows = rows_of(FIGURES[name], scope)
    plots = FIGURES[name].plots(rows)  # type: ignore[misc]

    charted = [specification(plot.chart)["data"]["values"] for plot in plots]
    assert all(len({each["judging"] for each in values}) == 1 for values in charted)
    titles = [plot.title for plot in plots]
    assert len(titles) == len(set(titles))
    assert not [title for title in titles if "_hard" in title]
    for split in ("finance", "legal"):
        assert any(title.endswith(f"{split}, judged by {JUDGES[0]}") for title in titles)
    listed = FIGURES[name].listed(rows)  # type: ignore[misc]
    assert {each["split"] for each in listed} == {"finance", "legal"}


def test_where_only_a_hard_split_is_evaluated_the_charts_show_it(scope: Scope) -> None:
    rows = [each for each in rows_of(FIGURES["topics"], scope) if each["split"] == "finance_hard"]

    assert {"finance_hard"} == {plot.title.split(",")[0] for plot in FIGURES["topics"].plots(rows)}  # type: ignore[misc]
    assert rows == FIGURES["topics"].listed(rows)  # type: ignore[misc]


CRITERIA = [
    criterion("t1", 0, 8.0, "Accuracy") | {"severity": "critically important"},
    criterion("t1", 1, -9.0, "Risk") | {"severity": "critically detrimental"},
]


def test_what_is_not_decided_has_no_figure_and_not_a_bad_one(tmp_path: Path) -> None:
    answer = response("t1")
    scope = scope_of(tmp_path, {
        **admitted(["t1"], n_criteria=2), "severities": severity_rows(), "criteria": CRITERIA, "responses": [answer],
        "verdicts": [verdict(answer, CRITERIA[0], 1.0), verdict(answer, CRITERIA[1], None)],
    })  # fmt: skip

    categories = {each["label"]: each for each in rows_of(FIGURES["categories"], scope)}
    (critical,) = rows_of(FIGURES["critical"], scope)

    assert (categories["Accuracy"]["mean_score"], categories["Risk"]["mean_score"]) == (1.0, None)
    assert (categories["Risk"]["mean_lower"], categories["Risk"]["mean_upper"]) == (0.0, 1.0)
    assert (critical["missed_share"], critical["mistake_share"], critical["mistake_coverage"]) == (0.0, None, 0.0)
    assert critical["responses_with_mistake_share"] is None


def test_a_mean_below_0_stands_unclipped_beside_the_0_and_no_other_does(tmp_path: Path) -> None:
    rubric = [criterion("t1", 0, 5.0), criterion("t1", 1, -10.0)]
    bad, good = response("t1", "bad"), response("t1", "good")
    scope = scope_of(tmp_path, {
        **admitted(["t1"], n_criteria=2, topic="Tax"), "severities": severity_rows(), "criteria": rubric,
        "responses": [bad, good],
        "verdicts": [verdict(bad, each, float(each["weight"] < 0)) for each in rubric]
        + [verdict(good, each, float(each["weight"] > 0)) for each in rubric],
    })  # fmt: skip

    found = {
        each["model"]: (each["mean_score"], each["hidden_mean_score"]) for each in rows_of(FIGURES["topics"], scope)
    }
    assert found == {"bad": (0.0, -2.0), "good": (1.0, None)}


@pytest.mark.slow
def test_a_criterion_leads_to_both_responses_side_by_side(scope: Scope) -> None:
    rows = with_addresses(rows_of(FIGURES["condition_criteria"], scope))

    assert rows
    for each in rows:
        assert criterion_key(each["criterion_id"]) in each["address"]
        assert "a=" in each["address"]
        assert "b=" in each["address"]
    gains = [each["points"] for each in rows if (each["judging"], each["condition"]) == (scope.main, "code")]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) <= 20


@pytest.mark.slow
def test_the_page_is_there_if_conditions_are_configured(world_job: Job, research_job: Job, tmp_path: Path) -> None:
    for job, is_there in ((world_job, True), (research_job, False)):
        with Warehouse(job.warehouse).reader() as reader:
            assert open_scope(job, reader).has_rows(CONDITIONS.needs) == is_there
    written = build(research_job, tmp_path / "site")

    assert not (written.index.parent / "conditions.html").exists()
    assert "conditions.html" not in written.index.read_text(encoding="utf-8")


UNPRICED = {IMPORTED_MODEL, *(each.label for each in CONTENDERS if each.usd_per_mtok is None)}


def test_who_has_no_known_price_is_named_and_is_in_no_chart_of_cost(scope: Scope) -> None:
    rows = rows_of(FIGURES["costs"], scope)

    (note,) = FIGURES["costs"].notes(rows)  # type: ignore[misc]
    assert all(model in note for model in UNPRICED)
    drawn = [
        each
        for plot in FIGURES["costs"].plots(rows)  # type: ignore[misc]
        for each in specification(plot.chart)["data"]["values"]
    ]
    assert {each["model"] for each in drawn} == {each["model"] for each in rows} - UNPRICED
    assert all(each["usd" if "part" in each else "answer_usd"] > 0 for each in drawn)
    bars = [each for each in drawn if "part" in each]
    assert bars
    assert PEOPLE not in {each["judging"] for each in bars}, "what people cost is not known"


def one_answer_each(costs: dict[str, list[float | None]], **of_verdict: Any) -> dict[str, list[Row]]:
    """Models that answered tasks at these costs, all of it judged as met."""
    tasks = [f"t{i}" for i in range(max(map(len, costs.values())))]
    criteria = {task: criterion(task, 0, 5.0) for task in tasks}
    answers = [
        response(task, model, cost_usd=cost, chars_alnum=10)
        for model, of_model in costs.items()
        for task, cost in zip(tasks, of_model, strict=False)
    ]
    given = {"cost_usd": 0.01, **of_verdict}
    return {
        **admitted(tasks, n_criteria=1), "criteria": list(criteria.values()), "responses": answers,
        "verdicts": [verdict(answer, criteria[answer["task_id"]], 1.0, **given) for answer in answers],
    }  # fmt: skip


def test_a_cost_that_is_partly_unknown_is_the_mean_of_what_is_known_and_no_sum(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, one_answer_each({"dear": [2.0, None], "free": [0.0, 0.0], "odd": [None, None]}))

    rows = {each["model"]: each for each in rows_of(FIGURES["costs"], scope)}
    notes = FIGURES["costs"].notes(list(rows.values()))  # type: ignore[misc]

    columns = ("answer_usd", "n_unpriced_answers", "all_answers_usd", "task_usd")
    assert {model: tuple(each[name] for name in columns) for model, each in rows.items()} == {
        "dear": (2.0, 1, None, pytest.approx(2.01)), "free": (0.0, 0, 0.0, pytest.approx(0.01)),
        "odd": (None, 2, None, None),
    }  # fmt: skip
    assert [note.endswith(f"{name}.") for note, name in zip(notes, ("odd", "free"), strict=False)] == [True, True]
    assert notes[2].startswith("The cost of dear ")
    plots = FIGURES["costs"].plots(list(rows.values()))  # type: ignore[misc]
    assert ["dear"] == [each["model"] for each in specification(plots[0].chart)["data"]["values"]]


def test_a_verdict_without_a_price_makes_no_judging_cheaper(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, one_answer_each({"one": [1.0, 1.0]}, cost_usd=None, source="judged"))

    (cost,) = rows_of(FIGURES["costs"], scope)
    (judge,) = rows_of(FIGURES["judge_costs"], scope)

    assert (cost["answer_usd"], cost["judging_usd"], cost["task_usd"]) == (1.0, None, None)
    assert (judge["thousand_usd"], judge["cost_usd"], judge["n_unpriced"]) == (None, None, 2)
    assert judge["cached_share"] is None
    assert FIGURES["judge_costs"].plots([judge]) == []  # type: ignore[misc]


def test_calls_without_any_price_have_no_cost(tmp_path: Path) -> None:
    def spent(day: str, called_model: str, unpriced: int, cost_usd: float, cached: int | None = None) -> Row:
        return row(
            "spend", purpose="judge", day=day, called_model=called_model, calls=10, failed_calls=0, prompt_tokens=100,
            completion_tokens=10, unpriced_calls=unpriced, cost_usd=cost_usd, cached_tokens=cached,
        )  # fmt: skip

    scope = scope_of(tmp_path, {
        **admitted(["t1"]),
        "spend": [
            spent("2026-01-02", "known", 4, 0.5, cached=25), spent("2026-01-01", "known", 0, 0.25),
            spent("2026-01-01", "unknown", 10, 0.0),
        ],
    })  # fmt: skip

    rows = rows_of(FIGURES["spend"], scope)

    columns = ("called_model", "cost_usd", "unpriced_calls", "cached_share", "first_day", "last_day")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("known", 0.75, 4, 0.25, "2026-01-01", "2026-01-02"), ("unknown", None, 10, None, "2026-01-01", "2026-01-01"),
    ]  # fmt: skip
    (note,) = FIGURES["spend"].notes(rows)  # type: ignore[misc]
    assert note.endswith("known, unknown.")


def test_around_the_border_are_the_last_inside_and_the_first_outside() -> None:
    rows: list[Row] = [{"field": field, "is_selected": i < 20, "rank": i} for field in ("A", "B") for i in range(40)]

    found = FIGURES["hard_border"].listed(rows)  # type: ignore[misc]

    assert [(each["field"], each["rank"]) for each in found] == [(f, i) for f in ("A", "B") for i in range(12, 28)]


def test_a_chart_of_the_board_has_one_judge(scope: Scope) -> None:
    rows = rows_of(FIGURES["hard_leaderboard"], scope)

    plots = FIGURES["hard_leaderboard"].plots(rows)  # type: ignore[misc]

    assert len(plots) == len({(each["split"], each["judging"]) for each in rows}) == 2 * 3
    assert len({plot.title for plot in plots}) == len(plots)
