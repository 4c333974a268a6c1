"""Selecting the hard subset."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.hardness import HardSubsetError, Selected, select_hardest, wanted_size
from tests.kit import one_line

SCORES = st.dictionaries(
    st.text("abc", min_size=1, max_size=4),
    st.lists(st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 1)), min_size=3, max_size=3),
    min_size=1,
    max_size=12,
)


def test_the_tasks_with_the_lowest_mean_are_selected_hardest_first() -> None:
    scores = {"easy": [0.9, 1.0], "hard": [-0.5, 0.0], "mild": [0.5, 0.0]}

    assert [Selected("hard", 1, -0.25), Selected("mild", 2, 0.25)] == select_hardest(scores, 2)


def test_a_tie_in_exact_figures_is_a_tie_in_every_order_of_the_models() -> None:
    # Added from left to right, the first is 0.6000000000000001 and the second 0.6.
    scores = {"b": [0.1, 0.2, 0.3], "a": [0.3, 0.2, 0.1]}

    assert ["a", "b"] == [selected.task_id for selected in select_hardest(scores, 2)]
    # A mean over trials already has its own rounding.
    assert ["a", "b"] == [selected.task_id for selected in select_hardest({"b": [0.3], "a": [0.1 + 0.2]}, 2)]


@given(SCORES, st.permutations(range(3)), st.randoms())
def test_neither_the_order_of_models_nor_that_of_tasks_matters(
    scores: dict[str, list[float]], order: list[int], dice: random.Random
) -> None:
    names = list(scores)
    dice.shuffle(names)
    permuted = {task: [scores[task][i] for i in order] for task in names}

    assert select_hardest(scores, len(scores)) == select_hardest(permuted, len(scores))


@given(SCORES, st.data())
def test_no_task_that_is_left_out_is_harder_than_one_in(scores: dict[str, list[float]], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(scores)))
    selected = select_hardest(scores, size)
    # Means of fractions of the very same floats, so that only true ties are ties.
    means = {task: sum(map(Fraction, values)) for task, values in scores.items()}
    left_out = scores.keys() - {each.task_id for each in selected}

    assert list(range(1, size + 1)) == [each.rank for each in selected]
    hardest_out = min((float(means[task]) for task in left_out), default=9.0)
    assert [] == [each for each in selected if float(means[each.task_id]) > hardest_out + 1e-15]


SIZES = [
    (600, 0.5, 300), (500, 0.5, 250), (7, 0.5, 3), (1, 0.5, 0), (10, 0.3, 3), (100, 0.29, 29), (3, 1.0, 3), (0, 0.5, 0),
]  # fmt: skip


@pytest.mark.parametrize(("n_tasks", "share", "size"), SIZES)
def test_a_share_is_rounded_down(n_tasks: int, share: float, size: int) -> None:
    assert size == wanted_size(n_tasks, share, "Finance")


def test_a_field_without_a_number_is_refused() -> None:
    assert 300 == wanted_size(7, {"Finance": 300}, "Finance")
    with pytest.raises(HardSubsetError, match="Legal"):
        wanted_size(500, {"Finance": 300}, "Legal")


@pytest.mark.parametrize(("scores", "size"), [({}, 1), ({"a": [0.1]}, 2), ({"a": [0.1]}, 0), ({"a": [0.1]}, -1)])
def test_a_size_that_cannot_be_had_is_refused_in_one_line(scores: dict[str, list[float]], size: int) -> None:
    with pytest.raises(HardSubsetError, match=one_line()):
        select_hardest(scores, size)
