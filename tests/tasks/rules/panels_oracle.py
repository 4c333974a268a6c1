"""Resampled panels by enumeration: every way to draw the models and their trials, instead of
samples.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

Trials = Sequence[Sequence[Sequence[int | Fraction]]]
"""Exact scores by task, model and trial; all tasks have the same trials."""


def probabilities(scores: Trials, size: int) -> list[Fraction]:
    """The exact probability that each task is among the `size` lowest; ties are in the tasks'
    order.
    """
    chances = [Fraction(0)] * len(scores)
    for panel, chance in panels([len(trials) for trials in scores[0]]):
        # Fractions, so that only true ties are ties.
        means = [
            sum(
                Fraction(sum(of_task[model][trial] for trial in sampled)) / len(sampled)
                for model, sampled in panel
            )
            for of_task in scores
        ]
        for task in sorted(range(len(scores)), key=lambda task: (means[task], task))[:size]:
            chances[task] += chance
    return chances


def panels(
    n_trials: Sequence[int],
) -> Iterator[tuple[tuple[tuple[int, tuple[int, ...]], ...], Fraction]]:
    """Every panel, a tuple of (model, drawn trials), with its chance."""
    ways = [
        (model, sampled, Fraction(1, len(n_trials) * n**n))
        for model, n in enumerate(n_trials)
        for sampled in itertools.product(range(n), repeat=n)
    ]
    for positions in itertools.product(ways, repeat=len(n_trials)):
        chance = Fraction(1)
        for _, _, share in positions:
            chance *= share
        yield tuple((model, sampled) for model, sampled, _ in positions), chance
