"""Paired differences, against permutations written out and against simulated power."""

import itertools
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tasks.rules.comparison import PairedDifference, holm, paired_difference
from tasks.rules.statistics import mean_intervals

VALUES = arrays.arrays(np.float64, st.integers(2, 14), elements=st.integers(-20, 20).map(lambda i: i / 20))
P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=8)
FEW = 500


def pair(n_tasks: int, gain: float, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(seed)
    first = dice.normal(0.4, 0.2, size=n_tasks)
    return first, first + dice.normal(gain, 0.1, size=n_tasks)


def test_the_difference_is_the_second_above_the_first_with_the_interval_of_a_mean() -> None:
    first, second = pair(40, 0.05)
    found = paired_difference(first, second)

    assert 40 == found.n_tasks
    assert fmean(second) - fmean(first) == pytest.approx(found.difference)
    assert [(found.ci_low, found.ci_high)] == [tuple(row) for row in mean_intervals((second - first)[:, None])]


@pytest.mark.parametrize("n_tasks", [3, 7, 12])
def test_the_p_value_of_few_tasks_is_the_share_of_all_flips_that_reach_as_far(n_tasks: int) -> None:
    first, second = pair(n_tasks, 0.05)
    differences = (second - first).tolist()
    flips = list(itertools.product((1, -1), repeat=n_tasks))
    sums = [abs(sum(s * d for s, d in zip(flip, differences, strict=True))) for flip in flips]
    share = sum(each >= sums[0] - 1e-12 for each in sums) / len(flips)

    assert paired_difference(first, second).p_value == pytest.approx(share)


@pytest.mark.parametrize("gain", [0.0, 0.03, 0.05])
def test_the_p_value_of_many_tasks_is_near_that_of_a_t_test(gain: float) -> None:
    first, second = pair(60, gain)

    assert paired_difference(first, second).p_value == pytest.approx(stats.ttest_rel(first, second).pvalue, abs=0.02)


def test_no_p_value_is_below_one_in_as_many_flips_as_were_made() -> None:
    assert paired_difference(*pair(50, 1.0), resamples=FEW).p_value == pytest.approx(1 / (FEW + 1))


@settings(max_examples=40)
@given(VALUES)
def test_a_model_against_itself_differs_by_nothing_with_certainty(values: np.ndarray) -> None:
    found = paired_difference(values, values, resamples=FEW)

    detectable = 0.0 if len(values) > 5 else None
    assert PairedDifference(len(values), 0.0, 0.0, 0.0, 1.0, detectable) == found


@pytest.mark.parametrize("n_tasks", [10, 40])
def test_sums_that_are_equal_but_for_rounding_count_as_ties(n_tasks: int) -> None:
    # One model is ahead by 0.1 on one task more than not; 0.1 has no exact form.
    differences = np.array([0.1, -0.1] * (n_tasks // 2))
    first = np.linspace(0.1, 0.7, n_tasks)

    assert 1.0 == paired_difference(first, first + differences, resamples=FEW).p_value


@settings(max_examples=40)
@given(VALUES, st.data())
def test_swapping_the_models_turns_the_signs_and_keeps_the_p_value(values: np.ndarray, data: st.DataObject) -> None:
    other = data.draw(arrays.arrays(np.float64, len(values), elements=st.integers(-20, 20).map(lambda i: i / 20)))
    there = paired_difference(values, other, resamples=FEW)
    back = paired_difference(other, values, resamples=FEW)

    assert (there.difference, there.ci_low, there.ci_high) == pytest.approx(
        (-(back.difference or 0), -(back.ci_high or 0), -(back.ci_low or 0)), abs=1e-9
    )
    assert (there.p_value, there.smallest_detectable) == pytest.approx((back.p_value, back.smallest_detectable))


def test_the_same_values_give_the_same_comparison() -> None:
    assert paired_difference(*pair(30, 0.05)) == paired_difference(*pair(30, 0.05))


def test_a_task_without_a_value_of_both_does_not_count() -> None:
    first, second = pair(20, 0.05)
    first[3], second[7] = np.nan, np.nan
    both = ~np.isnan(first) & ~np.isnan(second)

    assert paired_difference(first[both], second[both]) == paired_difference(first, second)


def test_fewer_than_two_tasks_say_nothing_about_the_difference() -> None:
    none, one = np.array([]), np.array([0.5])

    assert PairedDifference(0, None, None, None, None, None) == paired_difference(none, none)
    assert PairedDifference(1, 0.25, None, None, None, None) == paired_difference(one, one + 0.25)


@pytest.mark.parametrize("n_tasks", [12, 100])
def test_a_difference_of_the_smallest_detectable_size_is_found_four_times_in_five(n_tasks: int) -> None:
    unit = np.random.default_rng(0).normal(size=n_tasks)
    unit = (unit - unit.mean()) / unit.std(ddof=1)
    size = paired_difference(np.zeros(n_tasks), unit, resamples=FEW).smallest_detectable

    samples = np.random.default_rng(1).normal(size or 0, 1, size=(4_000, n_tasks))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("n_tasks", "can_show"), [(2, False), (5, False), (6, True)])
def test_where_no_flip_of_signs_can_be_rare_no_difference_is_detectable(n_tasks: int, can_show: bool) -> None:
    found = paired_difference(np.zeros(n_tasks), np.linspace(0.9, 1.0, n_tasks))

    assert can_show == (found.smallest_detectable is not None)
    assert can_show == ((found.p_value or 1) < 0.05)


def test_a_stricter_level_detects_only_larger_differences() -> None:
    loose, strict = (paired_difference(*pair(30, 0.0), level=level) for level in (0.9, 0.99))

    assert (loose.smallest_detectable or 0) < (strict.smallest_detectable or 0)
    assert (strict.ci_low or 0) < (loose.ci_low or 0)


def test_adjusted_p_values_are_those_worked_by_hand() -> None:
    # Sorted 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1, none below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_what_was_not_tested_does_not_count_as_a_comparison() -> None:
    assert [None, 0.04, None, 0.5] == holm([None, 0.02, None, 0.5])
    assert [None] == holm([None])
    assert [] == holm([])


@given(P_VALUES)
def test_an_adjusted_p_value_is_no_smaller_and_at_most_one(p_values: list[float | None]) -> None:
    adjusted = holm(p_values)
    known = [(p, a) for p, a in zip(p_values, adjusted, strict=True) if p is not None and a is not None]

    assert [p is None for p in p_values] == [a is None for a in adjusted]
    assert all(p <= a <= 1.0 for p, a in known)
    assert [a for _, a in sorted(known)] == sorted(a for _, a in known)


@given(P_VALUES, st.floats(0.001, 0.2))
def test_holm_rejects_what_stepping_down_rejects(p_values: list[float | None], alpha: float) -> None:
    known = sorted(p for p in p_values if p is not None)
    rejected = list(itertools.takewhile(lambda pair: (len(known) - pair[0]) * pair[1] <= alpha, enumerate(known)))

    assert len(rejected) == sum(a is not None and a <= alpha for a in holm(p_values))
