"""Thresholds against simulated sums, intervals at every look against the truth, and the order of
tasks.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules import stopping
from tasks.rules.stopping import (
    Rule,
    block_ends,
    mixture,
    sequence_intervals,
    task_order,
    thresholds,
)

SQUARE = 6.0
"""A bound of the squared statistic."""


def test_one_look_has_the_textbook_threshold():
    assert thresholds([100], 0.05) == {100: pytest.approx(1.959964**2, rel=1e-3)}


@pytest.mark.parametrize(
    ("n_looks", "constant"), [(2, 2.178), (5, 2.413), (10, 2.555)]
)
def test_equal_looks_cross_as_often_as_in_the_literature(n_looks, constant):
    # Pocock's constants for two-sided 5 % (Biometrika 1977, table 1).
    ends = np.arange(1.0, n_looks + 1)

    chance = stopping.crossing_chance(ends, np.full(n_looks, constant**2))

    assert chance == pytest.approx(0.05, abs=2e-4)


@pytest.mark.parametrize(
    ("n_tasks", "block", "alpha"), [(100, 20, 0.05), (100, 5, 0.05), (300, 20, 0.01)]
)
def test_sums_of_normal_values_cross_the_thresholds_in_a_share_of_alpha(
    n_tasks, block, alpha
):
    squares = thresholds(block_ends(n_tasks, block), alpha)

    crossing_share = simulated_crossing_share(squares)

    assert crossing_share == pytest.approx(alpha, abs=4 * np.sqrt(alpha / N_SUMS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_tasks", "block", "alpha"), [(951, 50, 0.05 / 190), (10_001, 100, 0.05)]
)
def test_a_small_last_block_does_not_evade_the_thresholds(n_tasks, block, alpha):
    squares = thresholds(block_ends(n_tasks, block), alpha)

    crossing_share = simulated_crossing_share(squares)

    assert max(squares) == n_tasks
    assert crossing_share <= alpha + 4 * np.sqrt(alpha / N_SUMS)


N_SUMS = 40_000


def simulated_crossing_share(squares: dict[int, float]) -> float:
    """The share of sums of normal values that cross their bounds at any look."""
    looks = np.array(list(squares), dtype=float)
    bounds = np.array(list(squares.values()))
    dice = np.random.default_rng(6)
    n_crossing = 0
    for _ in range(5):
        steps = dice.normal(size=(N_SUMS // 5, len(looks))) * np.sqrt(
            np.diff(looks, prepend=0.0)
        )
        is_crossed = steps.cumsum(axis=1) ** 2 / looks >= bounds
        n_crossing += is_crossed.any(axis=1).sum()
    return n_crossing / N_SUMS


def test_only_the_last_of_two_looks_next_to_each_other_is_taken():
    assert sorted(thresholds(block_ends(1_001, 50), 0.05))[-2:] == [950, 1_001]
    assert 180 in thresholds(block_ends(190, 20), 0.05)


def test_no_look_is_taken_at_few_tasks():
    assert min(thresholds(block_ends(100, 5), 0.05)) == 20
    assert thresholds(block_ends(10, 5), 0.05) == {}


@pytest.mark.parametrize(
    ("n_tasks", "block", "alpha"),
    [
        # Very many looks.
        (400, 2, 0.05),
        # A chance that cannot be computed precisely.
        (2_000, 20, 1e-300),
    ],
)
def test_the_mixture_stands_where_its_level_is_not_raised(n_tasks, block, alpha):
    squares = thresholds(block_ends(n_tasks, block), alpha)

    expected = mixture(np.array(list(squares), dtype=float), alpha, n_tasks)
    assert list(squares.values()) == pytest.approx(expected.tolist())


def test_an_interval_shifts_and_turns_with_its_values():
    values = np.random.default_rng(2).normal(size=(60, 3))

    intervals = sequence_intervals(values, SQUARE)

    assert sequence_intervals(values + 5.0, SQUARE) == pytest.approx(intervals + 5.0)
    assert sequence_intervals(-values, SQUARE) == pytest.approx(-intervals[:, ::-1])


def test_tasks_that_do_not_count_leave_an_interval_as_it_is():
    values = np.random.default_rng(2).normal(size=(60, 3))

    intervals = sequence_intervals(
        np.concatenate([values, np.full((10, 3), np.nan)]), SQUARE
    )

    assert intervals == pytest.approx(sequence_intervals(values, SQUARE))


@pytest.mark.parametrize(
    ("n_differing", "has_interval"), [(0, False), (6, False), (7, True)]
)
def test_few_differing_tasks_have_no_interval(n_differing, has_interval):
    values = np.zeros((60, 1))
    values[:n_differing, 0] = np.linspace(0.1, 1.0, n_differing)

    intervals = sequence_intervals(values, SQUARE)

    assert np.isfinite(intervals).tolist() == [[has_interval, has_interval]]


def test_a_long_tail_makes_the_interval_longer_on_its_side():
    values = np.random.default_rng(3).exponential(size=(80, 1))

    ((low, high),) = sequence_intervals(values, SQUARE)

    assert high - values.mean() > 1.3 * (values.mean() - low)


def test_no_end_is_nearer_to_the_mean_than_what_unseen_tasks_may_move_it_by():
    values = np.random.default_rng(5).normal(0.05, 0.001, (40, 2))
    values[20:, 1] = np.nan
    mean = np.nanmean(values, axis=0)
    # 3/4 * log(20) / n, for 40 and for 20 tasks.
    half_widths = pytest.approx([0.75 * np.log(20) / 40, 0.75 * np.log(20) / 20])

    low, high = Rule("different", 0.05, 0.02, (20, 40, 60)).intervals_after(values).T

    assert mean - low == half_widths
    assert high - mean == half_widths


def test_without_a_task_that_counts_there_is_no_interval():
    rule = Rule("different", 0.05, 0.02, (20, 40, 60))

    assert np.isnan(rule.intervals_after(np.full((40, 1), np.nan))).all()


@pytest.mark.parametrize(
    ("claim", "low", "high", "decision"),
    [
        ("different", 0.01, 0.2, "different"),
        ("different", -0.2, -0.001, "different"),
        ("different", -0.01, 0.019, "equal"),
        ("different", -0.03, 0.01, "open"),
        ("different", np.nan, np.nan, "open"),
        ("dropped", -0.2, -0.021, "dropped"),
        ("dropped", -0.2, -0.019, "open"),
        ("dropped", -0.019, 0.3, "not_dropped"),
        ("dropped", 0.1, 0.2, "not_dropped"),
    ],
)
def test_an_interval_decides_what_it_excludes(claim, low, high, decision):
    rule = Rule(claim, 0.05, 0.02, (20, 40))

    assert rule.decisions(np.array([[low, high]])).tolist() == [decision]


STRATA = {
    f"t{number}": "Legal" if number % 4 == 0 else "Finance" for number in range(100)
}


def test_the_order_depends_on_the_seed_and_the_tasks_and_not_on_their_first_order():
    order = task_order(STRATA, "1")

    assert sorted(order) == sorted(STRATA)
    assert task_order(dict(reversed(STRATA.items())), "1") == order
    assert task_order(STRATA, "2") != order


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=80), st.integers(0, 5))
def test_every_beginning_holds_its_share_of_each_stratum(fields, seed):
    strata = {f"t{number}": field for number, field in enumerate(fields)}
    sizes = Counter(fields)

    order = task_order(strata, str(seed))

    counts = Counter()
    for n_tasks, task in enumerate(order, start=1):
        counts[strata[task]] += 1
        for field, size in sizes.items():
            assert abs(counts[field] - n_tasks * size / len(order)) <= len(sizes)


@pytest.mark.parametrize(
    ("n_tasks", "ends"), [(50, [20, 40, 50]), (40, [20, 40]), (7, [7]), (0, [])]
)
def test_the_last_block_holds_the_rest(n_tasks, ends):
    assert block_ends(n_tasks, 20) == ends


def test_alpha_is_divided_among_all_comparisons():
    assert stopping.alpha_of_each(0.05, 10) == pytest.approx(0.005)
    assert stopping.alpha_of_each(0.05, 0) == 0.05


@pytest.mark.parametrize(("most_looks", "is_raised"), [(3, False), (4, True)])
def test_the_level_is_raised_for_as_many_looks_as_are_allowed(
    most_looks, is_raised, monkeypatch
):
    monkeypatch.setattr(stopping, "_MOST_LOOKS", most_looks)
    n_planned = 220 + most_looks

    squares = thresholds([40, 80, 160, n_planned], 0.05)

    unchanged = mixture(np.array([float(n_planned)]), 0.05, n_planned)
    assert (squares[n_planned] < 0.99 * float(unchanged[0])) == is_raised


def test_an_end_is_extended_by_four_times_the_skewness_of_the_sample():
    # 16 tasks with about 0 and 4 with about 1: mean 0.2, skewness 1.62447 (the G1 of Joanes and
    # Gill, 1998).
    values = np.repeat([0.0, 1.0], [16, 4]) + np.linspace(0.0, 1e-6, 20)
    n_differing = 19  # all differ, so all but one from the most common value
    reach = np.sqrt(SQUARE * (n_differing - 1) / (n_differing - SQUARE))
    error = np.sqrt(0.16 / 19)  # variance / degrees of freedom

    ((low, high),) = sequence_intervals(values[:, None], SQUARE)

    extension = 4 * 1.62447 * reach / (3 * np.sqrt(20))
    assert 0.2 - low == pytest.approx(error * reach, rel=1e-4)
    assert high - 0.2 == pytest.approx(error * reach * (1 + extension), rel=1e-4)


@pytest.mark.parametrize(("orders", "has_mean"), [(19, False), (20, True)])
def test_a_mean_without_the_bias_of_stopping_needs_twenty_possible_orders(
    orders, has_mean
):
    rule = Rule("different", 0.05, 0.02, (20, 40))
    differences = np.tile([0.1, -0.1], 20)

    means = stopping.unbiased_means(
        differences, differences[:, None], np.zeros(40), rule, orders=orders
    )

    assert np.isfinite(means).tolist() == [has_mean]
