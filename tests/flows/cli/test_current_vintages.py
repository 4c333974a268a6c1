"""Commands show the current vintage of a model, and name what they leave out."""

from pathlib import Path

import pytest

from tests.kit import at, combined, response, row, stored
from tests.tasks.compare.comparisons import judged, tasks_of

PARTIAL = "2026-11-28"
RUBRICS = {f"t{number}": [(10, "Accuracy"), (-5, "Risk")] for number in range(4)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of `run_here`: two models whose vintage `base` is complete and whose newer one has
    one task; a second trial of `alpha` failed.
    """
    decisions = {task: [1.0, 0.0] for task in RUBRICS}
    one_decision = {"t0": [1.0, 0.0]}
    newer = {"vintage": PARTIAL, "created_at": at(5)}
    failure = response(
        "t0",
        "alpha",
        trial=2,
        status="refused",
    )
    rule = row(
        "coverage_rules",
        model="alpha",
        wanted_trials=1,
        min_coverage=0.99,
    )
    rows = combined(
        tasks_of(RUBRICS),
        judged(decisions, "alpha", rubrics=RUBRICS),
        judged(decisions, "beta", rubrics=RUBRICS),
        judged(one_decision, "alpha", rubrics=RUBRICS, of_response=newer),
        judged(one_decision, "beta", rubrics=RUBRICS, of_response=newer),
        {"responses": [failure], "coverage_rules": [rule]},
    )
    return stored(tmp_path_factory.mktemp("current"), rows)


def test_a_newer_vintage_with_one_task_is_named_and_not_shown(run_here):
    alpha, beta = run_here.json("leaderboard")
    output = run_here("leaderboard")

    for board_row in (alpha, beta):
        assert board_row["vintage"] == "base"
        assert board_row["newer_vintage"] == PARTIAL
        assert board_row["rank"] == 1
    assert "A newer vintage covers too little to be shown: " in output
    assert f"alpha {PARTIAL} (" in output


def test_a_requested_vintage_is_shown_however_partial(run_here):
    rows = run_here.json("leaderboard", "--vintage", PARTIAL)

    assert {board_row["vintage"] for board_row in rows} == {PARTIAL}


def test_a_failed_trial_beyond_the_configured_ones_does_not_count_and_is_named(
    run_here,
):
    alpha, beta = run_here.json("leaderboard")
    output = run_here("leaderboard")

    assert alpha["coverage"] == 1.0
    assert alpha["mean_score"] == beta["mean_score"]
    assert alpha["mean_lower"] == alpha["mean_upper"]
    assert alpha["uncounted_trials"] == [2]
    assert not beta["uncounted_trials"]
    assert "not counted until as complete as these: alpha trial 2" in output
