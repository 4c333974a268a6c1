"""A page that a server makes when it is opened, in the style of the report."""

from pathlib import Path
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.report.content.figures import Page
from tasks.report.drilldown import NAVIGATED
from tasks.report.pages import PAGES
from tasks.report.pages.served import COMPARE
from tasks.report.rendering.html import SERVED_POLICY, render


def served_page(page: Page, benchmark: str, folder: Path, pages: tuple[Page, ...], **values: Any) -> str:
    """A served page.

    Args:
        page: the page.
        benchmark: the name of the benchmark.
        folder: the folder of its report; its pages are in the navigation if they are there.
        pages: the served pages beside it.
        values: what its template shows.
    """
    is_there = (folder / "index.html").is_file()
    written = [page for page in (*PAGES, *NAVIGATED) if is_there and (folder / f"{page.name}.html").is_file()]
    common = {
        "heading": load_benchmark(benchmark).title,
        "pages": (*written, COMPARE, *pages),
        "footer": "This page is made when it is opened, on this machine alone.",
    }
    return render(page.template, policy=SERVED_POLICY, report=common, page=page, title=page.title, **values)
