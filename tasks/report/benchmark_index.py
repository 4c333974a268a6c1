"""The first page of a report folder: the benchmarks of the warehouse, each by itself, with the way into its report."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.figures.columns import columns
from tasks.figures.figure import score_word
from tasks.figures.queries import filled
from tasks.report.rendering.drawn import table
from tasks.report.rendering.site import Site, copy_assets, render
from warehouse import Reader

REVISION = "revision.txt"
"""The file of a benchmark's report that says which data-set revision it shows."""
_MOST = 3
"""So many places of each leaderboard are shown."""
_LEADERS = columns("split rank model mean_score ci_low ci_high n_tasks")
_COUNTS = {"Tasks": "n_tasks", "Criteria": "n_criteria", "Models": "n_models", "Judges": "n_judges"}


def benchmarks_of(reader: Reader, own: str) -> dict[str, list[dict[str, Any]]]:
    """The revisions of each benchmark of the warehouse, by its name; `own` is among them, whatever there is of it."""
    found: dict[str, list[dict[str, Any]]] = {own: []}
    for row in reader.rows(filled("benchmark_index/benchmarks", {})):
        found.setdefault(row["benchmark"], []).append(row)
    return dict(sorted(found.items()))


def write_benchmark_index(folder: Path, reader: Reader, own: str) -> None:
    """Renew the first page of a report folder; where there is one benchmark, it leads straight to its report.

    Args:
        folder: the report folder, with a folder for each benchmark whose report was built.
        reader: the published state.
        own: the benchmark whose report was just built.
    """
    site = Site(folder)
    copy_assets(site, {"report.css", "tabulator.css", "page.js"})
    entries = [_entry(folder, reader, name, rows) for name, rows in benchmarks_of(reader, own).items()]
    common = {"heading": "Benchmarks", "pages": [], "footer": ""}
    page = render("benchmark_index.html", report=common, page={"name": "index"}, title="Benchmarks", entries=entries)
    site.write("index.html", page)
    site.finish()


def _entry(folder: Path, reader: Reader, name: str, revisions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the page says of a benchmark: of the revision that its report shows, or else of the one judged last."""
    is_known = name in benchmark_names()
    is_there = is_known and (folder / name / "index.html").is_file()
    said = folder / name / REVISION
    shown = said.read_text(encoding="utf-8") if is_there and said.is_file() else None
    revisions = sorted(revisions, key=lambda each: each["dataset_revision"] != shown)
    given = {"benchmark": name, "revision": revisions[0]["dataset_revision"] if revisions else "", "most": _MOST}
    says = "No response has been judged in full yet."
    if rows := reader.rows(filled("benchmark_index/leaders", given)):
        score = score_word(load_benchmark(name).primary_score.score_name) if is_known else "score"
        says = f"The first {_MOST} places on each split by mean {score}, judged by {rows[0]['judge']}."
    return {
        "name": name, "title": load_benchmark(name).title if is_known else name, "says": says,
        "leaders": table(f"leaders-{name}", _LEADERS, rows) if rows else Markup(""),
        "link": f"{name}/index.html" if is_there else None, "revisions": [_facts(each) for each in revisions],
    }  # fmt: skip


def _facts(revision: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    at = revision["judged_at"]
    return [
        ("Revision", revision["dataset_revision"][:8], ""),
        *((title, f"{revision[name]:,}", "") for title, name in _COUNTS.items()),
        ("Last judged", f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "never", ""),
    ]
