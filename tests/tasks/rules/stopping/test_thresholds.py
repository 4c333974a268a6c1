"""Thresholds against simulated sums, intervals at every look against the truth, and the order of
tasks.
"""

from collections import Counter
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules import stopping
from tasks.rules.stopping import (
    FEWEST_TASKS,
    Rule,
    block_ends,
    mixture,
    sequence_ends,
    task_order,
    thresholds,
)


def test_one_look_has_the_textbook_threshold() -> None:
    square = thresholds([100], 0.05)[100]
    assert pytest.approx(NormalDist().inv_cdf(0.975) ** 2, rel=1e-3) == square


def test_two_equal_looks_cross_as_often_as_in_the_literature() -> None:
    # Pocock's constants for two-sided 5 % (Biometrika 1977, table 1).
    for n_looks, constant in ((2, 2.178), (5, 2.413), (10, 2.555)):
        ends = np.arange(1.0, n_looks + 1)
        assert stopping.crossing_chance(ends, np.full(n_looks, constant**2)) == pytest.approx(
            0.05, abs=2e-4
        )


@pytest.mark.parametrize(
    ("n_tasks", "block", "alpha"), [(100, 20, 0.05), (100, 5, 0.05), (300, 20, 0.01)]
)
def test_sums_of_normal_values_cross_the_thresholds_as_often_as_asked(
    n_tasks: int, block: int, alpha: float
) -> None:
    squares = thresholds(block_ends(n_tasks, block), alpha)
    looks = np.array(list(squares))
    sums = np.random.default_rng(1).normal(size=(40_000, n_tasks)).cumsum(axis=1)[:, looks - 1]
    crossed = (sums**2 / looks >= np.array(list(squares.values()))).any(axis=1).mean()
    assert pytest.approx(alpha, abs=4 * np.sqrt(alpha / 40_000)) == crossed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_tasks", "block", "of"), [(4_951, 50, 190), (10_001, 100, 1), (100_001, 1_000, 1)]
)
def test_a_small_last_block_does_not_evade_the_thresholds(
    n_tasks: int, block: int, of: int
) -> None:
    alpha = 0.05 / of
    squares = thresholds(block_ends(n_tasks, block), alpha)
    looks = np.array(list(squares), dtype=np.float64)
    assert n_tasks == looks[-1]
    dice = np.random.default_rng(6)
    crossed = 0
    n_sums = 40_000
    for _ in range(5):
        steps = dice.normal(size=(n_sums // 5, len(looks))) * np.sqrt(np.diff(looks, prepend=0.0))
        crossed += (
            (steps.cumsum(axis=1) ** 2 / looks >= np.array(list(squares.values())))
            .any(axis=1)
            .sum()
        )
    assert crossed / n_sums <= alpha + 4 * np.sqrt(alpha / n_sums)


def test_only_the_last_of_two_looks_next_to_each_other_is_taken() -> None:
    assert sorted(thresholds(block_ends(1_001, 50), 0.05))[-2:] == [950, 1_001]
    assert 180 in thresholds(block_ends(190, 20), 0.05)


def test_no_look_is_taken_at_few_tasks_and_with_very_many_looks_the_mixture_stands() -> None:
    assert min(thresholds(block_ends(100, 5), 0.05)) == FEWEST_TASKS
    assert thresholds(block_ends(10, 5), 0.05) == {}
    # Also if the chance cannot be computed precisely enough.
    for n_tasks, block, alpha in ((400, 2, 0.05), (2_000, 20, 1e-300)):
        squares = thresholds(block_ends(n_tasks, block), alpha)
        looks = np.array(list(squares), dtype=np.float64)
        assert pytest.approx(list(mixture(looks, alpha, n_tasks))) == list(squares.values())


def test_an_interval_shifts_with_its_values_and_few_differing_tasks_have_none() -> None:
    dice = np.random.default_rng(2)
    values = dice.normal(size=(60, 3))
    ends = sequence_ends(values, 6.0)
    assert pytest.approx(ends + 5.0) == sequence_ends(values + 5.0, 6.0)
    assert pytest.approx(-ends[:, ::-1]) == sequence_ends(-values, 6.0)
    with_gaps = np.concatenate([values, np.full((10, 3), np.nan)])
    assert pytest.approx(ends) == sequence_ends(with_gaps, 6.0)
    sparse = np.zeros((60, 2))
    sparse[:6, 0] = 0.1
    sparse[:12, 1] = dice.normal(size=12)
    assert np.isnan(sequence_ends(sparse, 6.0)).all(axis=1).tolist() == [True, False]
    assert np.isnan(sequence_ends(np.ones((60, 1)), 6.0)).all()


def test_a_long_tail_makes_the_interval_longer_on_its_side() -> None:
    values = np.random.default_rng(3).exponential(size=(80, 1))
    (low, high) = sequence_ends(values, 6.0)[0]
    mean = values.mean()
    assert high - mean > 1.3 * (mean - low)


def test_no_end_is_nearer_to_the_mean_than_what_unseen_tasks_may_move_it_by() -> None:
    values = np.random.default_rng(5).normal(0.05, 0.001, (40, 2))
    rule = Rule("different", 0.05, 0.02, (20, 40, 60))
    values[20:, 1] = np.nan
    mean = np.nanmean(values, axis=0)
    low, high = rule.ends_at(values).T
    # The half width is 3/4 * log(20) / n, for 40 and for 20 tasks.
    assert pytest.approx(high - mean) == mean - low
    assert pytest.approx([0.75 * np.log(20) / 40, 0.75 * np.log(20) / 20]) == high - mean
    assert np.isnan(rule.ends_at(np.full((40, 1), np.nan))).all()


def test_an_interval_decides_what_it_excludes() -> None:
    differ, drop = (Rule(claim, 0.05, 0.02, (20, 40)) for claim in ("different", "dropped"))  # type: ignore[arg-type]
    ends = [
        (0.01, 0.2),
        (-0.2, -0.001),
        (-0.01, 0.019),
        (-0.03, 0.01),
        (float("nan"), float("nan")),
    ]
    different = stopping.DIFFERENT
    equal = stopping.EQUAL
    still_open = stopping.OPEN
    assert [different, different, equal, still_open, still_open] == differ.decisions(
        np.array(ends)
    ).tolist()
    ends = [(-0.2, -0.021), (-0.2, -0.019), (-0.019, 0.3), (0.1, 0.2)]
    expected = [stopping.DROPPED, still_open, stopping.NOT_DROPPED, stopping.NOT_DROPPED]
    assert drop.decisions(np.array(ends)).tolist() == expected


STRATA = {f"t{i}": "Finance" if i % 4 else "Legal" for i in range(100)}


def test_the_order_depends_on_the_seed_and_the_tasks_and_not_on_the_order_given() -> None:
    backwards = dict(reversed(STRATA.items()))
    assert task_order(STRATA, "1") == task_order(backwards, "1") != task_order(STRATA, "2")
    assert sorted(STRATA) == sorted(task_order(STRATA, "1"))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=80), st.integers(0, 5))
def test_every_beginning_holds_its_share_of_each_stratum(fields: list[str], seed: int) -> None:
    strata = {f"t{i}": field for i, field in enumerate(fields)}
    sizes = Counter(fields)
    order = task_order(strata, str(seed))
    for n in range(1, len(order) + 1):
        seen = Counter(strata[task] for task in order[:n])
        assert all(
            abs(seen[field] - n * size / len(order)) <= len(sizes) for field, size in sizes.items()
        )


def test_the_last_block_holds_the_rest() -> None:
    assert [block_ends(n_tasks, 20) for n_tasks in (50, 40, 7, 0)] == [
        [20, 40, 50],
        [20, 40],
        [7],
        [],
    ]


def test_alpha_is_divided_among_all_comparisons() -> None:
    assert stopping.alpha_of_each(0.05, 10) == pytest.approx(0.005)
    assert stopping.alpha_of_each(0.05, 0) == 0.05


@pytest.mark.parametrize(("most_looks", "is_raised"), [(3, False), (4, True)])
def test_the_level_is_raised_for_as_many_looks_as_are_allowed(
    most_looks: int, is_raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "_MOST_LOOKS", most_looks)
    n_planned = 220 + most_looks

    squares = thresholds([40, 80, 160, n_planned], 0.05)

    unchanged = mixture(np.array([float(n_planned)]), 0.05, n_planned)
    assert (squares[n_planned] < 0.99 * float(unchanged[0])) == is_raised


def test_an_end_is_extended_by_four_times_the_skewness_of_the_sample() -> None:
    # 16 tasks with about 0 and 4 with about 1: mean 0.2, skewness 1.62447 (the G1 of Joanes and
    # Gill, 1998). All differ, so 19 differ from the most common value.
    values = np.repeat([0.0, 1.0], [16, 4]) + np.linspace(0.0, 1e-6, 20)
    reach = np.sqrt(6.0 * 18 / 13)
    error = np.sqrt(0.16 / 19)

    low, high = sequence_ends(values[:, None], 6.0)[0]

    extension = 4 * 1.62447 * reach / (3 * np.sqrt(20))
    assert 0.2 - low == pytest.approx(error * reach, rel=1e-4)
    assert high - 0.2 == pytest.approx(error * reach * (1 + extension), rel=1e-4)


@pytest.mark.parametrize(("orders", "has_mean"), [(19, False), (20, True)])
def test_a_mean_without_the_bias_of_stopping_needs_twenty_possible_orders(
    orders: int, has_mean: bool
) -> None:
    rule = Rule("different", 0.05, 0.02, (20, 40))
    differences = np.tile([0.1, -0.1], 20)

    means = stopping.unbiased_means(
        differences, differences[:, None], np.zeros(40), rule, orders=orders
    )

    assert np.isfinite(means).tolist() == [has_mean]
