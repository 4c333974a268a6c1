"""Pictures of the report's pages, of the made-up warehouse: for the README, and to look at.

`python -m tests.report.pictures` renews those of the README; `--all FOLDER` takes one of every page at both widths.
"""

import argparse
import base64
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page

from flows.reporting import write_report
from tests.report.browser import DESKTOP, PHONE, Visit, browsing, visiting
from tests.report.world import report_world

FOLDER = Path(__file__).parents[2] / "tasks/report/pictures"
SHOWN = {
    "overview": ("index.html", DESKTOP, False),
    "categories": ("categories.html", DESKTOP, True),
    "tasks": ("tasks.html", DESKTOP, False),
    "task": ("#changed_tasks a", DESKTOP, False),
}
"""Picture of the README -> its page (or what leads there from the overview), the width, and whether it is dark."""
_QUALITY = 55


def picture(page: Page) -> bytes:
    """What the window shows, as WebP."""
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": _QUALITY})
    return base64.b64decode(taken["data"])


def shown(browser: Browser, site: Path, folder: Path) -> None:
    """The pictures of the README."""
    folder.mkdir(exist_ok=True)
    for name, (page, size, dark) in SHOWN.items():
        with visiting(browser, site, size, dark=dark) as visit:
            visit.open(page if page.endswith(".html") else _address(visit, page))
            (folder / f"{name}.webp").write_bytes(picture(visit.page))


def _address(visit: Visit, link: str) -> str:
    address = visit.open("index.html").page.locator(link).first.get_attribute("href")
    assert address
    return address


def everything(browser: Browser, site: Path, folder: Path) -> None:
    """Every page from top to bottom, at both widths, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(site.glob("*.html")):
        for size in (DESKTOP, PHONE):
            for dark in (False, True):
                with visiting(browser, site, size, dark=dark) as visit:
                    visit.open(path.name)
                    name = f"{path.stem}-{size[0]}{'-dark' if dark else ''}.png"
                    visit.page.screenshot(path=folder / name, full_page=True)


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(prog="python -m tests.report.pictures", description=__doc__)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every page at both widths, into a folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, browsing() as browser:
        site = write_report(report_world(Path(scratch)), Path(scratch) / "site").index.parent
        if asked.all:
            everything(browser, site, asked.all)
        else:
            shown(browser, site, FOLDER)


if __name__ == "__main__":
    main()
