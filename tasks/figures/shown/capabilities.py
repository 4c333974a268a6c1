"""The page of capabilities: confirmed weaknesses, and the trees, level by level, with scores and criteria."""

from collections import defaultdict
from typing import Any

from tasks.figures.columns import columns
from tasks.figures.figure import Figure, Page, pooled
from tasks.figures.scope import Scope, task_address

MOST_CRITERIA = 25
"""Largest number of criteria that a leaf lists; the table `capability_members` has all."""
_SCORE = "value is_small ci_low ci_high n_tasks n_criteria n_decided"
_WEAKNESSES = Figure(
    "weaknesses",
    "Where models are weak",
    "Capabilities in which a model scores significantly lower than in its other criteria, or than another model. They "
    "are found on one half of the tasks and confirmed on the other, of which the figures are. p is corrected for all "
    "candidates of the model.",
    columns(
        "judge_config model capability field compared_with value compared_value gap is_small gap_ci~ p_confirmed "
        "n_tasks parent_name", value=("score", "Score: here"), gap=("signed", "Difference"),
    ),
    given={"model": None, "than": None},
    empty="No weakness is confirmed.",
)  # fmt: skip
_SCORES = Figure(
    "capability_scores",
    "All scores",
    "The score of each model in each node of the trees, with 95 % intervals over tasks.",
    columns("judge_config field level capability model", _SCORE, value=("score", "Score")),
    listed=lambda rows: [row for row in rows if row["level"] <= 1],
)  # fmt: skip
CANDIDATES = Figure(
    "weakness_candidates",
    "Candidates for weaknesses",
    "Capabilities that a model was found weak in on one half of the tasks, and those that the other half confirmed.",
    columns("compared_model n_candidates n_confirmed"),
    given={"model": ""},
)
EXAMPLES = Figure(
    "weakness_examples",
    "Not handled rightly",
    "The criteria of a model's weaknesses that it handled wrongly in every trial, those with the largest weight first.",
    columns("capability task_id weight title"),
    given={"model": "", "than": None, "n_examples": 2},
)
"""A further figure of `prbench weaknesses`."""
CAPABILITIES = Page(
    "capabilities",
    "Capabilities",
    "The abilities that criteria need, as a tree that a model described and named, and the models' scores in it.",
    pooled(_WEAKNESSES, _SCORES),
    template="capabilities/page.html",
    needs="capability_trees",
)
SCORE_COLUMNS = columns("judge_config model", _SCORE, value=("score", "Score"))
"""The columns of the table of a node."""


def trees(scope: Scope) -> list[dict[str, Any]]:
    """Return the roots with their subtrees; none in a report of some splits, because trees cover all tasks."""
    if scope.narrowed_to:
        return []
    scores: dict[str, list[dict[str, Any]]] = defaultdict(list)
    criteria: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in scope.rows_of(_SCORES):
        scores[row["node_id"]].append(row)
    query = scope.filled("capabilities/criteria", {"most_criteria": MOST_CRITERIA})
    for row in scope.reader.rows(query):
        address = task_address(row["task_id"], criterion_id=row["criterion_id"])
        criteria[row["node_id"]].append({**row, "address": address})
    nodes: dict[str, dict[str, Any]] = {}
    roots: list[dict[str, Any]] = []
    for row in scope.rows("capabilities/nodes"):
        own = {"scores": scores[row["node_id"]], "criteria": criteria[row["node_id"]]}
        node = nodes[row["node_id"]] = {"row": row, "children": [], **own}
        (roots if row["parent_id"] is None else nodes[row["parent_id"]]["children"]).append(node)
    return roots
