"""Weaknesses of a model: nodes of a tree in which it scores lower than elsewhere, or than others.

A task value is the share of a task's decided criteria of a node that were handled rightly, weighted
by the size of their weights. A criterion of negative weight is handled rightly if it is not met, so
this is the min-normalised score of these criteria, (p - N) / (P - N) (paper, equation 3), and its
mean over tasks is equation 4. Undecided criteria are left out on both sides of a comparison. Tasks
are the sample, so verdicts of one task may be correlated.

A weakness is selected on one part of the tasks and confirmed on the other (Cox, "A Note on
Data-Splitting for the Evaluation of Significance Levels", Biometrika 62, 1975). On the first part
Holm's correction is over the nodes of a tree. On the second it is over all candidates of a model:
in all its trees, compared with its own other criteria and with all other models. The two parts
share no task, so for any choice of candidates, the probability that the second part confirms any
false one is at most `ALPHA` for a model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them

from tasks.rules.identity import digest
from tasks.rules.statistics import intervals
from tasks.rules.statistics.comparison import (
    ALPHA,
    PairedDifference,
    holm,
    is_significant,
    paired_difference,
)
from tasks.rules.statistics.intervals import Flags, Floats, Ints

METHOD = "split-sample-1"
"""The name of the method, stored with weaknesses; increase the number when the method changes."""


def is_for_selection(task_id: str) -> bool:
    """Return whether a task is for selecting weaknesses, not for confirming them.

    A hash of the id decides, so about half of the tasks are for selecting, and a task stays on its
    side for every model and when other tasks are added.
    """
    return int(digest("weaknesses", intervals.SEED, task_id)[:8], 16) % 2 == 0


def handled_rightly(values: Floats, weights: Floats) -> Floats:
    """Return the right handling of criteria, from 0 to 1: met, or not met if the weight is
    negative.

    Args:
        values: shape (..., n_criteria), from 0 to 1, such as means over trials; NaN if undecided.
        weights: shape (n_criteria,).
    """
    return np.where(weights < 0, 1.0 - values, values)


@dataclass(frozen=True)
class TaskSums:
    """A model's weighted criteria by task and leaf of the tree, shape (n_tasks, n_leaves).

    Attributes:
        right: those handled rightly.
        decided: all decided ones.
        squares: the squared weights of the decided ones.
        spread: variance of rightness within each task, with the number of its decided criteria - 1
            as the divisor; shape (n_tasks, 1), 0 for a single criterion.
    """

    right: Floats
    decided: Floats
    squares: Floats
    spread: Floats

    def shares(self, leaves: Floats) -> Floats:
        """Return task values over sets of leaves, NaN if a task has none of a set.

        Args:
            leaves: 1 if a leaf is in a set, else 0; shape (n_leaves, n_sets).

        Returns:
            Shape (n_tasks, n_sets).
        """
        return intervals.quotient(self.right @ leaves, self.decided @ leaves)

    def chance_variance(self, leaves: Floats) -> Floats:
        """Return the variance of a task value if the task's criteria were met by chance.

        For the difference of two task values over disjoint sets it is the sum of both.
        """
        decided = self.decided @ leaves  # (n_tasks, n_sets)
        squares = self.squares @ leaves
        return self.spread * np.nan_to_num(intervals.quotient(squares, decided**2))

    def of_tasks(self, is_included: Flags) -> "TaskSums":
        """Return the sums of the included tasks."""
        return TaskSums(
            right=self.right[is_included],
            decided=self.decided[is_included],
            squares=self.squares[is_included],
            spread=self.spread[is_included],
        )


def task_sums(
    right: Floats,
    weights: Floats,
    tasks: Ints,
    leaves: Ints,
    shape: tuple[int, int],
) -> TaskSums:
    """Return a model's criteria summed by task and leaf.

    Args:
        right: right handling of each criterion, 0 to 1; NaN if undecided.
        weights: of the criteria; their sizes are used, and a weight of 0 does not count.
        tasks, leaves: the index of each criterion's task and leaf.
        shape: number of tasks and of leaves.
    """
    n_tasks, n_leaves = shape
    is_decided = ~np.isnan(right) & (weights != 0)
    sizes = np.where(is_decided, np.abs(weights), 0.0)
    rightness = np.where(is_decided, right, 0.0)
    cells = tasks * n_leaves + leaves

    def summed(values: Floats) -> Floats:
        sums = np.bincount(cells, values, minlength=n_tasks * n_leaves)
        return sums.reshape(shape).astype(float)

    n_decided = np.bincount(tasks, is_decided, minlength=n_tasks)
    means = np.bincount(tasks, rightness, minlength=n_tasks) / np.maximum(n_decided, 1)
    deviations = np.where(is_decided, (rightness - means[tasks]) ** 2, 0.0)
    squares = np.bincount(tasks, deviations, minlength=n_tasks)
    spread = squares / np.maximum(n_decided - 1, 1)
    return TaskSums(
        right=summed(sizes * rightness),
        decided=summed(sizes),
        squares=summed(sizes**2),
        spread=spread[:, None],
    )


@dataclass(frozen=True)
class Contrast:
    """A model compared with a rival on the same criteria, or, without a rival, with its own other
    criteria.

    These are the criteria of the same task outside the node: a large node would otherwise be
    compared mostly with itself. Within a task, a node below the other criteria is also below all
    criteria, and vice versa.
    """

    model: TaskSums
    rival: TaskSums | None = None

    def sides(self, inside: Floats, outside: Floats) -> tuple[Floats, Floats]:
        """Return task values of the other side and of the model.

        They are for sets of leaves (`inside`) and their complements (`outside`).
        """
        if self.rival is None:
            return self.model.shares(outside), self.model.shares(inside)
        return self.rival.shares(inside), self.model.shares(inside)

    def of_tasks(self, is_included: Flags) -> "Contrast":
        """Return the contrast on the included tasks."""
        rival = None if self.rival is None else self.rival.of_tasks(is_included)
        return Contrast(self.model.of_tasks(is_included), rival)

    def chance_p_values(self, differences: Floats, inside: Floats, outside: Floats) -> Floats:
        """Return one-sided p-values of rightness that falls on each task's criteria by chance.

        The statistic is the mean difference over tasks / its standard deviation under that
        hypothesis (a permutation within tasks; Strasser and Weber, "On the asymptotic theory of
        permutation statistics", 1999), as a normal. If few criteria are handled rightly, a node
        without any success has differences with little variance, and Student's t would be too
        certain; this test accounts for small nodes without success by chance. It is 0 in a
        comparison with another model, for which there is no such hypothesis.
        """
        if self.rival is not None:
            return np.zeros(differences.shape[1])
        has_both = ~np.isnan(differences)  # (n_tasks, n_nodes)
        total = np.where(has_both, differences, 0.0).sum(axis=0)
        variances = self.model.chance_variance(inside) + self.model.chance_variance(outside)
        deviation = np.sqrt(np.where(has_both, variances, 0.0).sum(axis=0))
        steps = intervals.quotient(total, deviation)
        p_values: Floats = scipy.special.ndtr(np.nan_to_num(steps))
        return p_values


class TestedNode(NamedTuple):
    """A node with the difference of a model on one part of the tasks, and its p-value.

    The difference is below 0 if the model is weaker. The p-value is one-sided, and corrected for
    the nodes of the tree or for all candidates of the model.
    """

    node: int
    measured: PairedDifference
    p_value: float | None

    @property
    def is_weak(self) -> bool:
        """True if the model is significantly weaker."""
        return bool(is_significant(self.p_value))


def leaves_under(parents: Sequence[int]) -> Floats:
    """Return a matrix of the leaves under each node of a tree.

    Args:
        parents: the index of each node's parent, -1 for the root; parents come before their
            children.

    Returns:
        1 if a leaf is the node or under it, else 0; shape (n_leaves, n_nodes), leaves in the order
        of nodes.
    """
    under = np.eye(len(parents))
    for node in range(len(parents) - 1, 0, -1):  # children first
        under[:, parents[node]] += under[:, node]
    return np.delete(under, [parent for parent in parents if parent >= 0], axis=0)


def candidates(
    contrast: Contrast,
    parents: Sequence[int],
    alpha: float = ALPHA,
) -> list[TestedNode]:
    """Return the nodes of a tree in which a model is significantly weaker.

    Of nested nodes they are only the best fitting ones.

    Args:
        contrast: on the tasks for selection.
        parents: the tree, as in `leaves_under`. Its root is not a capability and is not compared.
        alpha: the largest corrected p-value of a selected node.
    """
    under = leaves_under(parents)
    nodes = [node for node, parent in enumerate(parents) if parent >= 0]
    tested = _tested(contrast, nodes, under[:, nodes], 1.0 - under[:, nodes], alpha)
    selected = {}
    for candidate in _corrected(tested):
        if is_significant(candidate.p_value, alpha):
            selected[candidate.node] = candidate
    return [selected[node] for node in _best_fitting(contrast, under, sorted(selected), alpha)]


def confirmed(
    searched: Sequence[tuple[Contrast, Sequence[int], Sequence[TestedNode]]],
) -> list[list[TestedNode]]:
    """Return the tests of all candidates of a model on the tasks for confirming.

    Args:
        searched: contrasts on the tasks for confirming, each with its tree (parents) and its
            candidates.

    Returns:
        For each contrast its candidates in their order, confirmed (`is_weak`) or not.
    """
    tested: list[TestedNode] = []
    for contrast, parents, selected in searched:
        nodes = [candidate.node for candidate in selected]
        inside = leaves_under(parents)[:, nodes]
        tested += _tested(contrast, nodes, inside, 1.0 - inside, alpha=math.inf)
    corrected = iter(_corrected(tested))
    return [list(islice(corrected, len(selected))) for _, _, selected in searched]


def _corrected(tested: Sequence[TestedNode]) -> list[TestedNode]:
    """Return the nodes with p-values corrected for their number (Holm)."""
    p_values = holm([node.p_value for node in tested])
    return [node._replace(p_value=p_value) for node, p_value in zip(tested, p_values, strict=True)]


def _tested(
    contrast: Contrast,
    nodes: Sequence[int],
    inside: Floats,
    outside: Floats,
    alpha: float,
) -> list[TestedNode]:
    """Return the test of each node.

    If a lower bound of p is above alpha after Holm's correction, it is used as the p-value. So
    nodes that cannot be selected, which are nearly all, need no resampling.
    """
    compared_values, model_values = contrast.sides(inside, outside)  # (n_tasks, n_nodes)
    differences = model_values - compared_values
    by_chance = contrast.chance_p_values(differences, inside, outside)
    bounds = np.nan_to_num(np.maximum(_least_p_values(differences), by_chance)).tolist()
    tested = []
    for index, corrected in enumerate(holm(bounds)):
        if is_significant(corrected, 1.01 * alpha):  # the bound has a tolerance
            measured = paired_difference(compared_values[:, index], model_values[:, index])
            p_value = _p_value_below(measured, float(by_chance[index]))
        else:
            values = differences[~np.isnan(differences[:, index]), index]
            measured = PairedDifference(len(values), float(values.mean()))
            p_value = bounds[index]
        tested.append(TestedNode(nodes[index], measured, p_value))
    return tested


def _p_value_below(measured: PairedDifference, by_chance: float) -> float | None:
    """Return the one-sided p-value of a negative difference.

    It is half of the two-sided one, or `by_chance` if that is larger.
    """
    if measured.p_value is None or measured.difference is None:
        return None
    p_value = measured.p_value / 2.0
    if measured.difference >= 0:
        p_value = 1.0 - p_value
    return max(p_value, by_chance)


def _least_p_values(differences: Floats) -> Floats:
    """Return one-sided p-values by Student's t, which are lower bounds of those of `_tested`.

    Returns:
        NaN if too few tasks differ for the t-test.
    """
    has_both = ~np.isnan(differences)
    differing = intervals.n_differing(differences)
    n_tasks = has_both.sum(axis=0)
    means = intervals.means(differences)
    squares = (np.where(has_both, differences - means, 0.0) ** 2).sum(axis=0)
    errors = np.sqrt(squares / np.maximum(n_tasks - 1, 1) / np.maximum(n_tasks, 1))
    steps = intervals.quotient(means, errors)
    p_values = scipy.special.stdtr(differing - 1.0, steps)
    return np.where(differing >= intervals.FEWEST_DIFFERING, p_values, np.nan)


def _best_fitting(
    contrast: Contrast,
    under: Floats,
    selected: Sequence[int],
    alpha: float,
) -> list[int]:
    """Return, of nested selected nodes, those that fit best.

    A node is weak as a whole, and replaces the weak nodes in it, if its remainder is weak too:
    significantly, and at least half as weak as they are. Otherwise they alone explain its weakness,
    and it is left out.
    """
    fitting: list[int] = []
    for node in reversed(selected):  # children come after their parents
        within = [inner for inner in fitting if (under[:, inner] <= under[:, node]).all()]
        if within and not _is_weak_beside(contrast, under, node, within, alpha):
            continue
        fitting = [inner for inner in fitting if inner not in within]
        fitting.append(node)
    return sorted(fitting)


def _is_weak_beside(
    contrast: Contrast,
    under: Floats,
    node: int,
    within: Sequence[int],
    alpha: float,
) -> bool:
    """Return whether a node is weak as a whole, and not only in the nodes within it."""
    parts = under[:, within].max(axis=1)
    remainder = under[:, node] - parts
    if not remainder.any():
        return True
    outside = 1.0 - under[:, [node]]
    (tested_parts,) = _tested(contrast, [node], parts[:, None], outside, alpha)
    (tested_remainder,) = _tested(contrast, [node], remainder[:, None], outside, alpha)
    if not is_significant(tested_remainder.p_value, alpha):
        return False
    parts_difference = tested_parts.measured.difference or 0.0
    remainder_difference = tested_remainder.measured.difference or 0.0
    return remainder_difference <= 0.5 * parts_difference
