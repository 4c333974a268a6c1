"""Paired differences: an interval and a test that are consistent, against a t-test and simulated
power.
"""

from statistics import fmean

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tasks.rules.statistics.comparison import (
    PairedDifference,
    holm,
    paired_difference,
)
from tasks.rules.statistics.intervals import FEWEST_DIFFERING, mean_intervals

ELEMENTS = st.one_of(
    st.just(0.0),
    st.integers(-20, 40).map(lambda i: i / 20),
    st.floats(-1, 1).map(lambda x: x**3),
)
DIFFERENCES = arrays.arrays(np.float64, st.integers(6, 60), elements=ELEMENTS)
P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=8)
FEW = 500


def pair(n_tasks: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(5)
    first_values = dice.normal(0.4, 0.2, size=n_tasks)
    return first_values, first_values + dice.normal(gain, 0.1, size=n_tasks)


def test_the_difference_is_the_second_above_the_first_with_the_interval_of_a_mean():
    first_values, second_values = pair(40, 0.05)
    ((low, high),) = mean_intervals(np.sort(second_values - first_values)[:, None])

    result = paired_difference(first_values, second_values)

    difference = fmean(second_values) - fmean(first_values)
    assert result.n_tasks == 40
    assert result.difference == pytest.approx(difference)
    assert result.ci_low == low
    assert result.ci_high == high


@settings(max_examples=150)
@given(DIFFERENCES, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_leaves_out_zero_exactly_if_p_is_below_its_error(
    differences, level
):
    zeros = np.zeros(len(differences))
    result = paired_difference(zeros, differences, level=level, resamples=FEW)
    assume(result.n_differing >= FEWEST_DIFFERING)

    assert (result.p_value <= 1 - level) == (result.ci_low > 0 or result.ci_high < 0)


@settings(max_examples=60)
@given(DIFFERENCES)
def test_a_difference_lies_within_its_interval(differences):
    result = paired_difference(np.zeros(len(differences)), differences, resamples=FEW)
    assume(result.ci_low is not None)

    assert result.ci_low <= result.difference <= result.ci_high


@settings(max_examples=60)
@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_a_comparison_does_not_depend_on_the_order_of_the_tasks(differences, random):
    zeros = np.zeros(len(differences))
    shuffled = np.array(random.sample(differences.tolist(), len(differences)))

    result = paired_difference(zeros, shuffled, resamples=FEW)

    assert result == paired_difference(zeros, differences, resamples=FEW)


@settings(max_examples=60)
@given(DIFFERENCES, st.sampled_from([4.0, -0.25]))
def test_a_comparison_does_not_depend_on_sign_or_scale(differences, scale):
    zeros = np.zeros(len(differences))
    result = paired_difference(zeros, differences, resamples=FEW)
    assume(result.ci_low is not None)
    # A mean that is only a rounding error has no sign.
    assume(scale > 0 or abs(result.difference) > 1e-9)

    scaled = paired_difference(zeros, scale * differences, resamples=FEW)

    ends = sorted([scale * result.ci_low, scale * result.ci_high])
    assert [scaled.ci_low, scaled.ci_high] == pytest.approx(ends, abs=1e-9)
    assert scaled.p_value == pytest.approx(result.p_value, abs=1e-9)


@pytest.mark.parametrize("n_differing", [1, 3, 4])
def test_where_too_few_tasks_differ_there_is_neither_an_interval_nor_a_test(
    n_differing,
):
    second_values = np.zeros(100)
    second_values[:n_differing] = np.linspace(0.5, 1.0, n_differing)

    result = paired_difference(np.zeros(100), second_values)

    assert result == PairedDifference(
        100, fmean(second_values), n_differing=n_differing
    )


@pytest.mark.parametrize(("n_rises", "is_significant"), [(5, False), (10, True)])
def test_five_tasks_of_a_hundred_that_rise_show_nothing_and_ten_do(
    n_rises, is_significant
):
    second_values = np.zeros(100)
    second_values[:n_rises] = 1.0

    result = paired_difference(np.zeros(100), second_values)

    assert result.n_differing == n_rises
    assert result.is_small == (n_rises < 10)
    assert (result.p_value < 0.05) == is_significant
    assert (result.ci_low > 0) == is_significant


@pytest.mark.parametrize("gain", [0.0, 0.03, 0.05])
def test_the_p_value_of_many_tasks_is_near_that_of_a_t_test(gain):
    first_values, second_values = pair(60, gain)

    result = paired_difference(first_values, second_values)

    expected = stats.ttest_rel(first_values, second_values).pvalue
    assert result.p_value == pytest.approx(expected, abs=0.02)


def test_no_p_value_is_below_one_in_as_many_resamples_as_were_drawn():
    result = paired_difference(*pair(50, 1.0), resamples=FEW)

    assert result.p_value == pytest.approx(1 / (FEW + 1))


def test_a_task_without_a_value_of_both_does_not_count():
    first_values, second_values = pair(20, 0.05)
    first_values[3] = np.nan
    second_values[7] = np.nan

    result = paired_difference(first_values, second_values)

    assert result == paired_difference(
        np.delete(first_values, [3, 7]), np.delete(second_values, [3, 7])
    )


@pytest.mark.parametrize(
    ("first_values", "second_values", "expected"),
    [
        # No task.
        ([], [], PairedDifference(0, None)),
        # One task.
        ([0.5], [0.75], PairedDifference(1, 0.25)),
        # The same model.
        ([0.5, 0.2], [0.5, 0.2], PairedDifference(2, 0.0)),
    ],
)
def test_fewer_than_two_tasks_and_a_model_beside_itself_say_nothing_about_the_difference(
    first_values, second_values, expected
):
    result = paired_difference(np.array(first_values), np.array(second_values))

    assert result == expected


@pytest.mark.parametrize("n_tasks", [12, 100])
def test_a_difference_of_the_smallest_detectable_size_is_found_four_times_in_five(
    n_tasks,
):
    unit = np.random.default_rng(0).normal(size=n_tasks)
    unit = (unit - unit.mean()) / unit.std(ddof=1)

    result = paired_difference(np.zeros(n_tasks), unit, resamples=FEW)

    dice = np.random.default_rng(1)
    samples = dice.normal(result.smallest_detectable, 1, size=(4_000, n_tasks))
    is_significant = stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert is_significant.mean() == pytest.approx(0.8, abs=0.03)


def test_adjusted_p_values_are_those_worked_by_hand():
    # Sorted: 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1; none may be below the previous one.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [([0.01, None, 0.04], [0.02, None, 0.04]), ([None], [None]), ([], [])],
)
def test_a_comparison_without_a_test_does_not_count(p_values, adjusted):
    assert holm(p_values) == adjusted


@given(P_VALUES, st.floats(0.001, 0.2))
def test_holm_rejects_what_stepping_down_rejects(p_values, alpha):
    ordered = sorted(p_value for p_value in p_values if p_value is not None)
    n_rejected = 0
    for n_before, p_value in enumerate(ordered):
        if (len(ordered) - n_before) * p_value > alpha:
            break
        n_rejected += 1

    adjusted = [p_value for p_value in holm(p_values) if p_value is not None]

    assert sum(p_value <= alpha for p_value in adjusted) == n_rejected


def test_the_smallest_detectable_difference_grows_with_the_spread_of_the_tasks():
    differences = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])

    narrow = paired_difference(np.zeros(6), differences, resamples=FEW)
    wide = paired_difference(np.zeros(6), 10.0 * differences, resamples=FEW)

    # Five tasks differ from one. Student's t with 4 degrees of freedom: 2.7764 for 97.5 %, 0.9410
    # for 80 %. The variance is 17.5 / 5.
    expected = (2.7764 + 0.9410) * 3.5**0.5 / 6**0.5
    assert narrow.smallest_detectable == pytest.approx(expected, rel=1e-4)
    assert wide.smallest_detectable == pytest.approx(10.0 * expected, rel=1e-4)


@pytest.mark.parametrize(("n_up", "p_value"), [(10, 2 / 1_024), (9, 22 / 1_024)])
def test_equal_changes_have_the_p_value_of_the_sign_test(n_up, p_value):
    second_values = np.array([0.1] * n_up + [-0.1] * (10 - n_up))

    result = paired_difference(np.zeros(10), second_values)

    assert result.p_value == pytest.approx(p_value)
    assert result.ci_low is None
