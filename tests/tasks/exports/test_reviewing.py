"""Sheets for reviewers of rubrics: what is sampled and shown, changes by spreadsheet programs, and
the import.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from tasks.config.job import Job
from tasks.exports.sheets import export_review
from tasks.imports.reviews import import_reviews
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import (
    Row,
    copied,
    few_published,
    good_row,
    job_on,
    one_line,
    prepared,
    rows_in,
    values_in,
    write_jsonl,
)
from tests.tasks.exports.conftest import formulas_in, save_sheet, sheet_rows

pytestmark = pytest.mark.usefixtures("without_scores")
N_TASKS = 4
N_CRITERIA = 10
FORMULA = '=HYPERLINK("https://example.org","x")'


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
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
    source = write_jsonl(folder / "finance.jsonl", rows)
    with few_published():
        return prepared(job_on(source, folder / "warehouse"))


def exported(
    job: Job,
    folder: Path,
    **options: object,
) -> list[Row]:
    settings = {"n_criteria": 20} | options
    export_review(job, folder / "sheet.csv", **settings)
    return sheet_rows(folder / "sheet.csv")


def agreeing(rows: list[Row], reviewer: str = "eva") -> list[Row]:
    return [row | {"reviewer": reviewer, "decision": "agree"} for row in rows]


def test_a_sheet_shows_what_a_reviewer_needs(job, tmp_path):
    rows = exported(job, tmp_path, n_criteria=1_000)

    assert len(rows) == N_TASKS * N_CRITERIA
    for row in rows:
        for column in ("title", "conversation", "category", "severity"):
            assert row[column] != ""
        for column in ("reviewer", "decision", "reason", "better_wording"):
            assert row[column] == ""
    assert Counter(row["describes"] for row in rows) == {
        "something desired": 39,
        "something undesired": 1,
    }
    # The rows of a task are together, so that a person reads it once.
    tasks = [row["task"] for row in rows]
    assert sorted(tasks, key=tasks.index) == tasks


def test_a_sheet_for_reviewers_has_no_weights_canaries_or_formulas(job, tmp_path):
    rows = exported(job, tmp_path, n_criteria=1_000)

    text = (tmp_path / "sheet.csv").read_text(encoding="utf-8-sig")
    assert "weight" not in rows[0]
    assert "prbench:sample" not in text
    assert formulas_in(rows) == []


DESIGNS = {
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
    "tasks": (
        {"n_tasks": 3},
        [("all", 30, 3 / 4)],
        "all criteria of 3 of 4 tasks, seed 0",
    ),
}


@pytest.mark.parametrize("case", DESIGNS)
def test_the_probability_of_each_criterion_is_stored(case, job, tmp_path):
    options, strata, design = DESIGNS[case]
    rows = exported(job, tmp_path, **options)

    query = "select stratum, count(*), probability from review_samples group by all order by all"
    assert values_in(job, query) == strata
    query = "select distinct design, n_population from review_samples"
    assert values_in(job, query) == [(design, 40)]
    stored_cells = values_in(job, "select task_id, criterion_id from review_samples")
    cells = [
        (row["task"].removeprefix("'"), row["criterion"].removeprefix("'"))
        for row in rows
    ]
    assert sorted(cells) == sorted(stored_cells)


def test_whole_tasks_are_sampled_with_all_their_criteria(job, tmp_path):
    rows = exported(job, tmp_path, n_tasks=3)

    assert list(Counter(row["task"] for row in rows).values()) == [N_CRITERIA] * 3


def test_the_same_sample_is_stored_once_and_another_seed_is_another_sample(
    job, tmp_path
):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export_review(
            job,
            tmp_path / name / "sheet.csv",
            n_criteria=12,
            seed=seed,
        )

    text = (tmp_path / "a/sheet.csv").read_bytes()
    assert (tmp_path / "b/sheet.csv").read_bytes() == text
    assert (tmp_path / "c/sheet.csv").read_bytes() != text
    samples = rows_in(job, "from review_samples")
    assert len(samples) == 24
    assert len({row["sample_id"] for row in samples}) == 2
    assert len({row["population_id"] for row in samples}) == 1


def test_a_folder_gets_a_sheet_named_after_its_sample_and_none_is_written_over(
    job, tmp_path
):
    export_review(job, tmp_path / "sheets", n_criteria=5)

    [file] = (tmp_path / "sheets").iterdir()
    assert file.stem == f"review-{sheet_rows(file)[0]['sample'][:8]}"
    with pytest.raises(UsageError, match="may be filled in"):
        export_review(job, tmp_path / "sheets", n_criteria=5)


def test_fewer_criteria_than_strata_are_refused(job, tmp_path):
    reason = "-n 1: by category there are 2 strata; use -n 2 or more"
    with pytest.raises(UsageError, match=reason):
        export_review(
            job,
            tmp_path / "other.csv",
            n_criteria=1,
            labels=("category",),
        )


def test_a_conversation_that_no_cell_holds_is_shown_without_its_middle(tmp_path):
    row = good_row("t0") | {"prompt_0": "start " + "word " * 20_000 + "end"}
    source = write_jsonl(tmp_path / "finance.jsonl", [row])
    job = prepared(job_on(source, tmp_path / "warehouse"))

    conversation = exported(job, tmp_path)[0]["conversation"]

    assert len(conversation) < 32_767
    pattern = r"(?s)user: Reference Text 0:.* characters left out \.\.\.\].*word end"
    assert re.fullmatch(pattern, conversation)


def test_reviews_come_back_with_ids_reasons_and_wordings(job, tmp_path):
    rows = agreeing(exported(job, tmp_path, n_criteria=1_000))
    rows[3] |= {
        "decision": " Disagree ",
        "reason": "'=vague",
        "better_wording": "Says 5.",
    }
    rows[4] |= {"decision": "AGREE", "reason": "fine"}

    [report] = import_reviews(job, [save_sheet(tmp_path / "filled.csv", rows)])

    assert report.rows == N_TASKS * N_CRITERIA
    query = """
        select value, status, explanation, better_wording, source, reviewer, review_check
        from criterion_reviews
        where explanation is not null
        order by value
    """
    assert values_in(job, query) == [
        (0.0, "fail", "=vague", "Says 5.", "imported", "eva", "agree"),
        (1.0, "pass", "fine", None, "imported", "eva", "agree"),
    ]
    tasks = values_in(job, "select task_id from expert_reviews")
    assert ("-t0",) in tasks
    assert ("t1",) in tasks


def test_rows_without_a_decision_are_counted_and_those_that_repeat_count_once(
    job, tmp_path
):
    rows = exported(job, tmp_path)
    rows[0] |= {"reviewer": "eva", "decision": "agree"}
    rows[1] |= {"reviewer": "eva", "reason": "not sure"}
    file = save_sheet(tmp_path / "filled.csv", [*rows, rows[0]])

    report, repeated = import_reviews(job, [file, file])

    assert report.rows == 1
    assert "19 rows without a decision skipped" in report.line
    assert repeated.rows == 0


def test_several_reviewers_may_review_a_criterion_and_all_files_are_read_first(
    job, tmp_path
):
    rows = exported(job, tmp_path)
    eva = save_sheet(tmp_path / "eva.csv", agreeing(rows, "eva"))
    unnamed = save_sheet(tmp_path / "unnamed.csv", agreeing(rows, ""))

    reason = r"unnamed.csv: row 1: `reviewer` is missing; add it \(--by NAME"
    with pytest.raises(PipelineError, match=reason):
        import_reviews(job, [eva, unnamed])
    assert rows_in(job, "select 1 from expert_reviews") == []

    import_reviews(job, [eva, unnamed], reviewer="ben")

    query = "select reviewer, count(*) from expert_reviews group by all order by all"
    assert values_in(job, query) == [("ben", 20), ("eva", 20)]


def outside(rows: list[Row]) -> Row:
    """Return the cells of a criterion of a task that is not in the sample of these rows."""
    task = "t3" if rows[0]["task"] == "t2" else "t2"
    return {
        "task": task,
        "criterion": f"{task}-c3",
        "criterion_hash": "",
        "title": "",
    }


WRONG = {
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
        lambda rows: (
            rows.append(rows[0]) or {"decision": "disagree", "reason": "after all"}
        ),
        "a different review already exists (reviewer eva, value 0, earlier in this import)",
    ),
}


@pytest.fixture(scope="module")
def reviewed(shared: Job, tmp_path_factory) -> tuple[Job, list[Row]]:
    """A job, and the rows of its sheet with decisions; nothing may be imported."""
    folder = tmp_path_factory.mktemp("reviewed")
    job = copied(shared, folder / "warehouse")
    with few_published():
        return job, agreeing(exported(job, folder, n_tasks=1))


@pytest.mark.parametrize("case", WRONG)
def test_an_impossible_row_is_refused_in_one_line_and_nothing_is_stored(
    case,
    reviewed,
    tmp_path,
):
    wrong_cells, reason = WRONG[case]
    job, [*rows] = reviewed
    rows[0] = rows[0] | wrong_cells(rows)

    with pytest.raises(PipelineError, match=one_line(reason)):
        import_reviews(job, [save_sheet(tmp_path / "filled.csv", rows)])
    assert rows_in(job, "select 1 from expert_reviews") == []
