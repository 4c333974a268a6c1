"""The page on reviews: what it shows of made-up reviews, and that it is there only where there are any."""

import csv
import io
import json
from pathlib import Path

import pytest

from tasks.report.build import served_page
from tasks.report.content.edition import Edition
from tasks.report.pages import COMPARE
from tasks.report.pages.reviews import REVIEWS, agreeing, populations, predicting, too_few
from tests.builders import REVISION, admitted, criterion, row
from tests.tasks.report.made_up.editions import check_sources, edition_of, rows_of
from tests.tasks.report.made_up.reviewing import CHECKS

FIGURES = {figure.name: figure for figure in REVIEWS.figures}


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """Ten criteria of five tasks, of which a person reviewed all and disagrees with one."""
    tasks = [f"t{i}" for i in range(5)]
    criteria = [criterion(task, place, 5.0) for task in tasks for place in range(2)]
    keys = [{name: each[name] for name in ("task_id", "criterion_id")} | {"criterion_hash": each["content_hash"]}
            for each in criteria]  # fmt: skip
    reviews = [
        row("expert_reviews", **key, review_id=str(place), reviewer="eva", value=float(place > 0),
            explanation="vague" if not place else None, better_wording="=1+1" if not place else None)
        for place, key in enumerate(keys)
    ]  # fmt: skip
    findings = json.dumps([{"name": "atomic", "passes": True, "reason": ""}])
    by_model = [
        row("model_reviews", **key, review_id=f"{place} {trial}", reviewer="rev", review_trial=trial, status="ok",
            reviewer_config_hash="c", findings=findings)
        for place, key in enumerate(keys)
        for trial in (1, 2)
    ]  # fmt: skip
    samples = [
        row("review_samples", **key, sample_id="s", population_id="p", n_population=40, probability=0.25)
        for key in keys
    ]
    return edition_of(tmp_path / "warehouse", {
        **admitted(tasks, split="sample"), "criteria": criteria, "expert_reviews": reviews, "review_samples": samples,
        "model_reviews": by_model,
    })  # fmt: skip


def test_the_share_stands_beside_the_papers(edition: Edition) -> None:
    rows = rows_of(FIGURES["review_agreement"], edition)
    of_all = {each["label"]: each for each in rows if each["breakdown"] == "All criteria"}

    assert edition.revision == REVISION
    assert of_all["these reviews"]["agreeing_share"] == pytest.approx(0.9)
    assert of_all["the benchmark's paper"]["agreeing_share"] == 0.939
    assert of_all["the benchmark's paper"]["n_criteria"] is None
    assert [each.title for each in agreeing(rows)] == ["All criteria", "Category", "Severity"]
    assert populations(rows) == ["Estimated for 40 criteria."]


def test_a_criterion_with_an_objection_has_its_reason_and_wording(edition: Edition, tmp_path: Path) -> None:
    (found,) = rows_of(FIGURES["review_objections"], edition)

    assert (found["task_id"], found["criterion_id"]) == ("t0", "t0-c0")
    assert (found["reviewer"], found["review_check"], found["explanation"]) == ("eva", "disagrees", "vague")
    assert found["better_wording"] == "=1+1"


@pytest.mark.parametrize("name", FIGURES)
def test_the_csv_and_the_sql_of_a_figure_are_its_numbers(edition: Edition, tmp_path: Path, name: str) -> None:
    check_sources(FIGURES[name], edition, tmp_path / "site")


def test_checks_without_enough_criteria_are_counted_and_not_drawn() -> None:
    rows = [{"outcome": "people", "auc": None, "difference": None, "is_small": True, "review_check": "atomic"}]

    assert predicting(rows) == []
    assert too_few(rows)[0].startswith("No figure for 1 of 1: fewer than 5 tasks")


def test_the_page_is_in_the_navigation_where_there_are_reviews(edition: Edition) -> None:
    assert REVIEWS.needs == "criterion_reviews"
    assert edition.has_rows(REVIEWS.needs)


def test_a_report_without_reviews_has_no_such_page(tmp_path: Path) -> None:
    edition = edition_of(tmp_path / "warehouse", admitted(["t0"], split="sample"))

    assert not edition.has_rows(REVIEWS.needs)


def test_a_served_page_leads_only_to_pages_that_are_there(tmp_path: Path) -> None:
    for name in ("index", "judges"):
        (tmp_path / f"{name}.html").write_text("a page")
    html = served_page(COMPARE, "prbench", tmp_path, (), asked=None)

    assert "judges.html" in html
    assert "reviews.html" not in html


@pytest.mark.slow
def test_every_check_of_the_made_up_reviewer_is_on_the_page(world_site: Path) -> None:
    text = (world_site / "figures" / "review_checks.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))

    assert {each["review_check"] for each in rows} == {"agree", *CHECKS}
    assert "reviews.html" in (world_site / "index.html").read_text(encoding="utf-8")
