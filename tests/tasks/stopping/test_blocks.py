"""The next block of tasks, and the tasks that no comparison needs."""

from tasks.rules.stopping import DIFFERENT, OPEN, Rule, block_ends
from tasks.stopping.comparisons import (
    EARLIER,
    ComparedModel,
    PlannedComparison,
    Progress,
    left_out_of,
)
from tasks.stopping.looks import next_block

ORDER = tuple(f"t{number:02}" for number in range(50))


def comparison(first: str, second: str, vintage: str = "base") -> PlannedComparison:
    """A comparison of two models in a rule of three blocks; `vintage` is that of the first."""
    rule = Rule("different", 0.01, 0.02, block_ends(len(ORDER), 20))
    return PlannedComparison(
        ComparedModel(first, "hash", vintage), ComparedModel(second, "hash", "base"), rule, ORDER
    )


A_B = comparison("a", "b")
A_C = comparison("a", "c")
B_C = comparison("b", "c")


def test_models_of_open_comparisons_get_the_next_block() -> None:
    block = next_block(
        [Progress(A_B, 1), Progress(A_C, 1, DIFFERENT), Progress(B_C, 1, DIFFERENT)], last_number=0
    )
    assert block is not None
    assert block.number == 2
    assert block.comparisons == (A_B,)
    assert {"a": frozenset(ORDER[20:40]), "b": frozenset(ORDER[20:40])} == block.tasks


def test_the_comparison_that_is_furthest_behind_comes_first() -> None:
    block = next_block([Progress(A_B, 2), Progress(A_C, 0)], last_number=0)
    assert block is not None
    assert block.number == 1
    assert set(block.tasks) == {"a", "c"}


def test_what_could_not_be_looked_at_is_passed_by_in_this_run() -> None:
    block = next_block([Progress(A_B, 0)], last_number=2)
    assert block is not None
    assert block.number == 3
    assert frozenset(ORDER[40:]) == block.tasks["a"]
    assert next_block([Progress(A_B, 0)], last_number=3) is None


def test_nothing_comes_after_all_tasks_or_a_decision() -> None:
    assert next_block([Progress(A_B, 3, OPEN), Progress(A_C, 1, DIFFERENT)], last_number=0) is None


def test_a_task_is_left_out_of_a_model_that_none_of_its_comparisons_needs_any_more() -> None:
    left_out = left_out_of(
        [Progress(A_B, 2, DIFFERENT), Progress(A_C, 1, DIFFERENT), Progress(B_C, 1, OPEN)]
    )
    assert {"a": frozenset(ORDER[40:])} == left_out
    assert left_out_of([Progress(A_B, 3, OPEN)]) == {}
    left_out = left_out_of([Progress(comparison("a", "a", EARLIER), 1, DIFFERENT)])
    assert {"a": frozenset(ORDER[20:])} == left_out
