"""What a sheet says about its labels, compared with the figures that exist once it is filled in."""

import re
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.exports.sheets import LabellingReport, export_sampled_labelling
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.measures import renew
from tests.kit import Row, Values, good_row, job_on, prepared, values_in, write_jsonl
from tests.tasks.dataset.rows import hub_criterion
from tests.tasks.exports.conftest import (
    DEBIASED,
    filled,
    save_sheet,
    sheet_rows,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_debiased")]
FINANCE = [f"f{number}" for number in range(24)]
LEGAL = [f"l{number}" for number in range(14)]
SPLITS = {
    "finance": FINANCE,
    "finance_hard": FINANCE[:16],
    "legal": LEGAL,
}
MODELS = ("ada", "bob")
N_CRITERIA = 10


def criteria_of(task: str) -> list[Row]:
    categories = ("Practical Utility", "Financial Accuracy")
    return [
        hub_criterion(
            f"{task}-c{number}",
            "important",
            4 + number % 4,
            criteria_category=categories[number % 2],
        )
        for number in range(N_CRITERIA)
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """Two models on a split with 24 tasks, its hard subset, and a split with 14 tasks, all
    judged.
    """
    folder = tmp_path_factory.mktemp("splits")
    source = folder / "source"
    source.mkdir()
    for split, tasks in SPLITS.items():
        field = "Legal" if split == "legal" else "Finance"
        rows = [
            good_row(task, rubric=criteria_of(task), field=field) for task in tasks
        ]
        write_jsonl(source / f"{split}.jsonl", rows)
    job = prepared(job_on(source, folder / "warehouse"))
    cells = [
        {"task": task, "model": model}
        for task in (*FINANCE, *LEGAL)
        for model in MODELS
    ]
    responses = [cell | {"response": str(cell)} for cell in cells]
    import_responses(job, write_jsonl(folder / "r.jsonl", responses))
    decisions = [
        cell
        | {
            "criterion": f"{cell['task']}-c{number}",
            "judge": "a-judge",
            "criteria_met": (index + number) % 3 > 0,
        }
        for index, cell in enumerate(cells)
        for number in range(N_CRITERIA)
    ]
    import_verdicts(job, write_jsonl(folder / "v.jsonl", decisions))
    return job


def exported(
    job: Job,
    file: Path,
    n_rows: int,
    **options: Any,
) -> LabellingReport:
    settings = {"sampled_for": "leaderboard"} | options
    return export_sampled_labelling(job, file, n_rows=n_rows, **settings)


def label(job: Job, file: Path):
    """Fill in a sheet and import it."""
    rows = filled(sheet_rows(file))
    import_verdicts(job, save_sheet(file.with_suffix(".filled.csv"), rows))
    renew(job, DEBIASED)


def stored_figures(
    job: Job,
    condition: str = "breakdown = 'all' and is_primary",
) -> Values:
    query = "select model, split, n_labels, no_figure from debiased_scores where judge = 'a-judge'"
    return values_in(job, f"{query} and {condition} order by split, model")


def stated_number(pattern: str, report: LabellingReport) -> int:
    """Return the number in a note of a report."""
    match = re.search(pattern, report.line)
    return int(match[1])


NEEDED = r"-n (\d+) gives an interval to all 4 that can have one"


def promised_figures(report: LabellingReport) -> Values:
    return [
        (row["model"], row["split"], row["n_labels"], row["no_figure"])
        for row in report.figures
    ]


def test_a_sheet_promises_the_figures_that_its_labels_give_on_each_split(
    job, tmp_path
):
    report = exported(job, tmp_path / "a.csv", 500, seed=500)
    label(job, tmp_path / "a.csv")

    assert len(report.figures) == len(SPLITS) * len(MODELS)
    assert promised_figures(report) == stored_figures(job)


def test_a_sheet_of_too_few_labels_says_which_figures_are_missing(job, tmp_path):
    report = exported(job, tmp_path / "a.csv", 60)
    label(job, tmp_path / "a.csv")

    figures = stored_figures(job)
    assert len(report.figures) == 6
    assert promised_figures(report) == figures
    n_missing = sum(no_figure is not None for *_, no_figure in figures)
    assert n_missing > 2
    assert stated_number(r"it gives (\d+) of 6 scores", report) == 6 - n_missing
    assert not any(row["is_enough"] for row in report.expected_widths)
    cause = "too few tasks with labels: 14, not 15"
    assert f"no sheet gives an interval on legal to any model: {cause}" in report.line


def test_the_stated_number_of_rows_gives_every_interval_that_can_exist(job, tmp_path):
    n_needed = stated_number(NEEDED, exported(job, tmp_path / "a.csv", 30))

    report = exported(job, tmp_path / "b.csv", n_needed)
    label(job, tmp_path / "b.csv")

    assert "that can have one" not in report.line
    figures = stored_figures(job)
    cells = [
        (model, split) for model, split, _, no_figure in figures if no_figure is None
    ]
    assert cells == [
        ("ada", "finance"),
        ("bob", "finance"),
        ("ada", "finance_hard"),
        ("bob", "finance_hard"),
    ]


def test_the_next_sheet_counts_earlier_labels_by_split(job, tmp_path):
    exported(job, tmp_path / "a.csv", 60)
    label(job, tmp_path / "a.csv")
    n_needed = stated_number(NEEDED, exported(job, tmp_path / "b.csv", 40))

    report = exported(job, tmp_path / "c.csv", n_needed)
    label(job, tmp_path / "c.csv")

    assert promised_figures(report) == stored_figures(job)
    assert sum(no_figure is None for *_, no_figure in stored_figures(job)) == 4


def test_tasks_that_the_sheet_leaves_out_are_named(job, tmp_path):
    limited_job = job.model_copy(update={"limit": 10})
    report = exported(limited_job, tmp_path / "a.csv", 60)
    label(job, tmp_path / "a.csv")

    cause = r"no sheet covers \d+ of its 24 tasks"
    note = f"no sheet gives an interval on finance to any model: {cause}"
    condition = "split = 'finance' and breakdown = 'all' and is_primary"
    promised = [
        figure for figure in promised_figures(report) if figure[1] == "finance"
    ]
    assert re.search(note, report.line)
    assert promised == stored_figures(job, condition)


@pytest.mark.parametrize(
    ("sampled_for", "condition"),
    [
        ("ada bob", "breakdown = 'all' and is_primary"),
        ("Financial Accuracy", "label = 'Financial Accuracy'"),
    ],
)
def test_a_sheet_for_a_pair_or_a_category_promises_by_the_same_rule(
    job,
    tmp_path,
    sampled_for,
    condition,
):
    report = exported(job, tmp_path / "a.csv", 100, sampled_for=sampled_for)
    label(job, tmp_path / "a.csv")

    assert set(promised_figures(report)) == set(stored_figures(job, condition))
