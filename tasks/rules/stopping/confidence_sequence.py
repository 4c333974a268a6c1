"""The interval of a mean over tasks at a look, so that it holds at every look together.

README.md shows how often it does.
"""

import math

import numpy as np

from tasks.rules.statistics.intervals import n_differing
from tasks.rules.statistics.quantiles import Floats

METHOD = "sequence-2"
"""The name of the interval method, a part of what looks rest on; the number grows when the method changes."""
_SKEW_FACTOR = 4.0
"""Samples that miss a long tail show too little of its skewness; with so much of it, lognormal differences hold too."""
_RARE = 0.75
"""The largest rare difference that is allowed for before it is seen, where a perfect score is 1."""


def unseen_sum(alpha: float) -> float:
    """Return what differences of a kind that no task has shown so far may take off the sum over tasks.

    Of n tasks, none shows a kind that a share p of all tasks has with a chance of (1 - p)^n, which is below alpha where
    p is above log(1 / alpha) / n (with 5 % and by rule of thumb, three in n). Such a share of tasks that differ by
    `_RARE` moves the mean by `_RARE` * log(1 / alpha) / n.
    """
    return _RARE * math.log(1.0 / alpha)


def sequence_ends(values: Floats, square: float, unseen: float = 0.0) -> Floats:
    """The interval of each figure's mean at a look.

    `square` is what the square of a normal mean's statistic may reach at this look. A sum in units of its own root of
    squares never exceeds the root of how many tasks differ, and has lighter tails than Student's t. So with d tasks
    that differ from the commonest value, t reaches the threshold z where t^2 = z^2 (d - 1) / (d - z^2); with d up to
    z^2 nothing can be said. Of differences that are symmetric around 0, as those of a model with itself, the sum has no
    heavier tails than a normal one given their sizes, whatever these are: few or many, of any spread. An end that
    skewness makes too short is longer by the first term of its expansion (Hall, "On the removal of skewness by
    transformation", 1992), t * skewness / (3 sqrt(n)), with four times the skewness of the sample, which shows too
    little of it.

    Args:
        values: shape (n_tasks, n_figures), NaN where a task does not count for a figure.

    Returns:
        Shape (n_figures, 2): low and high, NaN where the tasks that differ are too few to say anything.
    """
    counted = ~np.isnan(values)
    n_tasks = counted.sum(axis=0).astype(np.float64)
    differing = n_differing(values).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(counted, values, 0.0).sum(axis=0) / n_tasks
        centred = np.where(counted, values - mean, 0.0)
        squares = (centred**2).sum(axis=0)
        error = np.sqrt(squares / (n_tasks - 1.0) / n_tasks)
        skewness = (centred**3).sum(axis=0) / n_tasks / (squares / n_tasks) ** 1.5
        skewness *= np.sqrt(n_tasks * (n_tasks - 1.0)) / (n_tasks - 2.0)
        reach = np.sqrt(square * (differing - 1.0) / (differing - square))
        skewed = _SKEW_FACTOR * skewness * reach / (3.0 * np.sqrt(n_tasks))
        low = mean - np.maximum(error * reach * np.maximum(1.0, 1.0 - skewed), unseen / n_tasks)
        high = mean + np.maximum(error * reach * np.maximum(1.0, 1.0 + skewed), unseen / n_tasks)
    return np.where((differing > square)[:, None], np.column_stack([low, high]), np.nan)
