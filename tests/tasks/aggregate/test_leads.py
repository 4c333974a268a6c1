"""The models that could be first: those that the paired test does not show behind the first of
their board.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kit import Rows, aggregated, at, combined, values_in
from tests.tasks.compare.comparisons import Rubric, judged, tasks_of

# Powers of two, so that the bits of a number of points are the criteria that are met.
WEIGHTS = [2**position for position in range(10)]
RUBRIC: Rubric = [(weight, "Accuracy") for weight in WEIGHTS]
RUBRICS = dict.fromkeys((f"t{number:02d}" for number in range(60)), RUBRIC)
LEADER_POINTS = {task: random.Random(task).uniform(300, 900) for task in RUBRICS}


def model_behind(
    points: float,
    name: str,
    *,
    noise: float = 20,
    tasks: Any = tuple(RUBRICS),
    **columns: Any,
) -> Rows:
    """A model with some points less than the leader on each task, and a little noise; there are 1023
    points.
    """
    decisions = {}
    for task in tasks:
        dice = random.Random(f"{task} {name}")
        points_met = round(LEADER_POINTS[task] - points + dice.uniform(-noise, noise))
        decisions[task] = [float(bool(points_met & weight)) for weight in WEIGHTS]
    return judged(decisions, name, rubrics=RUBRICS, **columns)


def may_be_first(folder: Path, *models: Mapping[str, Any]) -> dict[str, Any]:
    warehouse = aggregated(folder, combined(tasks_of(RUBRICS), *models))
    query = "select model, latest_may_be_first from leaderboard where is_primary"
    return dict(values_in(warehouse.root, query))


def test_a_model_that_the_paired_test_shows_behind_could_not_be_first_though_the_intervals_overlap(
    tmp_path,
):
    models = (
        model_behind(0, "leader"),
        model_behind(60, "behind"),
        model_behind(1, "beside"),
    )

    assert may_be_first(tmp_path / "data", *models) == {
        "behind": False,
        "beside": True,
        "leader": True,
    }
    # By the intervals alone it may be first.
    ranks = "select rank_low from leaderboard where is_primary and model = 'behind'"
    assert values_in(tmp_path / "data", ranks) == [(1,)]


def test_a_model_with_too_few_tasks_for_a_test_could_be_first(tmp_path):
    few_tasks = tuple(RUBRICS)[:4]
    models = (
        model_behind(0, "leader", tasks=few_tasks),
        model_behind(200, "behind", tasks=few_tasks),
    )

    assert may_be_first(tmp_path / "data", *models) == {
        "behind": True,
        "leader": True,
    }


def test_of_two_models_with_equal_scores_both_are_first(tmp_path):
    equal = {task: [1.0] * 5 + [0.0] * 5 for task in RUBRICS}
    models = (
        judged(equal, "one", rubrics=RUBRICS),
        judged(equal, "two", rubrics=RUBRICS),
    )

    assert may_be_first(tmp_path / "data", *models) == {"one": True, "two": True}


N_COMPARED = 10
"""The number of models that are compared with the first of their board."""


def test_the_p_values_of_a_board_are_corrected_together(tmp_path):
    """The difference is significant alone, but not as the smallest of ten p-values."""
    leader = model_behind(0, "leader", noise=0)
    slow = model_behind(16, "slow", noise=90)
    rivals = [
        model_behind(25, f"other-{number}", noise=200)
        for number in range(N_COMPARED - 1)
    ]

    alone = may_be_first(tmp_path / "alone", leader, slow)
    beside_others = may_be_first(tmp_path / "beside", leader, slow, *rivals)

    p_values = "select distinct p_value from measures where measure = 'lead'"
    ((p_alone,),) = values_in(tmp_path / "alone", p_values)
    assert 0.05 / N_COMPARED < p_alone <= 0.05
    assert not alone["slow"]
    assert beside_others["slow"]


def test_nights_have_boards_of_their_own_beside_the_board_of_the_latest_vintages(
    tmp_path,
):
    night = {"of_response": {"vintage": "2026-11-28", "created_at": at(5)}}
    models = (
        model_behind(0, "fresh"),
        model_behind(90, "fresh", **night),
        model_behind(60, "pinned"),
    )

    warehouse = aggregated(tmp_path / "data", combined(tasks_of(RUBRICS), *models))

    query = (
        "select model, vintage, may_be_first, latest_may_be_first from leaderboard where is_primary"
        " order by all"
    )
    assert values_in(warehouse.root, query) == [
        ("fresh", "2026-11-28", True, False),
        ("fresh", "base", True, None),
        ("pinned", "base", False, True),
    ]
