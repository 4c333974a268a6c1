"""Screenshots of the report of the made-up warehouse: `python -m tests.tasks.report.pictures` renews the README's."""

import base64
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page

from flows.report import write_report
from tests.tasks.report.browser import DESKTOP, Visit, browsing, visiting
from tests.tasks.report.made_up.world import report_world

FOLDER = Path(__file__).parents[3] / "tasks/report/pictures"
SHOWN = {
    "overview": ("index.html", DESKTOP, False),
    "categories": ("categories.html", DESKTOP, True),
    "tasks": ("tasks.html", DESKTOP, False),
    "task": ("#changed_tasks a", DESKTOP, False),
}
"""Picture -> its page (or the link on the overview that leads there), the window size, whether it is dark."""
_QUALITY = 55


def picture(page: Page) -> bytes:
    """A screenshot of the window, as WebP."""
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": _QUALITY})
    return base64.b64decode(taken["data"])


def shown(browser: Browser, site: Path, folder: Path) -> None:
    """Take the pictures of the README."""
    folder.mkdir(exist_ok=True)
    for name, (page, size, dark) in SHOWN.items():
        with visiting(browser, site, size, dark=dark) as visit:
            visit.open(page if page.endswith(".html") else _address(visit, page))
            (folder / f"{name}.webp").write_bytes(picture(visit.page))


def _address(visit: Visit, link: str) -> str:
    address = visit.open("index.html").page.locator(link).first.get_attribute("href")
    assert address
    return address


def main() -> None:
    """Renew them."""
    with tempfile.TemporaryDirectory() as scratch, browsing() as browser:
        site = write_report(report_world(Path(scratch)), Path(scratch) / "site").index.parent
        shown(browser, site, FOLDER)


if __name__ == "__main__":
    main()
