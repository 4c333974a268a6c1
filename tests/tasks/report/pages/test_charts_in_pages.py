"""What the pages' scripts make of the charts: whose are shown, in which colours, and where names stand."""

from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.tasks.report.browser import visiting
from tests.tasks.report.made_up.contenders import JUDGES

pytestmark = [pytest.mark.slow, pytest.mark.long]

_TITLES = "[...document.querySelectorAll('#{} .plot:not([hidden]) figcaption')].map((each) => each.textContent)"
_LEGENDS = """
    [...document.querySelectorAll('#categories .plot:not([hidden]) .role-legend')].map((legend) => {
      const texts = [...legend.querySelectorAll('.role-legend-label text')].map((each) => each.textContent);
      const signs = [...legend.querySelectorAll('.role-legend-symbol path')];
      return Object.fromEntries(texts.map((text, i) => [text, getComputedStyle(signs[i]).stroke]));
    })
"""
_NAMES = """
    [...document.querySelectorAll('#length_score .plot:not([hidden])')].map((plot) =>
      [...plot.querySelectorAll('.mark-text.role-mark text')].filter((each) => each.textContent)
        .map((each) => each.getBoundingClientRect()).map((box) => [box.left, box.right, box.top, box.bottom]))
"""


def test_each_judge_has_charts_of_its_own_and_only_the_chosen_one_is_shown(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("categories.html")
        first = visit.value(_TITLES.format("topics"))
        visit.page.get_by_role("combobox", name="Judge").select_option("all judges")
        visit.page.locator(f"#topics .plot:has-text('{JUDGES[1]}') svg").first.wait_for()

        assert first == [f"{split}, judged by {JUDGES[0]}" for split in ("finance", "legal")]
        assert set(visit.value(_TITLES.format("topics"))) == {
            f"{split}, judged by {judge}" for split in ("finance", "legal") for judge in (*JUDGES, f"{JUDGES[0]} #2")
        }
        assert visit.faults == []


def test_without_a_model_a_figure_says_that_nothing_is_chosen(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("categories.html")
        visit.page.locator("#choice summary").click()
        visit.page.get_by_role("button", name="none").click()
        visit.page.locator("#topics .plot").first.wait_for(state="hidden")

        said = visit.value("getComputedStyle(document.querySelector('#topics .plots'), '::after').content")
        assert said == '"No data for this choice."'
        assert visit.faults == []


def test_a_model_has_one_colour_in_all_charts_of_a_page_and_no_two_share_it(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("categories.html")
        finance, legal = visit.value(_LEGENDS)

        assert finance == legal
        assert len(finance) == len(set(finance.values())) == 6


@pytest.mark.parametrize("width", [1280, 390])
def test_no_name_covers_another_one(browser: Browser, world_site: Path, width: int) -> None:
    with visiting(browser, world_site, (width, 900)) as visit:
        visit.open("length-and-cost.html")
        charts = visit.value(_NAMES)

        assert [len(boxes) for boxes in charts] == [7, 7]
        for boxes in charts:
            assert all(0 <= left and right <= width for left, right, _, _ in boxes)
            for one, other in combinations(boxes, 2):
                is_beside = one[1] <= other[0] or other[1] <= one[0]
                assert is_beside or one[3] <= other[2] or other[3] <= one[2]
