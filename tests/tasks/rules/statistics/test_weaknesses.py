"""Weaknesses: task values against plain loops, which node represents others, both halves; null and
planted worlds.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics.comparison import holm, paired_difference
from tasks.rules.statistics.weaknesses import (
    Contrast,
    TaskSums,
    candidates,
    confirmed,
    handled_rightly,
    is_for_selection,
    leaves_under,
    task_sums,
)
from tests.benchmarks import weakness_evidence

PARENTS = (-1, 0, 0, 1, 1, 1)
"""A root with nodes 1 and 2; node 1 is divided into 3, 4 and 5. The leaves are 2, 3, 4, 5."""
LEAVES_UNDER = {0: {0, 1, 2, 3}, 1: {1, 2, 3}, 2: {0}, 3: {1}, 4: {2}, 5: {3}}
"""Node -> the indices of its leaves."""
N_TASKS = 6
CRITERION = st.tuples(
    st.integers(0, N_TASKS - 1),
    st.integers(0, 3),
    st.sampled_from([-3.0, -1.0, 1.0, 2.0, 8.0]),
    st.sampled_from([0.0, 0.5, 1.0, np.nan]),
)
"""The task of a criterion, its leaf, weight and value."""


def sums_of(right: Any, tasks: Any, leaves: Any) -> TaskSums:
    """The sums of criteria of weight 1."""
    n_tasks = int(np.max(tasks)) + 1
    weights = np.ones(len(tasks))
    return task_sums(right.astype(float), weights, tasks, leaves, (n_tasks, 4))


def world(lowered: dict[int, float], seed: int = 3) -> Contrast:
    """120 tasks with three criteria per leaf, handled rightly with a chance of 0.7 minus the leaf's
    `lowered`.
    """
    tasks = np.tile(np.arange(120), 12)
    leaves = np.repeat(np.arange(4), 3 * 120)
    chances = 0.7 - np.array([lowered.get(leaf, 0.0) for leaf in range(4)])
    right = np.random.default_rng(seed).random(len(tasks)) < chances[leaves]
    return Contrast(sums_of(right, tasks, leaves))


def weak_nodes(contrast: Contrast) -> list[int]:
    return [candidate.node for candidate in candidates(contrast, PARENTS)]


def min_normalised(criteria: list[tuple[float, float]]) -> float:
    """The score of weights and values, (p - N) / (P - N); NaN without any."""
    if not criteria:
        return np.nan
    points = sum(weight * value for weight, value in criteria)
    highest = sum(max(weight, 0) for weight, _ in criteria)
    lowest = sum(min(weight, 0) for weight, _ in criteria)
    return (points - lowest) / (highest - lowest)


@given(st.lists(CRITERION, min_size=1, max_size=40))
def test_a_task_value_is_the_min_normalised_score_of_the_decided_criteria(criteria):
    tasks, leaves, weights, values = map(np.array, zip(*criteria, strict=True))
    right = handled_rightly(values, weights)

    shares = task_sums(right, weights, tasks, leaves, (N_TASKS, 4)).shares(
        leaves_under(PARENTS)
    )

    for node, node_leaves in LEAVES_UNDER.items():
        is_decided = np.isin(leaves, list(node_leaves)) & ~np.isnan(values)
        for task in range(N_TASKS):
            selected = is_decided & (tasks == task)
            pairs = list(zip(weights[selected], values[selected], strict=True))
            assert shares[task, node] == pytest.approx(
                min_normalised(pairs), nan_ok=True
            )


def test_the_test_is_that_of_a_paired_difference_on_one_side_corrected_over_the_tree():
    contrast = world({0: 0.3})
    inside = leaves_under(PARENTS)[:, 1:]
    compared_values, model_values = contrast.sides(inside, 1 - inside)
    by_chance = contrast.chance_p_values(
        model_values - compared_values, inside, 1 - inside
    )
    one_sided = []
    for compared, model in zip(compared_values.T, model_values.T, strict=True):
        measured = paired_difference(compared, model)
        is_lower = measured.difference < 0
        one_sided.append(
            measured.p_value / 2 if is_lower else 1 - measured.p_value / 2
        )

    [candidate] = candidates(contrast, PARENTS)

    p_values = holm(np.maximum(one_sided, by_chance).tolist())
    assert candidate.node == 2
    assert candidate.p_value == pytest.approx(p_values[1])


def test_the_variance_by_chance_is_that_of_dealing_verdicts_out_to_the_criteria_of_a_task():
    dice = np.random.default_rng(1)
    right = np.array([1.0, 0, 0, 1, 0, 0, 1])
    weights = np.array([3.0, 1, 2, 5, 1, 8, 2])
    leaves = np.array([0, 0, 1, 1, 2, 3, 3])
    is_inside = leaves <= 1
    dealt = np.array([dice.permutation(right) for _ in range(40_000)])
    inside = np.average(dealt[:, is_inside], axis=1, weights=weights[is_inside])
    outside = np.average(dealt[:, ~is_inside], axis=1, weights=weights[~is_inside])
    sums = task_sums(right, weights, np.zeros(7, int), leaves, (1, 4))

    variances = sums.chance_variance(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))

    assert variances.sum() == pytest.approx(np.var(inside - outside), rel=0.03)


def test_a_node_without_any_success_is_not_weak_where_hardly_anything_succeeds():
    # Six of 120 criteria succeed, none of the twelve in the node: that is likely.
    tasks = np.repeat(np.arange(12), 10)
    leaves = np.tile([2, *[0] * 9], 12)
    right = np.zeros(len(tasks))
    right[[1, 12, 33, 54, 75, 96]] = 1.0

    assert weak_nodes(Contrast(sums_of(right, tasks, leaves))) == []


@pytest.mark.parametrize(
    ("lowered", "nodes"),
    [
        # None is weak.
        ({}, []),
        # The leaf is weak, not its parent.
        ({1: 0.4}, [3]),
        # The node is weak as a whole.
        ({1: 0.3, 2: 0.3, 3: 0.3}, [1]),
        # The others are better.
        ({1: -0.25, 2: -0.25, 3: -0.25}, [2]),
    ],
)
def test_the_node_that_is_weak_is_named(lowered, nodes):
    assert weak_nodes(world(lowered)) == nodes


def test_a_node_that_is_always_worse_by_the_same_is_weak_by_its_signs():
    leaves = np.tile(np.arange(4), 30)
    sums = sums_of(leaves != 0, np.repeat(np.arange(30), 4), leaves)

    assert weak_nodes(Contrast(sums)) == [2]


def test_candidates_are_confirmed_on_other_tasks():
    selected = candidates(world({0: 0.4}, seed=4), PARENTS)

    ((weak,), (by_chance,)) = confirmed(
        [
            (world({0: 0.4}, seed=1), PARENTS, selected),
            (world({}, seed=2), PARENTS, selected),
        ]
    )

    assert weak.is_weak
    assert not by_chance.is_weak


def test_candidates_are_corrected_for_their_number():
    contrast = world({0: 0.4}, seed=1)
    selected = candidates(world({0: 0.4}, seed=4), PARENTS)

    ((alone,),) = confirmed([(contrast, PARENTS, selected)])
    ((beside_chance,), _) = confirmed(
        [(contrast, PARENTS, selected), (world({}, seed=2), PARENTS, selected)]
    )

    assert beside_chance.p_value == pytest.approx(2 * alone.p_value)


def test_tasks_keep_their_half_and_both_halves_have_about_as_many():
    halves = [is_for_selection(f"task {number}") for number in range(2000)]

    assert stats.binomtest(sum(halves), len(halves)).pvalue > 0.001
    assert halves[:6] == [is_for_selection(f"task {number}") for number in range(6)]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_the_order_of_criteria_changes_nothing(seed):
    rubrics = weakness_evidence.rubrics(1, 60, evenness=3.0)
    verdicts = weakness_evidence.verdicts(
        1, rubrics, rubrics.topics == 3, log_odds=3.0
    )
    right = handled_rightly(verdicts, rubrics.weights)

    def tested_nodes(order):
        reordered = replace(
            rubrics,
            tasks=rubrics.tasks[order],
            topics=rubrics.topics[order],
            weights=rubrics.weights[order],
        )
        tree = weakness_evidence.tree_of_labels(reordered.topics)
        contrasts = weakness_evidence.contrasts(tree, reordered, right[:, order])
        tested = weakness_evidence.tested_nodes(tree, contrasts)
        return [(node.node, pytest.approx(node.p_value)) for node in tested]

    order = np.arange(len(rubrics.tasks))
    nodes = tested_nodes(order)
    reordered_nodes = tested_nodes(np.random.default_rng(seed).permutation(order))

    assert nodes
    assert reordered_nodes == nodes
