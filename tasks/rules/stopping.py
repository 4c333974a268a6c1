"""Stopping of comparisons: order of tasks, intervals for every look, decisions, unbiased figures.

`tasks/stopping/evidence.md` shows how often the interval of a mean holds at all looks together.

Means without the bias of stopping: stopping as soon as a difference looks large gives differences
that are too large. The first block's mean has no such bias, but few tasks. The average of this mean
over all possible orders of the evaluated tasks has no bias either, and less variance (Rao and
Blackwell), because the set of evaluated tasks is sufficient for the true mean. Orders in which the
comparison would have stopped earlier are not possible.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.intervals import SEED, Flags, Floats, Ints, means, n_differing


def task_order(strata: Mapping[str, str], seed: str) -> list[str]:
    """Return tasks in a random order; every beginning has about the same share of each stratum.

    Within its stratum a task is sorted by the hash of seed and task id; the k-th of n tasks of a
    stratum gets the position (k - 1/2) / n among all. So the order depends only on seed, task ids
    and strata.

    Args:
        strata: task id -> its stratum, such as its field.
        seed: any text.
    """
    members: dict[str, list[tuple[bytes, str]]] = {}
    for task_id, stratum in strata.items():
        key = hashlib.sha256(f"{seed}\x1f{task_id}".encode()).digest()
        members.setdefault(stratum, []).append((key, task_id))
    positions = []
    for stratum, keyed_tasks in members.items():
        for rank, (_, task_id) in enumerate(sorted(keyed_tasks)):
            positions.append(((rank + 0.5) / len(keyed_tasks), stratum, task_id))
    return [task_id for _, _, task_id in sorted(positions)]


def block_ends(n_tasks: int, block: int) -> list[int]:
    """Return the number of evaluated tasks after each block; the last block may be smaller."""
    if not n_tasks:
        return []
    return [*range(block, n_tasks, block), n_tasks]


METHOD = "sequence-2"
"""The name of the interval method, part of a look's identity; increase the number when the method
changes.
"""
_RARE_DIFFERENCE = 0.75
"""The size of rare differences that intervals allow for although none is observed; a perfect score
is 1.
"""


def sequence_intervals(values: Floats, square: float, unobserved: float = 0.0) -> Floats:
    """Return the interval of each figure's mean at a look.

    `square` is the bound of the squared statistic of a normal mean at this look. A sum divided by
    its own root of squares never exceeds the root of the number of tasks that differ, and has
    lighter tails than Student's t. So with d tasks that differ from the most common value, t
    reaches the threshold z at t^2 = z^2 (d - 1) / (d - z^2); with d up to z^2 there is no interval.
    If differences are symmetric around 0, as those of a model with itself, the tails of the sum,
    given their sizes, are never heavier than those of a normal. An end that is too short because of
    skewness is extended by the first term of its expansion (Hall, "On the removal of skewness by
    transformation", 1992), t * skewness / (3 sqrt(n)), with four times the skewness of the sample,
    which is too small if a long tail is missed; four times is enough for lognormal differences.

    `unobserved` is the most by which unobserved kinds of differences may change the sum over tasks,
    so each side of an interval is at least `unobserved` / n long. If a share p of all tasks has a
    kind of difference, n tasks all lack it with probability (1 - p)^n, which is below alpha if p is
    above log(1 / alpha) / n (for 5 % the rule of thumb is 3 / n). Such a share of tasks that differ
    by `_RARE_DIFFERENCE` changes the mean by `_RARE_DIFFERENCE` * log(1 / alpha) / n.

    Args:
        values: shape (n_tasks, n_figures), NaN if a task does not count for a figure.

    Returns:
        Shape (n_figures, 2): low and high, NaN if too few tasks differ.
    """
    is_counted = ~np.isnan(values)
    n_tasks = is_counted.sum(axis=0).astype(float)  # (n_figures,)
    differing = n_differing(values).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(is_counted, values, 0.0).sum(axis=0) / n_tasks
        centred = np.where(is_counted, values - mean, 0.0)
        squares = (centred**2).sum(axis=0)
        error = np.sqrt(squares / (n_tasks - 1.0) / n_tasks)
        reach = np.sqrt(square * (differing - 1.0) / (differing - square))
        extension = 4.0 * _skewness(centred, n_tasks) * reach / (3.0 * np.sqrt(n_tasks))
        shortest = unobserved / n_tasks
        down = np.maximum(error * reach * np.maximum(1.0, 1.0 - extension), shortest)
        up = np.maximum(error * reach * np.maximum(1.0, 1.0 + extension), shortest)
        intervals = np.column_stack([mean - down, mean + up])
    return np.where((differing > square)[:, None], intervals, np.nan)


def _skewness(centred: Floats, n_tasks: Floats) -> Floats:
    """Return the adjusted skewness of centred values, shape (n_tasks, n_figures)."""
    squares = (centred**2).sum(axis=0)
    skewness = (centred**3).sum(axis=0) / n_tasks / (squares / n_tasks) ** 1.5
    return np.asarray(skewness * (np.sqrt(n_tasks * (n_tasks - 1.0)) / (n_tasks - 2.0)))


FEWEST_TASKS = 20
"""Smallest number of tasks at a look."""
_MOST_LOOKS = 120
"""Largest number of looks for raising the level; with more, the unchanged mixture is used, which is
always valid.
"""
_MOST_NODES = 400
"""Largest number of nodes of a numerical integral (see `crossing_chance`)."""


def mixture(n_tasks: Floats, alpha: float, n_planned: int) -> Floats:
    """Return the bound of the squared statistic after n tasks, for any number of looks.

    It is Robbins' mixture: (1 + n r) / (n r) * (2 log(1 / alpha) + log(1 + n r)), with r such that
    it is smallest at about half of the planned tasks:
    r = (2 log(1 / alpha) + log(1 + 2 log(1 / alpha))) / (n_planned / 2).
    (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and
    asymptotic confidence sequences", 2021, equations 4 and 10.)
    """
    log_term = 2.0 * math.log(1.0 / alpha)
    ratio = n_tasks * (log_term + math.log(1.0 + log_term)) / (n_planned / 2.0)
    return (1.0 + ratio) / ratio * (log_term + np.log1p(ratio))


def thresholds(ends: Sequence[int], alpha: float) -> dict[int, float]:
    """Return the bound of the squared statistic at each look, by the number of its tasks.

    The mixture is valid for looks after every task, for ever. Here the looks are few and known
    before the start, so its level is raised until the probability that a normal mean crosses it at
    any look is alpha. If the last two looks are less than 1 % of the tasks apart, only the last is
    used.
    """
    looks = tuple(end for end in ends if end >= FEWEST_TASKS)
    if len(looks) > 1 and looks[-1] - looks[-2] < 0.01 * looks[-1]:
        looks = (*looks[:-2], looks[-1])
    return dict(zip(looks, _calibrated(looks, alpha), strict=True))


@lru_cache(maxsize=256)
def _calibrated(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Return the bound of the squared statistic at each look.

    It is that of the mixture at the highest level whose probability of a crossing is at most alpha.
    """
    if not looks:
        return ()
    tasks = np.array(looks, dtype=float)
    n_planned = looks[-1]
    low = math.log(alpha)
    high = math.log(0.9)
    bounds, steps = _scaled(tasks, mixture(tasks, alpha, n_planned))
    widest_span = _widest_span(bounds, steps)
    # With fewer than 1.5 nodes for a standard deviation of the smallest step, precision is lost.
    is_precise = len(looks) <= _MOST_LOOKS and 1.5 * widest_span <= _MOST_NODES
    if is_precise:
        # Bisection of the level's logarithm; the probability at `low` never exceeds alpha.
        while high - low >= 1e-4:
            middle = (low + high) / 2.0
            squares = mixture(tasks, math.exp(middle), n_planned)
            if crossing_chance(tasks, squares) <= alpha:
                low = middle
            else:
                high = middle
    return tuple(mixture(tasks, math.exp(low), n_planned).tolist())


def crossing_chance(n_tasks: Floats, squares: Floats) -> float:
    """Return the probability that the sum of normal values crosses its bounds at any look.

    The bounds are those of its square, n * squares, so it may cross in either direction. The
    density of sums that have not crossed is computed from look to look (Armitage, McPherson and
    Rowe, "Repeated significance tests on accumulating data", 1969), on Gauss-Legendre nodes.
    """
    bounds, steps = _scaled(n_tasks, squares)
    n_nodes = int(min(_MOST_NODES, max(60, 4.0 * _widest_span(bounds, steps))))
    unit_nodes, unit_weights = np.polynomial.legendre.leggauss(n_nodes)
    nodes = np.zeros(1)
    mass = np.ones(1)
    for bound, step in zip(bounds, steps, strict=True):
        earlier_nodes = nodes
        nodes = bound * unit_nodes
        exponents = -((nodes[:, None] - earlier_nodes) ** 2) / (2.0 * step)
        density = np.exp(exponents) @ mass / math.sqrt(2.0 * math.pi * step)
        mass = density * unit_weights * bound
    return 1.0 - float(mass.sum())


def _scaled(n_tasks: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Return the sum's bound at each look, and the variance added before it (1 in total)."""
    times = n_tasks / n_tasks[-1]
    return np.sqrt(squares * times), np.diff(times, prepend=0.0)


def _widest_span(bounds: Floats, steps: Floats) -> float:
    """Return the widest range of sums that have not crossed / the smallest standard deviation of a
    step.
    """
    return 2.0 * float(bounds.max()) / math.sqrt(float(steps.min()))


Claim = Literal["different", "dropped"]
OPEN = "open"
DIFFERENT = "different"
EQUAL = "equal"
DROPPED = "dropped"
NOT_DROPPED = "not_dropped"


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule that decides a comparison.

    Attributes:
        claim: that the two differ, or that the second has dropped below the first.
        alpha: the probability of a false decision on this comparison, over all looks.
        least_difference: in the unit of the score; a difference nearer to 0 is called equal, or not
            dropped. Differences are second minus first.
        ends: number of evaluated tasks at each look; the last is the number of all tasks.
    """

    claim: Claim
    alpha: float
    least_difference: float
    ends: Sequence[int]

    @property
    def n_planned(self) -> int:
        """The largest number of tasks that could be evaluated."""
        return self.ends[-1]

    def intervals_after(self, differences: Floats) -> Floats:
        """Return the intervals at the look after the given tasks, shape (n_figures, 2).

        They are NaN if there is no look after this number of tasks.
        """
        square = thresholds(self.ends, self.alpha).get(len(differences))
        if square is None:
            return np.full((differences.shape[1], 2), np.nan)
        return sequence_intervals(
            differences, square, _RARE_DIFFERENCE * math.log(1.0 / self.alpha)
        )

    def decisions(self, intervals: Floats) -> NDArray[np.str_]:
        """Return the decision of each interval; `intervals` have the shape (n_figures, 2).

        An unknown interval leaves the comparison open.
        """
        low = intervals[:, 0]
        high = intervals[:, 1]
        tolerance = self.least_difference
        if self.claim == "dropped":
            is_not_dropped = low > -tolerance
            decisions = np.where(is_not_dropped, NOT_DROPPED, OPEN)
            return np.where(high < -tolerance, DROPPED, decisions)
        is_equal = (low > -tolerance) & (high < tolerance)
        is_different = (low > 0.0) | (high < 0.0)
        return np.where(is_different, DIFFERENT, np.where(is_equal, EQUAL, OPEN))

    def are_decided(self, differences: Floats) -> Flags:
        """Return flags of the figures that are decided at the look after the given tasks.

        `differences` have the shape (n_tasks, n_figures).
        """
        return np.asarray(self.decisions(self.intervals_after(differences)) != OPEN)


def alpha_of_each(alpha: float, n_comparisons: int) -> float:
    """Return each comparison's probability of a false decision, for a total of at most alpha.

    This is Bonferroni's correction. It is valid for any dependence of the comparisons: pairs share
    models, and all share tasks. It is fixed before the first look, so early settled comparisons do
    not affect the others.
    """
    return alpha / max(1, n_comparisons)


ORDERS = 1_000
"""Number of possible random orders over which `unbiased_means` takes the mean."""
_MOST_ROUNDS = 20
"""Number of times that random orders are drawn to find enough possible ones."""
_FEWEST_ORDERS = 20
"""With fewer possible orders there is no estimate."""


def unbiased_means(
    differences: Floats,
    figures: Floats,
    strata: Ints,
    rule: Rule,
    orders: int = ORDERS,
) -> Floats:
    """Return the mean of each figure without the bias of stopping.

    Args:
        differences: shape (n_tasks,), of the tasks that were evaluated until the comparison
            stopped, in their order.
        figures: shape (n_tasks, n_figures), in the same order; the values to estimate, such as the
            differences themselves, or a model's scores. NaN if a task does not count.
        strata: the number of each task's stratum; only tasks of one stratum are permuted.
        rule: the rule that decided the comparison.
        orders: number of possible orders to take the mean over.

    Returns:
        A mean for each figure, NaN if too few orders are possible.
    """
    looks = [end for end in rule.ends if end < len(differences)]
    block = rule.ends[0]
    if not looks:
        return means(figures[:block])
    generator = np.random.default_rng(SEED)
    sums = np.zeros(figures.shape[1])
    n_possible = 0
    for _ in range(_MOST_ROUNDS):
        possible = _orders(strata, orders, generator)
        for end in looks:  # keep orders in which no earlier look would have settled the comparison
            possible = possible[~rule.are_decided(differences[possible[:, :end]].T)]
        possible = possible[: orders - n_possible]
        sums += means(figures[possible[:, :block]], axis=1).sum(axis=0)
        n_possible += len(possible)
        if n_possible >= orders:
            break
    if n_possible < _FEWEST_ORDERS:
        return np.full(figures.shape[1], np.nan)
    return sums / n_possible


def _orders(strata: Ints, n_orders: int, generator: np.random.Generator) -> Ints:
    """Return random orders in which each position keeps its stratum, shape (n_orders, n_tasks)."""
    orders = np.empty((n_orders, len(strata)), dtype=np.int64)
    for stratum in np.unique(strata):
        positions = np.flatnonzero(strata == stratum)
        numbers = generator.random((n_orders, len(positions)))
        orders[:, positions] = positions[np.argsort(numbers, axis=1)]
    return orders
