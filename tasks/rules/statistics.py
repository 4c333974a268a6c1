"""Intervals for figures that are means over tasks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 20251114
_AT_A_TIME = 1_000


def bootstrap_intervals(
    task_scores: NDArray[np.float64], *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> list[tuple[float, float]] | None:
    """Percentile bootstrap intervals of means over the same tasks; None for fewer than two tasks.

    Tasks are the sample, so whole tasks are drawn with replacement, the same draws for every column; with several
    trials, a task's score is its mean over them. The same scores always give the same intervals.

    Args:
        task_scores: shape (n_tasks, n_figures).
        level: nominal coverage of the intervals.

    Returns:
        One (low, high) a column.
    """
    n_tasks = task_scores.shape[0]
    if n_tasks < 2:
        return None
    generator = np.random.default_rng(seed)
    # How often each task is drawn is all that a resample says, and one matrix product gives all its means.
    means: list[NDArray[Any]] = [
        generator.multinomial(n_tasks, np.full(n_tasks, 1.0 / n_tasks), size=count) @ task_scores / n_tasks
        for count in _chunks(resamples)
    ]
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail], axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def _chunks(total: int) -> list[int]:
    whole, rest = divmod(total, _AT_A_TIME)
    return [_AT_A_TIME] * whole + ([rest] if rest else [])
