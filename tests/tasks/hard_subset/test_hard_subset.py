"""The hard subset and its stability, against selections and panels that are computed in exact
fractions.
"""

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.hard_subset.select import select_hard
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from tests.kit import copied, rows_in, values_in
from tests.tasks.hard_subset.hard_world import (
    SIZE,
    TASKS,
    TENTHS,
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
PARTIAL = {model: {task: of[task] for task in TASKS[:9]} for model, of in TENTHS.items()} | {
    "gpt": TENTHS["gpt"]
}
"""Nine of the twelve tasks are complete for all models."""
TABLES = ("hard_subset", "hard_stability", "hard_overlaps")


def chosen(tenths: dict[str, Any], size: int, tasks: list[str] = TASKS) -> set[str]:
    """The tasks with the lowest means (over trials, then over models); ties are ordered by name."""
    means = {
        task: sum(Fraction(sum(of[task]), len(of[task])) for of in tenths.values())
        for task in tasks
    }
    return set(sorted(tasks, key=lambda task: (means[task], task))[:size])


def without(tenths: dict[str, Any], model: str) -> dict[str, Any]:
    return {label: scores for label, scores in tenths.items() if label != model}


def overlaps(job: Job, kind: str) -> dict[str, tuple[int, int, int, float]]:
    """Compared selection -> the numbers of tasks in the selection, in the other one and in both,
    and the overlap.
    """
    query = (
        "select compared_with, n_selected, n_compared, n_shared, jaccard from hard_overlaps where"
        f" kind = '{kind}'"
    )
    return {name: figures for name, *rest in values_in(job, query) for figures in [tuple(rest)]}


def expected_overlap(one: set[str], other: set[str]) -> tuple[int, int, int, Any]:
    return (
        len(one),
        len(other),
        len(one & other),
        pytest.approx(len(one & other) / len(one | other)),
    )


def parts_of(job: Job) -> list[Path]:
    return sorted((job.warehouse / "parts").rglob("*.parquet"))


@pytest.fixture(scope="module")
def selected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, StageReport]:
    """The job and the report of one selection; tests must not change them."""
    job = job_with(
        tmp_path_factory.mktemp("selected"), TENTHS, {"finance": TASKS, "finance_hard": OFFICIAL}
    )
    return job, select_hard(job)


@pytest.fixture
def again(selected: tuple[Job, StageReport], tmp_path: Path) -> Job:
    """That job on a copy of its warehouse."""
    return copied(selected[0], tmp_path / "warehouse")


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job with nine of twelve tasks that are complete for all models; nothing is selected yet."""
    return job_with(tmp_path_factory.mktemp("partial"), PARTIAL, {"finance": TASKS})


def test_the_probabilities_are_those_of_all_panels_of_models_and_trials(
    selected: tuple[Job, StageReport],
) -> None:
    exact = probabilities(
        [[TENTHS[model][task] for model in sorted(TENTHS)] for task in TASKS], SIZE
    )

    actual = values_in(
        selected[0], "select inclusion_probability, is_border from hard_stability order by task_id"
    )
    assert pytest.approx([float(each) for each in exact], abs=0.03) == [
        probability for probability, _ in actual
    ]
    assert [0.05 <= probability <= 0.95 for probability, _ in actual] == [
        is_border for _, is_border in actual
    ]
    assert {is_border for _, is_border in actual} == {True, False}


def test_the_overlap_without_each_model_is_that_with_what_the_others_select(
    selected: tuple[Job, StageReport],
) -> None:
    hard = chosen(TENTHS, SIZE)
    wanted = {
        model: expected_overlap(hard, chosen(without(TENTHS, model), SIZE)) for model in TENTHS
    }

    actual = overlaps(selected[0], "leave_one_out")
    assert wanted == actual
    assert {1.0} != {each[3] for each in actual.values()}
    ((n_border,),) = values_in(selected[0], "select count(*) from hard_stability where is_border")
    assert selected[1].notes == [f"Finance: 6 of 12 tasks are hard, {n_border} on the border"]


def test_the_official_hard_split_is_compared_and_a_single_model_is_not_left_out(
    tmp_path: Path,
) -> None:
    # The hardest three of eight; the official split has two of these and one other.
    tasks = [f"task-{i}" for i in range(8)]
    splits = {
        "legal": tasks,
        "legal_hard": ["task-0", "task-1", "task-7"],
        "finance_hard": tasks[:2],
    }
    job = job_with(
        tmp_path, {"a": {task: [i] for i, task in enumerate(tasks)}}, splits, field="Legal", size=3
    )
    report = select_hard(job)

    assert overlaps(job, "official") == {"legal_hard": (3, 3, 2, 0.5)}
    assert overlaps(job, "leave_one_out") == {}
    assert values_in(
        job, "select distinct inclusion_probability from hard_stability order by all"
    ) == [(0.0,), (1.0,)]
    assert report.notes == ["Legal: 3 of 8 tasks are hard, 0 on the border"]


def test_a_second_run_writes_nothing_and_says_the_same(
    selected: tuple[Job, StageReport], again: Job
) -> None:
    before = parts_of(again)
    report = select_hard(again)

    assert [SIZE + len(TASKS) + 4, 0] == [selected[1].rows, report.rows]
    assert selected[1].notes == report.notes
    assert before == parts_of(again)


def test_a_selection_that_has_no_stability_yet_is_given_it(
    selected: tuple[Job, StageReport], again: Job
) -> None:
    before = {table: values_in(again, f"from {table} order by all") for table in TABLES}
    for lost in ("hard_stability", "hard_overlaps"):
        shutil.rmtree(again.warehouse / "parts" / lost)
    forget_parts(Warehouse(again.warehouse))
    Warehouse(again.warehouse).publish()
    report = select_hard(again)

    assert selected[1].notes == report.notes
    assert before == {table: values_in(again, f"from {table} order by all") for table in TABLES}
    assert selected[1].rows - SIZE == report.rows


@pytest.mark.slow
def test_an_official_split_that_is_ingested_later_is_compared_all_the_same(tmp_path: Path) -> None:
    job = job_with(tmp_path, TENTHS, {"finance": TASKS})
    assert "official" not in select_hard(job).line
    store(job, {"split_members": members_of({"finance_hard": OFFICIAL})})
    report = select_hard(job)

    assert report.rows == 1
    assert {"finance_hard": expected_overlap(chosen(TENTHS, SIZE), {*OFFICIAL})} == overlaps(
        job, "official"
    )


@pytest.mark.parametrize(
    ("least", "bar"), [(None, "coverage.min is 99.0%"), (0.76, "hard_subset.min_coverage is 76.0%")]
)
def test_too_few_complete_tasks_are_refused_by_the_bar_that_holds(
    partial: Job, least: float | None, bar: str
) -> None:
    with pytest.raises(
        PipelineError, match=rf"9 of 12 tasks are complete for all 3 models \(75.0%, {bar}\)"
    ):
        select_hard(with_rule(partial, min_coverage=least))


def test_a_lower_bar_of_its_own_lets_the_complete_tasks_be_chosen_from(partial: Job) -> None:
    job = with_rule(partial, min_coverage=0.75)
    report = select_hard(job)
    hard = chosen(PARTIAL, SIZE, TASKS[:9])

    assert "Finance: 6 of 12 tasks are hard (chosen from 9), " in report.line
    wanted = [(task, task in hard) for task in TASKS[:9]]
    assert wanted == values_in(job, "select task_id, is_selected from hard_stability order by all")
    others = {model: chosen(without(PARTIAL, model), SIZE, TASKS[:9]) for model in PARTIAL}
    assert {model: expected_overlap(hard, other) for model, other in others.items()} == overlaps(
        job, "leave_one_out"
    )


def test_a_selection_that_is_made_again_after_another_is_the_one_that_counts(again: Job) -> None:
    latest = "select selection_id from intermediate.latest_selections"
    first = values_in(again, latest)
    select_hard(with_rule(again, panel=("gpt", "kimi")))
    other = values_in(again, latest)
    select_hard(again)

    assert first != other
    assert first == values_in(again, latest)
    on_board = (
        "select distinct task_id from intermediate.task_set_members where is_own_hard order by all"
    )
    assert sorted((task,) for task in chosen(TENTHS, SIZE)) == values_in(again, on_board)


def test_a_judge_that_judged_several_times_selects_by_its_first_time(again: Job) -> None:
    once = rows_in(again, "from verdicts")
    store(
        again,
        {
            "verdicts": [
                each | {"verdict_id": each["verdict_id"] + "/2", "judge_trial": 2} for each in once
            ]
        },
    )
    before = values_in(again, "select selection_id from intermediate.latest_selections")
    judge = once[0]["judge"]

    assert select_hard(again.model_copy(update={"named_judges": (judge,)})).rows == 0
    assert select_hard(again).rows == 0
    assert before == values_in(again, "select selection_id from intermediate.latest_selections")


@pytest.mark.slow
def test_a_task_that_lacks_a_trial_is_chosen_from_with_the_trials_that_it_has(
    tmp_path: Path,
) -> None:
    lacking = dict(TENTHS) | {"gpt": dict(TENTHS["gpt"]) | {TASKS[3]: TENTHS["gpt"][TASKS[3]][:1]}}
    # The only trial counts as both.
    filled = dict(TENTHS) | {
        "gpt": dict(TENTHS["gpt"]) | {TASKS[3]: TENTHS["gpt"][TASKS[3]][:1] * 2}
    }
    probabilities = []
    for name, tenths in {"lacking": lacking, "filled": filled}.items():
        (tmp_path / name).mkdir()
        job = job_with(tmp_path / name, tenths, {"finance": TASKS})
        select_hard(job)
        assert chosen(tenths, SIZE) == {
            task for (task,) in values_in(job, "select task_id from hard_subset")
        }
        probabilities.append(
            values_in(job, "select task_id, inclusion_probability from hard_stability order by all")
        )

    assert len(TASKS) == len(probabilities[0])
    assert probabilities[0] == probabilities[1]


def test_where_every_model_is_sampled_nightly_the_latest_night_selects(tmp_path: Path) -> None:
    job = job_with(tmp_path, {}, {"finance": TASKS})
    for night, tenths in (("2026-11-21", without(TENTHS, min(TENTHS))), ("2026-11-22", TENTHS)):
        store(job, rows_of(tenths, {"finance": TASKS}, "Finance", vintage=night))
    report = select_hard(job, must_select=False)

    assert report.warnings == []
    hard = sorted((task,) for task in chosen(TENTHS, SIZE))
    assert hard == values_in(job, "select task_id from hard_subset order by all")
    of_first_night = select_hard(job.model_copy(update={"night": "2026-11-21"}))
    assert len(of_first_night.notes) == 1
    with pytest.raises(PipelineError, match="no verdict"):
        select_hard(job.model_copy(update={"vintage": "2026-11-20"}))
