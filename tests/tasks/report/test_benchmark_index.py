"""Several benchmarks in one report folder: each has a report of its own, and the first page leads
to all of them.
"""

import re
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tasks.config.job import Job
from tasks.report.build import REVISION, write_benchmark_index
from tests.kit import admitted, combined, criterion
from tests.tasks.report.browser import PHONE, Visit, visiting
from tests.tasks.report.drilldown.drilled import files
from tests.tasks.report.synthetic.research import MODELS
from tests.tasks.report.synthetic.scopes import scope_of
from warehouse import Warehouse

pytestmark = pytest.mark.slow


class Sections:
    """The text and the links of each section of a page, by its id."""

    def __init__(self, page: Path) -> None:
        text = page.read_text(encoding="utf-8")
        actual = re.findall(r'<section[^>]* id="(.*?)"[^>]*>(.*?)</section>', text, re.DOTALL)
        inside = {unescape(name): text for name, text in actual}
        self.texts = {
            name: " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())
            for name, text in inside.items()
        }
        self.links = {
            name: re.findall(r'<a[^>]* href="(.*?)"', text) for name, text in inside.items()
        }


def test_each_benchmark_has_leaders_of_its_own_and_a_way_into_its_report_or_a_command(
    research_site: Path,
) -> None:
    actual = Sections(research_site.parent / "index.html")

    assert list(actual.texts) == ["prbench", "researchrubrics"]
    own = actual.texts["researchrubrics"]
    other = actual.texts["prbench"]
    assert all(model in own and model not in other for model in MODELS)
    assert re.search(r"\bm1\b", other)
    assert not re.search(r"\bm1\b", own)
    assert "mean compliance score, judged by careful." in own
    assert "Tasks 12 Criteria 240 Models 3 Judges 3 Last judged 2026-01-01 00:00 UTC" in own
    assert actual.links["researchrubrics"] == ["researchrubrics/index.html"]
    assert "prbench report --benchmark prbench" in other
    assert actual.links["prbench"] == []


def test_a_build_leaves_the_folders_of_other_benchmarks_alone(
    research_job: Job, tmp_path: Path
) -> None:
    (tmp_path / "prbench").mkdir()
    (tmp_path / "prbench/index.html").write_text("a report of another day")
    (tmp_path / "notes.md").write_text("mine")
    before = files(tmp_path / "prbench")
    (tmp_path / "report.json").write_text('{"format": "prbench-report", "version": 1}')

    with Warehouse(research_job.warehouse).reader() as reader:
        write_benchmark_index(tmp_path, reader, "researchrubrics")

    assert before == files(tmp_path / "prbench")
    assert (tmp_path / "notes.md").read_text() == "mine"
    # Existing reports are linked, whichever benchmark's report is built now.
    assert (Sections(tmp_path / "index.html").links) == {
        "prbench": ["prbench/index.html"],
        "researchrubrics": [],
    }


def test_the_page_of_one_benchmark_alone_goes_straight_to_its_report(world_site: Path) -> None:
    text = (world_site.parent / "index.html").read_text(encoding="utf-8")

    assert '<meta http-equiv="refresh" content="0; url=prbench/index.html">' in text
    assert '<a href="prbench/index.html">' in text
    assert world_site.name == "prbench"


def test_revisions_and_benchmarks_that_this_version_does_not_know_are_told_and_not_linked(
    tmp_path: Path,
) -> None:
    attack = "<script>window.attacked='name'</script>/.."
    own = {**admitted(["t1"], n_criteria=1), "criteria": [criterion("t1", 0, 1.0)]}
    others = ({"dataset_revision": "an-older-revision"}, {"benchmark": attack})
    tables = [
        {name: [row | {k: of[k] for k in of if k in row} for row in own[name]] for name in own}
        for of in others
    ]
    stored = combined(own, *tables)
    scope = scope_of(tmp_path / "warehouse", stored)

    write_benchmark_index(tmp_path / "report", scope.reader, "prbench")

    text = (tmp_path / "report/index.html").read_text(encoding="utf-8")
    actual = Sections(tmp_path / "report/index.html")
    assert "<script>window" not in text
    assert actual.links[attack] == []
    assert attack in actual.texts[attack]
    assert "No response has been judged in full yet." in actual.texts["prbench"]

    (tmp_path / "report/prbench").mkdir()
    (tmp_path / "report/prbench/index.html").write_text("a report")
    for shown in (scope.revision, "an-older-revision"):
        (tmp_path / "report/prbench" / REVISION).write_text(shown)
        write_benchmark_index(tmp_path / "report", scope.reader, "prbench")
        text = Sections(tmp_path / "report/index.html").texts["prbench"]
        assert (
            f"Revision {shown[:8]} Tasks 1 Criteria 1 Models 0 Judges 0 Last judged never" in text
        )
        assert text.index("Revision") == text.index(f"Revision {shown[:8]}")


def test_the_first_page_leads_into_a_report_and_back(browser: Browser, research_site: Path) -> None:
    with visiting(browser, research_site.parent) as visit:
        visit.page.goto(f"{research_site.parent.as_uri()}/index.html")
        visit.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert visit.value("document.documentElement.scrollWidth") <= PHONE[0]
        visit.page.get_by_role("link", name="ResearchRubrics").click()
        visit.page.wait_for_selector("html[data-rendered]", state="attached")
        visit.page.get_by_role("link", name="All benchmarks").click()
        visit.page.wait_for_url("**/index.html")

        assert visit.page.get_by_role("heading", name="Benchmarks").is_visible()
        assert visit.faults == []


def _lines(visit: Visit, number: int) -> list[tuple[str, str]]:
    """The judges listed for a criterion, with the decision of each."""
    rows = visit.page.locator("#criteria tbody").nth(number).locator("tr:not(.criterion)")
    cells = [
        (row.locator("th").inner_text(), row.locator(".badge").first.inner_text())
        for row in rows.all()
    ]
    return [(judge, badge.split(maxsplit=1)[1]) for judge, badge in cells]


def test_labels_filter_tasks_and_three_steps_are_told_with_their_reading(
    browser: Browser, research_site: Path
) -> None:
    with visiting(browser, research_site) as visit:
        visit.open("tasks.html")
        assert visit.page.get_by_label("Topic").is_hidden()
        visit.page.get_by_label("Exploration").select_option("Low")
        assert visit.page.locator("#count").inner_text() == "4 of 12 tasks"
        visit.page.get_by_role("button", name="Reset").click()
        visit.page.get_by_label("Words").fill("shallow")
        visit.page.wait_for_function(
            "() => document.getElementById('count').textContent === '4 of 12 tasks'"
        )

        visit.open("task.html")
        assert "Conceptual breadth" in visit.page.locator("#about").inner_text()
        assert visit.page.locator("#criteria .tag", has_text="mandatory").count() == 8
        facts = [_lines(visit, number) for number in range(20)]
        for lines in facts:
            steps = dict(lines)
            for judge in ("careful", "lenient", "historian"):
                # The binary reading is listed only if its decision differs.
                assert ("not met" if steps[judge] == "partly met" else None) == steps.get(
                    f"{judge} (as binary)"
                )
        disputed = visit.page.locator("#criteria .tag.dispute").count()
        assert (
            sum(
                len({step for judge, step in lines if not judge.endswith(")")}) > 1
                for lines in facts
            )
            == disputed
        )
        assert visit.faults == []
