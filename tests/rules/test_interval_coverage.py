"""Intervals hold the true mean about as often as they say."""

import pytest

from tasks.rules.statistics import SMALL, draws
from tests.benchmarks.interval_coverage import WORLDS, cell


@pytest.fixture(scope="module")
def drawn():
    return {n_tasks: draws(n_tasks, 2_000) for n_tasks in (SMALL, 120)}


@pytest.mark.parametrize("n_tasks", [SMALL, 120])
@pytest.mark.parametrize("world", WORLDS)
def test_an_interval_holds_the_true_mean_in_about_95_of_100_worlds(world: str, n_tasks: int, drawn) -> None:
    # 1,000 replications: the standard error of a coverage of 95 % is 0.7 points.
    found = cell(WORLDS[world], n_tasks, trials=3, replications=1_000, drawn=drawn[n_tasks], seed=8)
    coverage, width = found["bootstrap-t"]

    assert 92.5 <= coverage <= 98.0
    assert 0.95 <= width <= 1.3


def test_plain_percentiles_of_ten_tasks_promise_too_much() -> None:
    found = cell(WORLDS["symmetric"], 10, trials=1, replications=1_000, drawn=draws(10, 2_000), seed=8)

    assert found["percentile"][0] < 92.5 < found["expanded"][0]
