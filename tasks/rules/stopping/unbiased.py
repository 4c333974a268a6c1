"""Means without the bias of stopping.

Who stops when a difference looks large enough reports differences that are too large. The mean over the first block
has no such bias, but few tasks. Its mean over all orders in which the tasks that were evaluated could have come has
none either, and varies less (Rao and Blackwell): which tasks were evaluated says all about the true mean that their
order says. Orders in which the comparison would have stopped earlier are no possible ones.
"""

import numpy as np

from tasks.rules.statistics.quantiles import Floats
from tasks.rules.stopping.decisions import Rule

ORDERS = 1_000
SEED = 20251114
_MOST_TRIES = 20
"""So many times as many orders are tried at most; with fewer than `_FEWEST` possible ones there is no estimate."""
_FEWEST = 20


def unbiased_means(differences: Floats, figures: Floats, strata: Floats, rule: Rule, orders: int = ORDERS) -> Floats:
    """The mean of each figure, without the bias of having stopped when the differences were settled.

    Args:
        differences: of the tasks that were evaluated until the comparison stopped, in their order.
        figures: shape (n_tasks, n_figures), in the same order; what is to be estimated, such as the differences
            themselves, or a model's scores. NaN where a task does not count.
        strata: a number for the stratum of each task; only tasks of one stratum change places.
        rule: what the comparison was decided by.

    Returns:
        One mean a figure, NaN where too few orders are possible ones.
    """
    n_tasks = len(differences)
    looks = [end for end in rule.ends if end < n_tasks]
    first = rule.ends[0]
    if not looks:
        return np.asarray(_means(figures[None, :first])[0])
    generator = np.random.default_rng(SEED)
    sums, found = np.zeros(figures.shape[1]), 0
    for _ in range(_MOST_TRIES):
        drawn = _orders(strata, orders, generator)
        possible = _possible(differences, drawn, rule, looks)[: orders - found]
        if len(possible):
            sums += _means(figures[possible[:, :first]]).sum(axis=0)
            found += len(possible)
        if found >= orders:
            break
    return sums / found if found >= _FEWEST else np.full(figures.shape[1], np.nan)


def _means(values: Floats) -> Floats:
    """Means over the tasks; shape (n_orders, n_tasks, n_figures) to (n_orders, n_figures)."""
    counted = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(counted, values, 0.0).sum(axis=1) / counted.sum(axis=1))


def _orders(strata: Floats, n_orders: int, generator: np.random.Generator) -> np.ndarray:
    """Random orders in which each place keeps its stratum, shape (n_orders, n_tasks)."""
    found = np.empty((n_orders, len(strata)), dtype=np.int64)
    for stratum in np.unique(strata):
        places = np.flatnonzero(strata == stratum)
        found[:, places] = places[np.argsort(generator.random((n_orders, len(places))), axis=1)]
    return found


def _possible(differences: Floats, drawn: np.ndarray, rule: Rule, looks: list[int]) -> np.ndarray:
    """The orders in which no earlier look would have settled the comparison."""
    for end in looks:
        drawn = drawn[~rule.are_settled(differences[drawn[:, :end]].T)]
    return drawn
