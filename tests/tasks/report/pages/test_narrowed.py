"""A report of some splits is of their tasks alone, in every figure, fact, link and page; and it says that it is."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.report import write_report
from tasks.config.job import Job
from tasks.figures.registry import FIGURES
from tasks.figures.scope import open_scope
from tasks.figures.shown import PAGES
from tasks.report.rendering.notices import notices
from tests.tasks.report.drilldown.drilled import data
from warehouse import Reader, Warehouse

pytestmark = pytest.mark.slow

POOLED = {each.name: each for page in PAGES for each in page.figures if each.reach == "pooled"}
WHOLE = {each.name for page in PAGES for each in page.figures if each.reach == "warehouse"}


def narrowed(job: Job, *splits: str) -> Job:
    dataset = job.settings.dataset.model_copy(update={"splits": splits})
    return job.model_copy(update={"settings": job.settings.model_copy(update={"dataset": dataset})})


@pytest.fixture(scope="module")
def finance(world_job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of one split of two fields."""
    return write_report(narrowed(world_job, "finance"), tmp_path_factory.mktemp("finance")).index.parent


@pytest.fixture(scope="module")
def reader(world_job: Job) -> Iterator[Reader]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield reader


def numbers(site: Path, name: str) -> list[dict[str, str]]:
    with (site / f"figures/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_link_to_a_task_leads_to_one_that_the_report_has(finance: Path) -> None:
    known = {task["key"] for task in data(finance)["index"]["tasks"]}
    links = [
        key for page in finance.glob("*.html")
        for key in re.findall(r'href="task\.html#task=([^&"]+)', page.read_text(encoding="utf-8"))
    ]  # fmt: skip

    assert len(known) == 24
    assert len(links) > 20
    assert set(links) <= known


def test_no_number_is_of_the_tasks_of_another_split(finance: Path) -> None:
    names = {path.stem for path in (finance / "figures").glob("*.csv")}

    assert len(names - WHOLE) > 25
    for name in names - WHOLE:
        rows = numbers(finance, name)
        assert {row["split"] for row in rows if "split" in row} <= {"finance", "Finance (own hard)"}, name
        assert {row["field"] for row in rows if "field" in row} <= {"Finance"}, name
        assert not [cell for row in rows for cell in row.values() if str(cell).startswith("legal-")], name


def test_what_is_measured_over_all_tasks_at_once_is_left_out_and_the_page_says_so(finance: Path) -> None:
    written = [page for page in PAGES if (finance / f"{page.name}.html").exists()]
    text = "".join((finance / f"{page.name}.html").read_text(encoding="utf-8") for page in written)
    shown = [figure for page in written for figure in page.figures if figure.reach == "pooled"]

    assert shown
    assert not [name for name in POOLED if list((finance / "figures").glob(f"{name}.*"))]
    said = "Measured over all splits at once, but this report shows only split finance."
    assert text.count(said) == sum(not figure.is_optional for figure in shown)


def test_every_page_says_which_splits_it_is_of(finance: Path) -> None:
    for page in finance.glob("*.html"):
        assert "only split finance" in page.read_text(encoding="utf-8"), page.name


def test_what_is_of_the_whole_warehouse_says_so(finance: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in finance.glob("*.html"))
    shown = [name for name in WHOLE if numbers(finance, name)]

    assert shown
    assert pages.count("This covers the whole warehouse, not only split finance.") >= len(shown)


@pytest.mark.parametrize(("splits", "boards"), [
    ((), ["Finance (own hard)", "Legal (own hard)"]), (("finance",), ["Finance (own hard)"]),
    (("finance", "legal"), ["Finance (own hard)", "Legal (own hard)"]), (("finance_hard",), []),
])  # fmt: skip
def test_an_own_hard_selection_is_shown_if_all_that_it_chose_from_belongs_to_the_report(
    world_job: Job, reader: Reader, splits: tuple[str, ...], boards: list[str]
) -> None:
    scope = open_scope(narrowed(world_job, *splits), reader)

    own = {row["split"] for row in scope.rows_of(FIGURES["leaderboard"]) if row["is_own_hard"]}
    assert sorted(own) == sorted({row["split"] for row in scope.rows_of(FIGURES["hard_leaderboard"])}) == boards
    assert {f"{row['field']} (own hard)" for row in scope.rows("hard/hard_selections")} == set(boards)
    assert {f"{row['field']} (own hard)" for row in scope.rows("hard/tasks")} == set(boards)


@pytest.mark.parametrize(("splits", "part"), [
    ((), ""), (("finance",), "split finance"), (("finance", "legal_hard"), "splits finance, legal_hard"),
    (("finance", "legal"), ""),
])  # fmt: skip
def test_a_report_of_splits_that_hold_all_tasks_is_no_part(
    world_job: Job, reader: Reader, splits: tuple[str, ...], part: str
) -> None:
    scope = open_scope(narrowed(world_job, *splits), reader)

    assert scope.narrowed_to == part
    assert [each.text for each in notices(scope) if each.text.startswith("This report shows only")] == (
        [f"This report shows only {part}. It includes own hard selections if all their tasks are in it, and leaves out "
         "figures that are measured over all splits at once."] if part else []
    )  # fmt: skip
