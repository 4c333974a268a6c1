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
    level is raised until the chance that a normal mean crosses it at any of them is alpha.
    """
    looks = tuple(end for end in ends if end >= FEWEST_TASKS)
    return dict(zip(looks, _calibrated(looks, alpha), strict=True))


@lru_cache(maxsize=256)
def _calibrated(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    if not looks:
        return ()
    tasks, n_planned = np.array(looks, dtype=np.float64), looks[-1]
    low, high = math.log(alpha), math.log(0.9)
    for _ in range(_STEPS if len(looks) <= _MOST_LOOKS else 0):
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
    times = n_tasks / n_tasks[-1]
    bounds = np.sqrt(squares * times)
    steps = np.diff(times, prepend=0.0)
    finest = 2.0 * float(bounds.max()) / math.sqrt(float(steps.min()))
    at, weights = np.polynomial.legendre.leggauss(int(min(400, max(60, 4.0 * finest))))
    nodes, mass = np.zeros(1), np.ones(1)
    for bound, step in zip(bounds, steps, strict=True):
        here = bound * at
        density = np.exp(-((here[:, None] - nodes) ** 2) / (2.0 * step)) @ mass / math.sqrt(2.0 * math.pi * step)
        nodes, mass = here, density * weights * bound
    return 1.0 - float(mass.sum())
