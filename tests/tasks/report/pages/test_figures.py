"""Figures in small cases that are worked out by hand; and charts."""

import re
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.figures.scope import Scope, criterion_key, open_scope
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.categories import CATEGORIES
from tasks.figures.shown.conditions import CONDITIONS, with_addresses
from tasks.figures.shown.corrections import DECISIONS
from tasks.figures.shown.data import DATA
from tasks.figures.shown.reviews import predicting, too_few
from tasks.report.build import build, served_page
from tasks.report.drawing.charts import specification
from tasks.report.rendering.drawn import drawn
from tasks.report.rendering.site import Site, render
from tests.kit import admitted, at, criterion, response, row, verdict
from tests.tasks.aggregate.breakdowns_oracle import severity_rows
from tests.tasks.report.made_up.attacks import ATTACKS
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


def test_a_weight_that_is_no_number_is_counted_and_has_no_bar(tmp_path: Path) -> None:
    weights = [10.0, 10.0, None, -3.0]
    scope = scope_of(
        tmp_path, admitted(["t1"]) | {"criteria": [criterion("t1", i, each) for i, each in enumerate(weights)]}
    )

    rows = rows_of(FIGURES["weights"], scope)

    assert [(each["label"], each["n_criteria"], each["share"]) for each in rows] == [
        ("-3", 1, 0.25), ("10", 2, 0.5), ("(none)", 1, 0.25),
    ]  # fmt: skip
    (plot,) = FIGURES["weights"].plots(rows)  # type: ignore[misc]
    bars = specification(plot.chart)["data"]["values"]
    assert [(each["number"], each["share"]) for each in bars] == [(-3, 0.25), (10, 0.5)]


def checked(run_id: str, suite: str, check_name: str, seconds: float, keys: list[str], **values: Any) -> Row:
    given = {"expectation": "odd: in(values=[True])", "table_name": "rubrics", "severity": "warn"} | values
    return row(
        "checks", run_id=run_id, suite=suite, check_name=check_name, success=not keys, n_evaluated=100,
        n_failed=len(keys), failing_keys=keys, created_at=at(seconds), **given,
    )  # fmt: skip


def test_the_last_run_of_each_suite_counts_and_failures_come_first_the_gravest_before_all(tmp_path: Path) -> None:
    keys = [f"t{i}" for i in range(7)]
    scope = scope_of(tmp_path, admitted(["t1"]) | {"checks": [
        checked("old", "ingest", "healed", 1, ["t1"]),
        checked("old", "judge", "verdict_value", 1, ["v1"], severity="fail"),
        checked("new", "ingest", "healed", 2, []), checked("new", "ingest", "many", 2, keys),
        checked("new", "ingest", "grave", 2, ["t1"], severity="quarantine"),
    ]})  # fmt: skip

    rows = rows_of(FIGURES["quality"], scope)

    columns = ("outcome", "check_name", "run_id", "n_failed", "some_keys", "n_more")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("failed", "verdict_value", "old", 1, ["v1"], None), ("failed", "grave", "new", 1, ["t1"], None),
        ("failed", "many", "new", 7, keys[:5], 2), ("passed", "healed", "new", 0, [], None),
    ]  # fmt: skip
    notes = FIGURES["quality"].notes(rows)  # type: ignore[misc]
    assert notes[0].startswith("3 of 4 checks failed")
    assert "ingest 2026-01-01 00:00 UTC" in notes[1]


def test_failing_keys_are_text_whatever_stands_in_them(tmp_path: Path) -> None:
    scope = scope_of(tmp_path / "warehouse", admitted(["t1"]) | {
        "checks": [checked("run", "ingest", attack, 50, [attack], expectation=attack) for attack in ATTACKS],
        "refusals": [
            row("refusals", run_id="run", task_id="t1", check_name=attack, severity="quarantine", detail=attack)
            for attack in ATTACKS
        ],
    })  # fmt: skip

    for name in ("quality", "refusals"):
        figure = drawn(FIGURES[name], scope, Site(tmp_path / "site"))
        html = render(
            DATA.template, page=DATA, title="Data", figures=[figure],
            report={"heading": "h", "pages": [DATA], "footer": "f"},
        )  # fmt: skip
        assert "&lt;script&gt;window.attacked=&#39;script&#39;&lt;/script&gt;" in html
        assert not re.search(r"<script>|<(img|svg|iframe|a href=.?javascript)|<[^>]*\son\w+=", html)


def test_a_refused_task_is_listed_with_its_reason_and_many_are_cut_in_the_table_alone(tmp_path: Path) -> None:
    ids = [f"t{i:03}" for i in range(300)]
    scope = scope_of(tmp_path, admitted(ids) | {"refusals": [
        row("refusals", task_id=each, check_name="weight_range", severity="quarantine", detail=f"{each} is odd")
        for each in ids
    ]})  # fmt: skip

    rows = rows_of(FIGURES["refusals"], scope)

    assert [(each["task_id"], each["splits"], each["detail"]) for each in rows] == [
        (each, "finance", f"{each} is odd") for each in ids
    ]
    assert rows[:200] == FIGURES["refusals"].listed(rows)  # type: ignore[misc]
    assert FIGURES["refusals"].notes(rows) == ["300 tasks refused: 300 by weight_range."]  # type: ignore[misc]
    assert [300] == [each["n_refused"] for each in rows_of(FIGURES["splits"], scope)]


def test_of_a_single_model_no_judge_is_partial_to_it(tmp_path: Path) -> None:
    criteria = [criterion("t1", 0, 4.0), criterion("t1", 1, -2.0)]
    answer = response("t1")
    given = {"ada": (1.0, 1.0), "bell": (1.0, 0.0)}
    scope = scope_of(tmp_path, {
        **admitted(["t1"], n_criteria=2), "criteria": criteria, "responses": [answer],
        "verdicts": [
            verdict(answer, each, value, judge=judge)
            for judge, values in given.items()
            for each, value in zip(criteria, values, strict=True)
        ],
    })  # fmt: skip

    rows = rows_of(FIGURES["judge_favours"], scope)

    assert [(each["grader"], each["difference"], each["favour"]) for each in rows] == [
        ("ada", pytest.approx(-0.5), None), ("bell", pytest.approx(0.5), None),
    ]  # fmt: skip


def test_a_control_set_of_another_template_is_another_line(tmp_path: Path) -> None:
    sets = {"set-one": "template-one", "set-two": "template-two"}
    same = {"response_id": "t1/a-model/1", "task_id": "t1", "criterion_id": "t1-c0", "criterion_hash": "a-hash"}
    scope = scope_of(tmp_path, {
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

    rows = rows_of(FIGURES["judge_drift"], scope)

    assert [(each["grader"], each["agreement"]) for each in rows] == [
        ("a-judge set set-one", 1.0), ("a-judge set set-two", 0.0),
    ]  # fmt: skip
    assert all(each["lower_limit"] is None and each["min_agreement"] is None for each in rows)
    assert len(FIGURES["judge_drift"].plots(rows)) == 2  # type: ignore[misc]


def test_each_reason_is_counted_with_its_failures_and_an_unknown_cost_stays_unknown(tmp_path: Path) -> None:
    answer, asked = response("t1"), [criterion("t1", position, 5.0) for position in range(5)]
    decided = [
        verdict(answer, asked[0], 1.0, judge="careful", decided_by="cheap", cost_usd=0.1),
        verdict(answer, asked[1], 0.0, judge="careful", decided_by="cheap", cost_usd=0.2),
        verdict(answer, asked[2], 1.0, judge="careful", decided_by="strong", cost_usd=0.5,
                escalated_because=["weight", "disagreement"]),
        verdict(answer, asked[3], None, judge="careful", decided_by="strong", escalated_because=["weight"],
                status="refused"),
        verdict(answer, asked[4], 1.0, judge="careful plain"),
    ]  # fmt: skip
    scope = scope_of(tmp_path, admitted(["t1"]) | {"responses": [answer], "verdicts": decided})

    shown = {row["reason"]: row for row in rows_of(DECISIONS, scope)}

    assert {
        reason: (row["decided_by"], row["n"], row["n_failed"], row["cost_usd"]) for reason, row in shown.items()
    } == {
        "decided at once": ("cheap", 2, 0, 0.3),
        "weight": ("strong", 2, 1, None),
        "disagreement": ("strong", 1, 0, 0.5),
    }
    assert {reason: row["share"] for reason, row in shown.items()} == {
        "decided at once": 0.5, "weight": 0.5, "disagreement": 0.25,
    }  # fmt: skip
    check_sources(DECISIONS, scope, tmp_path / "site")


def test_checks_without_enough_criteria_are_counted_and_not_drawn() -> None:
    rows = [{"outcome": "people", "auc": None, "difference": None, "is_small": True, "review_check": "atomic"}]

    assert predicting(rows) == []
    assert too_few(rows)[0].startswith("No figure for 1 of 1: fewer than 5 tasks")


def test_a_served_page_leads_only_to_pages_that_are_there(tmp_path: Path) -> None:
    for name in ("index", "judges"):
        (tmp_path / f"{name}.html").write_text("a page")
    html = served_page(COMPARE, "prbench", tmp_path, (), asked=None)

    assert "judges.html" in html
    assert "reviews.html" not in html
