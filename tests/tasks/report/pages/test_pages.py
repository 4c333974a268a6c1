"""Every page of the report in a real browser: it opens without errors or foreign requests, and can
be used.
"""

import re
from itertools import product

import pytest

from tasks.figures.shown import PAGES
from tasks.report.drilldown.pages import NAVIGATED, TASK
from tests.tasks.report.browser import (
    DESKTOP,
    PHONE,
    Visit,
    accessibility_faults,
    visiting,
)
from tests.tasks.report.drilldown.drilled import numbers

NAMES = [f"{page.name}.html" for page in (*PAGES, *NAVIGATED, TASK)]
OTHERS = [f"{name}.html" for name in ("index", "categories", "data", "verdicts")]
IN_THE_DARK = [
    ("world_site", name)
    for name in ("index.html", "tasks.html", "task.html", "verdicts.html")
]
_RULES_ON_COLOURS = ("color-contrast", "link-in-text-block")
_BROKEN = (
    "[...document.querySelectorAll('.sources a, .date')].filter((one) =>"
    " one.getClientRects().length > 1).map((one) => one.textContent)"
)
_TICKS = """
    [...document.querySelectorAll('#severities .plot:not([hidden])')].map((plot) =>
      [...plot.querySelectorAll('.role-axis-label text')].map((each) => each.textContent)
        .filter((text) => text.endsWith('%')).join(' '))
"""
_ONE_NIGHT = """
    async () => {
      const script = document.querySelector('#judge_drift .chart script');
      const chart = JSON.parse(script.textContent);
      script.textContent = JSON.stringify({ ...chart, rows: chart.rows.slice(1, 2) });
      await charts.drawAll(charts.without);
      const limits = document.querySelectorAll('#judge_drift .mark-rule.role-mark line');
      return [...limits].map((each) => each.getBoundingClientRect().width > 100);
    }
"""
_INK = "getComputedStyle(document.querySelector('.chart svg text')).fill"
_CHARTS = "document.querySelectorAll('.plot:not([hidden]) .chart').length"


_LINKS_ON_SCREEN = """
    [...document.querySelectorAll('.group')].map((group) => [...group.querySelectorAll('a')]
      .filter((link) => link.getBoundingClientRect().right <= innerWidth).map((link) => link.textContent))
"""


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_pages_are_in_groups_whose_first_ones_are_on_screen(
    browser, world_site, size
):
    with visiting(browser, world_site, size) as visit:
        visit.open("index.html")
        groups = visit.locator(".group strong").all_inner_texts()
        results, tasks, judges, data = visit.value(_LINKS_ON_SCREEN)

        assert groups == ["Results", "Tasks and verdicts", "Judges", "Data"]
        assert results[:3] == ["Overview", "Categories", "Capabilities"]
        assert tasks == ["Tasks", "Verdicts"]
        assert judges[:3] == ["Judges", "Debiased scores", "Cascades"]
        assert data == ["Data", "Annotations", "Reviews"]


def test_a_group_of_one_page_is_not_named(browser, research_site):
    with visiting(browser, research_site) as visit:
        visit.open("index.html")

        assert visit.locator(".group", has_text="Data").inner_text() == "Data"


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_first_screen_says_of_when_the_report_is(browser, world_site, size):
    with visiting(browser, world_site, size) as visit:
        visit.open("index.html")
        as_of = visit.locator(".as-of")
        box = as_of.bounding_box()

        assert re.fullmatch(
            r"Last night \d{4}-\d\d-\d\d, last run \d{4}-\d\d-\d\d \d\d:\d\d UTC\.",
            as_of.inner_text(),
        )
        assert box is not None
        assert 0 <= box["y"] < size[1] / 4


def test_headings_of_the_ranking_are_drawn_and_not_written_out(browser, world_site):
    with visiting(browser, world_site) as visit:
        visit.open("index.html")

        assert visit.locator(".boards thead svg").count() > 0
        assert "<svg" not in visit.locator(".boards").first.inner_text()


@pytest.mark.parametrize(
    "page",
    [*product(["world_site"], NAMES), *product(["research_site"], OTHERS)],
    ids=":".join,
)
def test_a_page_opens_without_faults_fits_a_phone_and_is_accessible(
    browser, request, page
):
    site, name = page
    with visiting(browser, request.getfixturevalue(site)) as visit:
        visit.open(name)
        n_drawn_charts = visit.value("document.querySelectorAll('.chart svg').length")
        assert n_drawn_charts == visit.value(_CHARTS)
        assert visit.value("document.documentElement.scrollWidth") <= DESKTOP[0]
        assert accessibility_faults(visit) == []

        visit.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        fits = "() => document.documentElement.scrollWidth <= innerWidth"
        visit.page.wait_for_function(fits)
        assert visit.value(_BROKEN) == []
        if page in IN_THE_DARK:
            visit.page.emulate_media(color_scheme="dark")
            visit.open(name)
            assert accessibility_faults(visit, *_RULES_ON_COLOURS) == []
        assert visit.faults == []


def test_on_a_phone_the_leader_comes_first_and_differences_are_on_screen(
    browser, world_site
):
    with visiting(browser, world_site, PHONE) as visit:
        visit.open("index.html")
        leader = visit.locator(".leader").first.bounding_box()
        notice = visit.locator(".notice").first.bounding_box()
        charts = visit.locator("#changes .chart svg").all()
        boxes = [chart.bounding_box() for chart in charts]

        assert leader
        assert notice
        assert leader["y"] < notice["y"]
        assert boxes
        for box in boxes:
            assert box
            assert box["x"] + box["width"] <= PHONE[0]


@pytest.mark.parametrize("name", NAMES)
def test_no_text_of_a_model_or_a_judge_does_anything(browser, hostile_site, name):
    with visiting(browser, hostile_site) as visit:
        visit.open(name)
        visit.open_all_details()
        # By events: a table only has the cells in view, and the mouse could not reach others.
        move = "(cell) => cell.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
        visit.value(
            f"document.querySelectorAll('td, .tabulator-cell').forEach({move})"
        )

        assert visit.faults == []
        assert visit.value("document.documentElement.scrollWidth") <= DESKTOP[0]


def _column(visit: Visit, figure: str, heading: str) -> list[str]:
    selector = f"#{figure} .tabulator-cell[tabulator-field$='{heading}']"
    return visit.locator(selector).all_inner_texts()


def _scores(visit: Visit) -> list[float]:
    texts = _column(visit, "leaderboard", "leaderboard-mean_score")
    return [float(text.removesuffix("*")) for text in texts]


def _open_leaderboard(visit: Visit):
    visit.open("index.html")
    visit.locator("#leaderboard .numbers > summary").click()
    visit.locator("#leaderboard .tabulator-row").first.wait_for()


def test_a_table_is_sorted_by_the_keyboard_and_filtered_by_a_word(
    browser, world_site
):
    with visiting(browser, world_site) as visit:
        _open_leaderboard(visit)
        heading = visit.locator(
            "#leaderboard [tabulator-field=leaderboard-mean_score][role=columnheader]"
        )

        heading.get_by_role("button").press("Enter")
        ascending_scores = _scores(visit)
        heading.get_by_role("button").press("Enter")
        descending_scores = _scores(visit)

        assert len(set(ascending_scores)) > 5
        assert ascending_scores == sorted(ascending_scores)
        assert descending_scores == sorted(descending_scores, reverse=True)
        assert heading.get_attribute("aria-sort") == "descending"

        visit.page.get_by_label("Filter the rows").first.fill("LEGAL_hard")
        assert set(_column(visit, "leaderboard", "leaderboard-split")) == {
            "legal_hard"
        }


def test_the_keyboard_focus_is_visible_in_a_table(browser, world_site):
    with visiting(browser, world_site) as visit:
        _open_leaderboard(visit)
        rows = visit.locator("#leaderboard .tabulator-tableholder")
        heading = visit.locator("#leaderboard [role=columnheader] button").first

        visit.page.keyboard.press("Tab")
        for element in (heading, rows):
            element.focus()
            assert (
                element.evaluate("(it) => getComputedStyle(it).outlineStyle")
                == "solid"
            )


def test_chosen_models_and_judge_hold_for_charts_tables_and_the_next_page(
    browser, world_site
):
    with visiting(browser, world_site) as visit:
        _open_leaderboard(visit)
        visit.locator("#choice summary").click()
        visit.page.get_by_role("button", name="none").click()
        visit.locator("#choice").get_by_label("birch-2").check()
        visit.locator("#choice").get_by_label("elm-chat").check()
        visit.page.get_by_role("combobox", name="Judge").select_option("mild-judge")

        models = _column(visit, "leaderboard", "leaderboard-model")
        judges = _column(visit, "leaderboard", "leaderboard-judge_config")
        board = visit.locator(".boards:visible tbody").first
        ranked_models = board.locator("td:nth-child(2):visible").all_inner_texts()
        _open_leaderboard(visit)
        later_models = _column(visit, "leaderboard", "leaderboard-model")

        chosen_models = {"birch-2", "elm-chat"}
        assert set(models) == chosen_models
        assert set(judges) == {"mild-judge"}
        assert set(ranked_models) == chosen_models
        assert set(later_models) == chosen_models
        assert visit.faults == []


def test_a_board_without_ranks_shows_the_chosen_models_and_names_their_intervals(
    browser,
    world_site,
):
    with visiting(browser, world_site, PHONE) as visit:
        visit.open("index.html")
        visit.value(
            "document.querySelectorAll('.boards tr > :first-child').forEach((each) =>"
            " each.remove())"
        )
        visit.locator("#choice summary").click()
        visit.page.get_by_role("button", name="none").click()
        visit.locator("#choice").get_by_label("birch-2").check()
        board = visit.locator(".boards:visible table").first
        rows = board.locator("tbody tr:visible")
        interval = rows.get_by_role("img").get_attribute("aria-label")

        assert rows.count() == 1
        assert rows.locator("td:visible").first.inner_text() == "birch-2"
        # Model, score and interval.
        assert rows.locator("td:visible").count() == 3
        assert re.fullmatch(r"0\.\d+ to 0\.\d+", interval or "")


def test_a_single_night_has_visible_limits(browser, world_site):
    with visiting(browser, world_site) as visit:
        visit.open("judges.html")
        assert visit.value(_ONE_NIGHT) == [True] * 3
        assert visit.faults == []


def test_a_page_shows_the_best_models_of_the_judge_on_one_axis_a_figure(
    browser, world_site
):
    with visiting(browser, world_site) as visit:
        visit.open("categories.html")
        count = visit.locator("#n-models")
        checked_boxes = visit.locator("#choice input:checked")
        assert count.inner_text() == "6 of 7 shown, the best by strict-judge"
        visit.page.get_by_role("combobox", name="Judge").select_option("mild-judge")
        assert count.inner_text() == "6 of 7 shown, the best by mild-judge"
        ranks = {}
        for row in numbers(world_site, "leaderboard"):
            if row["judge_config"] == "mild-judge":
                ranks[row["model"]] = int(row["rank"] or 0)
        shown_models = [box.get_attribute("value") for box in checked_boxes.all()]
        assert max(ranks, key=ranks.__getitem__) not in shown_models
        ticks = visit.value(_TICKS)
        assert len(ticks) > 1
        assert len(set(ticks)) == 1
        assert ticks[0].count("%") > 2

        visit.locator("#choice summary").click()
        visit.locator("#choice").get_by_label("birch-2").uncheck()
        # As from another page: the choice is kept, and is in the link again.
        visit.open("categories.html")
        assert visit.page.url.endswith("categories.html?judge=mild-judge")
        assert count.inner_text() == "5 of 7 shown"
        assert visit.faults == []


def test_charts_follow_when_the_system_turns_dark(browser, world_site):
    with visiting(browser, world_site) as visit:
        visit.open("index.html")
        light = visit.value(_INK)
        visit.page.emulate_media(color_scheme="dark")
        visit.page.wait_for_function(f"() => {_INK} !== '{light}'")
        assert visit.faults == []


def test_without_scripts_all_numbers_can_still_be_read(browser, world_site):
    with visiting(browser, world_site, java_script_enabled=False) as visit:
        visit.page.goto(f"{world_site.as_uri()}/index.html")

        assert visit.locator("#leaderboard td").first.is_visible()
        assert visit.locator(".leader:visible").count() == 1
