"""The served pages in a real browser: used as people use them, on a desk and on a phone, with
attacks in every text.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from flows.report_server.server import renderers_of
from tasks.config.job import Job
from tests.flows.report_server.serving import serving
from tests.tasks.report.browser import PHONE, Visit, accessibility_faults, visiting
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@contextmanager
def visiting_server(
    browser: Browser,
    job: Job,
    site: Path,
    **settings: Any,
) -> Iterator[Visit]:
    renderers = renderers_of(job, site / "index.html", is_live=True)
    with serving(site.parent, renderers) as server:
        address = f"http://127.0.0.1:{server.server_port}/{site.name}"
        with visiting(browser, address, (1400, 900), **settings) as visit:
            yield visit


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_two_models_are_picked_and_changes_lead_to_tasks(
    browser,
    world_job,
    world_site,
):
    with visiting_server(browser, world_job, world_site) as visit:
        page = visit.open("index.html").page
        page.get_by_role("link", name="Compare").click()
        page.get_by_label("First").select_option("alder-large")
        page.get_by_label("Second").select_option("dogwood-open")
        page.get_by_label("Split").select_option("finance")
        page.get_by_role("button", name="Compare").click()
        rows = page.locator("#diff_flips tbody tr")
        expect(rows.first).to_be_visible(timeout=60_000)

        assert rows.locator("td:nth-child(6)").first.inner_text().startswith("−")
        assert accessibility_faults(visit) == []
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert fits(page)
        title = rows.first.locator("td").first.inner_text()
        rows.first.get_by_role("link").click()
        page.wait_for_selector(".marked")
        assert page.locator(".marked").inner_text().split("\n")[0] in title
        assert visit.faults == []


def test_the_live_page_renews_itself_and_keeps_what_is_open(
    browser,
    world_job,
    world_site,
):
    with visiting_server(browser, world_job, world_site) as visit:
        page = visit.open("live.html").page
        assert page.locator("#headline").inner_text() == "No run is in progress."
        assert accessibility_faults(visit) == []
        page.locator("#ranking details.how summary").click()
        page.locator("details.numbers summary").last.click()
        with Warehouse(world_job.warehouse).living("a new run"):
            page.locator("#headline", has_text="1 run is in progress.").wait_for()
        page.locator("#headline", has_text="No run is in progress.").wait_for()
        assert page.locator("#ranking details.how").get_attribute("open") is not None
        assert page.locator("details.numbers").last.get_attribute("open") is None
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert fits(page)
        assert visit.faults == []
        page.route("**/live.html", lambda route: route.abort())
        page.wait_for_selector("#lost:not([hidden])")


def test_nothing_that_anybody_wrote_acts(browser, hostile_job, hostile_site):
    labels = [quote(model.label) for model in hostile_job.settings.models]
    address = f"compare.html?of=model&first={labels[0]}&second={labels[1]}"
    with visiting_server(
        browser,
        hostile_job,
        hostile_site,
        color_scheme="dark",
    ) as visit:
        for name in (address, "compare.html?of=run", "live.html"):
            visit.open(name)
            visit.value(
                "document.querySelectorAll('details').forEach((part) => part.open = true)"
            )
            assert accessibility_faults(visit) == []
            assert visit.faults == []
        visit.open(address)
        expect(visit.locator("#diff_flips tbody tr").first).to_be_visible(
            timeout=60_000
        )
