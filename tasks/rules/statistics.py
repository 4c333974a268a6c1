"""Intervals for figures that are means over tasks."""

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 20251114
_AT_A_TIME = 1_000


def bootstrap_interval(
    task_scores: NDArray[np.float64], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of a mean over tasks; None for fewer than two tasks.

    Args:
        task_scores: one score a task, shape (n_tasks,); with several trials, the task's mean over them.
        level: the interval's nominal coverage.
    Tasks are the sample, so whole tasks are drawn with replacement. The same scores always give the same interval.
    """
    n_tasks = len(task_scores)
    if n_tasks < 2:
        return None
    generator = np.random.default_rng(seed)
    means = [
        task_scores[generator.integers(0, n_tasks, size=(count, n_tasks))].mean(axis=1)
        for count in _chunks(resamples)
    ]
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail])
    return float(low), float(high)


def _chunks(total: int) -> list[int]:
    whole, rest = divmod(total, _AT_A_TIME)
    return [_AT_A_TIME] * whole + ([rest] if rest else [])
