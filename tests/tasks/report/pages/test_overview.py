"""The overview is correct: for the whole warehouse, for some splits, and if judging failed or never
began.
"""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from flows.report import write_report
from tasks.compare.vintages import changes
from tasks.config.job import Job
from tasks.figures.scope import Scope
from tasks.figures.shown import FIGURES, PAGES
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.report.rendering.notices import facts, notices
from tests.kit import at, row
from tests.tasks.report.browser import visiting
from tests.tasks.report.drilldown.drilled import (
    data,
    files,
    numbers,
    response_rows_of,
    store,
    tiny_job,
)
from tests.tasks.report.synthetic.contenders import DROPPING, NIGHTS
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("night", [NIGHTS[2], NIGHTS[3]])
def test_a_named_sampling_is_compared_with_the_one_before_it(
    world_job: Job, scope: Scope, night: str
) -> None:
    actual = Scope(world_job, scope.reader, night, changes(world_job, night)).rows(
        "figures/overview/changes"
    )

    # The judge had drifted on the second night, so the third one is compared with an earlier one.
    strict = {
        (row["model"], row["earlier"], row["later"])
        for row in actual
        if row["judge_config"] == "strict-judge"
    }
    assert {(model, NIGHTS[1], night) for model in (DROPPING, "elm-chat")} == strict


def test_what_is_wrong_is_said_the_fall_first_and_the_steady_model_is_not_named(
    scope: Scope,
) -> None:
    actual = notices(scope)

    assert actual[0].level == "bad"
    for expected in (
        f"{DROPPING} fell since",
        "Below the coverage bar of 99%",
        "dogwood-open",
        "criteria_per_task (1 of 49).",
        "1 task refused and left out of all scores.",
    ):
        assert any(expected in each.text for each in actual), expected
    assert not any("elm-chat" in each.text for each in actual if each.level == "bad")


def test_an_embedded_judge_is_the_gravest_notice(world_job: Job, scope: Scope) -> None:
    named = {"name": "embedded/smollm2-135m-instruct"}
    judges = tuple(judge.model_copy(update=named) for judge in world_job.settings.judges)
    settings = world_job.settings.model_copy(update={"judges": judges})
    embedded = replace(scope, job=world_job.model_copy(update={"settings": settings}))

    assert notices(embedded)[0].text.startswith(
        "The embedded model (mild-judge, strict-judge) is far too small"
    )


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    job = tiny_job(tmp_path)
    for folder in ("one", "other"):
        write_report(job, tmp_path / folder)

    one = files(tmp_path / "one")
    other = files(tmp_path / "other")
    assert len(one) > 50
    assert {name for name, _ in one.items() ^ other.items()} == set()


def test_file_names_hold_nothing_that_came_from_data(hostile_site: Path) -> None:
    names = [path.relative_to(hostile_site).as_posix() for path in hostile_site.rglob("*")]

    assert [
        name
        for name in names
        if not all(c.isascii() and (c.isalnum() or c in "._-/") for c in name)
    ] == []
    assert json.loads((hostile_site / "report.json").read_text())["format"] == "prbench-report"


WHOLE = {each.name for page in PAGES for each in page.figures if each.reach == "warehouse"}


def narrowed(job: Job, *splits: str) -> Job:
    dataset = job.settings.dataset.model_copy(update={"splits": splits})
    return job.model_copy(update={"settings": job.settings.model_copy(update={"dataset": dataset})})


@pytest.fixture(scope="module")
def finance(world_job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of only one of two splits."""
    folder = tmp_path_factory.mktemp("finance")
    write_report(narrowed(world_job, "finance"), folder)
    return folder / world_job.settings.benchmark


def test_every_link_to_a_task_leads_to_one_that_the_report_has(finance: Path) -> None:
    known = {task["key"] for task in data(finance)["index"]["tasks"]}
    links = [
        key
        for page in finance.glob("*.html")
        for key in re.findall(r'href="task\.html#task=([^&"]+)', page.read_text(encoding="utf-8"))
    ]

    assert len(known) == 24
    assert len(links) > 20
    assert set(links) <= known


def test_each_page_says_which_splits_it_is_of_and_figures_of_more_say_so_or_are_left_out(
    finance: Path, world_site: Path
) -> None:
    written = [page for page in PAGES if (finance / f"{page.name}.html").exists()]
    texts = [(finance / f"{page.name}.html").read_text(encoding="utf-8") for page in written]
    pooled = [figure for page in written for figure in page.figures if figure.reach == "pooled"]

    assert pooled
    assert all("only split finance" in text for text in texts)
    assert not [
        figure.name for figure in pooled if list((finance / "figures").glob(f"{figure.name}.*"))
    ]
    sentence = "Measured over all splits at once, but this report shows only split finance."
    # A figure that is left out of the report of all splits, because it has no rows, is left out
    # here too.
    listed = [figure for figure in pooled if (world_site / f"figures/{figure.name}.csv").exists()]
    assert len(pooled) > len(listed) == "".join(texts).count(sentence)
    shown = [name for name in WHOLE if numbers(finance, name)]
    assert (
        "".join(texts).count("This covers the whole warehouse, not only split finance.")
        >= len(shown)
        > 0
    )


def test_no_number_is_of_the_tasks_of_another_split(finance: Path) -> None:
    names = {path.stem for path in (finance / "figures").glob("*.csv")}

    assert len(names - WHOLE) > 25
    for name in names - WHOLE:
        rows = numbers(finance, name)
        assert {row["split"] for row in rows if "split" in row} <= {
            "finance",
            "Finance (own hard)",
        }, name
        assert {row["field"] for row in rows if "field" in row} <= {"Finance"}, name
        assert not [
            cell for row in rows for cell in row.values() if str(cell).startswith("legal-")
        ], name


@pytest.mark.parametrize(
    ("splits", "part", "fields"),
    [
        ((), "", ["Finance", "Legal"]),
        (("finance", "legal"), "", ["Finance", "Legal"]),
        (("finance",), "split finance", ["Finance"]),
        (("finance_hard",), "split finance_hard", []),
        (("finance", "legal_hard"), "splits finance, legal_hard", ["Finance"]),
    ],
)
def test_a_part_shows_only_hard_selections_of_its_own(
    scope: Scope, splits: Any, part: str, fields: list[str]
) -> None:
    scope = Scope(narrowed(scope.job, *splits), scope.reader)
    boards = [f"{field} (own hard)" for field in fields]

    own = {row["split"] for row in scope.rows_of(FIGURES["leaderboard"]) if row["is_own_hard"]}
    assert (
        sorted(own)
        == sorted({row["split"] for row in scope.rows_of(FIGURES["hard_leaderboard"])})
        == boards
    )
    for query in ("figures/hard/hard_selections", "figures/hard/tasks"):
        assert set(fields) == {row["field"] for row in scope.rows(query)}
    assert part == scope.narrowed_to
    text = (
        f"This report shows only {part}. It includes own hard selections if all their tasks are in"
        " it, and leaves out figures that are measured over all splits at once."
    )
    assert [text][: bool(part)] == [
        each.text for each in notices(scope) if each.text.startswith("This report shows")
    ]


TASKS = ("t1", "t2", "t3")


def scope_of(job: Job, **more: Any) -> Scope:
    return Scope(job, Warehouse(job.warehouse).reader(), **more)


def texts(scope: Scope, level: str) -> list[str]:
    return [each.text for each in notices(scope) if each.level == level]


def test_responses_without_a_verdict_are_told_counted_and_priced_and_can_be_read(
    tmp_path: Path,
) -> None:
    job = tiny_job(tmp_path, TASKS, models=())
    of_models = [
        row for model in ("m1", "m2") for row in response_rows_of(TASKS[:2], model)["responses"]
    ]
    responses = [each | {"cost_usd": 0.25} for each in of_models]
    refusal = row(
        "refusals",
        task_id="t3",
        check_name="criteria_per_task",
        severity="quarantine",
    )
    store(job, {"responses": responses, "refusals": [refusal]})
    write_report(job)
    scope = scope_of(job)
    site = job.report_index.parent

    assert texts(scope, "bad")[0].startswith(
        "No response has been judged yet, so there are no scores"
    )
    assert "1 task refused and left out of all scores." in texts(scope, "warn")
    shown = {name: (value, beside) for name, value, beside in facts(scope)}
    assert shown["Models"][0] == "2"
    assert shown["Responses"][0] == "4"
    assert shown["Cost"][0] == "$1.00"
    costs = scope.rows("figures/costs/costs")
    priced = [
        (each["model"], each["split"], each["response_usd"], each["mean_score"]) for each in costs
    ]
    assert priced == [("m1", "finance", 0.25, None), ("m2", "finance", 0.25, None)]
    parts = [
        part
        for name, task in data(site).items()
        if name.startswith("task-")
        for part in task.values()
    ]
    texts_of = sorted(each["text"] for part in parts for each in part.get("responses", ()))
    assert texts_of == ["m1 says t1.", "m1 says t2.", "m2 says t1.", "m2 says t2."]


def test_a_report_of_tasks_alone_says_that_there_is_nothing_to_rank(tmp_path: Path) -> None:
    job = tiny_job(tmp_path, TASKS, models=())
    write_report(job)
    text = job.report_index.read_text(encoding="utf-8")
    assert "There are no responses yet, so there is nothing to rank." in text


def test_a_model_that_nobody_has_judged_stands_beside_those_that_somebody_has(
    tmp_path: Path,
) -> None:
    job = tiny_job(tmp_path, TASKS, models=("m1",))
    store(
        job,
        {
            "responses": [
                *response_rows_of(TASKS, "m2")["responses"],
                *response_rows_of(TASKS, "m1", "2026-10-01", created_at=at(9000))["responses"],
            ]
        },
    )

    scope = scope_of(job)

    assert [each["entry"] for each in scope.entries] == ["m1", "m2"]
    assert "Not judged yet, so without scores: m2." in texts(scope, "warn")
    scored = [(each["model"], each["mean_score"] is None) for each in scope.rows_of(LEADERBOARD)]
    assert scored == [("m1", False), ("m2", True)]


def test_many_failed_responses_and_verdicts_are_grave_and_few_are_not(tmp_path: Path) -> None:
    job = tiny_job(tmp_path, [f"t{i}" for i in range(20)], models=("m1",))
    of_m2 = response_rows_of(["t0", "t1", "t2"], "m2")["responses"]
    of_m2[2] |= {
        "status": "timeout",
        "text": None,
        "error": "no reply within 600 s",
    }
    store(job, {"responses": of_m2})
    one = response_rows_of(["t0"], "m3")
    refused = [each | {"value": None, "status": "refused"} for each in one["verdicts"]]
    store(job, {"responses": one["responses"], "verdicts": refused})

    assert texts(scope_of(job), "bad") == ["1 of 3 responses of m2 failed (timeout)."]


def test_where_nothing_was_decided_no_chart_is_drawn_and_the_page_says_why(
    tmp_path: Path, browser: Browser
) -> None:
    job = tiny_job(tmp_path, TASKS, models=())
    for model, vintage in itertools.product(("m1", "m2"), ("base", "2026-10-01")):
        rows = response_rows_of(TASKS, model, vintage)
        failed = {
            "value": None,
            "status": "parse_error",
            "error": "no JSON object",
        }
        store(job, rows | {"verdicts": [each | failed for each in rows["verdicts"]]})
    notice = "12 of 12 verdicts of a-judge failed (parse error): there are no scores."
    assert [notice] == texts(scope_of(job), "bad")
    write_report(job)
    site = job.report_index.parent
    page = (site / "index.html").read_text(encoding="utf-8")

    assert "No model has a score by a-judge yet." in page
    assert "Not drawn, because no value is known: finance" in (site / "categories.html").read_text(
        encoding="utf-8"
    )
    assert 'id="leaderboard"' in page
    with visiting(browser, site) as visit:
        for path in sorted({*site.glob("*.html")} - {site / "compare.html"}):  # it has no chart
            visit.open(path.name)
        assert visit.faults == []
