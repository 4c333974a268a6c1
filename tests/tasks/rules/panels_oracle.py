"""Resampled panels by enumeration: every way to draw the models and their trials, instead of
samples.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

Trials = Sequence[Sequence[Sequence[int | Fraction]]]
"""Exact scores by task, model and trial; all tasks have the same trials."""
Panel = tuple[tuple[int, tuple[int, ...]], ...]
"""Each drawn model with its drawn trials."""


def probabilities(scores: Trials, size: int) -> list[Fraction]:
    """The exact probability that each task is among the `size` lowest; ties are in the tasks'
    order.
    """
    chances = [Fraction(0)] * len(scores)
    for panel, chance in panels([len(trials) for trials in scores[0]]):
        # Fractions, so that only true ties are ties.
        keys = [(panel_sum(panel, scores[task]), task) for task in range(len(scores))]
        for _, task in sorted(keys)[:size]:
            chances[task] += chance
    return chances


def panel_sum(
    panel: Panel, task_scores: Sequence[Sequence[int | Fraction]]
) -> Fraction:
    """The sum over a panel's models of their mean scores."""
    total = Fraction(0)
    for model, trials in panel:
        total += Fraction(sum(task_scores[model][trial] for trial in trials)) / len(
            trials
        )
    return total


def panels(n_trials: Sequence[int]) -> Iterator[tuple[Panel, Fraction]]:
    """Every panel with its chance."""
    members = []
    for model, n in enumerate(n_trials):
        for trials in itertools.product(range(n), repeat=n):
            members.append((model, trials))
    for panel in itertools.product(members, repeat=len(n_trials)):
        chance = Fraction(1)
        for _, trials in panel:
            chance /= len(n_trials) * len(trials) ** len(trials)
        yield panel, chance
