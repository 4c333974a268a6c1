"""How large a t-statistic has to be at each look, so that all looks together are wrong with a given chance."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tasks.rules.statistics.quantiles import Floats

FEWEST_TASKS = 20
"""No look is taken at fewer tasks."""
_MOST_LOOKS = 120
"""With more looks than these the mixture stands as it is: it holds for any number of them."""
_STEPS = 40
_LEAST_STEP = 0.01
"""No look is taken right before the last one, if less than this share of the tasks lies between them."""
_MOST_NODES = 400
_NODES_OF_STEP = 1.5
"""So many nodes a standard deviation of the finest step, at least: with two thirds of them chances are lost."""


def mixture(n_tasks: Floats, alpha: float, n_planned: int) -> Floats:
    """The square of the statistic that may be reached after n tasks, for any number of looks: Robbins' mixture.

    (1 + n r) / (n r) * (2 log(1 / alpha) + log(1 + n r)), with r so that it is least at about half of the planned
    tasks: r = (2 log(1 / alpha) + log(1 + 2 log(1 / alpha))) / (n_planned / 2). (Waudby-Smith, Arbour, Sinha, Kennedy
    and Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences", 2021, equations 4 and 10.)
    """
    exponent = 2.0 * math.log(1.0 / alpha)
    ratio = n_tasks * (exponent + math.log(1.0 + exponent)) / (n_planned / 2.0)
    return np.asarray((1.0 + ratio) / ratio * (exponent + np.log1p(ratio)))


def thresholds(ends: Sequence[int], alpha: float) -> dict[int, float]:
    """The square of the statistic at each look, by the number of its tasks.

    The mixture holds for looks after every task, for ever. Here the looks are few and known before the start, so its
    level is raised until the chance that a normal mean crosses it at any of them is alpha. Of two looks that are next
    to each other at the end, only the last is taken.
    """
    looks = tuple(end for end in ends if end >= FEWEST_TASKS)
    if len(looks) > 1 and looks[-1] - looks[-2] < _LEAST_STEP * looks[-1]:
        looks = (*looks[:-2], looks[-1])
    return dict(zip(looks, _calibrated(looks, alpha), strict=True))


@lru_cache(maxsize=256)
def _calibrated(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    if not looks:
        return ()
    tasks, n_planned = np.array(looks, dtype=np.float64), looks[-1]
    low, high = math.log(alpha), math.log(0.9)
    finest = _finest(*_scaled(tasks, mixture(tasks, alpha, n_planned)))
    is_exact = len(looks) <= _MOST_LOOKS and _NODES_OF_STEP * finest <= _MOST_NODES
    for _ in range(_STEPS if is_exact else 0):
        middle = (low + high) / 2.0
        is_safe = crossing_chance(tasks, mixture(tasks, math.exp(middle), n_planned)) <= alpha
        low, high = (middle, high) if is_safe else (low, middle)
        if high - low < 1e-4:
            break
    return tuple(float(value) for value in mixture(tasks, math.exp(low), n_planned))


def crossing_chance(n_tasks: Floats, squares: Floats) -> float:
    """The chance that the sum of normal values crosses n * squares at any look, in either direction.

    The density of the sum of those that have not crossed is carried from look to look (Armitage, McPherson and Rowe,
    "Repeated significance tests on accumulating data", 1969), on the nodes of Gauss and Legendre.
    """
    bounds, steps = _scaled(n_tasks, squares)
    n_nodes = int(min(_MOST_NODES, max(60, 4.0 * _finest(bounds, steps))))
    at, weights = np.polynomial.legendre.leggauss(n_nodes)
    nodes, mass = np.zeros(1), np.ones(1)
    for bound, step in zip(bounds, steps, strict=True):
        here = bound * at
        density = np.exp(-((here[:, None] - nodes) ** 2) / (2.0 * step)) @ mass / math.sqrt(2.0 * math.pi * step)
        nodes, mass = here, density * weights * bound
    return 1.0 - float(mass.sum())


def _scaled(n_tasks: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """What the sum may reach at each look, and the variance added before it, as if that of the whole sum were 1."""
    times = n_tasks / n_tasks[-1]
    return np.sqrt(squares * times), np.diff(times, prepend=0.0)


def _finest(bounds: Floats, steps: Floats) -> float:
    """The widest span of sums that have not crossed, in standard deviations of the finest step."""
    return 2.0 * float(bounds.max()) / math.sqrt(float(steps.min()))
