"""The first page of a report folder: the benchmarks of the warehouse, each by itself, with the way into its report."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.figures.columns import columns
from tasks.figures.figure import score_word
from tasks.figures.queries import filled
from tasks.report.rendering.drawn import table
from tasks.report.rendering.site import Site, copy_assets, render
from tasks.rules.text.numbers import counted
from warehouse import Reader

REVISION = "revision.txt"
"""The file of a benchmark's report that says which data-set revision it shows."""
_MOST = 3
"""So many places of each leaderboard are shown."""
_REVISION_CHARACTERS = 8
_LEADERS = columns("split rank model mean_score ci_low ci_high n_tasks")


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
    revisions = benchmarks_of(reader, own)
    if len(revisions) == 1:
        page = render("straight.html", target=f"{own}/index.html", title=_title(own))
    else:
        entries = [_entry(folder, reader, name, rows) for name, rows in revisions.items()]
        common = {"heading": "Benchmarks", "pages": [], "footer": ""}
        page = render(
            "benchmark_index.html", report=common, page={"name": "index"}, title="Benchmarks", entries=entries
        )
    site.write("index.html", page)
    site.finish()


def _entry(folder: Path, reader: Reader, name: str, revisions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the page says of a benchmark: of the revision that its report shows, or else of the one judged last."""
    is_there = name in benchmark_names() and (folder / name / "index.html").is_file()
    said = folder / name / REVISION
    shown = said.read_text(encoding="utf-8") if is_there and said.is_file() else None
    revisions = sorted(revisions, key=lambda each: each["dataset_revision"] != shown)
    rows = []
    if revisions:
        given = {"benchmark": name, "revision": revisions[0]["dataset_revision"], "most": _MOST}
        rows = reader.rows(filled("benchmark_index/leaders", given))
    others = [
        f"Revision {each['dataset_revision'][:_REVISION_CHARACTERS]}: {counted(each['n_tasks'], 'task')}, "
        f"{counted(each['n_criteria'], 'criterion', 'criteria')}, {counted(each['n_models'], 'model')}, "
        f"{counted(each['n_judges'], 'judge')}, last judged {_moment(each['judged_at'])}."
        for each in revisions[1:]
    ]
    return {
        "name": name, "title": _title(name), "facts": _facts(revisions[0]) if revisions else [], "others": others,
        "says": _says(name, rows), "leaders": table(f"leaders-{name}", _LEADERS, rows) if rows else Markup(""),
        "link": f"{name}/index.html" if is_there else None,
    }  # fmt: skip


def _title(name: str) -> str:
    """A benchmark's title; its name where this version does not know it."""
    return load_benchmark(name).title if name in benchmark_names() else name


def _says(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "No response has been judged in full yet."
    score = score_word(load_benchmark(name).primary_score.score_name) if name in benchmark_names() else "score"
    return f"The first {_MOST} places on each split by mean {score}, judged by {rows[0]['judge']}."


def _facts(revision: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    counts = ("Tasks", "n_tasks"), ("Criteria", "n_criteria"), ("Models", "n_models"), ("Judges", "n_judges")
    return [
        ("Revision", revision["dataset_revision"][:_REVISION_CHARACTERS], ""),
        *((title, f"{revision[name]:,}", "") for title, name in counts),
        ("Last judged", _moment(revision["judged_at"]), ""),
    ]


def _moment(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "never"
