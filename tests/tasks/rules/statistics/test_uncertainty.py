"""Sources of the variance of a mean: tables worked out by hand, planted variances, and laws."""

from dataclasses import astuple
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics.intervals import mean_intervals
from tasks.rules.statistics.uncertainty import (
    Source,
    components,
    judge_choice,
    sources,
    task_scores,
)


class Scores(NamedTuple):
    """Scores with their tasks and responses, one a row."""

    tasks: np.ndarray
    responses: np.ndarray
    values: np.ndarray


def scores_of(table: list[list[list[float]]]) -> Scores:
    """Task -> response -> repetition -> score, as rows."""
    rows = []
    response = 0
    for task, responses in enumerate(table):
        for values in responses:
            rows += [(task, response, value) for value in values]
            response += 1
    tasks, responses, values = zip(*rows, strict=True)
    return Scores(np.array(tasks), np.array(responses), np.array(values, dtype=float))


def planted(
    seed: int,
    n_tasks: int,
    n_responses: int,
    n_repetitions: int,
    spreads: tuple[float, float, float] = (0.2, 0.15, 0.1),
    kept: float = 1.0,
) -> Scores:
    """Scores with effects of these standard deviations, of which a share is kept."""
    dice = np.random.default_rng(seed)
    shape = (n_tasks, n_responses, n_repetitions)
    values = 0.5 + dice.normal(0, spreads[0], (n_tasks, 1, 1))
    values = values + dice.normal(0, spreads[1], (n_tasks, n_responses, 1))
    values = values + dice.normal(0, spreads[2], shape)
    tasks, responses, _ = np.indices(shape).reshape(3, -1)
    is_kept = dice.random(tasks.size) < kept
    responses += tasks * n_responses
    return Scores(tasks[is_kept], responses[is_kept], values.ravel()[is_kept])


def variances_of(scores: Scores) -> list[float]:
    return [component.variance for component in components(task_scores(*scores))]


BALANCED = [[[1, 3], [5, 7]], [[0, 2], [2, 4]]]
"""Squares of repetitions: 8 with 4 degrees. Means of responses are 2 and 6, 1 and 3: 10 with 2
degrees. Means of tasks are 4 and 2.
"""
ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-10, 10)),
    min_size=4,
    max_size=40,
).filter(lambda rows: len({task for task, _, _ in rows}) > 1)


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

    assert result.variance == pytest.approx(-0.5)
    assert result.share == pytest.approx(-0.25)


def test_planted_variances_are_found_without_bias_in_unequal_numbers():
    estimates = [variances_of(planted(seed, 40, 3, 3, kept=0.6)) for seed in range(400)]

    errors = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    deviations = (np.mean(estimates, axis=0) - [0.04, 0.0225, 0.01]) / errors
    assert np.abs(deviations).max() < 3.5


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled_rows = random.sample(rows, len(rows))

    shuffled = variances_of(drawn(shuffled_rows))

    assert shuffled == pytest.approx(variances_of(drawn(rows)), abs=1e-12)


@given(ROWS, st.floats(-5, 5), st.floats(-5, 5))
def test_a_constant_changes_nothing_and_a_factor_its_square(rows, constant, factor):
    scores = drawn(rows)

    moved = variances_of(scores._replace(values=constant + factor * scores.values))

    expected = [variance * factor**2 for variance in variances_of(scores)]
    assert moved == pytest.approx(expected, abs=1e-9)


@given(ROWS)
def test_the_parts_of_all_sources_sum_to_the_variance_of_the_mean(rows):
    results = sources(*drawn(rows))

    shares = [source.share for source in results.values() if source.share is not None]
    if shares:
        assert sum(shares) == pytest.approx(1.0)


def test_the_width_now_is_that_of_the_interval_of_the_mean():
    scores = planted(1, 60, 2, 1)
    ((low, high),) = mean_intervals(scores.values.reshape(60, 2).mean(axis=1)[:, None])

    results = sources(*scores)

    widths = [source.width for source in results.values()]
    assert widths == pytest.approx([high - low] * 3)


def test_without_repetitions_the_judge_is_not_separable_but_part_of_responses():
    tasks, responses, values = planted(2, 300, 2, 1)

    results = sources(tasks, responses, values)

    judge_trials = results["judge trials"]
    assert judge_trials.variance is None
    assert judge_trials.width_after is None
    assert "not separable" in judge_trials.note
    assert results["trials"].variance == pytest.approx(0.0225 + 0.01, rel=0.2)


def test_with_one_score_of_each_task_the_variance_of_tasks_is_all():
    scores = planted(3, 50, 1, 1)

    results = sources(*scores)

    assert results["tasks"].variance == pytest.approx(np.var(scores.values, ddof=1))
    assert results["tasks"].share == pytest.approx(1.0)
    assert results["trials"].variance is None


@pytest.fixture(scope="module")
def many_tasks() -> dict[str, Source]:
    """The sources of 2,000 tasks with two responses, each judged twice."""
    return sources(*planted(4, 2_000, 2, 2))


def planted_ratio(n_responses: int, n_repetitions: int) -> float:
    """The width with these numbers / that with two and two, from the planted variances."""
    n_scores = n_responses * n_repetitions
    variance = 0.04 + 0.0225 / n_responses + 0.01 / n_scores
    return float(np.sqrt(variance / (0.04 + 0.0225 / 2 + 0.01 / 4)))


def test_one_more_repetition_narrows_the_interval_as_its_planted_variance_says(
    many_tasks,
):
    trials = many_tasks["trials"]
    judge_trials = many_tasks["judge trials"]

    trials_ratio = trials.width_after / trials.width
    judge_ratio = judge_trials.width_after / judge_trials.width
    assert trials_ratio == pytest.approx(planted_ratio(3, 2), abs=0.003)
    assert judge_ratio == pytest.approx(planted_ratio(2, 3), abs=0.003)


def test_a_single_repetition_has_the_width_that_its_planted_variance_says(many_tasks):
    trials = many_tasks["trials"]
    judge_trials = many_tasks["judge trials"]

    trials_ratio = trials.single_width / trials.width
    judge_ratio = judge_trials.single_width / judge_trials.width
    assert trials_ratio == pytest.approx(planted_ratio(1, 2), abs=0.01)
    assert judge_ratio == pytest.approx(planted_ratio(2, 1), abs=0.01)


def test_a_hundred_more_tasks_narrow_the_interval_as_student_says():
    tasks = sources(*planted(5, 10, 1, 1))["tasks"]

    quantiles = stats.t.ppf(0.975, [109, 9])
    expected = np.sqrt(10 / 110) * quantiles[0] / quantiles[1]
    assert tasks.width_after / tasks.width == pytest.approx(expected)


def test_equal_scores_have_no_variance_no_interval_and_no_width():
    result = sources(*scores_of([[[1, 1], [1, 1]]] * 9))["judge trials"]

    assert result.variance == 0.0
    assert np.isnan(result.ci_low)
    assert np.isnan(result.width_after)


def crossed(seed: int, n_tasks: int, n_judges: int) -> np.ndarray:
    """Means of tasks under judges: spreads .2 of tasks, .05 of judges, .1 of both."""
    dice = np.random.default_rng(seed)
    means = dice.normal(0, 0.2, (n_tasks, 1)) + dice.normal(0, 0.05, n_judges)
    return means + dice.normal(0, 0.1, (n_tasks, n_judges))


def test_fewer_than_five_judges_have_a_range_and_no_variance():
    result = judge_choice(np.array([[0.1, 0.3, 0.2], [0.3, 0.5, 0.6]]))

    assert result == Source(note="means of 3 judges: 0.200 to 0.400; fewer than five")


def test_judges_that_differ_by_the_same_on_each_task_have_the_variance_of_their_means():
    judge_effects = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    result = judge_choice(np.arange(20.0)[:, None] + judge_effects)

    low, high = 4 * 0.025 / stats.chi2.ppf([0.975, 0.025], 4)
    assert result.variance == pytest.approx(0.025)
    assert result.ci_low == pytest.approx(low)
    assert result.ci_high == pytest.approx(high)


def test_the_planted_variance_of_judges_is_found_without_their_interaction_with_tasks():
    estimates = [judge_choice(crossed(seed, 30, 6)).variance for seed in range(400)]

    error = np.std(estimates) / np.sqrt(len(estimates))
    assert np.mean(estimates) == pytest.approx(0.0025, abs=3.5 * error)


def test_another_judge_narrows_the_interval_for_other_judges_as_samples_do():
    results = [judge_choice(crossed(seed, 100, 8)) for seed in range(300)]
    later_results = [judge_choice(crossed(seed, 100, 9)) for seed in range(300)]

    expected = np.mean([result.width_after for result in results])
    width = np.mean([result.width for result in later_results])
    assert expected == pytest.approx(width, rel=0.03)


@given(st.integers(0, 99), st.permutations(range(6)))
def test_the_order_of_judges_does_not_matter(seed, order):
    means = crossed(seed, 10, 6)

    shuffled = judge_choice(means[:, order])

    assert astuple(shuffled)[:3] == pytest.approx(astuple(judge_choice(means))[:3])
