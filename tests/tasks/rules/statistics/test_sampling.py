"""Samples with known probabilities: each unit's probability, and that it is drawn with this
probability.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.statistics import sampling

SIZES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), st.integers(1, 40), min_size=1, max_size=6
)


@given(SIZES, st.integers(0, 200))
def test_an_allocation_gives_each_stratum_a_share_that_none_can_envy(
    of: dict[str, int], more: int
) -> None:
    n_wanted = len(of) + more
    taken = sampling.even_allocation(of, n_wanted)

    assert min(n_wanted, sum(of.values())) == sum(taken.values())
    assert all(1 <= taken[name] <= of[name] for name in of)
    # A stratum gives less than others (by more than the remainder) only if it has no more units.
    most = max(taken.values())
    assert all(taken[name] >= most - 1 or taken[name] == of[name] for name in of)


@given(SIZES, st.integers(0, 200), st.integers(0, 5))
def test_a_sample_has_its_allocation_and_its_probabilities(
    of: dict[str, int], more: int, seed: int
) -> None:
    strata = [name for name, size in of.items() for _ in range(size)]
    keys = [str(i) for i in range(len(strata))]
    sampled = sampling.stratified_sample(keys, strata, len(of) + more, seed)

    assert sampling.even_allocation(of, len(of) + more) == Counter(each.stratum for each in sampled)
    assert sorted({each.position for each in sampled}) == [each.position for each in sampled]
    assert all(
        strata[each.position] == each.stratum and 0 < each.probability <= 1 for each in sampled
    )
    # The sum of one over the probability, over a stratum's sample, is the stratum's size.
    for name, size in of.items():
        assert pytest.approx(size) == sum(
            1 / each.probability for each in sampled if each.stratum == name
        )


def test_every_unit_is_drawn_as_often_as_its_probability_says() -> None:
    strata = ["large"] * 30 + ["small"] * 6
    keys = [f"unit {i}" for i in range(len(strata))]
    n_seeds = 3_000
    counts: Counter[int] = Counter()
    for seed in range(n_seeds):
        counts.update(each.position for each in sampling.stratified_sample(keys, strata, 10, seed))
    expected = np.array([5 / 30] * 30 + [5 / 6] * 6)
    result = np.array([counts[i] / n_seeds for i in range(len(strata))])

    assert np.abs(result - expected).max() < 4.5 * np.sqrt(0.25 / n_seeds)


def test_a_larger_sample_of_the_same_seed_holds_the_smaller_one() -> None:
    keys = [str(i) for i in range(50)]
    small, large = (sampling.stratified_sample(keys, ["all"] * 50, n, 7) for n in (10, 30))

    assert {each.position for each in small} <= {each.position for each in large}


@given(st.lists(st.floats(0.01, 1000.0), min_size=1, max_size=60), st.integers(1, 70))
def test_probabilities_sum_to_the_number_wanted_and_none_is_0_or_above_1(
    size: list[float], n: int
) -> None:
    result = sampling.inclusion_probabilities(np.array(size), n)

    assert pytest.approx(min(n, len(size))) == result.sum()
    assert ((result > 0) & (result <= 1)).all()
    below = result < 1
    if below.any():
        ratio = result[below] / np.array(size)[below]
        assert pytest.approx(np.full(len(ratio), ratio[0])) == ratio


@given(
    st.lists(st.floats(0.01, 100.0), min_size=2, max_size=40), st.integers(1, 39), st.integers(0, 5)
)
def test_a_sample_has_the_number_wanted_and_the_same_seed_draws_the_same(
    size: list[float], n: int, seed: int
) -> None:
    probabilities = sampling.inclusion_probabilities(np.array(size), min(n, len(size)))
    keys = [f"k{index}" for index in range(len(size))]
    groups = [key[-1] for key in keys]
    result = sampling.systematic_sample(probabilities, keys, seed, groups)

    assert len(result) == len(set(result.tolist())) == min(n, len(size))
    assert result.tolist() == sampling.systematic_sample(probabilities, keys, seed, groups).tolist()
    assert set(np.flatnonzero(probabilities == 1.0)) <= set(result.tolist())
    for group in set(groups):
        of_group = [index for index, each in enumerate(groups) if each == group]
        assert abs(len({*of_group} & {*result.tolist()}) - probabilities[of_group].sum()) < 1 + 1e-9


def test_each_verdict_is_drawn_as_often_as_its_probability_says() -> None:
    size = np.random.default_rng(0).pareto(1.5, 60) + 0.1
    probabilities = sampling.inclusion_probabilities(size, 12)
    keys = [f"k{index}" for index in range(60)]
    n_draws = 1_000
    sampled = np.zeros(60)
    for seed in range(n_draws):
        sampled[
            sampling.systematic_sample(probabilities, keys, seed, [key[-1] for key in keys])
        ] += 1

    off = (sampled / n_draws - probabilities) / np.sqrt(
        np.maximum(probabilities * (1 - probabilities), 1e-9) / n_draws
    )
    assert np.abs(off[probabilities < 1]).max() < 4
    assert (sampled[probabilities == 1] == n_draws).all()


def test_verdicts_that_others_disagree_with_or_whose_group_was_wrong_are_expected_to_be_wrong_more_often() -> (
    None
):
    of_group = sampling.group_errors(np.repeat([0, 1], 40), np.repeat([0.0, 1.0], 40), np.arange(3))
    of_nothing = sampling.group_errors(np.array([], dtype=np.int64), np.array([]), np.arange(1))
    assert of_group[0] < of_group[2] < of_group[1]
    assert of_nothing.tolist() == [pytest.approx(sampling.PRIOR_ERROR)]

    result = sampling.expected_errors(
        np.full(3, 0.1), np.array([0.0, 0.0, 1.0]), np.array([0.0, 2.0, 2.0])
    )
    assert result[1] < result[0] < result[2]
    assert sampling.expected_errors(np.zeros(1), np.zeros(1), np.ones(1)).tolist() == [
        sampling.LEAST_ERROR
    ]


def test_more_labels_are_expected_to_narrow_an_interval_and_all_of_them_leave_the_spread_of_tasks() -> (
    None
):
    contributions = np.full(100, 0.01)
    errors = np.full(100, 0.2)
    widths = [
        sampling.expected_width(
            0.0004, [sampling.label_variance(contributions, errors, np.full(100, n / 100))], [n]
        )
        for n in (30, 60, 100)
    ]
    assert sorted(widths, reverse=True) == widths
    assert widths[-1] == pytest.approx(2 * 1.96 * 0.02, rel=0.02)
    # Labels that represent only themselves add degrees of freedom.
    few = sampling.expected_width(0.0004, [0.0], [8])
    assert sampling.expected_width(0.0004, [0.0], [8], n_known=1_000) < 0.9 * few


def test_the_variance_of_labels_is_that_worked_by_hand() -> None:
    variance = sampling.label_variance(
        contributions=np.array([2.0, -3.0, 5.0]),
        errors=np.array([0.25, 0.1, 0.9]),
        probabilities=np.array([0.5, 0.25, 1.0]),
    )

    # 4 * 0.25 * (0.5 / 0.5) + 9 * 0.1 * (0.75 / 0.25), and nothing for a certain label.
    assert variance == pytest.approx(1.0 + 2.7)
