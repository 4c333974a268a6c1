"""Selecting the hard subset, and how much it depends on its panel: compared with an enumeration of
all panels.
"""

from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.rules import hardness
from tests.kit import one_line
from tests.tasks.rules.panels_oracle import probabilities

TENTHS = st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 1))
SCORES = st.dictionaries(
    st.text("abc", min_size=1, max_size=4),
    st.lists(TENTHS, min_size=3, max_size=3),
    min_size=1,
    max_size=12,
)


def test_the_tasks_with_the_lowest_mean_are_selected_hardest_first():
    scores = {"easy": [0.9, 1.0], "hard": [-0.5, 0.0], "mild": [0.5, 0.0]}

    selected = hardness.select_hardest(scores, 2)

    assert list(selected.items()) == [("hard", -0.25), ("mild", 0.25)]


@pytest.mark.parametrize(
    "scores",
    [
        # Added from left to right, the sums are 0.6000000000000001 and 0.6.
        {"b": [0.1, 0.2, 0.3], "a": [0.3, 0.2, 0.1]},
        # A mean over trials is already rounded.
        {"b": [0.3], "a": [0.1 + 0.2]},
    ],
)
def test_a_tie_in_exact_figures_is_a_tie(scores):
    assert list(hardness.select_hardest(scores, 2)) == ["a", "b"]


@given(SCORES, st.data())
def test_no_task_that_is_left_out_is_harder_than_one_in(scores, data):
    size = data.draw(st.integers(1, len(scores)))
    # Exact sums of the same floats, each rounded only once, when it becomes a float.
    sums = {
        task: float(sum(map(Fraction, values))) for task, values in scores.items()
    }

    selected = hardness.select_hardest(scores, size)

    assert len(selected) == size
    easiest_selected = max(sums[task] for task in selected)
    for task in scores.keys() - selected:
        assert sums[task] >= easiest_selected - 1e-15


@pytest.mark.parametrize(
    ("n_tasks", "share", "size"),
    [
        (600, 0.5, 300),
        (500, 0.5, 250),
        (7, 0.5, 3),
        (1, 0.5, 0),
        (10, 0.3, 3),
        (100, 0.29, 29),
        (3, 1.0, 3),
        (0, 0.5, 0),
        (7, {"Finance": 300}, 300),
    ],
)
def test_a_share_is_rounded_down_and_a_number_taken(n_tasks, share, size):
    assert hardness.wanted_size(n_tasks, share, "Finance") == size


def test_a_field_without_a_number_is_refused():
    with pytest.raises(hardness.HardSubsetError, match="no number"):
        hardness.wanted_size(500, {"Finance": 300}, "Legal")


@pytest.mark.parametrize(
    ("scores", "size"),
    [({}, 1), ({"a": [0.1]}, 2), ({"a": [0.1]}, 0), ({"a": [0.1]}, -1)],
)
def test_a_size_that_cannot_be_had_is_refused_in_one_line(scores, size):
    with pytest.raises(hardness.HardSubsetError, match=one_line()):
        hardness.select_hardest(scores, size)


FEW = 300
"""Few resamples, for properties that hold for any number."""
NOISE = 0.03
"""Six standard errors of a share over 10,000 resamples, at most."""


World = list[list[list[int]]]
"""Scores by task, model and trial; integers, so that there are ties."""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One to five tasks, by two or three models with one or two trials each."""
    trial_counts = st.lists(st.integers(1, 2), min_size=2, max_size=3)
    # The enumeration grows fast with the number of responses to a task.
    n_trials = draw(trial_counts.filter(lambda counts: sum(counts) <= 5))
    trials_by_model = [
        st.lists(st.integers(-2, 6), min_size=n, max_size=n) for n in n_trials
    ]
    task = st.tuples(*trials_by_model).map(list)
    return draw(st.lists(task, min_size=1, max_size=5))


def resampled_probabilities(world: World, size: int) -> list[float]:
    values = np.array([list(chain(*models)) for models in world], dtype=float)
    n_trials = [len(trials) for trials in world[0]]
    return hardness.inclusion_probabilities(values, n_trials, size).tolist()


@given(worlds(), st.data())
@settings(max_examples=40)
def test_the_probabilities_are_those_of_all_panels(world, data):
    size = data.draw(st.integers(1, len(world)))

    exact = list(map(float, probabilities(world, size)))

    assert resampled_probabilities(world, size) == pytest.approx(exact, abs=NOISE)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(1, 3),
    st.data(),
)
def test_equal_models_leave_no_doubt(scores, n_models, n_trials, data):
    size = data.draw(st.integers(1, len(scores)))
    # Thirds are not exact in binary: their means differ by rounding, but must still be ties.
    values = np.broadcast_to(
        np.array(scores)[:, None] / 3.0, (len(scores), n_models * n_trials)
    )

    shares = hardness.inclusion_probabilities(
        values, [n_trials] * n_models, size, resamples=FEW
    )

    hardest = np.argsort(scores, kind="stable")[:size]
    assert set(np.flatnonzero(shares)) == set(hardest)
    assert set(shares[hardest]) == {1.0}


def test_one_model_with_several_trials_is_resampled_over_its_trials():
    world = [[[0, 4, 1]], [[2, 2, 2]]]

    exact = list(map(float, probabilities(world, 1)))

    assert 0.0 < exact[0] < 1.0
    assert resampled_probabilities(world, 1) == pytest.approx(exact, abs=NOISE)


def test_a_single_response_to_each_task_gives_only_one_panel():
    assert resampled_probabilities([[[5]], [[1]], [[5]]], 1) == [0.0, 1.0, 0.0]
