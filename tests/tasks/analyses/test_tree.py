"""The tree: its bounds, equal phrases in one leaf, independence of order and number of threads, and
odd inputs.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info, threadpool_limits

from tasks.analyses.trees import (
    FEWEST_CRITERIA,
    LEVELS,
    MOST_LEAVES,
    Tree,
    build_tree,
)
from tasks.rules.statistics.weaknesses import leaves_under
from tests.benchmarks.weakness_evidence import rubrics

PHRASES = rubrics(3, 40, evenness=3.0).phrases()


def groups(tree: Tree, items: list[str]) -> dict[tuple[int, ...], list[str]]:
    """The sorted phrases of each leaf, by the path to it."""
    phrases_by_path = {}
    for item, leaf in zip(items, tree.leaves, strict=True):
        phrases_by_path.setdefault(tuple(_path(tree, int(leaf))), []).append(item)
    return {path: sorted(phrases) for path, phrases in phrases_by_path.items()}


def test_levels_and_sizes_are_bounded_and_every_item_is_in_one_leaf():
    tree = build_tree(PHRASES)

    _, leaf_of_item = np.unique(tree.leaves, return_inverse=True)
    sizes = leaves_under(tree.parents)[leaf_of_item].sum(axis=0)
    leaves = set(tree.leaves.tolist())
    assert min(sizes) >= FEWEST_CRITERIA
    assert sizes[0] == len(PHRASES)
    assert len(leaves) <= MOST_LEAVES
    assert leaves.isdisjoint(tree.parents)
    for node, parent in enumerate(tree.parents):
        assert parent < node
        assert tree.parents.count(node) != 1
        assert len(_path(tree, node)) - 1 <= LEVELS


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(120)))
def test_the_order_of_items_changes_nothing(order):
    items = PHRASES[:120]
    shuffled = [items[index] for index in order]

    assert groups(build_tree(items), items) == groups(build_tree(shuffled), shuffled)


def test_equal_phrases_stay_together_but_for_case_and_space():
    phrases = PHRASES[:150]
    changed_phrases = [f" {phrase.upper()} " for phrase in phrases]

    leaves = build_tree([*phrases, *changed_phrases]).leaves.tolist()

    assert leaves[:150] == leaves[150:]


def test_words_in_common_make_a_group():
    topics = (
        "leases depreciation equipment",
        "inheritance estates probate",
        "options margin collateral",
    )
    phrases = [f"{topics[number % 3]} number{number}" for number in range(90)]

    nodes = tops(build_tree(phrases))

    assert nodes == nodes[:3] * 30
    assert len(set(nodes)) == 3


def _path(tree: Tree, node: int) -> list[int]:
    return [*_path(tree, tree.parents[node]), node] if node >= 0 else []


def tops(tree: Tree) -> list[int]:
    """The node below the root that each item is under."""
    return [_path(tree, int(leaf))[1] for leaf in tree.leaves]


def test_vectors_are_compared_by_their_direction():
    dice = np.random.default_rng(1)
    directions = np.repeat(np.eye(8)[:2], 40, axis=0) + dice.normal(0, 0.01, (80, 8))
    vectors = (directions * dice.uniform(1, 9, (80, 1))).tolist()
    phrases = [f"phrase {number}" for number in range(80)]

    nodes = tops(build_tree(phrases, vectors))

    assert nodes == [nodes[0]] * 40 + [nodes[40]] * 40
    assert nodes[0] != nodes[40]


@pytest.mark.parametrize(
    "items",
    [
        [],
        ["one phrase"],
        ["the same"] * 100,
        ["a", "of", "the"] * 20,
        ["", " "] * 20,
        [f"word{number}" for number in range(2 * FEWEST_CRITERIA - 1)],
    ],
)
def test_what_cannot_be_divided_is_a_root_alone(items):
    tree = build_tree(items)

    assert tree.parents == ((-1,) if items else ())
    assert tree.leaves.tolist() == [0] * len(items)


def test_one_thread_builds_a_tree(monkeypatch):
    """More threads add numbers in another order, which changes last digits."""
    fit = KMeans.fit
    n_threads = []

    def noting_fit(*arguments, **options):
        n_threads.extend(pool["num_threads"] for pool in threadpool_info())
        return fit(*arguments, **options)

    monkeypatch.setattr(KMeans, "fit", noting_fit)
    with threadpool_limits(4):
        build_tree(PHRASES)

    assert set(n_threads) == {1}
