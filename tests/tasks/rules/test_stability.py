"""How much a hard selection depends on its panel, against every panel written out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.rules.hardness import inclusion_probabilities, jaccard, leave_one_out
from tests.tasks.rules.panels_oracle import probabilities

FEW = 300
"""Resamples enough for a law that holds for every number of them."""
NOISE = 0.03
"""Six standard errors of a share over 10,000 resamples, at most."""


@st.composite
def worlds(draw: st.DrawFn, max_tasks: int = 5, max_trials: int = 2) -> list[list[list[int]]]:
    """Few tasks by two or three models with one or two trials each; whole scores, so that there are ties."""
    n_trials = draw(st.lists(st.integers(1, max_trials), min_size=2, max_size=3).filter(lambda n: sum(n) <= 5))
    task = st.tuples(*(st.lists(st.integers(-2, 6), min_size=n, max_size=n) for n in n_trials)).map(list)
    return draw(st.lists(task, min_size=1, max_size=max_tasks))


def padded(world: list[list[list[int]]]) -> np.ndarray:
    most = max(len(trials) for trials in world[0])
    return np.array([[trials + [np.nan] * (most - len(trials)) for trials in of_task] for of_task in world], float)


def size_for(world: list[list[list[int]]], data: st.DataObject) -> int:
    return data.draw(st.integers(1, len(world)))


def test_the_written_out_probabilities_are_those_of_a_panel_that_can_be_counted_by_hand() -> None:
    # Of the four draws of two models, both are the first, both the second, or one of each (a tie of all three).
    assert [Fraction(3, 4), Fraction(0), Fraction(1, 4)] == probabilities([[[0], [2]], [[1], [1]], [[2], [0]]], 1)


@given(worlds(), st.data())
@settings(max_examples=40)
def test_the_probabilities_are_those_of_all_panels_written_out(
    world: list[list[list[int]]], data: st.DataObject
) -> None:
    size = size_for(world, data)

    wanted = [float(each) for each in probabilities(world, size)]
    assert pytest.approx(wanted, abs=NOISE) == inclusion_probabilities(padded(world), size)


@given(worlds(), st.data())
def test_probabilities_are_shares_and_sum_to_the_size(world: list[list[list[int]]], data: st.DataObject) -> None:
    size = size_for(world, data)
    found = inclusion_probabilities(padded(world), size, resamples=FEW)

    assert ((found >= 0) & (found <= 1)).all()
    assert size == pytest.approx(found.sum(), abs=1e-9)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 4), st.integers(1, 3), st.data())
def test_models_that_all_say_the_same_leave_no_doubt_and_ties_go_by_order(
    scores: list[int], n_models: int, n_trials: int, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(scores)))
    # Thirds are no binary fractions: their means differ by rounding, and must be ties all the same.
    values = np.broadcast_to(np.array(scores)[:, None, None] / 3.0, (len(scores), n_models, n_trials))
    hardest = sorted(range(len(scores)), key=lambda task: (scores[task], task))[:size]

    found = inclusion_probabilities(values, size, resamples=FEW)
    assert [float(task in hardest) for task in range(len(scores))] == list(found)


def test_sums_that_differ_by_rounding_alone_are_a_tie() -> None:
    # Every panel of all three models is a tie of both tasks; left to right, the first sum is larger by rounding.
    values = np.array([[[0.1], [0.2], [0.3]], [[0.3], [0.2], [0.1]]])
    exact = probabilities([[[1], [2], [3]], [[3], [2], [1]]], 1)

    assert pytest.approx([float(each) for each in exact], abs=NOISE) == inclusion_probabilities(values, 1)


def test_a_panel_of_one_answer_has_nothing_to_draw() -> None:
    assert [0.0, 1.0, 0.0] == list(inclusion_probabilities(np.array([[[0.5]], [[0.1]], [[0.5]]]), 1))


def test_one_model_with_several_trials_is_resampled_over_its_trials() -> None:
    world = [[[0, 4, 1]], [[2, 2, 2]]]

    wanted = [float(each) for each in probabilities(world, 1)]
    assert 0.0 < wanted[0] < 1.0
    assert pytest.approx(wanted, abs=NOISE) == inclusion_probabilities(padded(world), 1)


MISFITS = {
    "none is asked for": ([[[0.1]]], 0),
    "more are asked for than there are": ([[[0.1]]], 2),
    "a model has no trial": ([[[0.1], [np.nan]]], 1),
    "the tasks have different trials": ([[[0.1, 0.2]], [[0.1, np.nan]]], 1),
}


@pytest.mark.parametrize(("values", "size"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_refused(values: list[list[list[float]]], size: int) -> None:
    with pytest.raises(ValueError, match=r"cannot be selected|needs a trial"):
        inclusion_probabilities(np.array(values), size)


def test_without_a_model_the_others_select() -> None:
    scores = {"a": (0.0, 0.9, 0.9), "b": (0.9, 0.0, 0.9), "c": (0.8, 0.8, 0.0)}

    # Sums of the other two: 1.8, 0.9, 0.8; then 0.9, 1.8, 0.8; then 0.9, 0.9, 1.6.
    assert [{"c"}, {"c"}, {"a"}] == leave_one_out(scores, 1)


OVERLAPS = [
    ("", "", 1.0), ("ab", "ab", 1.0), ("ab", "cd", 0.0), ("abc", "bcd", 0.5), ("ab", "", 0.0), ("a", "abcd", 0.25),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "overlap"), OVERLAPS)
def test_the_overlap_is_what_both_have_by_what_either_has(one: str, other: str, overlap: float) -> None:
    assert [overlap, overlap] == [jaccard(set(one), set(other)), jaccard(set(other), set(one))]
