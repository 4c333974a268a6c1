"""The build of a report (figures, pages and files, in an order that keeps open pages working), and
served pages.

The first page of a report folder lists the benchmarks of the warehouse and links to their reports.
"""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb
from markupsafe import Markup

import sql
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.console import advance, progress
from tasks.figures.figure import Interval, Row, grouped, table_columns
from tasks.figures.page import Page, score_word
from tasks.figures.scope import Scope
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.categories import CAPABILITIES, SCORE_COLUMNS, trees
from tasks.figures.shown.overview import OVERVIEW
from tasks.report.drilldown.pages import NAVIGATED, write_drilldown
from tasks.report.rendering.notices import facts, notices
from tasks.report.rendering.page_figures import figures_of, table
from tasks.report.rendering.ranking import Ranking, rankings
from tasks.report.rendering.site import SERVED_POLICY, Site, copy_assets, render
from warehouse import Reader, Warehouse


def build(
    job: Job, folder: Path, vintage: str | None = None, changes: Sequence[Mapping[str, Any]] = ()
) -> int:
    """Write the report of the published data, and return its size in bytes; the same data gives the
    same bytes.

    The report is in a subfolder with the benchmark's name. The first page of the report folder,
    which links to the reports of all benchmarks, is written again; reports of other benchmarks do
    not change.

    Args:
        job: the job whose benchmark, data-set revision, models, judges and splits are shown.
        folder: the report folder to write to.
        vintage: the vintage to show; None for the current one of each model; `all` for all.
        changes: comparisons of the current vintages with earlier ones (`flows.nightly.changes`).

    Raises:
        UsageError: the folder has other content than a report.
        WarehouseError: nothing is published yet.
    """
    with tempfile.TemporaryDirectory() as spill:
        try:
            return _build(job, folder, vintage, changes, Path(spill))
        except duckdb.OutOfMemoryException:  # the texts of one model exceed the limit
            return _build(job, folder, vintage, changes, None)


def _build(
    job: Job,
    folder: Path,
    vintage: str | None,
    changes: Sequence[Mapping[str, Any]],
    spill: Path | None,
) -> int:
    """Write the report, in bounded memory if there is a folder `spill`."""
    warehouse = Warehouse(job.warehouse)
    living = (
        warehouse.living_runs()
    )  # first, so that a run that ends while the state is opened counts as running
    with warehouse.reader(spill) as reader:
        scope = Scope(job, reader, vintage, changes, living)
        name = scope.benchmark.name
        Site(folder)  # refuses a wrong folder before anything is written
        site = Site(folder / name)
        copy_assets(site)
        ranked = rankings(scope)
        pages = [page for page in PAGES if not page.needs or scope.has_rows(page.needs)]
        common = _common(scope, ranked, pages)
        rendered: list[tuple[Page, str]] = []
        with progress("report pages", {"": len(pages)}, is_quiet=job.is_quiet):
            for page in pages:
                rendered.append((page, _rendered(page, scope, site, common, ranked)))
                advance("report pages", succeeded=True)
        # The earlier vintages of comparisons, so that pages can show both responses side by side.
        earlier = [
            {
                **each,
                "vintage": each["first_vintage"],
                "entry": each["model"],
            }
            for each in scope.changes
        ]
        write_drilldown(scope, site, common, earlier)
        for page, html in reversed(rendered):
            site.write(f"{page.name}.html", html)
        site.write(f"{COMPARE.name}.html", render(COMPARE, common, comparison=None))
        site.write(REVISION, scope.revision)
        n_bytes = site.finish()
        write_benchmark_index(folder, reader, name)
        return n_bytes


def _rendered(
    page: Page, scope: Scope, site: Site, common: Mapping[str, Any], ranked: Sequence[Ranking]
) -> str:
    """Return a page's HTML, after writing the files that it loads."""
    figures = figures_of(page, scope, site)
    more: Mapping[str, Any] = {}
    if page is OVERVIEW:
        more = {
            "notices": notices(scope),
            "facts": facts(scope),
            "rankings": ranked,
            "table": table,
        }
    if page is CAPABILITIES:
        more = {
            "trees": trees(scope),
            "score_columns": SCORE_COLUMNS,
            "table": table,
        }
    return render(page, common, figures=figures, **more)


def _common(scope: Scope, ranked: Sequence[Ranking], pages: Sequence[Page]) -> Mapping[str, Any]:
    """Return the values that every page shows; `orders` maps a judge configuration to its models,
    the best first.
    """
    state = state_of(scope.reader)
    narrowed = f", only {scope.narrowed_to}" if scope.narrowed_to else ""
    return {
        "heading": scope.benchmark.title,
        "pages": (*pages, *NAVIGATED, COMPARE),
        "as_of": state,
        "models": [entry["entry"] for entry in scope.entries],
        "judge_configs": [each["judge_config"] for each in scope.judge_configs],
        "main": scope.main,
        "orders": {each.judge_config: each.order for each in ranked},
        "has_others": len(benchmarks_of(scope.reader, scope.benchmark.name)) > 1,
        "footer": f"Data set {scope.revision}{narrowed}. {state}",
    }


def state_of(reader: Reader) -> str:
    """Return a sentence on the time of the shown data: of the last night, and of the last run;
    empty without a run.
    """
    (row,) = reader.rows(sql.read("figures/overview/last_run"))
    if row["as_of"] is None:
        return ""
    as_of = f"{row['as_of'].astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"Last night {row['night']}, last run {as_of}." if row["night"] else f"Last run {as_of}."


def served_page(
    page: Page, benchmark: Benchmark, folder: Path, pages: tuple[Page, ...], **values: Any
) -> str:
    """Return a served page.

    Args:
        page: the page.
        benchmark: the benchmark of the report.
        folder: the folder of its report; the navigation links to the pages that exist there.
        pages: the other served pages.
        values: the values for its template.
    """
    written = [page for page in (*PAGES, *NAVIGATED) if (folder / f"{page.name}.html").is_file()]
    footer = "This page is made when it is opened, on this machine alone."
    common = {
        "heading": benchmark.title,
        "pages": (*written, COMPARE, *pages),
        "footer": footer,
    }
    return render(page, common, policy=SERVED_POLICY, **values)


REVISION = "revision.txt"
"""The file of a benchmark's report with the data-set revision that it shows."""
_MOST = 3
"""Number of ranks that each leaderboard shows."""
_LEADERS = table_columns("split rank model mean_score", Interval("ci"), "n_tasks")
_COUNTS = {
    "Tasks": "n_tasks",
    "Criteria": "n_criteria",
    "Models": "n_models",
    "Judges": "n_judges",
}


def benchmarks_of(reader: Reader, own: str) -> dict[str, list[Row]]:
    """Return the revisions of each benchmark of the warehouse, by its name.

    `own` is included, even without data.
    """
    revisions = grouped(reader.rows(sql.read("report/benchmark_index/benchmarks")), "benchmark")
    return dict(sorted(({own: []} | revisions).items()))


def write_benchmark_index(folder: Path, reader: Reader, own: str) -> None:
    """Write the first page of a report folder; with only one benchmark, the page redirects to its
    report.

    Args:
        folder: the report folder, with a folder for each benchmark whose report was built.
        reader: the published state.
        own: the benchmark whose report was just written.
    """
    site = Site(folder)
    copy_assets(site, {"report.css", "tabulator.css"})
    entries = [
        _entry(folder, reader, name, rows) for name, rows in benchmarks_of(reader, own).items()
    ]
    page = Page("index", "Benchmarks", "", template="benchmark_index.html")
    common = {
        "heading": page.title,
        "pages": [],
        "footer": "",
    }
    site.write("index.html", render(page, common, entries=entries))
    site.finish()


def _entry(
    folder: Path, reader: Reader, name: str, revisions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the entry of a benchmark on the page.

    It shows the revision of the report, or else the one that was judged last.
    """
    is_known = name in benchmark_names()
    is_there = is_known and (folder / name / "index.html").is_file()
    revision_file = folder / name / REVISION
    shown = (
        revision_file.read_text(encoding="utf-8") if is_there and revision_file.is_file() else None
    )
    revisions = sorted(revisions, key=lambda each: each["dataset_revision"] != shown)
    revision = revisions[0]["dataset_revision"] if revisions else ""
    given = {
        "benchmark": name,
        "dataset_revision": revision,
        "most": _MOST,
    }
    says = "No response has been judged in full yet."
    rows = reader.rows(sql.read("report/benchmark_index/leaders"), given)
    if rows:
        score = score_word(load_benchmark(name).primary_score.score_name) if is_known else "score"
        says = (
            f"The first {_MOST} ranks on each split by mean {score}, judged by {rows[0]['judge']}."
        )
    return {
        "name": name,
        "title": load_benchmark(name).title if is_known else name,
        "says": says,
        "leaders": table(f"leaders-{name}", _LEADERS, rows) if rows else Markup(""),
        "link": f"{name}/index.html" if is_there else None,
        "revisions": [_facts(each) for each in revisions],
    }


def _facts(revision: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    at = revision["judged_at"]
    return [
        ("Revision", revision["dataset_revision"][:8], ""),
        *((title, f"{revision[name]:,}", "") for title, name in _COUNTS.items()),
        ("Last judged", f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "never", ""),
    ]
