"""Sheets for reviewers of rubrics: what is sampled and shown, changes by spreadsheet programs, and
the import.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.exports.sheets import export_review
from tasks.imports.reviews import import_reviews
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import good_row, job_on, one_line, prepared, rows_in, values_in, write_jsonl
from tests.tasks.exports.conftest import save_sheet, sheet_rows

pytestmark = pytest.mark.usefixtures("without_scores")
N_TASKS = 4
N_CRITERIA = 10
FORMULA = '=HYPERLINK("https://example.org","x")'
Row = dict[str, str]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Four tasks; one task id and one criterion look like formulas, and one criterion describes a
    fault.
    """
    folder = tmp_path_factory.mktemp("reviewing")
    rows = [good_row(task) for task in ("-t0", "t1", "t2", "t3")]
    rows[1]["rubric"][0]["title"] = FORMULA
    notes = rows[1]["rubric"][1]["annotations"]
    notes["weight_class"] = "detrimental"
    notes["detrimental_weight"] = -5
    for row in rows:
        row["canary"] = f"prbench:sample:finance:{row['task']}"
        for item in row["rubric"][:2]:
            item["annotations"]["criteria_category"] = "Practical Utility"
    return prepared(job_on(write_jsonl(folder / "finance.jsonl", rows), folder / "warehouse"))


def exported(job: Job, folder: Path, **options: object) -> list[Row]:
    given = {"n_criteria": 20} | options
    export_review(job, folder / "sheet.csv", **given)  # type: ignore[arg-type]  # as each test asks
    return sheet_rows(folder / "sheet.csv")


def agreeing(rows: list[Row], reviewer: str = "eva") -> list[Row]:
    return [row | {"reviewer": reviewer, "decision": "agree"} for row in rows]


def test_a_sheet_shows_what_a_reviewer_needs_and_leaves_out_weights_and_canaries(
    job: Job, tmp_path: Path
) -> None:
    rows = exported(job, tmp_path, n_criteria=1_000)
    text = (tmp_path / "sheet.csv").read_text(encoding="utf-8-sig")

    assert len(rows) == N_TASKS * N_CRITERIA
    assert all(
        row["title"] and row["conversation"] and row["category"] and row["severity"] for row in rows
    )
    assert {(r["reviewer"], r["decision"], r["reason"], r["better_wording"]) for r in rows} == {
        ("", "", "", "")
    }
    assert Counter(row["describes"] for row in rows) == {
        "something desired": 39,
        "something undesired": 1,
    }
    assert "weight" not in rows[0]
    assert "prbench:sample" not in text
    assert not [
        cell for row in rows for cell in row.values() if cell[:1] and cell[0] in "=+-@\t\r\n"
    ]
    # The rows of a task are together, so that a person reads it once.
    tasks = [row["task"] for row in rows]
    assert sorted(tasks, key=tasks.index) == tasks


DESIGNS: dict[str, tuple[dict[str, Any], list[tuple[str, int, float]], str]] = {
    "simple": (
        {"n_criteria": 15},
        [("all", 15, 15 / 40)],
        "simple random sample of 15 of 40 criteria, seed 0",
    ),
    "strata": (
        {"n_criteria": 10, "labels": ("category",)},
        [("Financial Accuracy", 5, 5 / 32), ("Practical Utility", 5, 5 / 8)],
        "stratified by category sample of 10 of 40 criteria, seed 0",
    ),
    "tasks": ({"n_tasks": 3}, [("all", 30, 3 / 4)], "all criteria of 3 of 4 tasks, seed 0"),
}


@pytest.mark.parametrize("case", DESIGNS)
def test_the_probability_of_each_criterion_is_stored(case: str, job: Job, tmp_path: Path) -> None:
    options, strata, design = DESIGNS[case]
    rows = exported(job, tmp_path, **options)
    members = rows_in(job, "select * from review_samples")

    shown = {tuple(row[name].removeprefix("'") for name in ("task", "criterion")) for row in rows}
    assert shown == {(m["task_id"], m["criterion_id"]) for m in members}
    actual = Counter((m["stratum"], m["probability"]) for m in members)
    assert strata == sorted(
        (stratum, n, probability) for (stratum, probability), n in actual.items()
    )
    assert {(design, 40)} == {(m["design"], m["n_population"]) for m in members}
    if "tasks" in case:
        assert list(Counter(row["task"] for row in rows).values()) == [N_CRITERIA] * 3


def test_the_same_sample_is_stored_once_and_another_seed_is_another_sample(
    job: Job, tmp_path: Path
) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export_review(job, tmp_path / f"{name}.csv", n_criteria=12, seed=seed)
    texts = [(tmp_path / f"{name}.csv").read_bytes() for name in "abc"]

    assert texts[0] == texts[1] != texts[2]
    query = (
        "select count(*), count(distinct sample_id), count(distinct population_id) from"
        " review_samples"
    )
    assert values_in(job, query) == [(24, 2, 1)]


def test_a_folder_gets_a_sheet_named_after_its_sample_and_none_is_written_over(
    job: Job, tmp_path: Path
) -> None:
    export_review(job, tmp_path / "sheets", n_criteria=5)
    (file,) = (tmp_path / "sheets").iterdir()

    assert f"review-{sheet_rows(file)[0]['sample'][:8]}" == file.stem
    with pytest.raises(UsageError, match="may be filled in"):
        export_review(job, tmp_path / "sheets", n_criteria=5)
    with pytest.raises(UsageError, match=r"-n 1: by category there are 2 strata; use -n 2 or more"):
        export_review(job, tmp_path / "other.csv", n_criteria=1, labels=("category",))


def test_a_conversation_that_no_cell_holds_is_shown_without_its_middle(tmp_path: Path) -> None:
    row = good_row("t0") | {"prompt_0": "start " + "word " * 20_000 + "end"}
    job = prepared(job_on(write_jsonl(tmp_path / "finance.jsonl", [row]), tmp_path / "warehouse"))
    first, *_ = exported(job, tmp_path)

    assert len(first["conversation"]) < 32_767
    shown = r"(?s)user: Reference Text 0:.* characters left out \.\.\.\].*word end"
    assert re.fullmatch(shown, first["conversation"])


def test_reviews_come_back_with_ids_reasons_and_wordings(job: Job, tmp_path: Path) -> None:
    rows = agreeing(exported(job, tmp_path, n_criteria=1_000))
    rows[3] |= {
        "decision": " Disagree ",
        "reason": "'=vague",
        "better_wording": "Says 5.",
    }
    rows[4] |= {"decision": "AGREE", "reason": "fine"}
    (report,) = import_reviews(job, [save_sheet(tmp_path / "filled.csv", rows)])

    assert report.rows == N_TASKS * N_CRITERIA
    common = ("imported", "eva", "agree")
    assert [
        (0.0, "fail", "=vague", "Says 5.", *common),
        (1.0, "pass", "fine", None, *common),
    ] == values_in(
        job,
        "select value, status, explanation, better_wording, source, reviewer, review_check from"
        " criterion_reviews where explanation is not null order by value",
    )
    assert {("-t0",), ("t1",)} <= set(values_in(job, "select task_id from expert_reviews"))


def test_rows_without_a_decision_are_counted_and_those_that_repeat_count_once(
    job: Job, tmp_path: Path
) -> None:
    rows = exported(job, tmp_path)
    rows[0] |= {"reviewer": "eva", "decision": "agree"}
    rows[1] |= {"reviewer": "eva", "reason": "not sure"}
    file = save_sheet(tmp_path / "filled.csv", [*rows, rows[0]])
    (report,) = import_reviews(job, [file])

    assert report.rows == 1
    assert "19 rows without a decision skipped" in report.line
    parts = sorted((job.warehouse / "parts").rglob("*.parquet"))
    assert import_reviews(job, [file])[0].rows == 0
    assert parts == sorted((job.warehouse / "parts").rglob("*.parquet"))


def test_several_reviewers_may_review_a_criterion_and_all_files_are_read_first(
    job: Job, tmp_path: Path
) -> None:
    rows = exported(job, tmp_path)
    eva = save_sheet(tmp_path / "eva.csv", agreeing(rows, "eva"))
    ben = save_sheet(tmp_path / "ben.csv", agreeing(rows, ""))
    with pytest.raises(
        PipelineError, match=r"ben.csv: row 1: `reviewer` is missing; add it \(--by NAME"
    ):
        import_reviews(job, [eva, ben])
    assert rows_in(job, "select 1 from expert_reviews") == []
    assert [each.rows for each in import_reviews(job, [eva, eva])] == [20, 0]
    assert [each.rows for each in import_reviews(job, [ben], reviewer="ben")] == [20]
    query = "select reviewer, count(*) from expert_reviews group by all"
    assert set(values_in(job, query)) == {("ben", 20), ("eva", 20)}


def outside(rows: list[Row]) -> dict[str, str]:
    other = "t2" if rows[0]["task"] != "t2" else "t3"
    return {
        "task": other,
        "criterion": f"{other}-c3",
        "criterion_hash": "",
        "title": "",
    }


WRONG: dict[str, tuple[Callable[[list[Row]], dict[str, str]], str]] = {
    "another word": (
        lambda _: {"decision": "maybe"},
        "`decision` is 'maybe'; enter agree or disagree",
    ),
    "no reason": (
        lambda _: {"decision": "disagree", "reason": " "},
        "disagrees without a `reason`; enter why",
    ),
    "a changed task": (lambda _: {"task": "t9"}, "task 't9' is not in revision"),
    "a changed criterion": (lambda _: {"criterion": "c9"}, "has no criterion 'c9'"),
    "another criterion's id": (
        lambda rows: {"criterion": rows[1]["criterion"]},
        "has other words in the data set than in the sheet",
    ),
    "a title that was edited": (
        lambda _: {"title": "Says something else."},
        "has other words in the data set",
    ),
    "a changed sample": (lambda _: {"sample": "7"}, "is not in sample '7'"),
    "a criterion outside of the sample": (outside, "is not in sample"),
    "a different row before": (
        lambda rows: rows.append(rows[0]) or {"decision": "disagree", "reason": "after all"},
        "a different review already exists (reviewer eva, value 0, earlier in this import)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_impossible_row_is_refused_in_one_line_and_nothing_is_stored(
    case: str, job: Job, tmp_path: Path
) -> None:
    spoiled, reason = WRONG[case]
    rows = agreeing(exported(job, tmp_path, n_tasks=1))
    rows[0] = rows[0] | spoiled(rows)
    with pytest.raises(PipelineError, match=one_line(reason)):
        import_reviews(job, [save_sheet(tmp_path / "filled.csv", rows)])
    assert rows_in(job, "select 1 from expert_reviews") == []
