"""Axes, and the choice of judge and models, on a page of its own."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup
from playwright.sync_api import Browser

from tasks.figures import charts
from tasks.figures.charts import Plot
from tasks.figures.figure import Figure, Page
from tasks.report.drawing.charts import specification
from tasks.report.rendering.drawn import Drawn
from tasks.report.rendering.site import Site, as_json, copy_assets, render
from tests.tasks.report.browser import Visit, visiting

pytestmark = pytest.mark.slow
JUDGES = ("strict", "mild")
_TICKS = """
    [...document.querySelectorAll('.plot:not([hidden]) .role-axis-label text')]
      .map((each) => Number(each.textContent.replace('−', '-'))).filter((value) => value < 1)
"""


def rows_of(n_models: int) -> list[dict[str, Any]]:
    """Models close to each other under two judges, who rank them in opposite ways; the second gives twice as much."""
    dice = random.Random(n_models)
    rows = []
    for number in range(n_models):
        value, length = 0.2 + 0.2 * number / n_models, 500 + 200 * dice.random()
        for judge, factor, score in (("strict", 1, value), ("mild", 2, 0.6 - value)):
            rows.append({
                "model": f"model-of-a-provider-{number:02}", "judging": judge, "length": length,
                "mean_score": factor * score, "ci_low": factor * (score - 0.02), "ci_high": factor * (score + 0.02),
            })  # fmt: skip
    return rows


def page_on(folder: Path, n_models: int, n_chosen: int | None = None) -> Path:
    """A page with a chart of points and one of intervals for each judge."""
    rows = rows_of(n_models)
    of = {judge: [row for row in rows if row["judging"] == judge] for judge in JUDGES}
    plots = [
        *(charts.scatter(each, x="length", y="mean_score", x_title="Length", y_title="Score", low="ci_low",
                         high="ci_high") for each in of.values()),
        *(charts.intervals(each) for each in of.values()),
    ]  # fmt: skip
    figure = Figure("points", "Points", "", (), lambda _: [Plot("", each) for each in plots], query="none")
    drawn = Drawn(
        figure, "", "", len(rows), [("", as_json(specification(each))) for each in plots], [], 0, Markup("")
    )  # fmt: skip
    orders = {
        judge: [row["model"] for row in sorted(each, key=lambda row: -row["mean_score"])] for judge, each in of.items()
    }
    report = {
        "heading": "A report", "pages": [], "main": "strict", "footer": "",
        "models": orders["strict"], "judgings": JUDGES, "orders": as_json(orders),
    }  # fmt: skip
    site = Site(folder)
    copy_assets(site)
    page = Page("page", "Page", "", n_chosen=n_chosen)
    site.write("page.html", render(page.template, report=report, page=page, title="Page", figures=[drawn]))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, with 20 models of which 6 are shown at first."""
    return page_on(tmp_path_factory.mktemp("chosen"), 20, n_chosen=6)


@pytest.fixture
def visit(folder: Path, browser: Browser) -> Iterator[Visit]:
    """A visit to the page that shows 6 of 20 models."""
    with visiting(browser, folder) as visit:
        yield visit
        assert visit.faults == []


def test_a_page_whose_address_cannot_be_changed_is_drawn_all_the_same(folder: Path, browser: Browser) -> None:
    with visiting(browser, folder) as visit:
        visit.page.add_init_script("history.replaceState = () => { throw new DOMException('no', 'SecurityError'); };")
        visit.open("page.html?judge=mild")

        assert visit.page.locator("#n-models").inner_text() == "6 of 20 shown, the best by mild"
        assert visit.faults == []


def test_the_axis_fits_the_chosen_judge(visit: Visit) -> None:
    visit.open("page.html?judge=strict")
    strict = visit.value(_TICKS)
    visit.open("page.html?judge=mild")

    assert max(strict) <= 0.45
    assert max(visit.value(_TICKS)) >= 0.7


def test_the_best_models_of_the_chosen_judge_are_shown_and_the_judge_is_part_of_the_link(visit: Visit) -> None:
    def chosen() -> list[str]:
        return [box.get_attribute("value") or "" for box in visit.page.locator("#choice input:checked").all()]

    visit.open("page.html")
    said = visit.page.locator("#n-models").inner_text()
    first = chosen()
    visit.page.get_by_role("combobox", name="Judge").select_option("mild")

    assert said == "6 of 20 shown, the best by strict"
    assert [name[-2:] for name in first] == ["19", "18", "17", "16", "15", "14"]
    assert [name[-2:] for name in chosen()] == ["00", "01", "02", "03", "04", "05"]
    assert visit.page.url.endswith("page.html?judge=mild")
    visit.open("page.html")  # as from another page: the choice is kept, and the link says it again
    assert visit.page.url.endswith("page.html?judge=mild")


def test_models_that_somebody_chose_stay_when_the_judge_changes(visit: Visit) -> None:
    visit.open("page.html")
    visit.page.locator("#choice summary").click()
    visit.page.get_by_role("checkbox", name="model-of-a-provider-19").uncheck()
    visit.page.get_by_role("combobox", name="Judge").select_option("mild")

    stored = json.loads(visit.value("sessionStorage.getItem('prbench-choice')"))
    assert len(stored["without"]) == 15
    assert visit.page.locator("#n-models").inner_text() == "5 of 20 shown"
