"""Selecting the hard subset: the tasks of a field that a panel of models found hardest (paper, section 2)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.rules.identity import digest

_TIE_DIGITS = 12


class HardSubsetError(ValueError):
    """The subset cannot be selected; the message says why."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected task: `rank` 1 is the hardest, `mean_score` the mean over the panel's models."""

    task_id: str
    rank: int
    mean_score: float


def wanted_size(n_tasks: int, share: float | Mapping[str, int], field: str) -> int:
    """How many tasks of a field to select: a share of its admitted tasks (rounded down, 300 of 600), or a number."""
    if isinstance(share, Mapping):
        if field not in share:
            raise HardSubsetError(f"{field}: hard_subset.share names no number for this field")
        return share[field]
    return math.floor(n_tasks * share + 1e-9)


def select_hardest(scores: Mapping[str, Sequence[float]], size: int) -> list[Selected]:
    """The `size` tasks with the lowest mean score, hardest first; a tie goes by task id.

    `scores` gives, for each task that is complete for the whole panel, one score a model (a model's score of a task
    is already the mean over its trials). The sum is exact (`math.fsum`), so that the order of the models never
    decides a tie.

    Raises:
        HardSubsetError: fewer tasks are complete than are asked for, or none is asked for.
    """
    if size < 1:
        raise HardSubsetError(f"{len(scores)} complete tasks are too few to select any")
    if len(scores) < size:
        raise HardSubsetError(f"{size} tasks are wanted and only {len(scores)} are complete for every model")
    means = {task: math.fsum(values) / len(values) for task, values in scores.items()}
    # A model's score of a task is a mean over trials already, so what is equal may differ in the last digits.
    hardest = sorted(means, key=lambda task: (round(means[task], _TIE_DIGITS), task))[:size]
    return [Selected(task, rank, means[task]) for rank, task in enumerate(hardest, start=1)]


def selection_id(*basis: object) -> str:
    """Identity of a selection: what it was selected from and how, so that the same basis is the same version."""
    return digest("selection", *basis)
