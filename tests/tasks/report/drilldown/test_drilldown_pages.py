"""The drill-down in a real browser: search, sort, filter, compare, and a link to every verdict."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from tasks.figures.addresses import task_key
from tasks.rules.text.characters import visible
from tests.tasks.report.browser import DESKTOP, PHONE, Visit, visiting
from tests.tasks.report.drilldown.drilled import (
    Row,
    data,
    data_file,
    drill,
    response_rows_of,
    store,
    tiny_job,
)


@pytest.fixture
def visit(browser: Browser, world_drilldown: Path) -> Iterator[Visit]:
    """A visit that must end without faults."""
    with visiting(browser, world_drilldown) as visit:
        yield visit
        assert visit.faults == []


def labelled(documents: list[Row], label: str) -> Row:
    """Return the entry or the judge configuration with a label."""
    return next(document for document in documents if document["label"] == label)


def entry_key_of(contents: Row, label: str) -> str:
    """Return the key of the entry with a label."""
    return str(labelled(contents["index"]["entries"], label)["key"])


def texts(cells: Locator) -> list[str]:
    """Return the texts of elements, with single spaces."""
    return [" ".join(text.split()) for text in cells.all_inner_texts()]


def wait_for_count(visit: Visit, selector: str, count: int):
    """Wait until the page has so many of these elements."""
    script = "([selector, n]) => document.querySelectorAll(selector).length === n"
    visit.page.wait_for_function(script, arg=[selector, count])


def test_attacks_in_texts_and_names_do_nothing(browser, hostile_site):
    tasks = data(hostile_site)["index"]["tasks"]
    n_links = 0
    with visiting(browser, hostile_site) as visit:
        visit.open(f"task.html#task={tasks[0]['key']}")
        visit.locator("[name=b]").select_option(index=2)
        for task in tasks[1:12]:
            visit.locator("#next").click()
            visit.locator("h1", has_text=visible(task["task_id"])).wait_for()
            visit.open_all_details()
            links = visit.locator(".markdown a[href]:visible").all()
            n_links += len(links)
            for link in links:
                assert re.match("(https?|mailto):", link.get_attribute("href") or "")
            for link in links[:1]:
                link.hover()
        visit.locator("#as-text").check()
        visit.locator(".anchor").first.click()
        visit.locator(".marked").first.wait_for()

        assert n_links > 0
        assert visit.faults == []


def test_tasks_are_filtered_by_labels_and_words(visit, contents):
    visit.open("tasks.html")
    visit.locator("[name=field]").select_option("Legal")
    visit.locator("[name=hard]").select_option("hard")
    visit.locator("[name=words]").fill("LEGAL-3")

    tasks = contents["index"]["tasks"]
    expected = [
        task["task_id"]
        for task in tasks
        if "legal-3" in task["task_id"] and task["is_hard"]
    ]
    wait_for_count(visit, ".tabulator-row", len(expected))
    assert len(expected) > 1
    assert texts(visit.locator(".tabulator-frozen a")) == expected
    counts = texts(visit.locator("#count"))
    assert counts == [f"{len(expected)} of {len(tasks)} tasks"]


def test_a_link_keeps_the_filter_of_tasks_until_it_is_reset(visit):
    visit.open("tasks.html#words=legal-30")
    wait_for_count(visit, ".tabulator-row", 1)

    visit.page.get_by_role("button", name="Reset").click()

    visit.locator(".tabulator-row").nth(1).wait_for()


def test_tasks_are_sorted_by_any_column_with_missing_scores_last(visit, contents):
    key = entry_key_of(contents, "dogwood-open")
    judge_config = labelled(contents["index"]["judge_configs"], "mild-judge")
    scores = []
    for value, *_ in contents[f"scores-{judge_config['key']}"][key].values():
        if value is not None:
            scores.append(value)
    visit.open("tasks.html")
    visit.page.get_by_role("combobox", name="Judge").select_option("mild-judge")
    # Large enough for all rows.
    visit.page.set_viewport_size({"width": 1280, "height": 6000})
    column = visit.locator(f".tabulator-cell[tabulator-field='{key}']")
    column.filter(has_text=" to ").first.wait_for()
    heading = visit.locator(f".tabulator-col[tabulator-field='{key}']")

    for is_descending in (True, False):
        heading.click()

        cells = [text.replace("−", "-") for text in texts(column)]
        expected = [f"{value:.2f}" for value in sorted(scores, reverse=is_descending)]
        assert cells[: len(scores)] == expected
        assert len(cells) == len(contents["index"]["tasks"])
        for cell in cells[len(scores) :]:
            assert " to " in cell
    assert heading.get_attribute("aria-sort") == "ascending"


def test_a_response_is_rendered_as_markdown_or_shown_word_for_word(visit, contents):
    task = contents["index"]["tasks"][0]
    entry = entry_key_of(contents, "alder-large")
    response = contents[f"task-{task['key']}"][entry]["responses"][1]

    visit.open(f"task.html#task={task['task_id']}&a={entry}&ta=2")

    assert "**" in response["text"]
    assert visit.locator("#responses .markdown strong").count() > 1
    visit.locator("#as-text").check()
    assert visit.locator("#responses .exact").text_content() == response["text"]


def test_assistant_turns_are_rendered_as_markdown_and_user_turns_word_for_word(
    visit, contents
):
    visit.open(f"task.html#task={contents['index']['tasks'][0]['task_id']}")
    assistant = visit.locator("#conversation .turn.assistant").first
    user = visit.locator("#conversation .turn.user").first

    assert assistant.locator(".markdown strong").count() == 1
    assert user.locator(".exact").count() == 1
    visit.locator("#as-text").check()
    assert (assistant.locator(".exact").text_content() or "").startswith("**")


def first_statuses(section: Row) -> dict[tuple[int, str], str]:
    """Return the statuses of the first trial, by criterion and judge configuration."""
    statuses = {}
    for verdict in section["verdicts"]:
        if verdict["trial"] == 1:
            statuses[verdict["position"], verdict["judge_config"]] = verdict["status"]
    return statuses


def test_two_models_are_compared_and_flipped_verdicts_are_marked_in_words(
    visit, contents
):
    key = contents["index"]["tasks"][0]["key"]
    first = entry_key_of(contents, "alder-large")
    second = entry_key_of(contents, "cedar-mini")
    second_statuses = first_statuses(contents[f"task-{key}"][second])
    flipped_criteria = set()
    marks = []
    for cell, status in first_statuses(contents[f"task-{key}"][first]).items():
        statuses = (status, second_statuses.get(cell))
        if set(statuses) == {"met", "unmet"}:
            flipped_criteria.add(cell[0])
            marks.append("⇄ met → not met" if status == "met" else "⇄ not met → met")

    visit.open(f"task.html#task={key}&a={first}")
    visit.locator("[name=b]").select_option(f"{second} 1")
    visit.locator("[name=show]").select_option("flips")

    wait_for_count(visit, "#criteria tbody", len(flipped_criteria))
    assert len(marks) > 3
    assert sorted(texts(visit.locator("td .flip"))) == sorted(marks)
    count = visit.locator("#n-criteria").inner_text()
    assert f"{len(flipped_criteria)} flipped" in count


def test_a_failed_verdict_says_why_and_is_never_called_unmet(visit, contents):
    entry = entry_key_of(contents, "cedar-mini")

    visit.open(f"task.html#task={task_key('finance-13')}&a={entry}&show=failures")

    assert texts(visit.locator("#criteria tbody tr:nth-child(2) .badge")) == [
        "⚠ parse error",
        "⚠ refused",
        "⚠ truncated",
        "⚠ context length",
        "⚠ timeout",
        "⚠ provider error",
    ]
    assert "no reply within 600 s" in visit.locator("#criteria").inner_text()
    points = r"\d+ to \d+ of \d+ points, 8 of 14 criteria decided"
    text = visit.locator("#responses").inner_text()
    assert re.search(rf"0\.\d+ to 0\.\d+ \({points}\)", text)


def test_a_failed_response_says_why_and_its_verdicts_are_no_flips(visit, contents):
    first = entry_key_of(contents, "dogwood-open")
    second = entry_key_of(contents, "birch-2")

    visit.open(f"task.html#task={task_key('finance-04')}&a={first}&b={second}")

    articles = visit.locator("#responses article")
    articles.filter(has_text="No response: truncated.").first.wait_for()
    badges = texts(visit.locator("#criteria td[data-label^=A] .badge"))
    assert set(badges) == {"∅ no response"}
    assert visit.locator("td .flip").count() == 0


def test_a_task_without_a_response_says_so_in_one_line(browser, tmp_path):
    site = drill(tiny_job(tmp_path, models=()), tmp_path / "site")
    with visiting(browser, site) as visit:
        visit.open("task.html")

        text = visit.locator("#responses").inner_text()
        assert text == "No model in this report has a response to this task."
        headings = texts(visit.locator("h2:visible"))
        assert headings == ["Conversation", "Responses", "Criteria and verdicts"]
        assert visit.faults == []


def test_every_verdict_has_a_link(browser, world_drilldown, contents):
    key = contents["index"]["tasks"][3]["key"]
    entry = entry_key_of(contents, "birch-2")
    [explanation] = [
        verdict["explanation"]
        for verdict in contents[f"task-{key}"][entry]["verdicts"]
        if verdict["position"] == 8
        and verdict["trial"] == 1
        and verdict["judge_config"] == contents["index"]["main"]
    ]
    with visiting(browser, world_drilldown) as visit:
        visit.open(f"task.html#task={key}&a={entry}")
        anchor = visit.locator("#criteria tbody").nth(8).locator(".anchor").first
        address = anchor.evaluate("(link) => link.href")

    with visiting(browser, world_drilldown, PHONE) as visit:
        visit.open(address.rpartition("/")[2])

        marked_cell = visit.locator("td.marked")
        assert explanation in marked_cell.inner_text()
        assert 0 <= (marked_cell.bounding_box() or {"y": -1})["y"] < PHONE[1]
        assert visit.faults == []


def shown_verdicts(contents: Row) -> list[tuple[str, int]]:
    """Return the status and the criterion of each verdict that the page lists at first."""
    index = contents["index"]
    verdicts = []
    for entry in index["entries"]:
        marks_by_trial = contents[f"entry-{entry['key']}"].get(index["main"], {})
        for marks in marks_by_trial.values():
            if not entry["is_earlier"]:
                verdicts += [
                    (index["statuses"][mark], n) for n, mark in enumerate(marks)
                ]
    return [verdict for verdict in verdicts if verdict[0] != "not_judged"]


def test_all_verdicts_are_counted_and_the_first_1000_listed(visit, contents):
    visit.open("verdicts.html")

    n_verdicts = len(shown_verdicts(contents))
    assert n_verdicts > 1000
    assert visit.locator("#count").get_attribute("data-total") == str(n_verdicts)
    assert visit.value("Tabulator.findTable('#verdicts')[0].getDataCount()") == 1000


def test_verdicts_are_searched_by_status_category_and_words(visit, contents):
    categories = contents["criteria"]["category"]
    titles = [title.lower() for title in contents["criteria"]["title"]]
    expected = 0
    for status, number in shown_verdicts(contents):
        has_words = "certainty" in titles[number] and "facts" in titles[number]
        has_category = categories[number] == "Handling Uncertainty"
        if status == "unmet" and has_category and has_words:
            expected += 1
    visit.open("verdicts.html")

    visit.locator("[name=status]").select_option("unmet")
    visit.locator("[name=category]").select_option("Handling Uncertainty")
    visit.locator("[name=words]").fill("certainty FACTS")

    wait_for_count(visit, f"#count[data-total='{expected}']", 1)
    assert expected > 10
    assert set(texts(visit.locator("#verdicts .badge"))) == {"✗ not met"}


@pytest.mark.parametrize(("size", "is_folded"), [(DESKTOP, False), (PHONE, True)])
def test_a_verdict_has_a_second_line_only_where_columns_do_not_fit(
    browser, world_drilldown, size, is_folded
):
    with visiting(browser, world_drilldown, size) as visit:
        visit.open("verdicts.html")
        second_lines = visit.locator(".tabulator-row .about")

        assert (second_lines.count() > 0) == is_folded


def test_a_failed_verdict_is_listed_among_all_and_leads_to_its_cause(visit):
    visit.open("verdicts.html#status=undecided&words=")
    visit.page.get_by_role("combobox", name="Judge").select_option("")
    visit.locator(".tabulator-row").nth(5).wait_for()
    visit.page.get_by_role("combobox", name="Verdict").select_option("timeout")
    row = visit.locator(".tabulator-row", has_text="timeout").first

    row.get_by_role("link").click()

    visit.page.wait_for_url("**/task.html#*")
    visit.locator("td.marked", has_text="no reply within 600 s").wait_for()
    assert "timeout" in visit.locator("td.marked").inner_text()


def test_a_page_says_which_data_cannot_be_loaded(browser, world_drilldown, tmp_path):
    site = shutil.copytree(world_drilldown, tmp_path / "site")
    index = data_file(site)
    for judge_config in index["judge_configs"]:
        (site / f"data/{judge_config['scores']}.js").unlink()
    name = index["criteria"]
    (site / f"data/{name}.js").write_text(f'prbench.give("{name}","bm90IGd6aXA=");\n')

    with visiting(browser, site) as visit:
        visit.open("tasks.html")
        assert "cannot be loaded" in visit.page.get_by_role("alert").inner_text()
        visit.open("verdicts.html")
        assert visit.page.get_by_role("alert").inner_text()


def test_an_open_page_keeps_working_when_the_report_is_written_again(
    browser, tmp_path
):
    job = tiny_job(tmp_path)
    site = drill(job, tmp_path / "site")
    with visiting(browser, site) as visit:
        visit.open(f"task.html#task={task_key('t1')}")
        columns = {"created_at": None, "text": "Another."}
        store(job, response_rows_of(["t1", "t2"], "m1", "night", **columns))
        drill(job, site)

        visit.locator("#next").click()

        visit.locator("#responses", has_text="m1 says t2.").wait_for()
        assert visit.faults == []
