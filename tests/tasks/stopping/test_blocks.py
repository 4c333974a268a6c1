"""The next block of tasks, and the tasks that no comparison needs."""

from dataclasses import replace

import pytest

from tasks.rules.stopping import DIFFERENT, OPEN, Rule, block_ends
from tasks.stopping.comparisons import (
    EARLIER,
    NO_COMPARISONS,
    ComparedModel,
    PlannedComparison,
    Progress,
)
from tasks.stopping.looks import TaskBlock, is_unfinished, next_block
from tests.kit import job_on

ORDER = tuple(f"t{number:02}" for number in range(50))


def comparison(first: str, second: str, vintage: str = "base") -> PlannedComparison:
    """A comparison of two models in a rule of three blocks; `vintage` is that of the first."""
    rule = Rule("different", 0.01, 0.02, block_ends(len(ORDER), 20))
    first_side = ComparedModel(first, "hash", vintage)
    return PlannedComparison(
        first_side, ComparedModel(second, "hash", "base"), rule, ORDER
    )


A_B = comparison("a", "b")
A_C = comparison("a", "c")
B_C = comparison("b", "c")


def block_after(last_number: int, *progress: Progress) -> TaskBlock:
    block = next_block(progress, last_number)
    assert block is not None
    return block


def test_models_of_open_comparisons_get_the_next_block():
    block = block_after(
        0, Progress(A_B, 1), Progress(A_C, 1, DIFFERENT), Progress(B_C, 1, DIFFERENT)
    )

    assert block.number == 2
    assert block.comparisons == (A_B,)
    assert block.tasks == {"a": frozenset(ORDER[20:40]), "b": frozenset(ORDER[20:40])}


def test_the_comparison_that_is_furthest_behind_comes_first():
    block = block_after(0, Progress(A_B, 2), Progress(A_C, 0))

    assert block.number == 1
    assert set(block.tasks) == {"a", "c"}


def test_a_comparison_without_a_look_goes_on_with_the_next_block():
    block = block_after(2, Progress(A_B, 0))

    assert block.number == 3
    assert block.tasks["a"] == frozenset(ORDER[40:])


@pytest.mark.parametrize(
    ("last_number", "progress"),
    [
        (3, [Progress(A_B, 0)]),
        (0, [Progress(A_B, 3, OPEN), Progress(A_C, 1, DIFFERENT)]),
    ],
)
def test_nothing_comes_after_all_tasks_or_a_decision(last_number, progress):
    assert next_block(progress, last_number) is None


@pytest.mark.parametrize(
    ("progress", "left_out"),
    [
        (
            [
                Progress(A_B, 2, DIFFERENT),
                Progress(A_C, 1, DIFFERENT),
                Progress(B_C, 1, OPEN),
            ],
            {"a": frozenset(ORDER[40:])},
        ),
        ([Progress(A_B, 3, OPEN)], {}),
        (
            [Progress(comparison("a", "a", EARLIER), 1, DIFFERENT)],
            {"a": frozenset(ORDER[20:])},
        ),
    ],
)
def test_a_task_is_left_out_of_a_model_if_none_of_its_comparisons_needs_it(
    progress, left_out
):
    comparisons = replace(NO_COMPARISONS, progress=progress)

    assert comparisons.left_out == left_out


def test_a_job_that_left_nothing_out_is_finished_without_stored_scores(tmp_path):
    comparisons = replace(NO_COMPARISONS, progress=[Progress(A_B, 3, OPEN)])

    assert not is_unfinished(job_on("sample", tmp_path), comparisons, reader=None)
