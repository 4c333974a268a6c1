"""Reviewing rubrics as a user does it: sheets out and in, `prbench review`, and what `prbench
reviews` shows.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.flows.conftest import Command

pytestmark = pytest.mark.slow


def reviewed(sheet: Path, reviewer: str, interval: int) -> Path:
    """Enter a review in every row but the last; one of each `interval` disagrees."""
    csv.field_size_limit(2**31 - 1)
    with sheet.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for index, row in enumerate(rows[:-1]):
        row |= {"reviewer": reviewer, "decision": "agree"}
        if index % interval == 0:
            row |= {
                "decision": "disagree",
                "reason": "vague",
                "better_wording": "Says which.",
            }
    target = sheet.with_name(f"{reviewer}.csv")
    with target.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(
            lines,
            list(rows[0]),
            delimiter=";",
        )
        writer.writeheader()
        writer.writerows(rows)
    return target


@dataclass(frozen=True)
class Reviews:
    """Two reviews of the same 59 criteria, and what commands printed on the way to them."""

    command: Command
    n_criteria: int
    printed_before: str
    printed_by_export: str
    printed_by_import: str
    printed_before_aggregating: str


@pytest.fixture(scope="module")
def reviews(tmp_path_factory) -> Reviews:
    command = Command(tmp_path_factory.mktemp("reviews"))
    command.configure(
        dataset={"source": "sample"},
        warehouse="data",
        models=[],
        judges=[],
    )
    command("ingest")
    command("assemble")
    criteria = command.sql(
        "from criteria semi join (from tasks where is_admitted) using (task_id)"
    )
    printed_before = command("reviews").stdout
    sheet = command.folder / "sheet.csv"
    printed_by_export = command("export", "review", str(sheet), "-n", "60").stdout
    eva = reviewed(sheet, "eva", 10)
    ben = reviewed(sheet, "ben", 7)
    printed_by_import = command("import", "reviews", str(eva), str(ben)).stdout
    printed_before_aggregating = command("reviews").stdout
    command("aggregate")
    return Reviews(
        command,
        len(criteria),
        printed_before,
        printed_by_export,
        printed_by_import,
        printed_before_aggregating,
    )


def test_before_any_review_and_before_aggregating_the_page_says_what_is_missing(
    reviews,
):
    sentence = "Some figures are missing; `prbench aggregate` computes them."
    assert "No criterion has been reviewed yet." in reviews.printed_before
    assert sentence in reviews.printed_before_aggregating


def test_an_exported_sheet_says_how_to_fill_it_in(reviews):
    output = reviews.printed_by_export

    assert f"60 of {reviews.n_criteria} criteria" in output
    assert "fill in reviewer: your name; decision: agree or disagree" in output


def test_imported_sheets_are_counted(reviews):
    output = reviews.printed_by_import

    assert output.count("59 reviews imported, 0 already present") == 2
    assert output.count("1 row without a decision skipped") == 2


def test_the_share_of_criteria_that_people_agree_with_is_measured(reviews):
    rows = reviews.command.json("reviews")["agreement"]

    [share] = [row for row in rows if row["label"] == "these reviews"]
    # Eva disagrees with 6 of 59 criteria, ben with 9.
    assert share["agreeing_share"] == pytest.approx((53 + 50) / (2 * 59))
    assert share["n_criteria"] == 59
    assert share["n_reviews"] == 118
    assert share["n_population"] == reviews.n_criteria


def test_the_agreement_of_two_reviewers_is_measured(reviews):
    rows = reviews.command.json("reviews")["reviewers"]

    [pair] = [row for row in rows if row["reviewer_b"]]
    # Both disagree with the first criterion only.
    assert pair["agreement"] == pytest.approx((59 - 5 - 8) / 59)


def test_reviews_are_shown_beside_those_of_the_paper(reviews):
    page = reviews.command("reviews").stdout

    source = "arXiv 2511.11562, appendix E; no interval given"
    assert f"The benchmark's paper: 0.939 ({source})" in page
    assert "vague" in page


def test_a_batch_of_reviews_can_be_retracted(reviews):
    """It is the last test, because it removes reviews that the others read."""
    batch, *_ = re.findall(r"batch (\w+)", reviews.printed_by_import)

    stdout = reviews.command("import", "--retract", batch).stdout

    reviewers = reviews.command.sql("select distinct reviewer from criterion_reviews")
    assert "59 reviews retracted" in stdout
    assert reviewers == [{"reviewer": "ben"}]
