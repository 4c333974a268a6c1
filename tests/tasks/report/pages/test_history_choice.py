"""The history in a browser: what is chosen at the top of the page holds for points that stand for several samplings."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.tasks.report.browser import Visit, visiting
from tests.tasks.report.made_up.contenders import DRIFT_NIGHT

pytestmark = [pytest.mark.slow, pytest.mark.long]


def _titles(visit: Visit) -> list[str]:
    """The charts of the history that are shown."""
    return visit.page.locator("#history .plot:visible figcaption").all_text_contents()


def test_each_judge_has_charts_of_its_own_and_a_change_is_told_in_them(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("history.html")
        strict = _titles(visit)
        drawn = visit.page.locator("#history .plot:visible svg").first.text_content() or ""
        visit.page.get_by_role("combobox", name="Judge").select_option("mild-judge")
        visit.page.wait_for_function("() => document.querySelectorAll('#history .plot:not([hidden]) svg').length === 4")

        splits = ("finance", "finance_hard", "legal", "legal_hard")
        assert strict == [f"{split}, judged by strict-judge" for split in splits]
        assert _titles(visit) == [f"{split}, judged by mild-judge" for split in splits]
        assert "new data set" in drawn
        assert visit.faults == []


def test_a_model_that_is_not_chosen_is_in_no_chart_and_no_row(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("history.html")
        visit.page.locator("#choice summary").click()
        visit.page.get_by_role("button", name="none").click()
        visit.page.get_by_role("checkbox", name="elm-chat").check()
        visit.page.locator("#history .numbers > summary").click()
        visit.page.wait_for_function(
            "() => !document.querySelector('#history .plot:not([hidden]) svg').textContent.includes('fir-flash')"
        )

        rows = visit.page.locator("#history tbody tr:visible").all_inner_texts()
        assert rows
        assert all("elm-chat" in row and "strict-judge" in row for row in rows)
        assert any(DRIFT_NIGHT in row and "yes" in row for row in rows)
        assert visit.faults == []


def test_the_page_of_the_judges_shows_all_of_them_whichever_was_chosen(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("judges.html")

        assert not visit.page.get_by_role("combobox", name="Judge").is_visible()
        shown = visit.page.locator("#judge_agreement .chart svg").first.text_content() or ""
        assert all(grader in shown for grader in ("lawyers", "mild-judge", "strict-judge"))
