"""Runs that are killed again and again come to their end: nothing is lost, doubled, or paid again without need."""

from pathlib import Path

import pytest

from tests.faults.kills import MOST_COLD_GAP_S, MOST_GAP_S, Killing, configured, provider, started_stages

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("kills", "most_gap_s", "fewest_again"),
    [
        (4, MOST_COLD_GAP_S, 0),
        # How soon a reply is committed, and that a kill met one in flight, is for quiet cores.
        pytest.param(10, MOST_GAP_S, 1, marks=pytest.mark.long),
    ],
)
def test_a_stage_that_is_killed_again_and_again_loses_no_recorded_reply_and_ends_as_if_undisturbed(
    tmp_path: Path, kills: int, most_gap_s: float, fewest_again: int
) -> None:
    with provider() as server:
        configured(tmp_path, server.api_base)
        killing = Killing(tmp_path, server, started_stages().start, most_gap_s=most_gap_s)
        figures = killing.kill(kills)
    assert figures.kills == kills
    assert fewest_again <= figures.again <= kills * 8
    assert figures.answers >= 228
