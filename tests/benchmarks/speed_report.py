"""The report at full size: building it, building it again, after a night of one model; its size; opening its pages.

What building takes stands beside a plain copy of the same rows to compressed JSON by DuckDB, what opening a page takes
beside opening an empty one. The texts are made-up words: they compress worse than what people read.
"""

import statistics
import tempfile
import time
from pathlib import Path

import duckdb
from playwright.sync_api import Browser

from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.report.build import build
from tests.benchmarks.bench import Clock, Figures, in_process_of_its_own, table
from tests.benchmarks.figures import Figure, arguments, report
from tests.benchmarks.synthetic import REVISION, Size, add_night, synthetic_warehouse
from tests.kit import job_on
from tests.tasks.report.browser import browsing, chromium, visiting
from warehouse import Warehouse

_COPIES = {
    "responses": "task_id, model, trial, status, error, text, chars_alnum, completion_tokens, cost_usd, latency_s",
    "verdicts": "task_id, criterion_id, model, trial, judge, status, explanation, error",
    "criteria": "task_id, criterion_id, position, title, category, severity, weight",
    "message_rows": "task_id, position, role, content",
}
"""The columns of each table that the drill-down shows."""
_PAGES = ("index.html", "tasks.html", "task.html", "verdicts.html")
_OPENINGS = 5
_NOTE_RENDERED = """
    const note = () => { window.drawn_ms ??= performance.now(); };
    new MutationObserver(() => {
        if (document.documentElement.dataset.rendered) requestAnimationFrame(note);
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-rendered"] });
"""
_RENDERED_MS = """() => new Promise((resolve) => {
    const look = () => window.drawn_ms ? resolve(window.drawn_ms) : setTimeout(look, 5);
    look();
})"""
_EMPTY = """<!doctype html><title>empty</title><script src="empty.js"></script>"""


Built = tuple[Figures, float]
"""The cost of a build, and the size of the report in MB."""


def job_of(folder: Path) -> Job:
    """A job on a made-up warehouse."""
    return job_on("hub", folder, dataset={"source": "hub", "revision": REVISION, "splits": ["finance", "legal"]})


def fill(folder: Path, size: Size) -> None:
    """Make the warehouse, and publish it."""
    synthetic_warehouse(folder, size)
    aggregate(job_of(folder))


def one_night_more(folder: Path, size: Size) -> None:
    """Sample one model anew, and publish it."""
    night = f"night-{len(Warehouse(folder).store.parts('responses')):03d}"
    add_night(Warehouse(folder), size, "model-00", night)
    aggregate(job_of(folder))


def built(folder: Path, site: Path) -> Built:
    """Build the report."""
    clock = Clock()
    written = build(job_of(folder), site)
    return clock.figures(1), written.n_bytes / 1e6


def copied(folder: Path, target: Path) -> Built:
    """Copy the rows that the report shows, and nothing else, to compressed JSON."""
    target.mkdir(exist_ok=True)
    clock = Clock()
    with duckdb.connect(str(Warehouse(folder).database), read_only=True) as connection:
        for name, columns in _COPIES.items():
            connection.execute(f"copy (select {columns} from {name}) to '{target / name}.json.gz' (format json)")
    figures = clock.figures(1)
    return figures, sum(path.stat().st_size for path in target.iterdir()) / 1e6


def openings(site: Path) -> list[tuple[str, float]]:
    """Milliseconds from the start of the navigation to the drawn page, each time in a browser that has seen none."""
    (site.parent / "empty").mkdir(exist_ok=True)
    (site.parent / "empty/empty.html").write_text(_EMPTY, encoding="utf-8")
    (site.parent / "empty/empty.js").write_text("document.documentElement.dataset.rendered = 'yes';", encoding="utf-8")
    benchmark = site / job_of(site).settings.benchmark  # above it there is only a page that leads on
    with browsing() as browser:
        figures = [("an empty page", opened(browser, site.parent / "empty", "empty.html"))]
        return figures + [(name, opened(browser, benchmark, name)) for name in _PAGES]


def opened(browser: Browser, folder: Path, name: str) -> float:
    """The median of some openings."""
    times_ms = []
    for _ in range(_OPENINGS):
        with visiting(browser, folder) as visit:
            visit.page.add_init_script(_NOTE_RENDERED)
            visit.page.goto(f"{visit.folder.as_uri()}/{name}", wait_until="commit")
            times_ms.append(visit.value(_RENDERED_MS))
            assert [] == visit.faults
    return statistics.median(times_ms)


def main() -> None:
    """Measure and print."""
    given = arguments(
        __doc__, keeps=True, models=20, trials=3, response_words=(700, "about 5,000 characters"), explanation_words=45,
        folder=(Path, "keep the made-up warehouse here and use it again"),
    )  # fmt: skip
    size = Size(given.models, given.trials, 1, given.response_words, given.explanation_words)
    with tempfile.TemporaryDirectory() as temporary:
        folder, site = given.folder or Path(temporary) / "warehouse", Path(temporary) / "site"
        in_process_of_its_own(fill, folder, size)
        copy, copy_mb = in_process_of_its_own(copied, folder, Path(temporary) / "copy")
        builds = [("a plain copy to JSON", (copy, copy_mb))]
        builds.append(("first", in_process_of_its_own(built, folder, site)))
        builds.append(("again", in_process_of_its_own(built, folder, site)))
        in_process_of_its_own(one_night_more, folder, size)
        builds.append(("after a night of one model", in_process_of_its_own(built, folder, site)))
        print(f"{size.verdicts:,} verdicts, {time.strftime('%Y-%m')}")
        print(table(
            ["build", "s", "ratio", "CPU s", "ratio", "peak MB", "MB", "ratio"],
            [
                (name, f"{each.seconds:.1f}", f"{each.seconds / copy.seconds:.2f}", f"{each.cpu_s:.1f}",
                 f"{each.cpu_s / copy.cpu_s:.2f}", f"{each.peak_mb:.0f}", f"{mb:.0f}", f"{mb / copy_mb:.2f}")
                for name, (each, mb) in builds
            ],
        ))  # fmt: skip
        figures = [Figure(name, each.cpu_s, builds[0][0], copy.cpu_s) for name, (each, _) in builds[1:]]
        pages = openings(site) if chromium() else [("no page was opened: Chromium is not installed", 1.0)]
        figures += [Figure(name, each_ms, pages[0][0], pages[0][1], "ms") for name, each_ms in pages[1:]]
        print(table(
            ["page", "drawn after ms", "ratio"],
            [(name, f"{each_ms:.0f}", f"{each_ms / pages[0][1]:.1f}") for name, each_ms in pages],
        ))  # fmt: skip
        print(report(f"speed_report, {size.verdicts:,} verdicts", figures, must_keep=given.keep))


if __name__ == "__main__":
    main()
