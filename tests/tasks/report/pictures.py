"""`python -m tests.tasks.report.pictures`: make the README's screenshots, of the made-up
warehouse's report.
"""

import base64
import tempfile
from pathlib import Path

from flows.report import write_report
from tests.tasks.report.browser import browsing, visiting
from tests.tasks.report.synthetic.world import report_world

FOLDER = Path(__file__).parents[3] / "tasks/report/pictures"
SHOWN = {
    "overview": "index.html",
    "categories": "categories.html",
    "tasks": "tasks.html",
    "task": "#changed_tasks a",
}
"""Picture -> its page, or the link on the overview to its page."""


def main():
    """Make all screenshots."""
    with tempfile.TemporaryDirectory() as scratch, browsing() as browser:
        job = report_world(Path(scratch))
        folder = Path(scratch) / "site"
        write_report(job, folder)
        site = folder / job.settings.benchmark
        for name, page in SHOWN.items():
            scheme = "dark" if name == "categories" else "light"
            with visiting(browser, site, color_scheme=scheme) as visit:
                address = page
                if page.startswith("#"):
                    link = visit.open("index.html").locator(page).first
                    address = link.get_attribute("href") or ""
                visit.open(address)
                session = visit.page.context.new_cdp_session(visit.page)
                taken = session.send(
                    "Page.captureScreenshot", {"format": "webp", "quality": 55}
                )
                (FOLDER / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
