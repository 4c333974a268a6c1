"""Scores in the nodes of the trees, and weaknesses, for each judge configuration with changed
verdicts or trees.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

import sql
from tasks.config.job import Job
from tasks.rules.identity import digest
from tasks.rules.statistics import intervals, weaknesses
from tasks.rules.statistics.intervals import Flags, Floats, Ints, none_if_nan
from tasks.rules.statistics.weaknesses import Contrast, TaskSums, TestedNode
from tasks.run.missing_work import wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

METHOD = f"{weaknesses.METHOD} {intervals.METHOD}"
_KEY = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
_OWN = "its own other criteria"
Row = dict[str, Any]


@dataclass(frozen=True)
class Grown:
    """A stored tree, with the tasks and leaves of its criteria.

    Attributes: tasks, leaves: the index of each criterion's task and leaf, in the order of tasks
        and criteria.
        selection: true for tasks on which weaknesses are selected.
    """

    tree_id: str
    node_ids: tuple[str, ...]
    parents: tuple[int, ...]
    tasks: Ints
    leaves: Ints
    selection: Flags

    @property
    def under(self) -> Floats:
        """A matrix with 1 where a leaf is under a node."""
        return weaknesses.leaves_under(self.parents)

    def sums(self, right: Floats, weights: Floats) -> TaskSums:
        """Return a model's criteria, summed by task and leaf."""
        return weaknesses.task_sums(
            right, weights, self.tasks, self.leaves, (len(self.selection), len(self.under))
        )


def measure(job: Job) -> StageReport:
    """Compute scores and weaknesses of the judge configurations whose verdicts, or whose trees,
    have changed.
    """
    report = StageReport("capabilities")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        key = wanted_tasks(job, reader).key
        stale = list(stale_analyses(reader, key))
        trees = reader.select("capability_trees", "tree_id", order="field", **key) if stale else []
        grown = [_grown(reader, row["tree_id"]) for row in trees]
        for config in stale:
            measured, candidates = _measured(reader, key, config, grown)
            common = {
                **key,
                **{name: config[name] for name in _KEY},
                "analysis_id": config["analysis_id"],
            }
            now = {"created_at": datetime.now(UTC)}
            warehouse.write(
                "capability_measures",
                [
                    {
                        **common,
                        **row,
                        **now,
                    }
                    for row in measured
                ],
            )
            of_method = {"method": METHOD, **now}
            warehouse.write(
                "weakness_candidates",
                [
                    {
                        **common,
                        **row,
                        **of_method,
                    }
                    for row in candidates
                ],
            )
            # Written last: only rows of an analysis that is listed here count.
            warehouse.write("capability_analyses", [{**common, **of_method}])
            n_confirmed = sum(row["is_confirmed"] for row in candidates)
            report.notes.append(
                f"{config['judge']}: {n_confirmed} of {len(candidates)} candidates confirmed"
            )
            report.rows += len(measured)
    if stale:
        warehouse.publish()
    return report


def stale_analyses(reader: Reader, key: Mapping[str, str]) -> Iterator[Row]:
    """Yield the judge configurations without an analysis of the current data, each with the missing
    analysis's id.
    """
    stored = reader.select("capability_analyses", **key, method=METHOD)
    done = {(*(row[name] for name in _KEY), row["analysis_id"]) for row in stored}
    for row in reader.rows(sql.read("queries/capabilities/judge_configs"), key):
        names = [row[name] for name in _KEY]
        analysis_id = digest("capabilities", METHOD, dict(key), names, row["basis"])
        if (*names, analysis_id) not in done:
            yield {**row, "analysis_id": analysis_id}


def _grown(reader: Reader, tree_id: str) -> Grown:
    nodes = reader.select(
        "capability_node_rows", "node_id, parent_id", order="position", tree_id=tree_id
    )
    members = reader.select(
        "capability_members", "task_id, criterion_id, node_id", tree_id=tree_id, is_leaf=True
    )
    indices = {row["node_id"]: index for index, row in enumerate(nodes)}
    parents = tuple(-1 if row["parent_id"] is None else indices[row["parent_id"]] for row in nodes)
    leaves = [index for index in range(len(parents)) if index not in parents]
    task_ids, tasks = np.unique([row["task_id"] for row in members], return_inverse=True)
    return Grown(
        tree_id,
        tuple(indices),
        parents,
        tasks.astype(np.int64),
        np.array([leaves.index(indices[row["node_id"]]) for row in members], dtype=np.int64),
        np.array(
            [weaknesses.is_for_selection(str(task_id)) for task_id in task_ids], dtype=np.bool_
        ),
    )


def _measured(
    reader: Reader, key: Mapping[str, str], config: Row, trees: Sequence[Grown]
) -> tuple[list[Row], list[Row]]:
    """Return the rows of scores and of candidates under a judge configuration."""
    of_config = {"judging_id": config["judging_id"], "is_latest": True}
    models = reader.select(
        "intermediate.current_model_runs", "model, model_config_hash, vintage", **of_config
    )
    right = [_right(reader, key, config, tree, len(models)) for tree in trees]
    measured: list[Row] = []
    candidates: list[Row] = []
    for index, model in enumerate(models):
        for tree, (values, weights) in zip(trees, right, strict=True):
            measured += [row | model for row in _score_rows(tree, values[index], weights)]
        candidates += [row | model for row in _weakness_rows(index, models, trees, right)]
    return measured, candidates


def _right(
    reader: Reader, key: Mapping[str, str], config: Row, tree: Grown, n_models: int
) -> tuple[Floats, Floats]:
    """Return each model's handling of each criterion of a tree (0 to 1 for right; NaN: undecided),
    and the weights.
    """
    given = {
        **key,
        "tree_id": tree.tree_id,
        "judging_id": config["judging_id"],
    }
    columns = {
        name: np.ma.filled(column.astype(np.float64), np.nan)
        for name, column in reader.arrays(sql.read("queries/capabilities/values"), given).items()
    }
    at = (columns["model_run"].astype(np.int64), columns["position"].astype(np.int64))
    values = np.full((n_models, len(tree.tasks)), np.nan)
    weights = np.zeros(len(tree.tasks))
    values[at] = columns["value"]
    weights[at[1]] = np.nan_to_num(columns["weight"])
    return weaknesses.handled_rightly(values, weights), weights


def _score_rows(tree: Grown, right: Floats, weights: Floats) -> Iterator[Row]:
    """Yield a model's score in each node with the interval over tasks."""
    under = tree.under
    shares = tree.sums(right, weights).shares(under)
    ends = intervals.mean_intervals(shares)
    are_small = intervals.rest_on_few(shares)
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


def _weakness_rows(
    index: int,
    models: Sequence[Row],
    trees: Sequence[Grown],
    right: Sequence[tuple[Floats, Floats]],
) -> Iterator[Row]:
    """Yield all candidates of a model in all trees, compared with its own other criteria and with
    each other model.
    """
    searched: list[tuple[Grown, int | None, Contrast, list[TestedNode]]] = []
    for tree, (values, weights) in zip(trees, right, strict=True):
        for other in (None, *(each for each in range(len(models)) if each != index)):
            contrast = _contrast(tree, values, weights, index, other)
            selected = weaknesses.candidates(contrast.of_tasks(tree.selection), tree.parents)
            if selected:
                searched.append((tree, other, contrast.of_tasks(~tree.selection), selected))
    confirmed = weaknesses.confirmed(
        [(contrast, tree.parents, selected) for tree, _, contrast, selected in searched]
    )
    for (tree, other, contrast, selected), results in zip(searched, confirmed, strict=True):
        compared = None if other is None else models[other]
        for candidate, result in zip(selected, results, strict=True):
            yield {**_compared(compared), **_weakness_row(tree, contrast, candidate, result)}


def _contrast(
    tree: Grown, values: Floats, weights: Floats, index: int, other: int | None
) -> Contrast:
    if other is None:
        return Contrast(tree.sums(values[index], weights))
    is_undecided = np.isnan(values[index] + values[other])
    both = (np.where(is_undecided, np.nan, values[each]) for each in (index, other))
    return Contrast(*(tree.sums(each, weights) for each in both))


def _compared(model: Row | None) -> Row:
    names = ("model", "vintage", "model_config_hash")
    own = {
        f"compared_{name.removeprefix('model_')}": None if model is None else model[name]
        for name in names
    }
    return {
        **own,
        "compared_key": (
            _OWN if model is None else digest("compared", [model[name] for name in names])
        ),
    }


def _weakness_row(
    tree: Grown, contrast: Contrast, candidate: TestedNode, result: TestedNode
) -> Row:
    node = candidate.node
    measured = result.measured
    selection = candidate.measured
    inside = tree.under[:, [node]]
    beside, own = (side[:, 0] for side in contrast.sides(inside, 1.0 - inside))
    both = ~np.isnan(own - beside)
    return {
        "tree_id": tree.tree_id,
        "node_id": tree.node_ids[node],
        "value": none_if_nan(intervals.means(own[both])),
        "compared_value": none_if_nan(intervals.means(beside[both])),
        "gap": measured.difference,
        "gap_ci_low": measured.ci_low,
        "gap_ci_high": measured.ci_high,
        "is_small": measured.is_small,
        "n_tasks": measured.n_tasks,
        "p_confirmed": result.p_value,
        "is_confirmed": result.is_weak,
        "found_gap": selection.difference,
        "n_tasks_found": selection.n_tasks,
        "p_found": candidate.p_value,
    }
