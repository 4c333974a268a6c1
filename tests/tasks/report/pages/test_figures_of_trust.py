"""Figures of the data, of judges and of reviews, in small cases that are worked out by hand."""

import re
from pathlib import Path
from typing import Any

import pytest

from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.corrections import DECISIONS
from tasks.figures.shown.data import DATA
from tasks.figures.shown.reviews import predicting, too_few
from tasks.report.build import served_page
from tasks.report.drawing.charts import specification
from tasks.report.rendering.drawn import drawn
from tasks.report.rendering.site import Site, render
from tests.kit import admitted, at, criterion, response, row, verdict
from tests.tasks.report.made_up.attacks import ATTACKS
from tests.tasks.report.made_up.scopes import Row, check_sources, rows_of, scope_of

FIGURES = {figure.name: figure for page in PAGES for figure in page.figures}


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
