"""Weaknesses: task values against plain loops, which node represents others, both halves; null and
planted worlds.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics import weaknesses
from tasks.rules.statistics.comparison import holm, paired_difference
from tests.benchmarks import weakness_evidence

PARENTS = (-1, 0, 0, 1, 1, 1)
"""A root with nodes 1 and 2; node 1 is divided into 3, 4 and 5. The leaves are 2, 3, 4, 5."""
WEIGHTS = st.sampled_from([-3.0, -1.0, 1.0, 2.0, 8.0])
VALUES = st.sampled_from([0.0, 0.5, 1.0, np.nan])
CRITERIA = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), WEIGHTS, VALUES), min_size=1, max_size=40
)


def world(lowered: dict[int, float], n_tasks: int = 120, seed: int = 3) -> weaknesses.Contrast:
    """Three criteria per leaf and task, handled rightly with a chance of 0.7 minus the leaf's
    `lowered`.
    """
    dice = np.random.default_rng(seed)
    tasks, leaves = (
        each.ravel() for each in np.meshgrid(np.arange(n_tasks), np.repeat(np.arange(4), 3))
    )
    chance = 0.7 - np.array([lowered.get(leaf, 0.0) for leaf in range(4)])[leaves]
    right = (dice.random(len(tasks)) < chance).astype(float)
    return weaknesses.Contrast(
        weaknesses.task_sums(right, np.ones(len(tasks)), tasks, leaves, (n_tasks, 4))
    )


def nodes(contrast: weaknesses.Contrast) -> list[int]:
    return [each.node for each in weaknesses.candidates(contrast, PARENTS)]


@given(CRITERIA)
def test_a_task_value_is_the_min_normalised_score_of_the_decided_criteria(
    criteria: list[tuple],
) -> None:
    tasks, leaves, weights, values = (np.array(each) for each in zip(*criteria, strict=True))
    sums = weaknesses.task_sums(
        weaknesses.handled_rightly(values, weights), weights, tasks, leaves, (6, 4)
    )
    result = sums.shares(weaknesses.leaves_under(PARENTS))
    under = {
        0: {0, 1, 2, 3},
        1: {1, 2, 3},
        2: {0},
        3: {1},
        4: {2},
        5: {3},
    }
    for task in range(6):
        for node, within in under.items():
            there = [
                (w, v)
                for t, leaf, w, v in criteria
                if t == task and leaf in within and not np.isnan(v)
            ]
            points = sum(w * v for w, v in there)
            most = sum(w for w, _ in there if w > 0)
            least = sum(w for w, _ in there if w < 0)
            expected = (points - least) / (most - least) if there else np.nan
            assert pytest.approx(result[task, node], nan_ok=True) == expected


def test_the_test_is_that_of_a_paired_difference_on_one_side_corrected_over_the_tree() -> None:
    contrast = world({0: 0.3})
    under = weaknesses.leaves_under(PARENTS)
    first, second = contrast.sides(under[:, 1:], 1 - under[:, 1:])
    measured = [paired_difference(first[:, index], second[:, index]) for index in range(5)]
    one_sided = [m.p_value / 2 if m.difference < 0 else 1 - m.p_value / 2 for m in measured]
    by_chance = contrast.chance_p_values(second - first, under[:, 1:], 1 - under[:, 1:])
    expected = holm(np.maximum(one_sided, by_chance).tolist())
    result = weaknesses.candidates(contrast, PARENTS)

    assert [each.node for each in result] == [2]
    assert pytest.approx(result[0].p_value) == expected[1]


def test_the_variance_by_chance_is_that_of_dealing_verdicts_out_to_the_criteria_of_a_task() -> None:
    dice = np.random.default_rng(1)
    right = np.array([1.0, 0, 0, 1, 0, 0, 1])
    weights = np.array([3.0, 1, 2, 5, 1, 8, 2])
    leaves = np.array([0, 0, 1, 1, 2, 3, 3])
    inside = np.isin(leaves, [0, 1])
    dealt = [dice.permutation(right) for _ in range(40_000)]
    differences = [
        np.average(r[inside], weights=weights[inside])
        - np.average(r[~inside], weights=weights[~inside])
        for r in dealt
    ]
    sums = weaknesses.task_sums(right, weights, np.zeros(7, int), leaves, (1, 4))
    sides = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])

    assert pytest.approx(float(sums.chance_variance(sides).sum()), rel=0.03) == np.var(differences)
    assert abs(np.mean(differences)) < 0.01


def test_a_node_without_any_success_is_not_found_where_hardly_anything_succeeds() -> None:
    # Two in a hundred criteria succeed, none of the twelve in the node: that has a chance of four
    # in five.
    n_tasks = 12
    tasks = np.repeat(np.arange(n_tasks), 10)
    leaves = np.tile([2, *[0] * 9], n_tasks)
    right = np.zeros(len(tasks))
    right[[1, 12, 33, 54, 75, 96]] = 1.0
    contrast = weaknesses.Contrast(
        weaknesses.task_sums(right, np.ones(len(tasks)), tasks, leaves, (n_tasks, 4))
    )

    assert nodes(contrast) == []


@pytest.mark.parametrize(
    ("lowered", "expected"),
    [
        ({1: 0.4}, [3]),  # the leaf, not its parent
        (
            {
                1: 0.3,
                2: 0.3,
                3: 0.3,
            },
            [1],
        ),  # a node that is weak as a whole replaces its parts
        (
            {
                1: -0.25,
                2: -0.25,
                3: -0.25,
            },
            [2],
        ),  # weak compared with the rest, the better node
        ({}, []),
    ],
)
def test_the_node_that_is_weak_is_named(lowered: dict[int, float], expected: list[int]) -> None:
    assert nodes(world(lowered)) == expected


def test_a_node_that_is_always_worse_by_the_same_is_found_by_its_signs() -> None:
    tasks = np.repeat(np.arange(30), 4)
    leaves = np.tile(np.arange(4), 30)
    sums = weaknesses.task_sums(
        (leaves != 0).astype(float), np.ones(len(tasks)), tasks, leaves, (30, 4)
    )

    assert nodes(weaknesses.Contrast(sums)) == [2]


def test_candidates_are_confirmed_on_other_tasks_and_corrected_for_their_number() -> None:
    true = world({0: 0.4}, seed=1)
    chance = world({}, seed=2)
    result = weaknesses.candidates(world({0: 0.4}, seed=4), PARENTS)
    first, second = weaknesses.confirmed([(true, PARENTS, result), (chance, PARENTS, result)])

    assert [(a.is_weak, b.is_weak) for a, b in zip(first, second, strict=True)] == [(True, False)]
    alone = weaknesses.confirmed([(true, PARENTS, result)])[0][0]
    assert pytest.approx(2 * alone.p_value) == first[0].p_value


def test_tasks_keep_their_half_and_both_halves_have_about_as_many() -> None:
    halves = [weaknesses.is_for_selection(f"task {number}") for number in range(2000)]

    assert stats.binomtest(sum(halves), len(halves)).pvalue > 0.001
    assert halves[:50] == [weaknesses.is_for_selection(f"task {number}") for number in range(50)]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_of_criteria_changes_nothing(seed: int) -> None:
    rubrics = weakness_evidence.rubrics(1, 60)
    verdicts = weakness_evidence.verdicts(1, rubrics, rubrics.topics == 3, 3.0, 2)
    right = weaknesses.handled_rightly(verdicts, rubrics.weights)

    def confirmed(order: np.ndarray) -> list[list[tuple[int, float]]]:
        tree = weakness_evidence.flat(rubrics.topics[order])
        contrasts = weakness_evidence.contrasts(
            tree, rubrics.tasks[order], rubrics.weights[order], right[:, order]
        )
        return [
            [(e.node, e.p_value) for e in of]
            for of in weakness_evidence.weaknesses(tree, contrasts)
        ]

    first = [
        [(node, pytest.approx(p)) for node, p in of]
        for of in confirmed(np.arange(len(rubrics.tasks)))
    ]
    assert first == confirmed(np.random.default_rng(seed).permutation(len(rubrics.tasks)))
