"""Every page of the report in a real browser: it opens, complains of nothing, asks nobody, and can be used."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tasks.report.pages import PAGES
from tests.report.browser import DESKTOP, PHONE, Visit, visiting

pytestmark = pytest.mark.slow
NAMES = [f"{page.name}.html" for page in PAGES]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_page_opens_without_a_complaint_or_a_request_and_fits_the_screen(
    browser: Browser, world_site: Path, name: str, size: tuple[int, int]
) -> None:
    with visiting(browser, world_site, size) as visit:
        visit.open(name)

        assert visit.faults == []
        assert visit.value("document.querySelectorAll('.chart svg').length") == visit.value(
            "document.querySelectorAll('.panel:not([hidden]) .chart').length"
        )
        assert visit.value("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_a_model_or_a_judge_wrote_does_anything(browser: Browser, hostile_site: Path, name: str) -> None:
    with visiting(browser, hostile_site) as visit:
        visit.open(name)
        visit.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for cell in visit.page.locator("td:visible").all()[:200:20]:
            cell.hover()

        assert visit.faults == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_keeps_nobody_out(browser: Browser, world_site: Path, name: str, dark: bool) -> None:
    with visiting(browser, world_site, dark=dark) as visit:
        visit.open(name)
        found = Axe().run(visit.page, options={"resultTypes": ["violations"]}).response["violations"]

        grave = [each for each in found if each["impact"] in {"serious", "critical"}]
        assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in grave] == []


def _column(visit: Visit, figure: str, heading: str) -> list[str]:
    return [cell.inner_text() for cell in visit.page.locator(f"#{figure} td[headers$='{heading}']:visible").all()]


def test_a_table_is_sorted_by_the_keyboard_up_and_down(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("index.html")
        heading = visit.page.locator("#leaderboard-Score button")

        heading.press("Enter")
        rising = _column(visit, "leaderboard", "leaderboard-Score")
        heading.press("Enter")
        falling = _column(visit, "leaderboard", "leaderboard-Score")

        assert len(set(rising)) > 5
        assert rising == sorted(rising, key=float)
        assert falling == sorted(falling, key=float, reverse=True)
        assert visit.page.locator("#leaderboard-Score").get_attribute("aria-sort") == "descending"


def test_a_word_filters_the_rows(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("index.html")
        visit.page.get_by_label("Filter the rows").first.fill("LEGAL_hard")

        assert set(_column(visit, "leaderboard", "leaderboard-Split")) == {"legal_hard"}


def test_chosen_models_and_judge_hold_for_charts_and_tables_and_on_the_next_page(
    browser: Browser, world_site: Path
) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("index.html")
        visit.page.get_by_text("Models", exact=False).locator("visible=true").first.click()
        visit.page.get_by_role("button", name="none").click()
        visit.page.get_by_label("birch-2").check()
        visit.page.get_by_label("elm-chat").check()
        visit.page.get_by_role("combobox", name="Judge").select_option("mild-judge")

        assert set(_column(visit, "leaderboard", "leaderboard-Model")) == {"birch-2", "elm-chat"}
        assert set(_column(visit, "leaderboard", "leaderboard-Judge")) == {"mild-judge"}
        first = visit.page.locator("#leaderboard .chart svg").first
        first.wait_for()
        assert "birch-2" in first.text_content()  # type: ignore[operator]
        assert "alder-large" not in first.text_content()  # type: ignore[operator]

        visit.open("index.html")
        assert set(_column(visit, "leaderboard", "leaderboard-Model")) == {"birch-2", "elm-chat"}
        assert visit.faults == []


def test_dark_is_kept_from_page_to_page_and_the_charts_follow(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site) as visit:
        visit.open("index.html")
        light = visit.value("getComputedStyle(document.querySelector('.chart svg text')).fill")
        visit.page.get_by_role("button", name="Dark").click()
        visit.page.wait_for_function(
            "(light) => getComputedStyle(document.querySelector('.chart svg text')).fill !== light", arg=light
        )
        visit.open("index.html")

        assert visit.value("document.documentElement.dataset.theme") == "dark"
        assert visit.faults == []


def test_without_scripts_all_numbers_can_still_be_read(browser: Browser, world_site: Path) -> None:
    with visiting(browser, world_site, java_script_enabled=False) as visit:
        visit.page.goto(f"{world_site.as_uri()}/index.html")

        assert visit.page.locator("#leaderboard td").first.is_visible()
