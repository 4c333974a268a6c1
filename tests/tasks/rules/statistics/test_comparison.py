"""Paired differences: an interval and a test that are consistent, against a t-test and simulated
power.
"""

import itertools
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tasks.rules.statistics.comparison import PairedDifference, holm, paired_difference
from tasks.rules.statistics.intervals import FEWEST_OTHERS, mean_intervals

ELEMENTS = st.one_of(
    st.just(0.0), st.integers(-20, 40).map(lambda i: i / 20), st.floats(-1, 1).map(lambda x: x**3)
)
DIFFERENCES = arrays.arrays(np.float64, st.integers(6, 60), elements=ELEMENTS)
P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=8)
FEW = 500


def pair(n_tasks: int, gain: float, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(seed)
    first = dice.normal(0.4, 0.2, size=n_tasks)
    return first, first + dice.normal(gain, 0.1, size=n_tasks)


def test_the_difference_is_the_second_above_the_first_with_the_interval_of_a_mean() -> None:
    first, second = pair(40, 0.05)
    result = paired_difference(first, second)

    assert result.n_tasks == 40
    assert pytest.approx(result.difference) == fmean(second) - fmean(first)
    assert [(result.ci_low, result.ci_high)] == [
        tuple(row) for row in mean_intervals(np.sort(second - first)[:, None])
    ]


@settings(max_examples=150)
@given(DIFFERENCES, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_leaves_out_zero_exactly_if_p_is_below_its_error(
    differences: np.ndarray, level: float
) -> None:
    result = paired_difference(np.zeros(len(differences)), differences, level=level, resamples=FEW)
    if result.n_differing < FEWEST_OTHERS:
        assert result.ci_low is None
        assert result.ci_high is None
    else:
        low, high, p_value = map(float, (result.ci_low, result.ci_high, result.p_value))
        assert (p_value <= 1 - level) == (low > 0 or high < 0)


@settings(max_examples=60)
@given(DIFFERENCES, st.data())
def test_an_interval_does_not_depend_on_order_sign_or_scale(
    differences: np.ndarray, data: st.DataObject
) -> None:
    zeros = np.zeros(len(differences))
    result = paired_difference(zeros, differences, resamples=FEW)
    if result.p_value is None or result.ci_low is None or result.ci_high is None:
        return
    assert result.difference is not None
    assert result.ci_low <= result.difference <= result.ci_high
    shuffled = differences[data.draw(st.permutations(range(len(differences))))]
    assert result == paired_difference(zeros, shuffled, resamples=FEW)
    for scale in (4.0, -0.25) if abs(result.difference) > 1e-9 else (4.0,):
        scaled = paired_difference(zeros, scale * differences, resamples=FEW)
        ends = sorted([scale * result.ci_low, scale * result.ci_high])
        assert pytest.approx(ends, abs=1e-9) == [scaled.ci_low, scaled.ci_high]
        assert pytest.approx(result.p_value, abs=1e-9) == scaled.p_value


@pytest.mark.parametrize("n_differing", [1, 3, 4])
def test_where_too_few_tasks_differ_there_is_neither_an_interval_nor_a_test(
    n_differing: int,
) -> None:
    second = np.zeros(100)
    second[:n_differing] = np.linspace(0.5, 1.0, n_differing)
    result = paired_difference(np.zeros(100), second)

    assert (
        PairedDifference(100, fmean(second), None, None, None, None, n_differing, is_small=True)
        == result
    )


def test_five_tasks_of_a_hundred_that_rise_show_nothing_and_ten_do() -> None:
    few = np.zeros(100)
    more = np.zeros(100)
    few[:5] = 1.0
    more[:10] = 1.0
    of_few, of_more = (paired_difference(np.zeros(100), each) for each in (few, more))

    assert of_few.n_differing == 5
    assert of_few.is_small
    assert (of_few.p_value or 0) > 0.05 > (of_more.p_value or 1)
    assert of_more.n_differing == 10
    assert not of_more.is_small
    assert (of_few.ci_low or 0) < 0 < (of_more.ci_low or 0)


@pytest.mark.parametrize("gain", [0.0, 0.03, 0.05])
def test_the_p_value_of_many_tasks_is_near_that_of_a_t_test(gain: float) -> None:
    first, second = pair(60, gain)

    assert (
        pytest.approx(stats.ttest_rel(first, second).pvalue, abs=0.02)
        == paired_difference(first, second).p_value
    )


def test_no_p_value_is_below_one_in_as_many_resamples_as_were_made() -> None:
    assert paired_difference(*pair(50, 1.0), resamples=FEW).p_value == pytest.approx(1 / (FEW + 1))


def test_a_task_without_a_value_of_both_does_not_count() -> None:
    first, second = pair(20, 0.05)
    first[3] = np.nan
    second[7] = np.nan
    both = ~np.isnan(first) & ~np.isnan(second)

    assert paired_difference(first, second) == paired_difference(first[both], second[both])


def test_fewer_than_two_tasks_and_a_model_beside_itself_say_nothing_about_the_difference() -> None:
    none = np.array([])
    one = np.array([0.5])

    assert PairedDifference(0, None, None, None, None, None) == paired_difference(none, none)
    assert PairedDifference(40, 0.0, None, None, None, None) == paired_difference(
        *[pair(40, 0.0)[0]] * 2
    )
    assert PairedDifference(1, 0.25, None, None, None, None) == paired_difference(one, one + 0.25)


@pytest.mark.parametrize("n_tasks", [12, 100])
def test_a_difference_of_the_smallest_detectable_size_is_found_four_times_in_five(
    n_tasks: int,
) -> None:
    unit = np.random.default_rng(0).normal(size=n_tasks)
    unit = (unit - unit.mean()) / unit.std(ddof=1)
    size = paired_difference(np.zeros(n_tasks), unit, resamples=FEW).smallest_detectable

    samples = np.random.default_rng(1).normal(size or 0, 1, size=(4_000, n_tasks))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(
        0.8, abs=0.03
    )


def test_adjusted_p_values_are_those_worked_by_hand_and_what_was_not_tested_does_not_count() -> (
    None
):
    # Sorted: 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1; none may be below the previous one.
    expected = [pytest.approx(p) if p else p for p in (0.03, 0.06, None, 0.06, 0.02)]
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == expected
    assert holm([None]) == [None]
    assert holm([]) == []


@given(P_VALUES, st.floats(0.001, 0.2))
def test_holm_rejects_what_stepping_down_rejects(
    p_values: list[float | None], alpha: float
) -> None:
    known = sorted(p for p in p_values if p is not None)
    rejected = list(
        itertools.takewhile(
            lambda pair: (len(known) - pair[0]) * pair[1] <= alpha, enumerate(known)
        )
    )

    assert len(rejected) == sum(a is not None and a <= alpha for a in holm(p_values))


def test_the_smallest_detectable_difference_grows_with_the_spread_of_the_tasks() -> None:
    differences = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])

    narrow = paired_difference(np.zeros(6), differences, resamples=FEW)
    wide = paired_difference(np.zeros(6), 10.0 * differences, resamples=FEW)

    # Five tasks differ from one. Student's t with 4 degrees of freedom: 2.7764 for 97.5 %, 0.9410
    # for 80 %. The variance is 17.5 / 5.
    expected = (2.7764 + 0.9410) * 3.5**0.5 / 6**0.5
    assert narrow.smallest_detectable == pytest.approx(expected, rel=1e-4)
    assert wide.smallest_detectable == pytest.approx(10.0 * expected, rel=1e-4)


@pytest.mark.parametrize(("n_up", "p_value"), [(10, 2 / 1_024), (9, 22 / 1_024)])
def test_equal_changes_have_the_p_value_of_the_sign_test(n_up: int, p_value: float) -> None:
    second = np.array([0.1] * n_up + [-0.1] * (10 - n_up))

    result = paired_difference(np.zeros(10), second)

    assert result.p_value == pytest.approx(p_value)
    assert result.ci_low is None
