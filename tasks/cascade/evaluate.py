"""Evaluating rules to escalate, on what is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.cascade.stored import StoredPair, stored_pair
from tasks.rules.cascades import Bound, Evaluation, candidates, evaluate, front, is_for_choosing, picked
from tasks.rules.errors import UsageError
from warehouse import Reader

FEWEST_TASKS = 4
"""With fewer, a half would have one task or none."""


@dataclass(frozen=True)
class CascadeAnswer:
    """What rules would do: all of them, cheapest first, those that no other one beats, and the one picked."""

    stored: StoredPair
    evaluations: Sequence[Evaluation]
    front: Sequence[Evaluation]
    picked: Evaluation | None
    bound: Bound | None


def evaluated(
    reader: Reader, parameters: Mapping[str, Any], bound: Bound | None, resamples: int = 10_000
) -> CascadeAnswer:
    """Evaluate the rules for two judges (`parameters` as in `stored_pair`), and pick the cheapest within a bound.

    Rules are made and chosen on one half of the tasks and measured on the other.

    Raises:
        UsageError: there is too little that both have decided.
    """
    stored = stored_pair(reader, parameters)
    paired = stored.paired
    choosing = np.array([is_for_choosing(task) for task in paired.tasks], dtype=np.bool_)
    if len(paired.tasks) < FEWEST_TASKS or choosing.all() or not choosing.any():
        both = f"{parameters['cheap']} and {parameters['strong']}"
        raise UsageError(
            f"{both} have both decided criteria of {len(paired.tasks)} tasks; "
            f"a cascade is evaluated from {FEWEST_TASKS} tasks on, in two halves"
        )
    tried = candidates(paired.of_tasks(choosing), has_repetitions=stored.has_repetitions)
    found = evaluate(paired, tried, stored.costs, resamples)
    ordered = sorted(found, key=lambda each: each.expense)
    measure = "agreement" if bound is None else bound.measure
    return CascadeAnswer(stored, ordered, front(found, measure), picked(found, bound) if bound else None, bound)
