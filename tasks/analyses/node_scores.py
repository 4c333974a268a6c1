"""Scores in the nodes of the trees, and weaknesses, for each stale judge configuration.

A configuration is stale if its verdicts or the trees have changed since its last analysis.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.config.job import Job
from tasks.rules.identity import JUDGE_CONFIG, digest
from tasks.rules.statistics import intervals, weaknesses
from tasks.rules.statistics.intervals import Flags, Floats, Ints, none_if_nan
from tasks.rules.statistics.weaknesses import Contrast, TaskSums, TestedNode
from tasks.run.missing_work import wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Row, Warehouse

METHOD = f"{weaknesses.METHOD} {intervals.METHOD}"
_ANALYSIS = (*JUDGE_CONFIG, "analysis_id")
"""The columns that identify an analysis of a data set."""


@dataclass(frozen=True)
class StoredTree:
    """A tree with the criteria in its leaves.

    Attributes:
        node_ids: the id of each node.
        parents: the index of each node's parent, as in `leaves_under`.
        tasks, leaves: the index of each criterion's task and leaf, shape (n_criteria,).
        is_for_selection: true for tasks on which weaknesses are selected, shape (n_tasks,).
    """

    tree_id: str
    node_ids: tuple[str, ...]
    parents: tuple[int, ...]
    tasks: Ints
    leaves: Ints
    is_for_selection: Flags


@dataclass(frozen=True)
class JudgedTree(StoredTree):
    """A tree with the verdicts on its criteria under a judge configuration.

    Attributes:
        right: each model's handling of each criterion (0 to 1 for right; NaN: undecided), shape
            (n_models, n_criteria).
        weights: shape (n_criteria,).
    """

    right: Floats
    weights: Floats

    @property
    def under(self) -> Floats:
        """A matrix with 1 where a leaf is under a node."""
        return weaknesses.leaves_under(self.parents)

    def sums(self, right: Floats) -> TaskSums:
        """Return a model's criteria, summed by task and leaf."""
        shape = (len(self.is_for_selection), len(self.under))
        return weaknesses.task_sums(right, self.weights, self.tasks, self.leaves, shape)

    def contrast(self, model: int, rival: int | None) -> Contrast:
        """Return a model compared with another one, or with its own other criteria."""
        right = self.right[model]
        if rival is None:
            return Contrast(self.sums(right))
        rival_right = self.right[rival]
        is_undecided = np.isnan(right + rival_right)
        return Contrast(
            self.sums(np.where(is_undecided, np.nan, right)),
            self.sums(np.where(is_undecided, np.nan, rival_right)),
        )


def measure(job: Job) -> StageReport:
    """Compute scores and weaknesses of the stale judge configurations."""
    report = StageReport("capabilities")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        key = wanted_tasks(job, reader).key
        stale = list(stale_analyses(reader, key))
        if not stale:
            return report
        tree_rows = reader.select("capability_trees", "tree_id", order="field", **key)
        stored_trees = [_stored_tree(reader, row["tree_id"]) for row in tree_rows]
        for config in stale:
            scores, candidates = _score_and_candidate_rows(reader, key, config, stored_trees)
            columns = {name: config[name] for name in _ANALYSIS}
            columns |= {**key, "created_at": datetime.now(UTC)}
            analysis = {**columns, "method": METHOD}
            warehouse.write("capability_measures", [row | columns for row in scores])
            warehouse.write("weakness_candidates", [row | analysis for row in candidates])
            # Written last: only rows of an analysis that is listed here count.
            warehouse.write("capability_analyses", [analysis])
            n_confirmed = sum(row["is_confirmed"] for row in candidates)
            report.notes.append(
                f"{config['judge']}: {n_confirmed} of {len(candidates)} candidates confirmed"
            )
            report.rows += len(scores)
    warehouse.publish()
    return report


def stale_analyses(reader: Reader, key: Mapping[str, str]) -> Iterator[Row]:
    """Yield the judge configurations without an analysis of the current data.

    Each has the missing analysis's id.
    """
    analysis_of = itemgetter(*_ANALYSIS)
    stored_analyses = reader.select("capability_analyses", **key, method=METHOD)
    current_analyses = set(map(analysis_of, stored_analyses))
    for config in reader.query("queries/capabilities/judge_configs", key):
        judge = [config[name] for name in JUDGE_CONFIG]
        config["analysis_id"] = digest("capabilities", METHOD, dict(key), judge, config["basis"])
        if analysis_of(config) not in current_analyses:
            yield config


def _score_and_candidate_rows(
    reader: Reader,
    key: Mapping[str, str],
    config: Row,
    stored_trees: Sequence[StoredTree],
) -> tuple[list[Row], list[Row]]:
    """Return the rows of scores and of candidates under a judge configuration."""
    judging_id = config["judging_id"]
    runs = reader.select(
        "intermediate.current_model_runs",
        "model, model_config_hash, vintage",
        judging_id=judging_id,
        is_latest=True,
    )
    trees = []
    for tree in stored_trees:
        parameters = {**key, "tree_id": tree.tree_id, "judging_id": judging_id}
        right, weights = _verdicts(reader, parameters, (len(runs), len(tree.tasks)))
        trees.append(JudgedTree(**vars(tree), right=right, weights=weights))
    scores: list[Row] = []
    candidates: list[Row] = []
    for model, run in enumerate(runs):
        for tree in trees:
            scores += [row | run for row in _score_rows(tree, tree.right[model])]
        candidates += [row | run for row in _weakness_rows(model, runs, trees)]
    return scores, candidates


def _stored_tree(reader: Reader, tree_id: str) -> StoredTree:
    nodes = reader.select(
        "capability_node_rows",
        "node_id, parent_id",
        order="position",
        tree_id=tree_id,
    )
    members = reader.select(
        "capability_members",
        "task_id, criterion_id, node_id",
        tree_id=tree_id,
        is_leaf=True,
    )
    indices = {row["node_id"]: index for index, row in enumerate(nodes)}
    parents = tuple(indices.get(row["parent_id"], -1) for row in nodes)
    leaves = [index for index in range(len(parents)) if index not in parents]
    member_leaves = [leaves.index(indices[row["node_id"]]) for row in members]
    task_ids, tasks = np.unique([row["task_id"] for row in members], return_inverse=True)
    is_for_selection = [weaknesses.is_for_selection(str(task_id)) for task_id in task_ids]
    return StoredTree(
        tree_id=tree_id,
        node_ids=tuple(indices),
        parents=parents,
        tasks=tasks.astype(np.int64),
        leaves=np.array(member_leaves, dtype=np.int64),
        is_for_selection=np.array(is_for_selection, dtype=bool),
    )


def _verdicts(
    reader: Reader,
    parameters: Mapping[str, Any],
    shape: tuple[int, int],
) -> tuple[Floats, Floats]:
    """Return the right handling of criteria (see `handled_rightly`), and their weights.

    `shape` is that of the former: (n_models, n_criteria).
    """
    columns = reader.arrays(sql.read("queries/capabilities/values"), parameters)
    position = columns["position"].astype(np.int64)
    values = np.full(shape, np.nan)
    values[columns["model_run"].astype(np.int64), position] = _with_nan(columns["value"])
    weights = np.zeros(shape[1])
    weights[position] = np.nan_to_num(_with_nan(columns["weight"]))
    return weaknesses.handled_rightly(values, weights), weights


def _with_nan(column: NDArray[Any]) -> Floats:
    return np.asarray(np.ma.filled(column.astype(float), np.nan), dtype=float)


def _score_rows(tree: JudgedTree, right: Floats) -> Iterator[Row]:
    """Yield a model's score in each node with the interval over tasks."""
    under = tree.under
    shares = tree.sums(right).shares(under)  # (n_tasks, n_nodes)
    ends = intervals.mean_intervals(shares)
    are_small = intervals.have_few_tasks(shares)
    n_tasks = (~np.isnan(shares)).sum(axis=0)
    n_criteria = np.bincount(tree.leaves, minlength=len(under)) @ under
    n_decided = np.bincount(tree.leaves, ~np.isnan(right), minlength=len(under)) @ under
    for node, node_id in enumerate(tree.node_ids):
        if n_tasks[node]:
            yield {
                "tree_id": tree.tree_id,
                "node_id": node_id,
                "value": float(np.nanmean(shares[:, node])),
                "ci_low": none_if_nan(ends[node, 0]),
                "ci_high": none_if_nan(ends[node, 1]),
                "is_small": bool(are_small[node]),
                "n_tasks": int(n_tasks[node]),
                "n_criteria": int(n_criteria[node]),
                "n_decided": int(n_decided[node]),
            }


class _Search(NamedTuple):
    """The candidates of a model in a tree, with the contrast on the tasks for confirming.

    `rival` is the index of the other model, None for a comparison with its own other criteria.
    """

    tree: JudgedTree
    rival: int | None
    contrast: Contrast
    selected: list[TestedNode]


def _weakness_rows(
    model: int,
    runs: Sequence[Row],
    trees: Sequence[JudgedTree],
) -> Iterator[Row]:
    """Yield the rows of all candidates of a model in all trees, confirmed or not.

    The model is compared with its own other criteria and with each other model.
    """
    rivals = [rival for rival in range(len(runs)) if rival != model]
    searches = []
    for tree in trees:
        for rival in (None, *rivals):
            contrast = tree.contrast(model, rival)
            selection = contrast.of_tasks(tree.is_for_selection)
            selected = weaknesses.candidates(selection, tree.parents)
            if selected:
                confirmation = contrast.of_tasks(~tree.is_for_selection)
                searches.append(_Search(tree, rival, confirmation, selected))
    confirmed = weaknesses.confirmed(
        [(search.contrast, search.tree.parents, search.selected) for search in searches]
    )
    for search, results in zip(searches, confirmed, strict=True):
        columns = _rival_columns(None if search.rival is None else runs[search.rival])
        for candidate, result in zip(search.selected, results, strict=True):
            yield columns | _weakness_row(search.tree, search.contrast, candidate, result)


def _rival_columns(run: Row | None) -> Row:
    """Return the columns of what a model is compared with: a rival's run, or (None) itself."""
    if run is None:
        run = dict.fromkeys(("model", "vintage", "model_config_hash"))
        compared_key = "its own other criteria"
    else:
        compared_key = digest("compared", [run["model"], run["vintage"], run["model_config_hash"]])
    return {
        "compared_model": run["model"],
        "compared_vintage": run["vintage"],
        "compared_config_hash": run["model_config_hash"],
        "compared_key": compared_key,
    }


def _weakness_row(
    tree: JudgedTree,
    contrast: Contrast,
    candidate: TestedNode,
    result: TestedNode,
) -> Row:
    node = candidate.node
    measured = result.measured
    inside = tree.under[:, [node]]
    compared_values, values = contrast.sides(inside, 1.0 - inside)  # (n_tasks, 1)
    has_both = ~np.isnan(values - compared_values)
    return {
        "tree_id": tree.tree_id,
        "node_id": tree.node_ids[node],
        "value": none_if_nan(intervals.means(values[has_both])),
        "compared_value": none_if_nan(intervals.means(compared_values[has_both])),
        "gap": measured.difference,
        "gap_ci_low": measured.ci_low,
        "gap_ci_high": measured.ci_high,
        "is_small": measured.is_small,
        "n_tasks": measured.n_tasks,
        "p_confirmed": result.p_value,
        "is_confirmed": result.is_weak,
        "found_gap": candidate.measured.difference,
        "n_tasks_found": candidate.measured.n_tasks,
        "p_found": candidate.p_value,
    }
