"""A made-up tree of capabilities: topics by category, divided by place, and two weaknesses that are made up as well."""

from collections.abc import Sequence
from typing import Any

from tests.builders import row
from tests.tasks.report.made_up.attacks import Taint
from tests.tasks.report.made_up.results import Asked, Row

TREE = "a-tree"
NAMES = ("Whole", "Reading contracts", "Computing taxes", "Taxes of companies", "Taxes of persons")
PARENTS = (-1, 0, 0, 2, 2)


def tree_rows(asked: Sequence[Asked], revision: str, taint: Taint) -> dict[str, list[Row]]:
    """The rows by table of one tree with all criteria; who lies where is decided by the places of criteria."""
    placed = [
        (each.task.task_id, criterion, (1, 3, 4)[criterion.position % 3])
        for each in asked
        for criterion in each.task.criteria
    ]
    tree = {"dataset_revision": revision, "tree_id": TREE, "field": "Finance"}
    members = {node: [place for place in placed if node in _way(place[2])] for node in range(len(PARENTS))}
    return {
        "capability_members": [
            row("capability_members", dataset_revision=revision, tree_id=TREE, node_id=f"node-{node}", task_id=task_id,
                criterion_id=criterion.criterion_id, criterion_hash=criterion.content_hash, is_leaf=node not in PARENTS)
            for node, of_node in members.items()
            for task_id, criterion, _ in of_node
        ],
        "capability_node_rows": [
            row("capability_node_rows", **tree, node_id=f"node-{node}", position=node, level=len(_way(node)) - 1,
                parent_id=None if parent < 0 else f"node-{parent}", is_leaf=node not in PARENTS,
                name=None if node == len(PARENTS) - 1 else taint(NAMES[node]), n_criteria=len(members[node]),
                n_tasks=len({task_id for task_id, *_ in members[node]}))
            for node, parent in enumerate(PARENTS)
        ],
        "capability_trees": [
            row("capability_trees", **tree, vectors="tfidf", method="made up", n_criteria=len(placed),
                n_tasks=len(asked)),
        ],
    }  # fmt: skip


def weakness_rows(measured: Sequence[dict[str, Any]]) -> dict[str, list[Row]]:
    """A confirmed weakness for the first score, and one that is not confirmed for the second."""
    found = []
    for place, score in enumerate(measured[:2]):
        common = {name: value for name, value in score.items() if name not in {"n_criteria", "n_decided"}}
        common = {name: value for name, value in common.items() if not name.startswith("ci_")}
        found.append(row(
            "weakness_candidates", **{**common, "compared_key": "made up", "compared_value": 0.8, "gap": -0.2,
            "gap_ci_low": -0.3, "gap_ci_high": -0.1, "p_confirmed": 0.001 + place, "is_confirmed": place == 0,
            "found_gap": -0.25, "n_tasks_found": 9, "p_found": 0.01, "method": "made up"},
        ))  # fmt: skip
    return {"weakness_candidates": found}


def _way(node: int) -> tuple[int, ...]:
    return (*_way(PARENTS[node]), node) if node >= 0 else ()
