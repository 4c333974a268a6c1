"""Reports of warehouses in which judging broke, or never began: what is there is shown, and what is missing is said."""

import csv
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from flows.report import write_report
from tasks.config.job import Job
from tasks.figures.scope import Scope, open_scope
from tasks.figures.shown.overview import LEADERBOARD
from tasks.report.rendering.notices import Notice, facts, notices
from tasks.rules.text.cells import as_before
from tests.kit import at, row
from tests.tasks.report.browser import visiting
from tests.tasks.report.drilldown.drilled import answered, data, store, tiny_job
from warehouse import Warehouse

pytestmark = pytest.mark.slow

TASKS = ("t1", "t2", "t3")


def scope_of(job: Job, **more: Any) -> Scope:
    return open_scope(job, Warehouse(job.warehouse).reader(), **more)


def texts(scope: Scope, level: str) -> list[str]:
    return [each.text for each in notices(scope) if each.level == level]


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two models have answered, one task was refused, and nobody has judged anything."""
    job = tiny_job(tmp_path_factory.mktemp("unjudged"), TASKS, models=())
    answers = [
        each | {"cost_usd": 0.25} for model in ("m1", "m2") for each in answered(TASKS[:2], model)["responses"]
    ]  # fmt: skip
    refusal = row("refusals", task_id="t3", check_name="criteria_per_task", severity="quarantine")
    store(job, {"responses": answers, "refusals": [refusal]})
    return job


@pytest.fixture(scope="module")
def undecided(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two models have answered, each twice, and every verdict on them failed."""
    job = tiny_job(tmp_path_factory.mktemp("undecided"), TASKS, models=())
    for model in ("m1", "m2"):
        for vintage in ("base", "2026-10-01"):
            rows = answered(TASKS, model, vintage)
            failed = {"value": None, "status": "parse_error", "error": "no JSON object"}
            store(job, {"responses": rows["responses"], "verdicts": [each | failed for each in rows["verdicts"]]})
    return job


@pytest.mark.slow
def test_answers_without_a_verdict_are_counted_priced_and_can_be_read(unjudged: Job) -> None:
    scope = scope_of(unjudged)
    site = write_report(unjudged).index.parent

    shown = {name: (value, beside) for name, value, beside in facts(scope)}
    assert (shown["Models"][0], shown["Responses"][0], shown["Cost"][0]) == ("2", "4", "$1.00")
    costs = scope.rows("costs/costs")
    priced = [(each["model"], each["split"], each["answer_usd"], each["mean_score"]) for each in costs]
    assert priced == [("m1", "finance", 0.25, None), ("m2", "finance", 0.25, None)]
    held = data(site)
    parts = [part for name in held if name.startswith("task-") for part in held[name].values() if "answers" in part]
    assert sorted(each["text"] for part in parts for each in part["answers"]) == [
        "m1 says t1.", "m1 says t2.", "m2 says t1.", "m2 says t2.",
    ]  # fmt: skip


def test_that_nobody_has_judged_is_a_grave_notice_and_the_refused_tasks_are_still_named(unjudged: Job) -> None:
    scope = scope_of(unjudged)

    assert texts(scope, "bad")[0].startswith("No response has been judged yet, so there are no scores")
    assert "1 task refused and left out of all scores." in texts(scope, "warn")


def test_a_model_that_nobody_has_judged_stands_beside_those_that_somebody_has(tmp_path: Path) -> None:
    job = tiny_job(tmp_path, TASKS, models=("m1",))
    store(job, {"responses": [
        *answered(TASKS, "m2")["responses"],
        *answered(TASKS, "m1", "2026-10-01", created_at=at(9000))["responses"],
    ]})  # fmt: skip

    scope = scope_of(job)

    assert [each["entry"] for each in scope.entries] == ["m1 base", "m1 2026-10-01", "m2"]
    assert "Not judged yet, so without scores: m1 2026-10-01, m2." in texts(scope, "warn")
    assert [(each["model"], each["mean_score"] is None) for each in scope.rows_of(LEADERBOARD)] == [
        ("m1 base", False), ("m2", True),
    ]  # fmt: skip
    stored = scope.reader.rows("select distinct model, is_judged from leaderboard where vintage = 'base' order by all")
    assert [(each["model"], each["is_judged"]) for each in stored] == [("m1", True), ("m2", False)]


def test_that_no_verdict_was_decided_is_a_grave_notice(undecided: Job) -> None:
    assert texts(scope_of(undecided), "bad") == [
        "All 12 verdicts of a-judge failed (parse error): there are no scores."
    ]


def test_many_failed_answers_and_verdicts_are_grave_and_few_are_not(tmp_path: Path) -> None:
    job = tiny_job(tmp_path, [f"t{i}" for i in range(20)], models=("m1",))
    failed = {"status": "timeout", "text": None, "error": "no reply within 600 s"}
    of_m2 = answered(["t0", "t1"], "m2")["responses"] + [
        each | failed for each in answered(["t2"], "m2")["responses"]
    ]  # fmt: skip
    store(job, {"responses": of_m2})
    one = answered(["t0"], "m3")
    store(job, {"responses": one["responses"], "verdicts": [
        each | {"value": None, "status": "refused"} for each in one["verdicts"]
    ]})  # fmt: skip

    assert texts(scope_of(job), "bad") == ["1 of 3 responses of m2 failed (timeout)."]


@pytest.mark.slow
def test_where_nothing_was_decided_no_chart_is_drawn_and_the_page_says_why(undecided: Job, browser: Browser) -> None:
    site = write_report(undecided).index.parent
    page = (site / "index.html").read_text(encoding="utf-8")

    assert "No model has a score by a-judge yet." in page
    assert "Not drawn, because no value is known: finance" in (site / "categories.html").read_text(encoding="utf-8")
    assert 'id="leaderboard"' in page
    with visiting(browser, site) as visit:
        for path in sorted({*site.glob("*.html")} - {site / "compare.html"}):  # it draws nothing
            visit.open(path.name)
        assert visit.faults == []


def test_an_empty_warehouse_says_that_nobody_has_answered(tmp_path: Path) -> None:
    scope = scope_of(tiny_job(tmp_path, TASKS, models=()))

    expected = Notice("warn", "There are no responses yet, so there is nothing to rank.", "data.html")
    assert notices(scope) == [expected]


@pytest.fixture(scope="module")
def odd_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models whose names are a formula, a date, and another name with a space in front."""
    job = tiny_job(tmp_path_factory.mktemp("odd"), TASKS, models=("m1", " m1", "=1+1", "2026-10-01", "@sum"))
    return write_report(job).index.parent


@pytest.mark.slow
def test_text_that_a_spreadsheet_would_run_is_marked_in_the_csv_and_numbers_stay_numbers(odd_names: Path) -> None:
    with (odd_names / "figures/leaderboard.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert {each["model"] for each in rows} == {"m1", " m1", "'=1+1", "'2026-10-01", "'@sum"}
    assert {as_before(each["model"]) for each in rows} == {"m1", " m1", "=1+1", "2026-10-01", "@sum"}
    assert {float(each["mean_score"]) for each in rows} == {1.0}
    page = (odd_names / "index.html").read_text(encoding="utf-8")
    assert "In the CSV, text that a spreadsheet would read as a formula" in page


@pytest.mark.slow
def test_a_model_with_a_space_in_front_is_chosen_by_its_own_box(odd_names: Path, browser: Browser) -> None:
    with visiting(browser, odd_names) as visit:
        visit.open("index.html")
        visit.page.locator("#choice summary").click()
        visit.page.locator("#choice input[value=' m1']").uncheck()
        rows = visit.page.locator(".ranked tbody tr:visible").all()
        shown = [row.get_attribute("data-model") for row in rows]

        assert sorted(shown) == ["2026-10-01", "=1+1", "@sum", "m1"]
