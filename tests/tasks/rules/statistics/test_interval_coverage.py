"""Intervals hold the true mean about as often as they say."""

import numpy as np
import pytest

from tasks.rules.statistics.comparison import paired_difference
from tasks.rules.statistics.intervals import SMALL, draws
from tests.benchmarks.interval_coverage import ROUGH_WORLDS, WORLDS, cell, wider

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sampled():
    return {n_tasks: draws(n_tasks, 2_000) for n_tasks in (SMALL, 120)}


@pytest.mark.parametrize("n_tasks", [SMALL, 120])
@pytest.mark.parametrize("world", WORLDS)
def test_an_interval_holds_the_true_mean_in_about_95_of_100_worlds(world: str, n_tasks: int, sampled) -> None:
    # 1,000 replications: the standard error of a coverage of 95 % is 0.7 points.
    result = cell(WORLDS[world], n_tasks, 3, replications=1_000, sampled=sampled[n_tasks], seed=8, methods=wider)
    coverage, width = result["wider"]

    assert 93.0 <= coverage <= 99.0
    assert 0.95 <= width <= 1.4


@pytest.mark.parametrize("n_tasks", [SMALL, 120])
@pytest.mark.parametrize("world", ROUGH_WORLDS)
def test_an_interval_of_rough_data_is_not_too_narrow(world: str, n_tasks: int, sampled) -> None:
    # 1,000 replications: the standard error of a coverage of 94 % is 0.75 points.
    result = cell(ROUGH_WORLDS[world], n_tasks, 1, replications=1_000, sampled=sampled[n_tasks], seed=9, methods=wider)
    coverage, width = result["wider"]

    assert coverage >= 92.5
    assert 1.0 <= width <= 1.6


@pytest.mark.parametrize("world", ["8 differ, normal", "8 differ, by -1 or 1", "t, 3 degrees"])
def test_models_that_do_not_differ_are_seldom_told_apart(world: str) -> None:
    samples = ROUGH_WORLDS[world].scores(100, 1, 400, seed=4)
    result = [paired_difference(np.zeros(100), each, resamples=1_000) for each in samples.T]
    tested = [each for each in result if each.p_value is not None]

    assert len(tested) > 300
    # 5 % and two standard errors of 1.1 points each.
    assert sum((each.p_value or 0) <= 0.05 for each in tested) <= 0.072 * len(tested)
    assert all((each.p_value > 0.05) == (each.ci_low <= 0 <= each.ci_high) for each in tested)
