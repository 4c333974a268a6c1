"""The hard subset and its stability, against selections and panels that are computed in exact
fractions.
"""

import shutil
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.hard_subset.select import select_hard
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from tests.kit import copied, few_published, rows_in, values_in
from tests.tasks.hard_subset.hard_world import (
    SIZE,
    TASKS,
    TENTHS,
    Tenths,
    job_with,
    members_of,
    rows_of,
    store,
    with_rule,
)
from tests.tasks.rules.panels_oracle import probabilities
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse

OFFICIAL = TASKS[:5]
COMPLETE = TASKS[:9]
"""The tasks of `PARTIAL` that are complete for all models."""


PARTIAL = {
    "gpt": TENTHS["gpt"],
    "kimi": {task: TENTHS["kimi"][task] for task in COMPLETE},
    "opus": {task: TENTHS["opus"][task] for task in COMPLETE},
}


def hardest(tenths: Tenths, tasks: Sequence[str] = TASKS) -> set[str]:
    """The tasks with the lowest means (over trials, then over models); ties are ordered by name."""

    def difficulty(task):
        total = Fraction(0)
        for scores in tenths.values():
            total += Fraction(sum(scores[task]), len(scores[task]))
        return total, task

    return set(sorted(tasks, key=difficulty)[:SIZE])


def without(tenths: Tenths, model: str) -> Tenths:
    return {label: scores for label, scores in tenths.items() if label != model}


def overlaps(job: Job, kind: str) -> dict[str, tuple[Any, ...]]:
    """Compared selection -> the numbers of tasks in the selection, in the other one and in both,
    and the overlap.
    """
    query = (
        "select compared_with, n_selected, n_compared, n_shared, jaccard from hard_overlaps where"
        f" kind = '{kind}'"
    )
    return {name: tuple(figures) for name, *figures in values_in(job, query)}


def expected_overlap(
    selection: set[str], compared: set[str]
) -> tuple[int, int, int, Any]:
    n_shared = len(selection & compared)
    jaccard = pytest.approx(n_shared / len(selection | compared))
    return len(selection), len(compared), n_shared, jaccard


def selected_tasks(job: Job) -> list[str]:
    return [
        row["task_id"] for row in rows_in(job, "from hard_subset order by task_id")
    ]


def current_selection(job: Job) -> Any:
    [row] = rows_in(job, "select selection_id from intermediate.latest_selections")
    return row["selection_id"]


def rows_by_table(job: Job) -> dict[str, list[Any]]:
    tables = ("hard_subset", "hard_stability", "hard_overlaps")
    return {table: values_in(job, f"from {table} order by all") for table in tables}


def part_files(job: Job) -> list[Path]:
    return sorted((job.warehouse / "parts").rglob("*.parquet"))


@pytest.fixture(scope="module", autouse=True)
def _few_published() -> Iterator[None]:
    """Publish only what selections read."""
    with few_published("intermediate.task_values"):
        yield


@pytest.fixture(scope="module")
def selection(tmp_path_factory) -> tuple[Job, StageReport]:
    """The job and the report of one selection; tests must not change them."""
    splits = {"finance": TASKS, "finance_hard": OFFICIAL}
    job = job_with(tmp_path_factory.mktemp("selected"), TENTHS, splits)
    return job, select_hard(job)


@pytest.fixture
def job_copy(selection: tuple[Job, StageReport], tmp_path) -> Job:
    """The job of the selection on a copy of its warehouse."""
    return copied(selection[0], tmp_path / "warehouse")


@pytest.fixture(scope="module")
def partial_job(tmp_path_factory) -> Job:
    """A job with nine of twelve tasks that are complete for all models, and nothing selected; tests
    must not write to it.
    """
    return job_with(tmp_path_factory.mktemp("partial"), PARTIAL, {"finance": TASKS})


def test_the_probabilities_are_those_of_all_panels_of_models_and_trials(selection):
    job, _ = selection
    scores = []
    for task in TASKS:
        scores.append([TENTHS[model][task] for model in sorted(TENTHS)])
    exact = [float(probability) for probability in probabilities(scores, SIZE)]

    rows = rows_in(job, "from hard_stability order by task_id")

    assert [row["inclusion_probability"] for row in rows] == pytest.approx(
        exact, abs=0.03
    )


def test_tasks_that_are_selected_in_5_to_95_per_cent_of_resamples_are_on_the_border(
    selection,
):
    job, report = selection

    border = values_in(
        job, "select inclusion_probability from hard_stability where is_border"
    )
    inside = values_in(
        job, "select inclusion_probability from hard_stability where not is_border"
    )

    assert border
    assert inside
    assert all(0.05 <= probability <= 0.95 for (probability,) in border)
    assert not any(0.05 <= probability <= 0.95 for (probability,) in inside)
    assert report.notes == [
        f"Finance: 6 of 12 tasks are hard, {len(border)} on the border"
    ]


def test_the_overlap_without_each_model_is_that_with_what_the_others_select(
    selection,
):
    job, _ = selection

    expected = {}
    for model in TENTHS:
        expected[model] = expected_overlap(
            hardest(TENTHS), hardest(without(TENTHS, model))
        )

    assert overlaps(job, "leave_one_out") == expected
    assert any(n_shared < SIZE for _, _, n_shared, _ in expected.values())


def test_the_official_hard_split_is_compared_and_a_single_model_is_not_left_out(
    tmp_path,
):
    # The hardest three of eight; the official split has two of these and one other.
    tasks = [f"task-{i}" for i in range(8)]
    splits = {
        "legal": tasks,
        "legal_hard": ["task-0", "task-1", "task-7"],
        "finance_hard": tasks[:2],
    }
    scores = {task: [n_met] for n_met, task in enumerate(tasks)}
    job = job_with(tmp_path, {"a": scores}, splits, field="Legal", size=3)

    report = select_hard(job)

    assert overlaps(job, "official") == {"legal_hard": (3, 3, 2, 0.5)}
    assert overlaps(job, "leave_one_out") == {}
    assert report.notes == ["Legal: 3 of 8 tasks are hard, 0 on the border"]
    assert values_in(
        job, "select distinct inclusion_probability from hard_stability order by all"
    ) == [(0.0,), (1.0,)]


def test_a_second_run_writes_nothing_and_says_the_same(selection, job_copy):
    _, first_report = selection
    files = part_files(job_copy)

    report = select_hard(job_copy)

    assert first_report.rows == SIZE + len(TASKS) + 4
    assert report.rows == 0
    assert report.notes == first_report.notes
    assert part_files(job_copy) == files


def test_a_selection_that_has_no_stability_yet_is_given_it(selection, job_copy):
    _, first_report = selection
    rows = rows_by_table(job_copy)
    for table in ("hard_stability", "hard_overlaps"):
        shutil.rmtree(job_copy.warehouse / "parts" / table)
    forget_parts(Warehouse(job_copy.warehouse))
    Warehouse(job_copy.warehouse).publish()

    report = select_hard(job_copy)

    assert report.notes == first_report.notes
    assert report.rows == first_report.rows - SIZE
    assert rows_by_table(job_copy) == rows


@pytest.mark.slow
def test_an_official_split_that_is_ingested_later_is_compared_all_the_same(tmp_path):
    job = job_with(tmp_path, TENTHS, {"finance": TASKS})
    select_hard(job)
    store(job, {"split_members": members_of({"finance_hard": OFFICIAL})})

    report = select_hard(job)

    assert report.rows == 1
    assert overlaps(job, "official") == {
        "finance_hard": expected_overlap(hardest(TENTHS), set(OFFICIAL))
    }


@pytest.mark.parametrize(
    ("min_coverage", "bar"),
    [(None, "coverage.min is 99.0%"), (0.76, "hard_subset.min_coverage is 76.0%")],
)
def test_too_few_complete_tasks_are_refused_by_the_bar_that_holds(
    partial_job, min_coverage, bar
):
    reason = rf"9 of 12 tasks are complete for all 3 models \(75.0%, {bar}\)"
    with pytest.raises(PipelineError, match=reason):
        select_hard(with_rule(partial_job, min_coverage=min_coverage))


def test_a_lower_bar_of_its_own_lets_the_complete_tasks_be_chosen_from(
    partial_job, tmp_path
):
    job = copied(partial_job, tmp_path / "warehouse")

    report = select_hard(with_rule(job, min_coverage=0.75))

    hard = hardest(PARTIAL, COMPLETE)
    candidates = rows_in(job, "from hard_stability order by task_id")
    expected = {}
    for model in PARTIAL:
        selection = hardest(without(PARTIAL, model), COMPLETE)
        expected[model] = expected_overlap(hard, selection)
    assert "Finance: 6 of 12 tasks are hard (chosen from 9), " in report.line
    assert [row["task_id"] for row in candidates] == COMPLETE
    assert {row["task_id"] for row in candidates if row["is_selected"]} == hard
    assert overlaps(job, "leave_one_out") == expected


def test_a_selection_that_is_made_again_after_another_is_the_one_that_counts(
    job_copy,
):
    selection_id = current_selection(job_copy)
    select_hard(with_rule(job_copy, panel=("gpt", "kimi")))
    id_of_two_models = current_selection(job_copy)

    select_hard(job_copy)

    members = values_in(
        job_copy,
        "select distinct task_id from intermediate.task_set_members where is_own_hard",
    )
    assert id_of_two_models != selection_id
    assert current_selection(job_copy) == selection_id
    assert {task for (task,) in members} == hardest(TENTHS)


@pytest.mark.parametrize("named_judges", [("a-judge",), None])
def test_a_judge_that_judged_several_times_selects_by_its_first_time(
    job_copy, named_judges
):
    verdicts = rows_in(job_copy, "from verdicts")
    for verdict in verdicts:
        verdict["verdict_id"] += "/2"
        verdict["judge_trial"] = 2
    store(job_copy, {"verdicts": verdicts})
    selection_id = current_selection(job_copy)

    report = select_hard(job_copy.model_copy(update={"named_judges": named_judges}))

    assert report.rows == 0
    assert current_selection(job_copy) == selection_id


def stability_with(folder: Path, trials: Sequence[int]) -> list[Any]:
    """The candidates if one model has these trials of one task; its tasks are checked."""
    scores = {**TENTHS["gpt"], TASKS[3]: trials}
    tenths = {**TENTHS, "gpt": scores}
    folder.mkdir()
    job = job_with(folder, tenths, {"finance": TASKS})
    select_hard(job)
    assert set(selected_tasks(job)) == hardest(tenths)
    return values_in(
        job,
        "select task_id, inclusion_probability from hard_stability order by task_id",
    )


@pytest.mark.slow
def test_a_task_that_lacks_a_trial_is_chosen_from_with_the_trials_that_it_has(
    tmp_path,
):
    first_trial = TENTHS["gpt"][TASKS[3]][0]

    candidates = stability_with(tmp_path / "lacking", [first_trial])

    repeated = stability_with(tmp_path / "repeated", [first_trial, first_trial])
    assert len(candidates) == len(TASKS)
    assert candidates == repeated


@pytest.fixture
def nightly_job(tmp_path) -> Job:
    """A job with two nights and no base sampling; in the first night a model is missing."""
    splits = {"finance": TASKS}
    job = job_with(tmp_path, {}, splits)
    first_night = without(TENTHS, "gpt")
    store(job, rows_of(first_night, splits, "Finance", vintage="2026-11-21"))
    store(job, rows_of(TENTHS, splits, "Finance", vintage="2026-11-22"))
    return job


def test_where_every_model_is_sampled_nightly_the_latest_night_selects(nightly_job):
    report = select_hard(nightly_job, must_select=False)

    assert report.warnings == []
    assert selected_tasks(nightly_job) == sorted(hardest(TENTHS))


def test_a_night_selects_by_itself_and_a_vintage_without_verdicts_is_refused(
    nightly_job,
):
    report = select_hard(nightly_job.model_copy(update={"night": "2026-11-21"}))

    assert len(report.notes) == 1
    assert selected_tasks(nightly_job) == sorted(hardest(without(TENTHS, "gpt")))
    with pytest.raises(PipelineError, match="no verdict"):
        select_hard(nightly_job.model_copy(update={"vintage": "2026-11-20"}))
