"""Bootstrap intervals, against a resampling written out task by task."""

import random
from statistics import fmean, quantiles

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tasks.rules.statistics import bootstrap_intervals

SCORES = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 12), st.integers(1, 3)), elements=st.floats(-1, 1, allow_subnormal=False)
)
FEW = 400
"""Resamples enough for a law that holds for every number of them."""


def made_up(n_tasks: int, n_figures: int) -> np.ndarray:
    return np.random.default_rng(7).normal(0.4, 0.2, size=(n_tasks, n_figures))


@settings(max_examples=30)
@given(SCORES)
def test_the_same_scores_give_the_same_intervals(scores: np.ndarray) -> None:
    assert bootstrap_intervals(scores, resamples=FEW) == bootstrap_intervals(scores.copy(), resamples=FEW)


@settings(max_examples=30)
@given(SCORES)
def test_an_interval_lies_within_the_scores_and_in_order(scores: np.ndarray) -> None:
    for column, interval in zip(scores.T, bootstrap_intervals(scores, resamples=FEW) or [], strict=True):
        low, high = interval
        assert column.min() - 1e-12 <= low <= high <= column.max() + 1e-12


@pytest.mark.parametrize("n_tasks", [2, 3, 30, 300])
def test_an_interval_holds_the_mean(n_tasks: int) -> None:
    scores = made_up(n_tasks, 4)
    intervals = bootstrap_intervals(scores) or []
    found = [(low, mean, high) for (low, high), mean in zip(intervals, scores.mean(axis=0), strict=True)]

    assert [] == [(low, mean, high) for low, mean, high in found if not low < mean < high]


@settings(max_examples=20)
@given(SCORES, st.data())
def test_permuted_figures_have_the_same_intervals_permuted(scores: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(scores.shape[1])))
    plain = bootstrap_intervals(scores, resamples=FEW) or []
    permuted = bootstrap_intervals(scores[:, order], resamples=FEW) or []

    assert [pytest.approx(plain[i], abs=1e-12) for i in order] == permuted


def test_a_figure_has_the_same_interval_alone_and_among_others() -> None:
    scores = made_up(50, 3)
    among = bootstrap_intervals(scores) or []

    assert [pytest.approx(among[1], abs=1e-12)] == bootstrap_intervals(scores[:, 1:2])


@pytest.mark.parametrize("n_tasks", [0, 1])
def test_fewer_than_two_tasks_have_no_interval(n_tasks: int) -> None:
    assert bootstrap_intervals(np.full((n_tasks, 2), 0.5)) is None


def test_equal_scores_have_an_interval_without_width() -> None:
    assert [pytest.approx((0.3, 0.3), abs=1e-12)] == bootstrap_intervals(np.full((10, 1), 0.3))


def test_an_interval_shifts_and_stretches_with_the_scores() -> None:
    scores = made_up(40, 1)
    ((low, high),) = bootstrap_intervals(scores) or []

    assert [pytest.approx((2 * low + 1, 2 * high + 1), abs=1e-12)] == bootstrap_intervals(2 * scores + 1)


def test_a_wider_level_gives_a_wider_interval() -> None:
    ((low_80, high_80),) = bootstrap_intervals(made_up(40, 1), level=0.8) or []
    ((low_99, high_99),) = bootstrap_intervals(made_up(40, 1), level=0.99) or []

    assert low_99 < low_80 < high_80 < high_99


@pytest.mark.parametrize("n_tasks", [5, 60])
def test_an_interval_is_what_drawing_whole_tasks_gives(n_tasks: int) -> None:
    scores = made_up(n_tasks, 1)
    dice = random.Random(1)
    values = scores[:, 0].tolist()
    means = [fmean(dice.choices(values, k=n_tasks)) for _ in range(8_000)]
    cuts = quantiles(means, n=40, method="inclusive")  # the first of 40 is 2.5 %, the last 97.5 %
    width = cuts[-1] - cuts[0]

    assert [pytest.approx((cuts[0], cuts[-1]), abs=0.05 * width)] == bootstrap_intervals(scores)
