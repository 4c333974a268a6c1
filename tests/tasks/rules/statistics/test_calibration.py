"""Calibration of probabilities: figures against scikit-learn, and intervals that cover the
truth.
"""

import re

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

import sql
from tasks.rules.statistics import calibration
from tasks.rules.statistics.intervals import draws
from tests.benchmarks.calibration_coverage import sums_of, world

PROBABILITY = st.integers(0, 20).map(lambda n: n / 20) | st.integers(0, 1000).map(
    lambda n: n / 1000
)
CASES = st.lists(st.tuples(PROBABILITY, st.booleans()), min_size=1, max_size=80)
EDGES = np.linspace(0, 1, calibration.BINS + 1)[1:-1]


@given(CASES)
def test_brier_score_and_calibration_error_are_those_of_scikit_learn(cases):
    p, y = np.array(cases, dtype=float).T
    shares, means = calibration_curve(y, p, n_bins=calibration.BINS)
    counts = np.bincount(np.searchsorted(EDGES, p), minlength=calibration.BINS)
    sizes = counts[counts > 0] / len(p)

    sums = sums_of(p[None], y[None])[0]

    error = (sizes * np.abs(shares - means)).sum()
    reliability = (sizes * (shares - means) ** 2).sum()
    assert calibration.brier(sums) == pytest.approx(brier_score_loss(y, p))
    assert calibration.calibration_error(sums) == pytest.approx(error, abs=1e-9)
    assert calibration.reliability(sums) == pytest.approx(reliability, abs=1e-9)


def test_a_probability_at_the_edge_of_a_bin_is_in_the_bin_of_scikit_learn():
    hundredths = [n / 100 for n in range(101)]
    # How the model computes a bin.
    [expression] = re.findall(
        r"(greatest.*) as bin", sql.read("intermediate/agreement/calibration_bins")
    )

    bins = duckdb.execute(
        f"select {expression} as bin from (select unnest(?) as probability)",
        [hundredths],
    ).fetchnumpy()["bin"]

    assert bins.tolist() == np.searchsorted(EDGES, hundredths).tolist()


@given(
    st.lists(
        st.tuples(st.integers(0, calibration.BINS - 1), st.booleans()),
        min_size=1,
        max_size=80,
    )
)
def test_the_parts_of_the_brier_score_add_up_if_each_bin_has_one_probability(cases):
    bins, y = np.array(cases, dtype=float).T
    middles = (bins + 0.5) / calibration.BINS

    sums = sums_of(middles[None], y[None])[0]

    total = (
        calibration.reliability(sums)
        - calibration.resolution(sums)
        + calibration.uncertainty(sums)
    )
    assert calibration.brier(sums) == pytest.approx(total, abs=1e-9)


def test_what_noise_adds_to_the_error_of_a_calibrated_judge_is_taken_off():
    generator = np.random.default_rng(20261126)
    p = generator.random((60, 10))
    sums = sums_of(p, (generator.random(p.shape) < p).astype(float))

    value, low, high = calibration.corrected_error(sums, draws(60, 500, 1))

    assert value < calibration.calibration_error(sums.sum(axis=0))
    assert 0.0 <= low <= value <= high


def judged(n_tasks: int, *, shared: float, factor: float, seed: int) -> np.ndarray:
    """The sums of a made-up judge by task; with the factor 1 it is calibrated."""
    generator = np.random.default_rng((20261126, seed))
    p, _, decided = world(n_tasks, shared, factor, generator)
    return sums_of(p, decided)


@pytest.mark.parametrize("n_tasks", [50, 120])
@pytest.mark.parametrize("shared", [0.0, 0.6, 1.0])
def test_calibrated_judges_are_rarely_called_miscalibrated_even_if_verdicts_of_a_task_go_together(
    shared, n_tasks
):
    sampled = draws(n_tasks, 500, 1)
    n_miscalibrated = 0
    for seed in range(120):
        sums = judged(n_tasks, shared=shared, factor=1.0, seed=seed)
        _, low, _ = calibration.corrected_error(sums, sampled)
        n_miscalibrated += low > 0.0

    # Of 120 intervals of 95 %, three are expected above the truth, which is 0.
    assert n_miscalibrated <= 8


def test_an_error_that_chance_does_not_explain_has_an_interval_above_zero_around_the_truth():
    sampled = draws(100, 500, 1)
    generator = np.random.default_rng(1)
    p, true_p, _ = world(20_000, shared=0.2, factor=2.0, generator=generator)
    truth = float(calibration.calibration_error(sums_of(p, true_p).sum(axis=0)))
    errors = [
        calibration.corrected_error(
            judged(100, shared=0.2, factor=2.0, seed=seed), sampled
        )
        for seed in range(60)
    ]

    _, lows, highs = np.array(errors).T
    assert (lows > 0.0).all()
    # Of 60 intervals of 95 %, 57 are expected to cover the truth.
    assert ((lows <= truth) & (truth <= highs)).sum() >= 53


def test_too_few_tasks_that_differ_have_no_interval_rather_than_one_from_zero():
    p = np.full((10, 4), 0.75)
    sums = sums_of(p, np.tile([1.0, 1.0, 1.0, 0.0], (10, 1)))
    value, low, high = calibration.corrected_error(sums, draws(10, 200, 1))

    assert value == 0.0
    assert np.isnan(low)
    assert np.isnan(high)
