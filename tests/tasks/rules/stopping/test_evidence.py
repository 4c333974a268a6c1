"""A short version of the evidence: false decisions, savings on real verdicts, and bias."""

import numpy as np
import pytest

from tests.benchmarks import stopping_evidence

MOST = 0.05 + 3 * (0.05 * 0.95 / 1_000) ** 0.5
"""5 %, plus three standard errors of a share of 1,000 families."""


@pytest.mark.parametrize("world", stopping_evidence.WORLDS.values())
def test_equal_models_are_called_different_in_at_most_5_percent_of_runs(world):
    called_different, _ = stopping_evidence.false_share(
        world, n_tasks=80, n_comparisons=1, n_families=1_000, seed=1
    )

    assert called_different <= MOST


@pytest.mark.parametrize("mixture", stopping_evidence.MIXTURES.values())
@pytest.mark.parametrize("block", [5, 20])
def test_rare_large_differences_that_come_late_make_no_more_false_decisions(
    mixture, block
):
    called_different, _ = stopping_evidence.false_share(
        mixture, n_tasks=100, n_comparisons=1, n_families=1_000, seed=6, block=block
    )

    assert called_different <= MOST


@pytest.mark.parametrize("world", stopping_evidence.BORDER.values())
def test_models_that_just_differ_by_more_are_called_equal_in_at_most_5_percent_of_runs(
    world,
):
    _, called_equal = stopping_evidence.false_share(
        world, n_tasks=80, n_comparisons=1, n_families=1_000, seed=2
    )

    assert called_equal <= MOST


def test_all_pairs_of_models_together_are_wrong_in_at_most_5_percent_of_runs():
    share = stopping_evidence.false_share_of_models(
        n_models=5, n_tasks=80, n_families=300, seed=3
    )

    assert share <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def decided_comparisons(
    mean: float,
) -> tuple[np.ndarray, stopping_evidence.Decisions]:
    """The number of tasks of 300 comparisons until they are settled, and the decisions."""
    differences = np.random.default_rng(4).normal(mean, 0.15, (100, 300))
    return stopping_evidence.tasks_until_decision(
        differences, stopping_evidence.rule(n_tasks=100)
    )


def test_a_clear_difference_saves_half_of_the_tasks():
    n_tasks, decisions = decided_comparisons(0.1)

    assert decisions.differs.mean() > 0.97
    assert np.median(n_tasks) <= 50


def test_no_difference_saves_little():
    n_tasks, decisions = decided_comparisons(0.0)

    assert decisions.differs.mean() <= 0.1
    assert decisions.equals.mean() == 0
    assert np.median(n_tasks) == 100


@pytest.mark.slow
def test_the_plain_difference_after_stopping_is_too_large_and_the_unbiased_one_is_not():
    difference, unbiased_difference, _, unbiased_score = (
        stopping_evidence.bias_of_two(
            true=0.06, n_tasks=100, replications=500, seed=5
        )
    )

    assert difference.mean > max(4 * difference.standard_error, 0.005)
    assert abs(unbiased_difference.mean) < 3 * unbiased_difference.standard_error
    assert abs(unbiased_score.mean) < 3 * unbiased_score.standard_error
