"""Calibration of probabilities: figures against scikit-learn, and intervals that cover the truth."""

import re

import duckdb
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

import sql
from tasks.rules.statistics import calibration
from tasks.rules.statistics.intervals import draws
from tests.benchmarks.calibration_coverage import sums_of

P = st.one_of(st.integers(0, 20).map(lambda n: n / 20), st.integers(0, 1000).map(lambda n: n / 1000))
CASES = st.lists(st.tuples(P, st.booleans()), min_size=1, max_size=80)
EDGES = np.linspace(0, 1, calibration.BINS + 1)[1:-1]


@given(CASES)
def test_brier_score_and_calibration_error_are_those_of_scikit_learn(cases: list[tuple[float, bool]]) -> None:
    p, y = np.array([each for each, _ in cases]), np.array([float(met) for _, met in cases])
    sums = sums_of(p[None], y[None])[0]
    shares, means = calibration_curve(y, p, n_bins=calibration.BINS)
    sizes = np.bincount(np.searchsorted(EDGES, p), minlength=calibration.BINS)
    sizes = sizes[sizes > 0] / len(p)

    assert np.isclose(brier_score_loss(y, p), calibration.brier(sums))
    assert np.isclose((sizes * np.abs(shares - means)).sum(), calibration.calibration_error(sums), atol=1e-9)
    assert np.isclose((sizes * (shares - means) ** 2).sum(), calibration.reliability(sums), atol=1e-9)


def test_a_probability_at_the_edge_of_a_bin_is_in_the_bin_of_scikit_learn() -> None:
    (expression,) = re.findall(r"(greatest.*) as bin", sql.read("intermediate/agreement/calibration_bins"))
    hundredths = [n / 100 for n in range(101)]
    bins = duckdb.execute(f"select {expression} from (select unnest(?) as p)", [hundredths]).fetchall()

    assert np.searchsorted(EDGES, hundredths).tolist() == [each for (each,) in bins]


@given(CASES)
def test_the_parts_of_the_brier_score_add_up_if_each_bin_has_one_probability(cases: list[tuple[float, bool]]) -> None:
    n_bins = calibration.BINS
    p = np.array([(np.floor(min(each, 0.999) * n_bins) + 0.5) / n_bins for each, _ in cases])
    sums = sums_of(p[None], np.array([[float(met) for _, met in cases]]))[0]

    parts = calibration.reliability(sums) - calibration.resolution(sums) + calibration.uncertainty(sums)
    assert np.isclose(calibration.brier(sums), parts, atol=1e-9)


def test_what_noise_adds_to_the_error_of_a_calibrated_judge_is_taken_off() -> None:
    generator = np.random.default_rng(20261126)
    p = generator.random((60, 10))
    sums = sums_of(p, (generator.random(p.shape) < p).astype(float))
    value, low, high = calibration.corrected_error(sums, draws(len(p), 500, 1))

    assert value < calibration.calibration_error(sums.sum(axis=0))
    assert 0.0 <= low <= value <= high
