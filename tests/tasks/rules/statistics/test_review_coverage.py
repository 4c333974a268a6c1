"""Intervals of figures of reviews hold the truth as often as they say, in made-up worlds."""

import numpy as np
import pytest

from tasks.rules.statistics.agreement import agreement_intervals, check_auc, rate_difference
from tests.benchmarks.review_coverage import DESIGNS, World, coverage

pytestmark = [pytest.mark.slow, pytest.mark.long]
REPLICATIONS = 400


@pytest.mark.parametrize("design", DESIGNS)
def test_the_interval_covers_the_share_and_the_estimate_is_not_biased(design: str) -> None:
    holds, is_given, bias = coverage(World(n_sampled=600), design, REPLICATIONS, resamples=500, seed=4)

    # Between 93 and 97 %, give or take twice the standard error of a coverage from so many replications.
    error = 2 * (0.95 * 0.05 / REPLICATIONS) ** 0.5
    assert 0.93 - error <= holds <= 0.97 + error
    assert is_given == 1.0
    assert abs(bias) < 0.002


def tables(n_tasks: int, failing: float, rates: tuple[float, float], clustering: float) -> np.ndarray:
    """Tables of tasks with 16 criteria each, whose chances hang together within a task: (n_tasks, replications, 2, 2).

    `rates` are those of disagreement where a check fails and where it passes.
    """
    dice = np.random.default_rng(n_tasks)
    strength = 1.0 / clustering - 1.0
    shape = (n_tasks, REPLICATIONS)
    chances = [dice.beta(p * strength, (1.0 - p) * strength, size=shape) for p in (failing, *rates)]
    n_failing = dice.binomial(16, chances[0])
    result = dice.binomial(n_failing, chances[1]), dice.binomial(16 - n_failing, chances[2])
    rows = [np.stack([result[0], n_failing - result[0]], -1), np.stack([result[1], 16 - n_failing - result[1]], -1)]
    return np.stack(rows, axis=-2)


@pytest.mark.parametrize(
    ("n_tasks", "failing", "rates"),
    [(100, 0.25, (0.15, 0.15)), (100, 0.25, (0.3, 0.1)), (300, 0.1, (0.2, 0.1)), (30, 0.25, (0.2, 0.1))],
)
def test_the_interval_of_what_a_check_predicts_covers_what_was_planted(
    n_tasks: int, failing: float, rates: tuple[float, float]
) -> None:
    resampled = tables(n_tasks, failing, rates, clustering=0.1)
    differences, areas = agreement_intervals(resampled, rate_difference, check_auc, resamples=500)
    result, missed = failing * rates[0], (1 - failing) * rates[1]
    area = (result / (result + missed) + (1 - failing) * (1 - rates[1]) / (1 - result - missed)) / 2
    error = 2 * (0.95 * 0.05 / REPLICATIONS) ** 0.5

    for intervals, truth in ((differences, rates[0] - rates[1]), (areas, area)):
        holds = ((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).mean()
        assert 0.93 - error <= holds <= 0.97 + error
    # A planted difference is found.
    if rates[0] - rates[1] == pytest.approx(0.2):
        assert (differences[:, 0] > 0).mean() > 0.95
