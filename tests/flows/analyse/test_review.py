"""Reviewing rubrics as a user does it: sheets out and in, `prbench review`, and what `prbench
reviews` shows.
"""

import csv
import re
from pathlib import Path

import pytest

from tests.flows.conftest import Command

pytestmark = pytest.mark.slow


def ready(command: Command) -> int:
    """The assembled sample, and its number of criteria."""
    command.configure(
        dataset={"source": "sample"},
        warehouse="data",
        models=[],
        judges=[],
    )
    command("ingest", "-q")
    command("assemble", "-q")
    query = (
        "select count(*)::int as n from criteria inner join tasks using (task_id) where is_admitted"
    )
    return int(command.sql(query)[0]["n"])


def fill(source: Path, target: Path, reviewer_name: str, worst: int) -> Path:
    """Enter a review in every row but the last; one in `worst` disagrees."""
    csv.field_size_limit(2**31 - 1)
    with source.open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for index, row in enumerate(rows[:-1]):
        row |= {"reviewer": reviewer_name, "decision": "agree"}
        if index % worst == 0:
            row |= {
                "decision": "disagree",
                "reason": "vague",
                "better_wording": "Says which.",
            }
    with target.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return target


def test_a_sheet_goes_out_comes_back_is_measured_shown_and_retracted(
    command: Command, tmp_path: Path
) -> None:
    n_criteria = ready(command)
    assert "No criterion has been reviewed yet." in command("reviews").stdout
    stdout = command("export", "review", str(tmp_path / "sheet.csv"), "-n", "60").stdout
    assert f"60 of {n_criteria} criteria" in stdout
    assert "fill in reviewer: your name; decision: agree or disagree" in stdout
    eva = fill(tmp_path / "sheet.csv", tmp_path / "eva.csv", "eva", 10)
    ben = fill(tmp_path / "sheet.csv", tmp_path / "ben.csv", "ben", 7)
    stdout = command("import", "reviews", str(eva), str(ben)).stdout
    assert stdout.count("59 reviews imported, 0 already present") == 2
    assert stdout.count("1 rows without a decision skipped") == 2
    assert (
        "Some figures are missing; `prbench aggregate` computes them." in command("reviews").stdout
    )
    command("aggregate", "-q")
    reviews = command.json("reviews")

    (share,) = [row for row in reviews["agreement"] if row["label"] == "these reviews"]
    agreed = [(index % 10 != 0) / 2 + (index % 7 != 0) / 2 for index in range(59)]
    assert pytest.approx(sum(agreed) / 59) == share["agreeing_share"]
    assert share["n_criteria"] == 59
    assert share["n_reviews"] == 118
    assert n_criteria == share["n_population"]
    (pair,) = [row for row in reviews["reviewers"] if row["reviewer_b"]]
    alike = sum((index % 10 == 0) == (index % 7 == 0) for index in range(59))
    assert pytest.approx(alike / 59) == pair["agreement"]
    page = command("reviews").stdout
    assert "The benchmark's paper: 0.939 (arXiv 2511.11562, appendix E; no interval given)" in page
    assert "vague" in page

    batch = re.findall(r"batch (\w+)", stdout)[0]
    assert "59 reviews retracted" in command("import", "--retract", batch).stdout
    assert command.sql("select distinct reviewer from criterion_reviews") == [{"reviewer": "ben"}]
