"""Several benchmarks in one report folder: each has a report of its own, and the first page leads
to all of them.
"""

import re
from html import unescape
from pathlib import Path

import pytest

from tasks.figures.scope import Scope
from tasks.report.build import REVISION, write_benchmark_index
from tests import kit
from tests.kit import Rows, admitted, combined, criterion
from tests.tasks.report.browser import PHONE, visiting
from tests.tasks.report.drilldown.drilled import files
from tests.tasks.report.synthetic.research import MODELS
from tests.tasks.report.synthetic.scopes import scope_of
from warehouse import Warehouse

pytestmark = pytest.mark.slow


class Sections:
    """The text and the links of each section of a page, by its id."""

    def __init__(self, page: Path):
        self.texts: dict[str, str] = {}
        self.links: dict[str, list[str]] = {}
        text = page.read_text()
        section = r'<section[^>]* id="(.*?)"[^>]*>(.*?)</section>'
        for name, html in re.findall(section, text, re.DOTALL):
            words = unescape(re.sub("<[^>]*>", " ", html)).split()
            self.texts[unescape(name)] = " ".join(words)
            self.links[unescape(name)] = re.findall(r'<a[^>]* href="(.*?)"', html)


@pytest.fixture(scope="module")
def sections(research_site: Path) -> Sections:
    """The sections of the first page of two benchmarks, of which one has a report."""
    return Sections(research_site.parent / "index.html")


def test_each_benchmark_has_leaders_of_its_own(sections):
    assert list(sections.texts) == ["prbench", "researchrubrics"]
    assert re.search(r"\bm1\b", sections.texts["prbench"])
    assert not re.search(r"\bm1\b", sections.texts["researchrubrics"])
    for model in MODELS:
        assert model in sections.texts["researchrubrics"]
        assert model not in sections.texts["prbench"]


def test_the_first_page_has_the_size_of_a_benchmark_and_a_link_to_its_report(
    sections,
):
    text = sections.texts["researchrubrics"]

    size = "Tasks 12 Criteria 240 Models 3 Judges 3 Last judged 2026-01-01 00:00 UTC"
    assert "mean compliance score, judged by careful." in text
    assert size in text
    assert sections.links["researchrubrics"] == ["researchrubrics/index.html"]


def test_the_first_page_has_the_command_for_a_report_that_is_not_written(sections):
    assert "prbench report --benchmark prbench" in sections.texts["prbench"]
    assert sections.links["prbench"] == []


def test_a_build_leaves_the_folders_of_other_benchmarks_alone(research_job, tmp_path):
    (tmp_path / "prbench").mkdir()
    (tmp_path / "prbench/index.html").write_text("a report of another day")
    (tmp_path / "notes.md").write_text("mine")
    before = files(tmp_path / "prbench")
    # Without the mark of a report, a folder with other files is refused.
    (tmp_path / "report.json").write_text(
        '{"format": "prbench-report", "version": 1}'
    )

    with Warehouse(research_job.warehouse).reader() as reader:
        write_benchmark_index(tmp_path, reader, "researchrubrics")

    assert files(tmp_path / "prbench") == before
    assert (tmp_path / "notes.md").read_text() == "mine"
    # Existing reports are linked, whichever benchmark's report is built.
    assert Sections(tmp_path / "index.html").links == {
        "prbench": ["prbench/index.html"],
        "researchrubrics": [],
    }


def test_the_page_of_one_benchmark_alone_goes_straight_to_its_report(world_site):
    text = (world_site.parent / "index.html").read_text()

    assert '<meta http-equiv="refresh" content="0; url=prbench/index.html">' in text
    assert '<a href="prbench/index.html">' in text
    assert world_site.name == "prbench"


ATTACK = "<script>window.attacked='name'</script>/.."


def unjudged_task(**changes: str) -> Rows:
    """The rows, by table, of a task with a criterion; of another benchmark or revision."""
    tables = admitted(["t1"], n_criteria=1) | {"criteria": [criterion("t1", 0, 1.0)]}
    for rows in tables.values():
        for row in rows:
            row.update(
                {name: value for name, value in changes.items() if name in row}
            )
    return tables


@pytest.fixture(scope="module")
def unjudged_scope(tmp_path_factory) -> Scope:
    """The scope of two revisions, in a warehouse with a benchmark that this version does not
    know.
    """
    tables = combined(
        unjudged_task(),
        unjudged_task(dataset_revision="an-older-revision"),
        unjudged_task(benchmark=ATTACK),
    )
    return scope_of(tmp_path_factory.mktemp("unjudged"), tables)


def test_a_benchmark_that_this_version_does_not_know_is_named_and_not_linked(
    unjudged_scope,
    tmp_path,
):
    write_benchmark_index(tmp_path, unjudged_scope.reader, "prbench")

    sections = Sections(tmp_path / "index.html")
    assert sections.links[ATTACK] == []
    assert ATTACK in sections.texts[ATTACK]
    assert "<script>window" not in (tmp_path / "index.html").read_text()


def test_a_benchmark_without_verdicts_has_no_leaders(unjudged_scope, tmp_path):
    write_benchmark_index(tmp_path, unjudged_scope.reader, "prbench")

    text = Sections(tmp_path / "index.html").texts["prbench"]
    assert "No response has been judged in full yet." in text


@pytest.mark.parametrize("revision", [kit.REVISION, "an-older-revision"])
def test_the_revision_of_the_report_comes_first(unjudged_scope, tmp_path, revision):
    # The first call only marks the folder as a report.
    write_benchmark_index(tmp_path, unjudged_scope.reader, "prbench")
    (tmp_path / "prbench").mkdir()
    (tmp_path / "prbench/index.html").write_text("a report")
    (tmp_path / "prbench" / REVISION).write_text(revision)

    write_benchmark_index(tmp_path, unjudged_scope.reader, "prbench")

    text = Sections(tmp_path / "index.html").texts["prbench"]
    facts = f"Revision {revision[:8]} Tasks 1 Criteria 1 Models 0 Judges 0 Last judged never"
    assert facts in text
    assert text.index("Revision") == text.index(facts)


def test_the_first_page_leads_into_a_report_and_back(browser, research_site):
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
