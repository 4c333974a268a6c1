"""Sources of the variance of a mean: tables worked out by hand, planted variances, and laws."""

from dataclasses import astuple
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics.uncertainty import (
    Source,
    TaskScores,
    components,
    judge_choice,
    sources,
    task_scores,
)

PLANTED = [0.04, 0.0225, 0.01]
"""The variances of tasks, responses and repetitions."""


class Scores(NamedTuple):
    """Scores with their tasks and responses, one a row."""

    tasks: np.ndarray
    responses: np.ndarray
    values: np.ndarray


def scores_of(table: np.ndarray) -> Scores:
    """The rows of a table of tasks, responses and repetitions."""
    tasks, trials, _ = np.indices(table.shape)
    responses = tasks * table.shape[1] + trials
    return Scores(tasks.ravel(), responses.ravel(), table.ravel())


def planted_table(
    seed: int, n_tasks: int, n_responses: int, n_repetitions: int
) -> np.ndarray:
    dice = np.random.default_rng(seed)
    table = dice.normal(0, 0.1, (n_tasks, n_responses, n_repetitions))
    table += dice.normal(0, 0.15, (n_tasks, n_responses, 1))
    return table + dice.normal(0, 0.2, (n_tasks, 1, 1))


def incomplete(seed: int) -> Scores:
    """Planted scores without two in five."""
    scores = scores_of(planted_table(seed, 40, 3, 3))
    is_kept = np.random.default_rng(seed).random(360) < 0.6
    return Scores(*(column[is_kept] for column in scores))


def variances_of(scores: Scores) -> list[float]:
    return [component.variance for component in components(task_scores(*scores))]


BALANCED = np.array([[[1.0, 3.0], [5.0, 7.0]], [[0.0, 2.0], [2.0, 4.0]]])
"""Squares of repetitions: 8 with 4 degrees. Means of responses are 2 and 6, 1 and 3: 10 with 2
degrees. Means of tasks are 4 and 2.
"""
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-10, 10)),
    min_size=4,
    max_size=40,
).filter(lambda rows: len({row[0] for row in rows}) > 1)
"""A task, a trial and a score."""


def drawn(rows: list[tuple[int, int, int]]) -> Scores:
    tasks, trials, values = np.array(rows).T
    return Scores(tasks, tasks * 3 + trials, values / 10)


def test_a_balanced_table_has_the_variances_of_the_nested_analysis_of_variance():
    tasks, trials, judge_trials = variances_of(scores_of(BALANCED))

    assert judge_trials == pytest.approx(8 / 4)
    assert trials == pytest.approx(10 / 2 - 2 / 2)
    assert tasks == pytest.approx(2 - 4 / 2 - 2 / 4)


def test_an_estimate_below_zero_is_shown():
    result = sources(*scores_of(BALANCED))["tasks"]

    assert result.share == pytest.approx(-0.25)


def test_a_task_counts_in_an_interval_as_far_as_its_repetition_moves_the_variance():
    scores = task_scores(*incomplete(1))
    columns = np.array(astuple(scores))
    copies = 10_000
    tasks = np.arange(len(scores.means))
    repeated_tasks = np.append(np.tile(tasks, copies), 0)

    repeated_scores = TaskScores(*columns[:, repeated_tasks])

    trials = components(scores)[1]
    change = components(repeated_scores)[1].variance - trials.variance
    error = trials.parts[0] - trials.variance * trials.degrees[0]
    assert error == pytest.approx(change * copies * trials.degrees.sum(), rel=0.01)


def test_planted_variances_are_found_without_bias_in_unequal_numbers():
    estimates = [variances_of(incomplete(seed)) for seed in range(400)]

    assert np.mean(estimates, axis=0) == pytest.approx(PLANTED, rel=0.04)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled_rows = random.sample(rows, len(rows))

    shuffled = variances_of(drawn(shuffled_rows))

    assert shuffled == pytest.approx(variances_of(drawn(rows)), abs=1e-12)


@given(ROWS, st.floats(-5, 5), st.floats(-5, 5))
def test_a_constant_changes_nothing_and_a_factor_its_square(rows, constant, factor):
    scores = drawn(rows)
    expected = [variance * factor**2 for variance in variances_of(scores)]

    moved = scores._replace(values=constant + factor * scores.values)

    assert variances_of(moved) == pytest.approx(expected, abs=1e-9)


def test_without_repetitions_the_judge_is_not_separable_but_part_of_responses():
    results = sources(*scores_of(planted_table(2, 300, 2, 1)))

    assert results["judge trials"].variance is None
    assert results["judge trials"].note == "not separable"
    assert results["trials"].variance == pytest.approx(0.0325, rel=0.2)


@pytest.fixture(scope="module")
def many_tasks() -> dict[str, Source]:
    """The sources of 2,000 tasks with two responses, each judged twice."""
    return sources(*scores_of(planted_table(4, 2_000, 2, 2)))


@pytest.mark.parametrize(
    ("source", "variance_after", "single_variance"),
    [
        ("trials", 0.04 + 0.0225 / 3 + 0.01 / 6, 0.04 + 0.0225 + 0.01 / 2),
        ("judge trials", 0.05125 + 0.01 / 6, 0.05125 + 0.01 / 2),
    ],
)
def test_expected_widths_are_those_of_the_planted_variances(
    many_tasks, source, variance_after, single_variance
):
    result = many_tasks[source]

    variance = 0.05125 + 0.01 / 4
    ratio_after = np.sqrt(variance_after / variance)
    single_ratio = np.sqrt(single_variance / variance)
    assert result.width_after / result.width == pytest.approx(ratio_after, abs=0.003)
    assert result.single_width / result.width == pytest.approx(single_ratio, abs=0.01)


def test_a_variance_below_zero_counts_as_none_in_an_expected_width():
    table = np.tile(BALANCED, (10, 1, 1))

    trials = sources(*scores_of(table))["trials"]

    variance = 4 / 2 + 2 / 4
    variance_after = 4 / 3 + 2 / 6
    expected = np.sqrt(variance_after / variance)
    assert trials.width_after / trials.width == pytest.approx(expected)


def test_a_hundred_more_tasks_narrow_the_interval_as_student_says():
    tasks = sources(*scores_of(planted_table(5, 10, 1, 1)))["tasks"]

    quantile_after, quantile = stats.t.ppf(0.975, [109, 9])
    expected = np.sqrt(10 / 110) * quantile_after / quantile
    assert tasks.width_after / tasks.width == pytest.approx(expected)


def test_equal_scores_have_no_variance_no_interval_and_no_width():
    result = sources(*scores_of(np.ones((9, 2, 2))))["judge trials"]

    assert result.variance == 0.0
    assert np.isnan(result.ci_low)
    assert np.isnan(result.width_after)


def crossed(seed: int, n_judges: int) -> np.ndarray:
    """Means of tasks under judges: spreads .2 of tasks, .05 of judges, .1 of both."""
    dice = np.random.default_rng(seed)
    means = dice.normal(0, 0.1, (50, n_judges))
    means += dice.normal(0, 0.2, (50, 1))
    return means + dice.normal(0, 0.05, n_judges)


def test_fewer_than_five_judges_have_a_range_and_no_variance():
    means = np.array([[0.1, 0.3, 0.2], [0.3, 0.5, 0.6]])

    result = judge_choice(means)

    assert result == Source(note="means 0.200 to 0.400")


def test_judges_that_differ_by_the_same_on_each_task_have_the_variance_of_their_means():
    means = np.add.outer(np.arange(20), [0.0, 0.1, 0.2, 0.3, 0.4])

    result = judge_choice(means)

    low, high = 4 * 0.025 / stats.chi2.ppf([0.975, 0.025], 4)
    assert result.variance == pytest.approx(0.025)
    assert result.ci_low == pytest.approx(low)
    assert result.ci_high == pytest.approx(high)


def test_the_width_for_other_judges_is_that_of_two_crossed_samples():
    means = np.add.outer([0.0, 0.3, 0.6], [0.0, 0.1, 0.2, 0.3, 0.4])
    means[:2, :2] += [[0.1, -0.1], [-0.1, 0.1]]

    result = judge_choice(means)

    by_tasks = 0.3**2 / 3
    interaction = 4 * 0.1**2 / 8
    by_judges = (0.025 - interaction / 3) / 5
    variance = by_tasks + by_judges
    degrees = variance**2 / (by_tasks**2 / 2 + by_judges**2 / 4)
    expected = 2 * stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert result.width == pytest.approx(expected)


@pytest.fixture(scope="module")
def choices() -> list[Source]:
    return [judge_choice(crossed(seed, 8)) for seed in range(400)]


def test_the_planted_variance_of_judges_is_found_without_their_interaction_with_tasks(
    choices,
):
    estimates = [choice.variance for choice in choices]

    assert np.mean(estimates) == pytest.approx(0.0025, rel=0.1)


def test_another_judge_narrows_the_interval_for_other_judges_as_samples_do(choices):
    later_widths = [judge_choice(crossed(seed, 9)).width for seed in range(400)]

    expected = np.mean([choice.width_after for choice in choices])
    assert expected == pytest.approx(np.mean(later_widths), rel=0.03)
