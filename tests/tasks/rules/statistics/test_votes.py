"""Effective votes of graders, against correlations written out and against graders of a known number of votes."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.statistics.agreement import effective_votes

ERRORS = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=k, max_size=k), min_size=2, max_size=30)
)
"""Cases, each with the errors of all voters."""


def moments_of(errors: np.ndarray) -> np.ndarray:
    """The sums of each pair of voters, from errors of shape (n_cases, n_voters)."""
    return np.array([
        [len(errors), a.sum(), b.sum(), (a * a).sum(), (b * b).sum(), (a * b).sum()]
        for a, b in itertools.combinations(errors.T, 2)
    ])  # fmt: skip


def votes_of(errors: np.ndarray) -> float:
    return float(effective_votes(moments_of(errors), n_voters=errors.shape[1]))


def votes_by_hand(errors: list[list[float]]) -> float | None:
    voters = list(zip(*errors, strict=True))
    found = [
        statistics.correlation(a, b)
        for a, b in itertools.combinations(voters, 2)
        if len(set(a)) > 1 and len(set(b)) > 1
    ]
    if not found:
        return None
    rho = min(1.0, max(0.0, statistics.fmean(found)))
    return len(voters) / (1 + (len(voters) - 1) * rho)


@given(ERRORS)
def test_votes_are_kishs_with_the_mean_correlation_of_all_pairs_that_have_one(errors: list[list[float]]) -> None:
    expected, found = votes_by_hand(errors), votes_of(np.array(errors))

    assert math.isnan(found) if expected is None else found == pytest.approx(expected)
    assert expected is None or 1.0 <= found <= len(errors[0]) + 1e-9


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=30), st.integers(2, 9))
def test_graders_who_err_alike_have_one_vote_together(errors: list[float], k: int) -> None:
    found = votes_of(np.array([errors] * k).T)

    assert math.isnan(found) if len(set(errors)) == 1 else found == pytest.approx(1.0)


@pytest.mark.parametrize("k", [2, 5, 9])
def test_graders_whose_errors_are_independent_have_about_a_vote_each(k: int) -> None:
    errors = np.random.default_rng(k).random((40_000, k)) < 0.2

    assert votes_of(errors.astype(float)) == pytest.approx(k, rel=0.05)


def test_nine_graders_who_make_half_of_their_errors_together_have_about_two_votes() -> None:
    dice = np.random.default_rng(9)
    is_shared, shared, own = dice.random((40_000, 9)) < 0.7, dice.random((40_000, 1)) < 0.2, dice.random((40_000, 9))
    errors = np.where(is_shared, shared, own < 0.2)

    assert votes_of(errors.astype(float)) == pytest.approx(9 / (1 + 8 * 0.7**2), rel=0.05)


def test_many_samples_are_measured_at_once() -> None:
    errors = np.random.default_rng(1).random((3, 50, 4)) < 0.3
    moments = np.array([moments_of(each.astype(float)) for each in errors])

    assert effective_votes(moments, n_voters=4) == pytest.approx([votes_of(each.astype(float)) for each in errors])
