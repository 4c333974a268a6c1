"""Samples with known probabilities: each unit's probability, and that it is drawn with this
probability.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.statistics import sampling

STRATUM_SIZES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), st.integers(1, 40), min_size=1, max_size=6
)


@given(STRATUM_SIZES, st.integers(0, 200))
def test_an_allocation_is_as_even_as_the_sizes_of_the_strata_allow(sizes, n_further):
    n_wanted = len(sizes) + n_further

    allocation = sampling.even_allocation(sizes, n_wanted)

    assert sum(allocation.values()) == min(n_wanted, sum(sizes.values()))
    largest = max(allocation.values())
    for stratum, size in sizes.items():
        assert 1 <= allocation[stratum] <= size
        # A stratum gives fewer than others, by more than the remainder, only if it has no more.
        assert allocation[stratum] == size or allocation[stratum] >= largest - 1


@given(STRATUM_SIZES, st.integers(0, 200), st.integers(0, 5))
def test_a_sample_has_the_even_allocation(sizes, n_further, seed):
    n_wanted = len(sizes) + n_further
    strata = list(Counter(sizes).elements())
    keys = [str(position) for position in range(len(strata))]

    units = sampling.stratified_sample(keys, strata, n_wanted, seed)

    positions = [unit.position for unit in units]
    allocation = sampling.even_allocation(sizes, n_wanted)
    assert positions == sorted(set(positions))
    assert Counter(unit.stratum for unit in units) == allocation
    for unit in units:
        assert unit.stratum == strata[unit.position]


def test_every_unit_is_drawn_as_often_as_its_probability_says():
    strata = ["large"] * 30 + ["small"] * 6
    keys = [f"unit {position}" for position in range(36)]
    n_seeds = 3_000
    counts = np.zeros(36)
    for seed in range(n_seeds):
        units = sampling.stratified_sample(keys, strata, 10, seed)
        counts[[unit.position for unit in units]] += 1

    assert {(unit.stratum, unit.probability) for unit in units} == {
        ("large", 5 / 30),
        ("small", 5 / 6),
    }
    probabilities = np.array([5 / 30] * 30 + [5 / 6] * 6)
    largest_standard_error = np.sqrt(0.25 / n_seeds)
    deviations = np.abs(counts / n_seeds - probabilities)
    assert deviations.max() < 4.5 * largest_standard_error


def test_a_larger_sample_of_the_same_seed_holds_the_smaller_one():
    keys = [str(position) for position in range(50)]

    small = sampling.stratified_sample(keys, ["all"] * 50, 10, 7)
    large = sampling.stratified_sample(keys, ["all"] * 50, 30, 7)

    assert {unit.position for unit in small} <= {unit.position for unit in large}


UNITS = st.lists(
    st.tuples(st.sampled_from("abc"), st.floats(0.1, 10.0)), min_size=3, max_size=60
)
"""The stratum and the size of each unit."""


def sampled_from(
    units: list[tuple[str, float]], n_wanted: int
) -> list[sampling.SampledUnit]:
    keys = [str(position) for position in range(len(units))]
    strata = [stratum for stratum, _ in units]
    sizes = np.array([size for _, size in units])
    return sampling.proportional_sample(keys, strata, sizes, n_wanted, seed=3)


@given(UNITS, st.integers(0, 30), st.integers(0, 30))
def test_a_larger_proportional_sample_extends_a_smaller_one(units, n_further, n_more):
    strata = {stratum for stratum, _ in units}
    n_wanted = len(strata) + n_further

    small = sampled_from(units, n_wanted)
    large = sampled_from(units, n_wanted + n_more)

    assert len(small) == min(n_wanted, len(units))
    assert {unit.stratum for unit in small} == strata
    assert {unit.position for unit in small} <= {unit.position for unit in large}


def test_a_proportional_sample_draws_from_a_stratum_by_the_size_of_its_units():
    units = [("heavy", 3.0)] * 20 + [("light", 1.0)] * 20

    sample = sampled_from(units, 16)

    drawn = Counter((unit.stratum, unit.probability) for unit in sample)
    assert drawn == {("heavy", 12 / 20): 12, ("light", 4 / 20): 4}


@given(st.lists(st.floats(0.01, 1000.0), min_size=1, max_size=60), st.integers(1, 70))
def test_probabilities_sum_to_the_number_wanted_and_none_is_0_or_above_1(
    sizes, n_wanted
):
    probabilities = sampling.sampling_probabilities(np.array(sizes), n_wanted)

    assert probabilities.sum() == pytest.approx(min(n_wanted, len(sizes)))
    assert (probabilities > 0).all()
    assert (probabilities <= 1).all()
    ratios = (probabilities / sizes)[probabilities < 1]
    assert np.allclose(ratios, ratios[:1], rtol=1e-6, atol=0)


@given(
    st.lists(st.floats(0.01, 100.0), min_size=2, max_size=40),
    st.integers(1, 39),
    st.integers(0, 5),
)
def test_a_sample_has_the_number_wanted_from_all_and_from_each_group(
    sizes, n_wanted, seed
):
    n_wanted = min(n_wanted, len(sizes))
    probabilities = sampling.sampling_probabilities(np.array(sizes), n_wanted)
    keys = [f"k{index}" for index in range(len(sizes))]
    last_digits = [key[-1] for key in keys]

    indices = sampling.systematic_sample(probabilities, keys, seed, last_digits)

    assert len(set(indices.tolist())) == n_wanted
    assert set(np.flatnonzero(probabilities == 1.0)) <= set(indices)
    is_sampled = np.isin(np.arange(len(sizes)), indices)
    for digit in set(last_digits):
        is_in_group = np.array(last_digits) == digit
        n_sampled = is_sampled[is_in_group].sum()
        assert abs(n_sampled - probabilities[is_in_group].sum()) < 1 + 1e-9


def test_the_same_seed_draws_the_same_units_and_another_seed_others():
    keys = [f"k{index}" for index in range(40)]
    samples = [
        sampling.systematic_sample(np.full(40, 0.25), keys, seed, keys).tolist()
        for seed in (1, 1, 2)
    ]

    assert samples[0] == samples[1]
    assert samples[0] != samples[2]


def test_each_unit_of_a_systematic_sample_is_drawn_as_often_as_its_probability_says():
    sizes = np.random.default_rng(0).pareto(1.5, 60) + 0.1
    probabilities = sampling.sampling_probabilities(sizes, 12)
    keys = [f"k{index}" for index in range(60)]
    last_digits = [key[-1] for key in keys]
    n_draws = 1_000
    counts = np.zeros(60)
    for seed in range(n_draws):
        counts[
            sampling.systematic_sample(probabilities, keys, seed, last_digits)
        ] += 1

    is_certain = probabilities == 1
    errors = np.sqrt(probabilities * (1 - probabilities) / n_draws)
    deviations = np.abs(counts / n_draws - probabilities)
    assert (deviations <= 4 * errors).all()
    assert (counts[is_certain] == n_draws).all()


def test_a_group_whose_labels_were_wrong_is_expected_to_be_wrong_more_often():
    groups = np.repeat([0, 1], 40)
    squared_errors = np.repeat([0.0, 1.0], 40)

    right, wrong, unlabelled = sampling.group_errors(
        groups, squared_errors, np.arange(3)
    )

    assert right < unlabelled < wrong


def test_without_labels_the_expected_error_is_that_of_an_unknown_judge():
    no_groups = np.array([], dtype=np.int64)

    errors = sampling.group_errors(no_groups, np.array([]), np.arange(1))

    assert errors.tolist() == [pytest.approx(0.15)]


def test_a_verdict_that_others_disagree_with_is_expected_to_be_wrong_more_often():
    alone, agreeing, disagreeing = sampling.expected_errors(
        group_rates=np.full(3, 0.1),
        disagreement=np.array([0.0, 0.0, 1.0]),
        n_others=np.array([0.0, 2.0, 2.0]),
    )

    assert agreeing < alone < disagreeing


def test_no_verdict_is_expected_to_be_right_for_certain():
    errors = sampling.expected_errors(np.zeros(1), np.zeros(1), np.ones(1))

    assert errors.tolist() == [0.04]


def test_more_labels_narrow_an_interval_and_all_of_them_leave_the_spread_of_tasks():
    widths = []
    for n_labels in (30, 60, 100):
        variance = sampling.label_variance(
            np.full(100, 0.01), np.full(100, 0.2), np.full(100, n_labels / 100)
        )
        widths.append(sampling.expected_width(0.0004, [variance], [n_labels]))

    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(2 * 1.96 * 0.02, rel=0.02)


def test_labels_that_represent_only_themselves_add_degrees_of_freedom():
    width = sampling.expected_width(0.0004, [0.0], [8])

    assert sampling.expected_width(0.0004, [0.0], [8], n_known=1_000) < 0.9 * width


def test_the_variance_of_labels_is_that_worked_by_hand():
    variance = sampling.label_variance(
        contributions=np.array([2.0, -3.0, 5.0]),
        errors=np.array([0.25, 0.1, 0.9]),
        probabilities=np.array([0.5, 0.25, 1.0]),
    )

    # 4 * 0.25 * (0.5 / 0.5) + 9 * 0.1 * (0.75 / 0.25), and nothing for a certain label.
    assert variance == pytest.approx(1.0 + 2.7)
