"""The build of a report in an order that keeps open pages working; and served pages.

The first page of a report folder lists the benchmarks of the warehouse and links to their reports.
"""

import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from markupsafe import Markup

from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.console import advance, progress
from tasks.figures.figure import Interval, Row, Rows, grouped, table_columns
from tasks.figures.page import Page, score_word
from tasks.figures.scope import Scope
from tasks.figures.shown import COMPARE, PAGES
from tasks.figures.shown.categories import CAPABILITIES, SCORE_COLUMNS, trees
from tasks.figures.shown.overview import OVERVIEW
from tasks.report.drilldown.pages import NAVIGATED, write_drilldown
from tasks.report.rendering.notices import facts, notices
from tasks.report.rendering.page_figures import figures_of, table
from tasks.report.rendering.ranking import Ranking, rankings
from tasks.report.rendering.site import (
    NO_HASHES,
    SERVED_POLICY,
    Hashes,
    Site,
    Values,
    copy_assets,
    render,
)
from warehouse import Reader, Warehouse


def build(
    job: Job,
    folder: Path,
    vintage: str | None = None,
    changes: Rows = (),
    inputs: Hashes = NO_HASHES,
) -> int:
    """Write the report of the published data, and return its size in bytes.

    The same data gives the same bytes.

    The report is in a subfolder with the benchmark's name. The first page of the report folder,
    which links to the reports of all benchmarks, is written again; reports of other benchmarks do
    not change.

    Args:
        job: the job whose benchmark, data-set revision, models, judges and splits are shown.
        folder: the report folder to write to.
        vintage: the vintage to show; None for the current one of each model; `all` for all.
        changes: comparisons of the current vintages with earlier ones
            (`tasks.compare.vintages.changes`).
        inputs: hashes of what the report is made from; with the same results as in the report
            before, its data files are kept.

    Raises:
        UsageError: the folder has other content than a report.
        WarehouseError: nothing is published yet.
    """
    with tempfile.TemporaryDirectory() as spill:
        try:
            return _build(job, folder, vintage, changes, inputs, Path(spill))
        except duckdb.OutOfMemoryException:  # the texts of one model exceed the limit
            return _build(job, folder, vintage, changes, inputs, None)


def _build(
    job: Job,
    folder: Path,
    vintage: str | None,
    changes: Rows,
    inputs: Hashes,
    spill: Path | None,
) -> int:
    """Write the report, in bounded memory if there is a folder `spill`."""
    warehouse = Warehouse(job.warehouse)
    # First, so that a run that ends while the state is opened counts as running.
    living = warehouse.living_runs()
    with warehouse.reader(spill) as reader:
        scope = Scope(job, reader, vintage, changes, living)
        name = scope.benchmark.name
        # Refuses a folder with other content, or marks it as a report, before it has any content.
        Site(folder)
        site = Site(folder / name, inputs)
        copy_assets(site)
        _write_pages(scope, site)
        site.write(REVISION, job.data.revision)
        write_benchmark_index(folder, reader, name, job.hidden_judges)
        return site.finish()  # last, because a finished report is not written again


def _write_pages(scope: Scope, site: Site) -> None:
    """Write all pages, each after the files that it loads."""
    ranked = rankings(scope)
    pages = [
        page for page in PAGES if not page.required_table or scope.has_rows(page.required_table)
    ]
    report = _report_values(scope, ranked, pages)
    html_by_page: dict[str, str] = {}
    with progress("report pages", {"": len(pages)}, is_quiet=scope.job.is_quiet):
        for page in pages:
            values: dict[str, Any] = {"figures": figures_of(page, scope, site), "table": table}
            if page is OVERVIEW:
                values["notices"] = notices(scope)
                values["facts"] = facts(scope)
                values["rankings"] = ranked
            if page is CAPABILITIES:
                values["trees"] = trees(scope)
                values["score_columns"] = SCORE_COLUMNS
            html_by_page[page.name] = render(page, report, **values)
            advance("report pages", succeeded=True)
    # The earlier vintages of comparisons, so that pages can show both responses side by side.
    earlier_entries = [
        {**change, "vintage": change["earlier"], "entry": change["model"]}
        for change in scope.changes
    ]
    write_drilldown(scope, site, report, earlier_entries)
    # In reverse, so that the overview is written after the pages that it links to.
    for name, html in reversed(html_by_page.items()):
        site.write(f"{name}.html", html)
    site.write(f"{COMPARE.name}.html", render(COMPARE, report, comparison=None))


def _report_values(scope: Scope, ranked: Sequence[Ranking], pages: Sequence[Page]) -> Values:
    """Return the values that every page shows.

    `orders` maps a judge configuration to its models, the best first; `has_others` is true if the
    warehouse has other benchmarks.
    """
    state = state_of(scope.reader)
    footer = f"Data set {scope.job.data.revision}"
    if scope.split_limit:
        footer += f", only {scope.split_limit}"
    return {
        "heading": scope.benchmark.title,
        "pages": (*pages, *NAVIGATED, COMPARE),
        "as_of": state,
        "models": [entry["entry"] for entry in scope.entries],
        "judge_configs": [row["judge_config"] for row in scope.judge_configs],
        "main": scope.main,
        "orders": {ranking.judge_config: ranking.order for ranking in ranked},
        "has_others": len(benchmarks_of(scope.reader, scope.benchmark.name)) > 1,
        "footer": f"{footer}. {state}",
    }


def state_of(reader: Reader) -> str:
    """Return a sentence on the time of the shown data; empty without a run."""
    (row,) = reader.query("figures/overview/last_run")
    if row["as_of"] is None:
        return ""
    as_of = _minute(row["as_of"])
    if row["night"]:
        return f"Last night {row['night']}, last run {as_of}."
    return f"Last run {as_of}."


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def served_page(
    page: Page,
    benchmark: Benchmark,
    folder: Path,
    pages: tuple[Page, ...],
    **values: Any,
) -> str:
    """Return a served page.

    Args:
        page: the page.
        benchmark: the benchmark of the report.
        folder: the folder of its report; the navigation links to the pages that exist there.
        pages: the other served pages.
        values: the values for its template.
    """
    report_pages = []
    for report_page in (*PAGES, *NAVIGATED):
        if (folder / f"{report_page.name}.html").is_file():
            report_pages.append(report_page)
    report = {
        "heading": benchmark.title,
        "pages": (*report_pages, COMPARE, *pages),
        "footer": "This page is made when it is opened, on this machine alone.",
    }
    return render(page, report, policy=SERVED_POLICY, **values)


REVISION = "revision.txt"
"""The file of a benchmark's report with the data-set revision that it shows."""
_MOST_RANKS = 3
"""Number of ranks that each leaderboard shows."""
_LEADERS = table_columns("split", "rank", "model", "mean_score", Interval("ci"), "n_tasks")


def benchmarks_of(reader: Reader, name: str) -> dict[str, list[Row]]:
    """Return the revisions of each benchmark of the warehouse, by its name.

    The named benchmark is included, even without data.
    """
    revisions = grouped(reader.query("report/benchmark_index/benchmarks"), "benchmark")
    revisions.setdefault(name, [])
    return dict(sorted(revisions.items()))


def write_benchmark_index(
    folder: Path,
    reader: Reader,
    name: str,
    hidden_judges: Collection[str] = (),
) -> None:
    """Write the first page of a report folder.

    With only one benchmark, the page redirects to its report.

    Args:
        folder: the report folder, with a folder for each benchmark whose report was built.
        reader: the published state.
        name: the benchmark whose report was just written.
        hidden_judges: the labels of its judges without boards.
    """
    site = Site(folder)
    copy_assets(site, {"report.css", "tabulator.css"})
    benchmarks = benchmarks_of(reader, name)
    entries = []
    for benchmark, rows in benchmarks.items():
        hidden = hidden_judges if benchmark == name else ()
        entries.append(_entry(folder, reader, benchmark, rows, hidden))
    page = Page("index", "Benchmarks", "", template="benchmark_index.html")
    report = {"heading": page.title, "pages": [], "footer": ""}
    site.write("index.html", render(page, report, entries=entries))
    site.finish()


def _entry(
    folder: Path,
    reader: Reader,
    name: str,
    revisions: Sequence[Row],
    hidden_judges: Collection[str],
) -> dict[str, Any]:
    """Return the entry of a benchmark on the page.

    It shows the revision of the report, or else the one that was judged last.
    """
    title = name
    score = "score"
    link = None
    if name in benchmark_names():
        benchmark = load_benchmark(name)
        title = benchmark.title
        score = score_word(benchmark.primary_score.score_name)
        if (folder / name / "index.html").is_file():
            link = f"{name}/index.html"
    revision_file = folder / name / REVISION
    if link and revision_file.is_file():
        shown_revision = revision_file.read_text(encoding="utf-8")
        # The shown one first, the others in their order.
        revisions = sorted(revisions, key=lambda row: row["dataset_revision"] != shown_revision)
    parameters = {
        "benchmark": name,
        "dataset_revision": revisions[0]["dataset_revision"] if revisions else "",
        "most": _MOST_RANKS,
        "hidden_judges": list(hidden_judges),
    }
    says = "No response has been judged in full yet."
    leaders = Markup("")
    rows = reader.query("report/benchmark_index/leaders", parameters)
    if rows:
        says = (
            f"The first {_MOST_RANKS} ranks on each split by mean {score}, judged by"
            f" {rows[0]['judge']}."
        )
        leaders = table(f"leaders-{name}", _LEADERS, rows)
    return {
        "name": name,
        "title": title,
        "says": says,
        "leaders": leaders,
        "link": link,
        "revisions": [_facts(revision) for revision in revisions],
    }


def _facts(revision: Row) -> list[tuple[str, str, str]]:
    """Return facts about a revision: (name, value, note); the notes are empty."""
    judged_at = revision["judged_at"]
    return [
        ("Revision", revision["dataset_revision"][:8], ""),
        ("Tasks", f"{revision['n_tasks']:,}", ""),
        ("Criteria", f"{revision['n_criteria']:,}", ""),
        ("Models", f"{revision['n_models']:,}", ""),
        ("Judges", f"{revision['n_judges']:,}", ""),
        ("Last judged", _minute(judged_at) if judged_at else "never", ""),
    ]
