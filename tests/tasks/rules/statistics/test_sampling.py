"""Samples with known probabilities: what each unit's probability is, and that it is the one it is drawn with."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.statistics.sampling import even_allocation, stratified_sample

SIZES = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 40), min_size=1, max_size=6)


@given(SIZES, st.integers(0, 200))
def test_an_allocation_gives_each_stratum_a_share_that_none_can_envy(sizes: dict[str, int], more: int) -> None:
    n_wanted = len(sizes) + more
    taken = even_allocation(sizes, n_wanted)

    assert sum(taken.values()) == min(n_wanted, sum(sizes.values()))
    assert all(1 <= taken[name] <= sizes[name] for name in sizes)
    # Who has fewer than another, and by more than the remainder, has nothing left to give.
    most = max(taken.values())
    assert all(taken[name] >= most - 1 or taken[name] == sizes[name] for name in sizes)


@given(SIZES, st.integers(0, 200), st.integers(0, 5))
def test_a_sample_has_its_allocation_and_probabilities_that_count_the_population(
    sizes: dict[str, int], more: int, seed: int
) -> None:
    strata = [name for name, size in sizes.items() for _ in range(size)]
    keys = [str(i) for i in range(len(strata))]
    drawn = stratified_sample(keys, strata, len(sizes) + more, seed)

    assert Counter(each.stratum for each in drawn) == even_allocation(sizes, len(sizes) + more)
    assert [each.place for each in drawn] == sorted({each.place for each in drawn})
    assert all(strata[each.place] == each.stratum and 0 < each.probability <= 1 for each in drawn)
    # One over the probability, summed over a stratum's sample, is the stratum's size.
    for name, size in sizes.items():
        assert sum(1 / each.probability for each in drawn if each.stratum == name) == pytest.approx(size)


def test_every_unit_is_drawn_as_often_as_its_probability_says() -> None:
    strata = ["large"] * 30 + ["small"] * 6
    keys = [f"unit {i}" for i in range(len(strata))]
    n_seeds = 3_000
    counts: Counter[int] = Counter()
    for seed in range(n_seeds):
        counts.update(each.place for each in stratified_sample(keys, strata, 10, seed))
    expected = np.array([5 / 30] * 30 + [5 / 6] * 6)
    found = np.array([counts[i] / n_seeds for i in range(len(strata))])

    assert np.abs(found - expected).max() < 4.5 * np.sqrt(0.25 / n_seeds)


def test_a_larger_sample_of_the_same_seed_holds_the_smaller_one() -> None:
    keys = [str(i) for i in range(50)]
    small, large = (stratified_sample(keys, ["all"] * 50, n, 7) for n in (10, 30))

    assert {each.place for each in small} <= {each.place for each in large}


def test_what_cannot_be_sampled_is_refused() -> None:
    with pytest.raises(ValueError, match="1 units from 2 strata"):
        stratified_sample(["a", "b"], ["x", "y"], 1, 0)
    with pytest.raises(ValueError, match="twice"):
        stratified_sample(["a", "a"], ["x", "x"], 1, 0)
