"""The interval of the share of criteria that people agree with holds the true share as often as it says."""

import pytest

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


def test_without_the_weights_a_stratified_sample_would_be_biased() -> None:
    # The rarest category is the worst, and a sample by category has most of it: the weights must matter here.
    world = World(n_sampled=600)
    unweighted = sum(world.agreeing) / len(world.agreeing)

    assert abs(unweighted - world.share) > 0.04
