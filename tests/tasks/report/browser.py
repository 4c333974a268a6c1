"""Debian's Chromium on the pages of a report, with all errors and warnings recorded."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright

_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = (1280, 900)
PHONE = (390, 800)
_PATIENCE_MS = 60_000


def chromium() -> str | None:
    """Return the path of Chromium; None if it is not installed."""
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    return os.environ.get("CHROMIUM") or installed


@contextmanager
def browsing() -> Iterator[Browser]:
    """A headless browser; without Chromium the test is skipped."""
    path = chromium()
    if path is None:
        pytest.skip(
            "Chromium is not installed: `apt-get install chromium`, or its path in CHROMIUM"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=list(_SWITCHES)
        )
        yield browser
        browser.close()


@dataclass
class Visit:
    """An open page, and its faults: console errors and warnings, and requests to other
    addresses.
    """

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.on(
            "console",
            lambda line: (
                line.type in {"error", "warning"}
                and self.complaints.append(line.text)
            ),
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._requested(request.url))
        self.page.on(
            "dialog",
            lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()),
        )

    def _requested(self, url: str):
        if not url.startswith((self.address, "data:", "about:")):
            self.requests.append(url)

    def open(self, name: str) -> "Visit":
        """Open a page of the report; from a folder, wait until it is rendered."""
        self.page.goto(f"{self.address}/{name}")
        if self.address.startswith("file:"):
            self.page.wait_for_selector("html[data-rendered]", state="attached")
        return self

    def open_all_details(self):
        """Open everything that is folded."""
        self.value(
            "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
        )

    def locator(self, selector: str, **options: Any) -> Locator:
        """Return the elements of the page that a selector finds."""
        return self.page.locator(selector, **options)

    def value(self, expression: str) -> Any:
        """Return the value of a script in the page."""
        return self.page.evaluate(expression)

    @property
    def faults(self) -> list[str]:
        """All faults of the page so far."""
        faults = self.complaints + self.requests
        attack = self.value("window.attacked")
        if attack:
            faults.append(f"attacked: {attack}")
        return faults


@contextmanager
def visiting(
    browser: Browser,
    site: Path | str,
    size: tuple[int, int] = DESKTOP,
    **options: Any,
) -> Iterator[Visit]:
    """Visit the pages of a report, from disk or an address, in a new page; `options` are those of
    the browser context.
    """
    viewport = ViewportSize(width=size[0], height=size[1])
    context = browser.new_context(
        viewport=viewport,
        reduced_motion="reduce",
        **options,
    )
    address = site if isinstance(site, str) else site.resolve().as_uri()
    try:
        yield Visit(context.new_page(), address)
    finally:
        context.close()


def accessibility_faults(visit: Visit, *rules: str) -> list[tuple[str, list[str]]]:
    """Return the serious accessibility findings of axe by these rules, or by all: the rule, and
    some of the elements.
    """
    # Not `preload`: it requests the stylesheets again, which the content security policy forbids.
    options = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    findings = []
    for violation in Axe().run(visit.page, options=options).response["violations"]:
        if violation["impact"] in {"serious", "critical"}:
            elements = [node["html"] for node in violation["nodes"][:3]]
            findings.append((violation["id"], elements))
    return findings
