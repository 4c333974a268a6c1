"""Data Docs in a real browser: no request off the folder, no message of the console, no attack that does anything."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from expectations import write_docs
from tests.expectations.test_docs import HOSTILE, checked, outcome_of, things

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}: apt-get install chromium"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages on rows whose keys, notes and values are attacks, below a page to go back to."""
    root = tmp_path_factory.mktemp("report")
    (root / "index.html").write_text("<!doctype html><title>The report</title><link rel=icon href=data:,>")
    outcome = outcome_of(things(*HOSTILE, "a-long-word" * 30, keys=(*HOSTILE, "key")))
    pages = {("ingest", "things"): outcome.pages["things"], ("ingest", "others"): ()}
    write_docs(root / "data-docs", "a subject", [checked(run_id=HOSTILE[0]), checked("others")], pages)
    return root / "data-docs"


@pytest.fixture(scope="module", params=["file", "http"])
def address(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The folder opened from disk, and served."""
    if request.param == "file":
        yield folder.as_uri()
        return
    handler = functools.partial(Quiet, directory=str(folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/{folder.name}"
        server.shutdown()
        thread.join()


def test_pages_ask_for_nothing_else_say_nothing_and_are_attacked_in_vain(address: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    asked: list[str] = []
    said: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        page = browser.new_page(viewport={"width": 400, "height": 800})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.goto(f"{address}/index.html")
        page.get_by_role("link", name="things").click()
        page.wait_for_url("**/ingest-things.html")
        title, shown, width = page.title(), page.locator("main").inner_text(), page.evaluate("innerWidth")
        needed = page.evaluate("document.documentElement.scrollWidth")
        colour = page.evaluate("getComputedStyle(document.querySelector('.text-danger')).color")
        page.get_by_role("link", name="Report").click()
        page.wait_for_url(f"{address.rpartition('/')[0]}/index.html")
        browser.close()

    assert [] == said
    assert [] == [url for url in asked if not url.startswith((address.rpartition("/")[0], "data:"))]
    assert "ingest: things · Data Docs" == title
    assert [] == [text for text in HOSTILE if text not in shown]
    assert width == needed
    assert "rgb(179, 38, 30)" == colour  # the style sheet has its effect under the policy
