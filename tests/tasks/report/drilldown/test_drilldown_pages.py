"""The drill-down in a real browser: search, sort, filter, compare, and a link to every verdict."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator

from tasks.figures.addresses import task_key
from tasks.rules.text.characters import visible
from tests.tasks.report.browser import PHONE, Visit, visiting
from tests.tasks.report.drilldown.drilled import (
    Row,
    data,
    drill,
    held,
    response_rows_of,
    store,
    tiny_job,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def visit(browser: Browser, world_drilldown: Path) -> Iterator[Visit]:
    """A visit, at the end of which nothing may have been wrong."""
    with visiting(browser, world_drilldown) as visit:
        yield visit
        assert visit.faults == []


def entry(held: Row, label: str) -> dict[str, Any]:
    return next(each for each in held["index"]["entries"] if each["label"] == label)


def texts(cells: Locator) -> list[str]:
    return [" ".join(text.split()) for text in cells.all_inner_texts()]


def test_attacks_in_texts_and_names_do_nothing(browser: Browser, hostile_site: Path) -> None:
    tasks = data(hostile_site)["index"]["tasks"]
    with visiting(browser, hostile_site) as visit:
        visit.open(f"task.html#task={tasks[0]['key']}")
        visit.page.locator("[name=b]").select_option(index=2)
        for task in tasks[1:12]:
            visit.page.locator("#next").click()
            visit.page.wait_for_function(
                "(id) => document.querySelector('h1').textContent === id",
                arg=visible(task["task_id"]),
            )
            visit.value(
                "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
            )
            for link in visit.page.locator(".markdown a:visible").all()[:1]:
                link.hover()
        visit.page.locator("#as-text").check()
        visit.page.locator(".anchor").first.click()
        visit.page.locator("td.marked pre, .marked").first.wait_for()

        assert visit.faults == []
        addresses = visit.value(
            "[...document.querySelectorAll('.markdown a[href]')].map((each) => each.href)"
        )
        assert [each for each in addresses if not re.match("(https?|mailto):", each)] == []


def test_tasks_are_filtered_by_labels_and_words_and_a_link_keeps_the_filter(
    visit: Visit, held: Row
) -> None:
    visit.open("tasks.html")
    visit.page.locator("[name=field]").select_option("Legal")
    visit.page.locator("[name=hard]").select_option("hard")
    visit.page.locator("[name=words]").fill("LEGAL-3")
    legal = [
        task for task in held["index"]["tasks"] if task["field"] == "Legal" and task["is_hard"]
    ]
    expected = [task["task_id"] for task in legal if "legal-3" in task["task_id"]]

    assert 1 < len(expected) < 10
    visit.page.wait_for_function(
        "(n) => document.querySelectorAll('.tabulator-row').length === n", arg=len(expected)
    )
    assert texts(visit.page.locator(".tabulator-frozen a")) == expected
    assert texts(visit.page.locator("#count")) == [
        f"{len(expected)} of {len(held['index']['tasks'])} tasks"
    ]
    visit.page.reload()
    visit.page.wait_for_selector("html[data-rendered]", state="attached")
    assert texts(visit.page.locator(".tabulator-frozen a")) == expected
    visit.page.get_by_role("button", name="Reset").click()
    visit.page.wait_for_function(
        "(n) => document.querySelectorAll('.tabulator-row').length > n", arg=len(expected)
    )


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_tasks_are_sorted_by_any_column_with_what_is_missing_last(
    visit: Visit, held: Row, how: str
) -> None:
    visit.open("tasks.html")
    key = entry(held, "dogwood-open")["key"]
    judge_config = next(
        each for each in held["index"]["judge_configs"] if each["label"] == "mild-judge"
    )
    scores = held[f"scores-{judge_config['key']}"][key]
    visit.page.get_by_role("combobox", name="Judge").select_option(judge_config["label"])
    visit.page.set_viewport_size({"width": 1280, "height": 6000})  # so that all rows are drawn
    column = visit.page.locator(f".tabulator-cell[tabulator-field='{key}']")
    column.filter(has_text=" to ").first.wait_for()
    heading = visit.page.locator(f".tabulator-col[tabulator-field='{key}']")
    known = [value for value, *_ in scores.values() if value is not None]
    for order in (sorted(known, reverse=True), sorted(known)):
        heading.click() if how == "click" else heading.get_by_role("button").press("Enter")
        cells = [text.replace("−", "-") for text in texts(column)]
        assert [f"{value:.2f}" for value in order] == cells[: len(known)]
        assert all(" to " in cell for cell in cells[len(known) :])
        assert 5 < len(known) < len(cells) == len(held["index"]["tasks"])
    assert heading.get_attribute("aria-sort") == "ascending"


def test_the_response_is_set_as_markdown_or_shown_word_for_word(visit: Visit, held: Row) -> None:
    task = held["index"]["tasks"][0]
    who = entry(held, "alder-large")
    response = held[f"task-{task['key']}"][who["key"]]["responses"][1]
    visit.open(f"task.html#task={task['task_id']}&a={who['key']}&ta=2")

    assert "**" in response["text"]
    assert visit.page.locator("#responses .markdown strong").count() > 1
    visit.page.locator("#as-text").check()
    assert response["text"] == visit.page.locator("#responses .exact").text_content()


def test_assistant_turns_are_set_as_markdown_and_user_turns_word_for_word(
    visit: Visit, held: Row
) -> None:
    task = held["index"]["tasks"][0]
    visit.open(f"task.html#task={task['task_id']}")
    assistant = visit.page.locator("#conversation .turn.assistant").first
    user = visit.page.locator("#conversation .turn.user").first

    assert assistant.locator(".markdown strong").count() == 1
    assert user.locator(".exact").count() == 1
    visit.page.locator("#as-text").check()
    assert (assistant.locator(".exact").text_content() or "").startswith("**")


def _flips(
    held: Row, task: dict[str, Any], one: str, other: str
) -> dict[tuple[int, str], tuple[str, str]]:
    """The differing verdicts of both sides' first trials, by criterion position and judge
    configuration.
    """
    first, second = (
        {
            (each["position"], each["judge_config"]): each["status"]
            for each in part["verdicts"]
            if each["trial"] == 1
        }
        for part in (held[f"task-{task['key']}"][key] for key in (one, other))
    )
    both = {cell: (status, second.get(cell)) for cell, status in first.items()}
    return {cell: statuses for cell, statuses in both.items() if set(statuses) == {"met", "unmet"}}


def test_two_models_are_compared_and_flipped_verdicts_are_marked_in_words(
    visit: Visit, held: Row
) -> None:
    task = held["index"]["tasks"][0]
    one = entry(held, "alder-large")["key"]
    other = entry(held, "cedar-mini")["key"]
    flips = _flips(held, task, one, other)
    visit.open(f"task.html#task={task['key']}&a={one}")
    visit.page.locator("[name=b]").select_option(f"{other} 1")
    visit.page.locator("[name=show]").select_option("flips")

    n_criteria = len({index for index, _ in flips})
    visit.page.wait_for_function(
        "(n) => document.querySelectorAll('#criteria tbody').length === n", arg=n_criteria
    )
    assert len(flips) > 3
    marks = sorted(f"⇄ {a} → {b}".replace("unmet", "not met") for a, b in flips.values())
    assert marks == sorted(texts(visit.page.locator("td .flip")))
    assert f"{n_criteria} flipped" in visit.page.locator("#n-criteria").inner_text()


def test_what_failed_says_why_and_is_never_called_unmet(visit: Visit, held: Row) -> None:
    key = task_key("finance-13")
    visit.open(f"task.html#task={key}&a={entry(held, 'cedar-mini')['key']}&show=failures")
    badges = texts(visit.page.locator("#criteria tbody tr:nth-child(2) .badge"))

    causes = ("parse error", "refused", "truncated", "context length", "timeout", "provider error")
    assert [f"⚠ {cause}" for cause in causes] == badges
    assert "no reply within 600 s" in visit.page.locator("#criteria").inner_text()
    score = visit.page.locator("#responses").inner_text()
    assert re.search(
        r"0\.\d+ to 0\.\d+ \(\d+ to \d+ of \d+ points, 8 of 14 criteria decided\)", score
    )

    one, other = (entry(held, label)["key"] for label in ("dogwood-open", "birch-2"))
    visit.open(f"task.html#task={task_key('finance-04')}&a={one}&b={other}")
    # Only the hash of the address has changed, so the page is not loaded again and already counts
    # as rendered.
    visit.page.locator("#responses article", has_text="No response: truncated.").first.wait_for()
    assert set(texts(visit.page.locator("#criteria td[data-label^=A] .badge"))) == {"∅ no response"}
    assert visit.page.locator("td .flip").count() == 0


def test_what_a_task_without_a_response_lacks_takes_one_line(
    browser: Browser, tmp_path: Path
) -> None:
    with visiting(browser, drill(tiny_job(tmp_path, models=()), tmp_path / "site")) as visit:
        visit.open("task.html")

        assert (
            visit.page.locator("#responses").inner_text()
            == "No model in this report has a response to this task."
        )
        assert texts(visit.page.locator("h2:visible")) == [
            "Conversation",
            "Responses",
            "Criteria and verdicts",
        ]
        assert visit.faults == []


def test_every_verdict_has_a_link(browser: Browser, world_drilldown: Path, held: Row) -> None:
    task = held["index"]["tasks"][3]
    who = entry(held, "birch-2")
    part = held[f"task-{task['key']}"]
    with visiting(browser, world_drilldown) as visit:
        visit.open(f"task.html#task={task['key']}&a={who['key']}")
        anchor = visit.page.locator("#criteria tbody").nth(8).locator(".anchor").first
        address = anchor.evaluate("(link) => link.href")
    with visiting(browser, world_drilldown, PHONE) as visit:
        visit.page.goto(address)
        visit.page.wait_for_selector("html[data-rendered]", state="attached")
        marked = visit.page.locator("td.marked")
        cell = (1, 8, held["index"]["main"])
        names = ("trial", "position", "judge_config")
        (verdict,) = [
            each
            for each in part[who["key"]]["verdicts"]
            if cell == tuple(each[name] for name in names)
        ]

        assert visit.faults == []
        assert verdict["explanation"] in marked.inner_text()  # the explanation is shown
        assert 0 <= (marked.bounding_box() or {"y": -1})["y"] < PHONE[1]


def test_verdicts_are_searched_and_the_first_ones_shown(visit: Visit, held: Row) -> None:
    visit.open("verdicts.html")
    shown = [
        (held["index"]["statuses"][mark], index)
        for each in held["index"]["entries"]
        if not each["is_also"]
        for marks in held[f"entry-{each['key']}"].get(held["index"]["main"], {}).values()
        for index, mark in enumerate(marks)
        if held["index"]["statuses"][mark] != "not_judged"
    ]
    assert str(len(shown)) == visit.page.locator("#count").get_attribute("data-total")
    assert min(1000, len(shown)) == visit.value(
        "Tabulator.findTable('#verdicts')[0].getDataCount()"
    )

    criteria = held["criteria"]
    visit.page.locator("[name=status]").select_option("unmet")
    visit.page.locator("[name=category]").select_option("Handling Uncertainty")
    visit.page.locator("[name=words]").fill("certainty FACTS")
    expected = [
        index
        for status, index in shown
        if status == "unmet"
        and criteria["category"][index] == "Handling Uncertainty"
        and all(word in criteria["title"][index].lower() for word in ("certainty", "facts"))
    ]
    visit.page.wait_for_function(
        "(n) => document.getElementById('count').dataset.total === n", arg=str(len(expected))
    )
    assert 10 < len(expected) < 1000
    assert set(texts(visit.page.locator("#verdicts .badge"))) == {"✗ not met"}


def test_failures_are_found_among_all_verdicts_and_lead_to_their_causes(visit: Visit) -> None:
    visit.open("verdicts.html#status=undecided&words=")
    visit.page.get_by_role("combobox", name="Judge").select_option("")
    visit.page.locator(".tabulator-row").nth(5).wait_for()
    visit.page.get_by_role("combobox", name="Verdict").select_option("timeout")
    row = visit.page.locator(".tabulator-row", has_text="timeout").first
    row.get_by_role("link").click()

    visit.page.wait_for_url("**/task.html#*")
    visit.page.locator("td.marked", has_text="no reply within 600 s").wait_for()
    assert "timeout" in visit.page.locator("td.marked").inner_text()


def test_data_that_is_missing_is_told_on_the_page(
    browser: Browser, world_drilldown: Path, tmp_path: Path
) -> None:
    site = shutil.copytree(world_drilldown, tmp_path / "site")
    index = held(site)
    for judge_config in index["judge_configs"]:
        (site / f"data/{judge_config['scores']}.js").unlink()
    (site / f"data/{index['criteria']}.js").write_text(
        f'prbench.give("{index["criteria"]}","bm90IGd6aXA=");\n'
    )
    with visiting(browser, site) as visit:
        visit.open("tasks.html")
        assert "cannot be loaded" in visit.page.get_by_role("alert").inner_text()
        visit.open("verdicts.html")
        assert visit.page.get_by_role("alert").inner_text()
        assert visit.value("window.attacked") is None


def test_an_open_page_goes_on_working_when_the_report_is_renewed(
    browser: Browser, tmp_path: Path
) -> None:
    job = tiny_job(tmp_path)
    site = tmp_path / "site"
    drill(job, site)
    with visiting(browser, site) as visit:
        visit.open(f"task.html#task={task_key('t1')}")
        tables = response_rows_of(["t1", "t2"], "m1", "night", created_at=None)
        store(
            job,
            tables | {"responses": [each | {"text": "Another."} for each in tables["responses"]]},
        )
        drill(job, site)
        visit.page.locator("#next").click()
        visit.page.locator("#responses", has_text="m1 says t2.").wait_for()

        assert visit.faults == []
