"""Rules to escalate on both halves of the tasks: chosen on one, measured on the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.rules.cascades.candidates import Candidate
from tasks.rules.cascades.figures import Costs, Figures, figures_of
from tasks.rules.cascades.verdicts import PairedVerdicts
from tasks.rules.cascades.when import Flags
from tasks.rules.identity import digest
from tasks.rules.statistics.intervals import FEWEST_OTHERS

_SEED = 20251114


@dataclass(frozen=True)
class Evaluation:
    """A rule with its figures on the tasks where rules are chosen, and on the tasks that were held out."""

    candidate: Candidate
    chosen_on: Figures
    held_out: Figures

    @property
    def expense(self) -> tuple[float, float, int]:
        """What rules are ordered by: cost, or calls of the strong judge and then of the cheap one; then conditions."""
        figures, when = self.chosen_on, self.candidate.when
        conditions = 0 if when is None else when.n_conditions
        if figures.cost_usd.value is not None:
            return figures.cost_usd.value, 0.0, conditions
        calls = np.inf if figures.strong_calls is None else figures.strong_calls
        return calls, figures.cheap_calls, conditions

    def value(self, measure: str) -> float:
        """The estimate of a measure on the tasks where rules are chosen; below all numbers where it is not known."""
        value = self.chosen_on.measured(measure).value
        return -np.inf if value is None else value


@dataclass(frozen=True)
class Bound:
    """What a rule must keep: `measure` (agreement, kappa or ranking) is at least `least`."""

    measure: str
    least: float

    def is_kept(self, evaluation: Evaluation) -> bool:
        """Whether the low end of the measure's interval keeps the bound, on the tasks where rules are chosen."""
        if evaluation.candidate.when is None:
            return True
        figures = evaluation.chosen_on
        low = figures.measured(self.measure).low
        is_known = self.measure != "kappa" or figures.differing >= FEWEST_OTHERS
        return is_known and low is not None and low >= self.least


def for_choosing(tasks: Sequence[str]) -> Flags:
    """On which tasks rules are chosen; on the others they are measured.

    The half whose ids have the lower hashes, so that the order of tasks does not matter; of an odd number the odd task
    is among the others.
    """
    order = sorted(range(len(tasks)), key=lambda place: digest("cascade", _SEED, tasks[place]))
    chosen = np.zeros(len(tasks), dtype=np.bool_)
    chosen[order[: len(tasks) // 2]] = True
    return chosen


def evaluate(
    paired: PairedVerdicts, tried: Sequence[Candidate], costs: Costs, resamples: int = 10_000
) -> list[Evaluation]:
    """The rules with their figures on both halves of the tasks.

    Args:
        paired: the criteria of all tasks.
        resamples: of the tasks, for intervals.
    """
    choosing = for_choosing(paired.tasks)
    halves = [figures_of(paired.of_tasks(half), tried, costs, resamples) for half in (choosing, ~choosing)]
    return [Evaluation(*each) for each in zip(tried, *halves, strict=True)]


def picked(evaluations: Sequence[Evaluation], bound: Bound) -> Evaluation:
    """The cheapest rule that keeps a bound on the tasks where rules are chosen; if none does, the strong judge alone.

    Of rules that cost the same, the one with the fewest conditions.
    """
    return min((each for each in evaluations if bound.is_kept(each)), key=lambda each: each.expense)


def front(evaluations: Sequence[Evaluation], measure: str) -> list[Evaluation]:
    """The rules that no other one beats in both expense and a measure, on the tasks where rules are chosen."""
    best, found = -np.inf, []
    for each in sorted(evaluations, key=lambda each: (each.expense[:2], -each.value(measure), each.expense[2])):
        if each.value(measure) > best:
            best = each.value(measure)
            found.append(each)
    return found
