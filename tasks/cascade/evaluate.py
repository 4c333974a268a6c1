"""Evaluating rules to escalate, on what is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.cascade.stored import StoredPair, stored_pair
from tasks.rules.cascades.evaluation import Bound, Evaluation, evaluate, for_choosing, front, picked
from tasks.rules.cascades.rules import candidates
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import SMALL
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

    @property
    def few_tasks(self) -> str:
        """A warning where a half of the tasks is small; empty where none is."""
        n_tasks = len(self.stored.paired.tasks)
        if n_tasks // 2 >= SMALL:
            return ""
        return f"Warning: rules made from {n_tasks // 2} tasks are unreliable; below {SMALL} so are their intervals."


def evaluated(
    reader: Reader, parameters: Mapping[str, Any], bound: Bound | None, resamples: int = 10_000
) -> CascadeAnswer:
    """Evaluate the rules for two judges (`parameters` as in `stored_pair`), and pick the cheapest within a bound.

    Rules are made and chosen on one half of the tasks and measured on the other.

    Raises:
        UsageError: there is too little that both have judged.
    """
    stored = stored_pair(reader, parameters)
    paired = stored.paired
    if len(paired.tasks) < FEWEST_TASKS:
        both = f"{parameters['cheap']} and {parameters['strong']}"
        raise UsageError(
            f"{both} have both judged criteria of {len(paired.tasks)} tasks; "
            f"a cascade is evaluated from {FEWEST_TASKS} tasks on, in two halves"
        )
    tried = candidates(paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=stored.has_repetitions)
    found = evaluate(paired, tried, stored.costs, resamples)
    ordered = sorted(found, key=lambda each: each.expense)
    measure = "agreement" if bound is None else bound.measure
    return CascadeAnswer(stored, ordered, front(found, measure), picked(found, bound) if bound else None, bound)
