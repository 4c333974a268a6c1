"""Building a report: figures, pages, and what they load, in an order that leaves open pages working; served pages."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.figures.figure import Page
from tasks.figures.scope import Scope, open_scope
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.capabilities import CAPABILITIES, SCORE_COLUMNS, trees
from tasks.figures.shown.overview import OVERVIEW
from tasks.report.benchmark_index import REVISION, benchmarks_of, write_benchmark_index
from tasks.report.drilldown.pages import NAVIGATED, write_drilldown
from tasks.report.rendering.drawn import figures_of, table
from tasks.report.rendering.notices import facts, notices
from tasks.report.rendering.ranking import Ranking, rankings
from tasks.report.rendering.site import SERVED_POLICY, Site, as_json, copy_assets, render
from warehouse import Warehouse


@dataclass(frozen=True)
class Written:
    """A benchmark's report that was written: its first page, and its size in bytes."""

    index: Path
    n_bytes: int


def build(job: Job, folder: Path, vintage: str | None = None, changes: Sequence[Mapping[str, Any]] = ()) -> Written:
    """Write the report of what is published; the same data gives the same bytes.

    It stands in a folder of the benchmark's name, which is renewed, and so is the first page above it, which leads to
    the reports of all benchmarks; those of others are left alone.

    Args:
        job: whose benchmark, data-set revision, models, judges and splits are shown.
        folder: the report folder, where to.
        vintage: which sampling is shown; None: the latest of each model; `all`.
        changes: the latest samplings compared with earlier ones (`flows.nightly.changes`).

    Raises:
        UsageError: the folder holds something else.
        WarehouseError: nothing is published yet.
    """
    warehouse = Warehouse(job.warehouse)
    living = warehouse.living_runs()  # before the state: a run that ends after it was opened is running in it
    with warehouse.reader() as reader:
        scope = open_scope(job, reader, vintage, changes, living)
        name = scope.benchmark.name
        Site(folder)  # refused before anything is written into it
        site = Site(folder / name)
        copy_assets(site)
        ranked = rankings(scope)
        pages = [page for page in PAGES if not page.needs or scope.has_rows(page.needs)]
        common = _common(scope, ranked, pages)
        with ThreadPoolExecutor(1) as beside:
            # Drawing keeps one core busy, and so leaves another one to the database, compression and hashes.
            drawn = beside.submit(lambda: [_rendered(page, scope, site, common, ranked) for page in pages])
            # The samplings that the latest ones are compared with: their answers can be set beside those of now.
            earlier = [{**each, "vintage": each["first_vintage"], "entry": each["model"]} for each in scope.changes]
            write_drilldown(scope, site, common, earlier)
        for page, html in reversed([*zip(pages, drawn.result(), strict=True)]):
            site.write(f"{page.name}.html", html)
        compare = render(COMPARE.template, report=common, page=COMPARE, title=COMPARE.title, asked=None)
        site.write(f"{COMPARE.name}.html", compare)
        site.write(REVISION, scope.revision)
        written = Written(site.folder / "index.html", site.finish())
        write_benchmark_index(folder, reader, name)
        return written


def _rendered(page: Page, scope: Scope, site: Site, common: Mapping[str, Any], ranked: Sequence[Ranking]) -> str:
    """A page's HTML; what it loads is written."""
    figures = figures_of(page, scope, site)
    more: Mapping[str, Any] = {}
    if page is OVERVIEW:
        more = {"notices": notices(scope), "facts": facts(scope), "rankings": ranked}
    if page is CAPABILITIES:
        more = {"trees": trees(scope), "score_columns": SCORE_COLUMNS, "table": table}
    return render(page.template, report=common, page=page, title=page.title, figures=figures, **more)


def _common(scope: Scope, ranked: Sequence[Ranking], pages: Sequence[Page]) -> Mapping[str, Any]:
    """What every page says; `orders` has by judging the models, the best first."""
    as_of = scope.reader.value("select max(coalesce(ended_at, started_at)) from runs")
    state = f" State of {as_of.astimezone(UTC):%Y-%m-%d %H:%M} UTC." if as_of else ""
    narrowed = f", only {scope.narrowed_to}" if scope.narrowed_to else ""
    return {
        "heading": scope.benchmark.title,
        "pages": (*pages, *NAVIGATED, COMPARE),
        "models": [entry["entry"] for entry in scope.entries],
        "judgings": [judging["judging"] for judging in scope.judgings],
        "main": scope.main,
        "orders": as_json({each.judging: each.order for each in ranked}),
        "has_others": len(benchmarks_of(scope.reader, scope.benchmark.name)) > 1,
        "footer": f"Data set {scope.revision}{narrowed}.{state}",
    }


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
