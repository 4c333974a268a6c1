"""Intervals of a mean over tasks that hold at every look together, however often one looks (confidence sequences).

The width is that of Robbins' normal mixture with the variance of the tasks seen so far (an asymptotic confidence
sequence: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
sequences", 2021, equation 4). Two changes make it hold for few, sparse and skewed differences; README.md shows what
they are worth.
"""

import math

import numpy as np

from tasks.rules.statistics.intervals import n_differing
from tasks.rules.statistics.quantiles import Floats

FEWEST_TASKS = 20
"""No look is taken at fewer tasks."""
_SKEW_FACTOR = 2.0
"""Samples that miss a long tail show about half of its skewness."""


def threshold(n_tasks: Floats, alpha: float, n_planned: int) -> Floats:
    """The square of the t-statistic that a mean has to reach after n tasks: Robbins' mixture.

    (1 + n r) / (n r) * (2 log(1 / alpha) + log(1 + n r)), with r so that the sequence is narrowest at about half of
    the planned tasks: r = (2 log(1 / alpha) + log(1 + 2 log(1 / alpha))) / (n_planned / 2).
    """
    exponent = 2.0 * math.log(1.0 / alpha)
    ratio = n_tasks * (exponent + math.log(1.0 + exponent)) / (n_planned / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((1.0 + ratio) / ratio * (exponent + np.log1p(ratio)))


def sequence_ends(values: Floats, alpha: float, n_planned: int) -> Floats:
    """The interval of each figure's mean after the tasks seen so far; all looks together hold with 1 - alpha.

    A sum in units of its own root of squares never exceeds the root of how many tasks differ, and has lighter tails
    than Student's t. So with d tasks that differ from the commonest value, t reaches the threshold z where
    t^2 = z^2 (d - 1) / (d - z^2); with d up to z^2 nothing can be said. For differences that are symmetric around 0,
    as those of a model with itself, this holds for any number of tasks and any tails. An end that skewness makes too
    short is longer by the first term of its expansion (Hall, "On the removal of skewness by transformation", 1992),
    t * skewness / (3 sqrt(n)), with twice the skewness of the sample, which shows too little of it.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.
        alpha: the chance that a figure's interval leaves the true mean out at any look.
        n_planned: the tasks that are evaluated at most.

    Returns:
        Shape (n_figures, 2): low and high, NaN where the tasks that differ are too few to say anything.
    """
    counted = ~np.isnan(values)
    n_tasks = counted.sum(axis=0).astype(np.float64)
    differing = n_differing(values).astype(np.float64)
    wanted = threshold(n_tasks, alpha, n_planned)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(counted, values, 0.0).sum(axis=0) / n_tasks
        centred = np.where(counted, values - mean, 0.0)
        squares = (centred**2).sum(axis=0)
        error = np.sqrt(squares / (n_tasks - 1.0) / n_tasks)
        skewness = (centred**3).sum(axis=0) / n_tasks / (squares / n_tasks) ** 1.5
        skewness *= np.sqrt(n_tasks * (n_tasks - 1.0)) / (n_tasks - 2.0)
        reach = np.sqrt(wanted * (differing - 1.0) / (differing - wanted))
        skewed = _SKEW_FACTOR * skewness * reach / (3.0 * np.sqrt(n_tasks))
        low = mean - error * reach * np.maximum(1.0, 1.0 - skewed)
        high = mean + error * reach * np.maximum(1.0, 1.0 + skewed)
    is_known = (n_tasks >= FEWEST_TASKS) & (differing > wanted)
    return np.where(is_known[:, None], np.column_stack([low, high]), np.nan)
