"""Screenshots of the report of the made-up warehouse: `python -m tests.tasks.report.pictures` renews the README's."""

import base64
import tempfile
from html import escape
from pathlib import Path

from playwright.sync_api import Browser, Page

from flows.report import write_report
from tasks.figures.shown import PAGES
from tasks.report.drilldown.pages import NAVIGATED, TASK
from tests.tasks.report.browser import DESKTOP, PHONE, Visit, browsing, visiting
from tests.tasks.report.made_up.world import report_world

FOLDER = Path(__file__).parents[3] / "tasks/report/pictures"
SHOWN = {
    "overview": ("index.html", DESKTOP, False),
    "categories": ("categories.html", DESKTOP, True),
    "tasks": ("tasks.html", DESKTOP, False),
    "task": ("#changed_tasks a", DESKTOP, False),
}
"""Picture -> its page (or the link on the overview that leads there), the window size, whether it is dark."""
SHEETS = {"pages": (DESKTOP, 6, 280), "phone": (PHONE, 6, 145)}
"""Sheet of all pages -> the window of each screenshot, how many are in a row, and how wide each is."""
_QUALITY = 55
_SHEET = """<!doctype html><style>
    body {{ margin: 0; width: {width}px; font: 13px system-ui, sans-serif; background: #fff; }}
    main {{ display: grid; grid-template-columns: repeat({columns}, 1fr); gap: {gap}px; padding: {gap}px; }}
    figure {{ margin: 0; }} img {{ width: 100%; border: 1px solid #bbb; display: block; box-sizing: border-box; }}
</style><main>{figures}</main>"""
_GAP = 10


def picture(page: Page, kind: str = "webp", *, whole: bool = False) -> bytes:
    """A screenshot of the window or of the whole page, as WebP or PNG."""
    session = page.context.new_cdp_session(page)
    quality = {"quality": _QUALITY} if kind == "webp" else {}
    taken = session.send(
        "Page.captureScreenshot", {"format": kind, "captureBeyondViewport": whole, **quality, **_clip(page, whole)}
    )
    return base64.b64decode(taken["data"])


def _clip(page: Page, whole: bool) -> dict[str, object]:
    if not whole:
        return {}
    width, height = page.evaluate("[document.body.scrollWidth, document.body.scrollHeight]")
    return {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}


def sheet(browser: Browser, site: Path, size: tuple[int, int], columns: int, width: int) -> bytes:
    """One picture with the top of every page, in the order of the navigation."""
    figures = []
    for name in [f"{page.name}.html" for page in (*PAGES, *NAVIGATED, TASK)]:
        with visiting(browser, site, size) as visit:
            visit.open(_address(visit, "#changed_tasks a") if name == f"{TASK.name}.html" else name)
            taken = base64.b64encode(picture(visit.page, "png")).decode()
            title = escape(visit.page.title().partition(" · ")[0])
        figures.append(f'<figure><figcaption>{title}</figcaption><img src="data:image/png;base64,{taken}"></figure>')
    across = columns * (width + _GAP) + _GAP
    page = browser.new_page(viewport={"width": across, "height": 100})
    page.set_content(_SHEET.format(width=across, columns=columns, gap=_GAP, figures="".join(figures)))
    taken_all = picture(page, whole=True)
    page.close()
    return taken_all


def shown(browser: Browser, site: Path, folder: Path) -> None:
    """Take the pictures of the README."""
    folder.mkdir(exist_ok=True)
    for name, (page, size, dark) in SHOWN.items():
        with visiting(browser, site, size, dark=dark) as visit:
            visit.open(page if page.endswith(".html") else _address(visit, page))
            (folder / f"{name}.webp").write_bytes(picture(visit.page))
    for name, (size, columns, width) in SHEETS.items():
        (folder / f"{name}.webp").write_bytes(sheet(browser, site, size, columns, width))


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
