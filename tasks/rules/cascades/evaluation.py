"""What rules to escalate cost, and how far their verdicts agree with those of the strong judge."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from tasks.rules.cascades.candidates import Candidate
from tasks.rules.cascades.ranking import Ranking, rankings
from tasks.rules.cascades.verdicts import PairedVerdicts, Places
from tasks.rules.cascades.when import Flags, Floats, escalations
from tasks.rules.identity import digest
from tasks.rules.statistics.agreement import agreement_intervals, kappa, macro_f1, raw_agreement
from tasks.rules.statistics.intervals import FEW_OTHERS, FEWEST_OTHERS, SMALL, draws, ratio_intervals

_SEED = 20251114
_NONE = (None, None)
Interval = tuple[float | None, float | None]


@dataclass(frozen=True)
class Costs:
    """Mean cost of a verdict in USD: of one repetition of the cheap judge, and of the strong one; None if unknown."""

    cheap_usd: float | None
    strong_usd: float | None


@dataclass(frozen=True)
class Figures:
    """The figures of a rule on some tasks, each with its interval over them; None where it is not known.

    Costs are for 1,000 verdicts. `differing` counts the tasks with a verdict that is not the strong judge's. `tau` is
    Kendall's tau-b of the rankings of models by their mean score; `change` is the largest change in a model's mean
    score, with its sign, of the model `changed`.
    """

    n: int
    n_tasks: int
    differing: int
    share: float | None
    share_ci: Interval
    strong_calls: float | None
    cheap_calls: float
    cost_usd: float | None
    cost_ci: Interval
    agreement: float | None
    agreement_ci: Interval
    kappa: float | None
    kappa_ci: Interval
    macro_f1: float | None
    macro_f1_ci: Interval
    ranking: Ranking

    @property
    def is_small(self) -> bool:
        """Whether the figures rest on too few tasks, or on too few that differ, for their intervals to be relied on."""
        return self.n_tasks < SMALL or self.differing < FEW_OTHERS


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
        if figures.cost_usd is not None:
            return figures.cost_usd, 0.0, conditions
        return figures.strong_calls or 0.0, figures.cheap_calls, conditions

    def value(self, measure: str) -> float:
        """The estimate of a measure on the tasks where rules are chosen; below all numbers where it is not known."""
        figures = self.chosen_on
        value = {"agreement": figures.agreement, "kappa": figures.kappa, "ranking": figures.ranking.tau}[measure]
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
        low = {
            "agreement": figures.agreement_ci[0],
            "kappa": figures.kappa_ci[0] if figures.differing >= FEWEST_OTHERS else None,
            "ranking": figures.ranking.tau_ci[0],
        }[self.measure]
        return low is not None and low >= self.least


def is_for_choosing(task_id: str) -> bool:
    """Whether rules are chosen on a task; on the others they are measured. By a hash of the id: about half are."""
    return int(digest("cascade", _SEED, task_id)[:8], 16) % 2 == 0


def evaluate(
    paired: PairedVerdicts, tried: Sequence[Candidate], costs: Costs, resamples: int = 10_000
) -> list[Evaluation]:
    """The rules with their figures on both halves of the tasks.

    Args:
        paired: the criteria of all tasks.
        resamples: of the tasks, for intervals.
    """
    choosing = np.array([is_for_choosing(task) for task in paired.tasks], dtype=np.bool_)
    halves = [_figures(paired.of_tasks(half), tried, costs, resamples) for half in (choosing, ~choosing)]
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


def _figures(paired: PairedVerdicts, tried: Sequence[Candidate], costs: Costs, resamples: int) -> list[Figures]:
    here = np.unique(paired.task)
    if not len(here):
        return [_nothing(each, costs) for each in tried]
    escalated = [_escalated(each, paired) for each in tried]
    values = [np.where(which, paired.strong, paired.facts.first[:, 0]) for which in escalated]
    place = np.searchsorted(here, paired.task)
    drawn = draws(len(here), resamples, _SEED)
    counts = np.bincount(place, minlength=len(here)).astype(np.float64)
    sums = np.stack([np.bincount(place, which, minlength=len(here)) for which in escalated], axis=1).astype(np.float64)
    shares = ratio_intervals(sums, np.repeat(counts[:, None], len(tried), axis=1), drawn=drawn)
    tables = np.stack([_tables(place, len(here), value, paired.strong) for value in values], axis=1)
    pooled = tables.sum(axis=0)
    measures = (raw_agreement, kappa, macro_f1)
    estimates = [measure(pooled) for measure in measures]
    intervals = agreement_intervals(tables, *measures, drawn=drawn)
    ranked = rankings(paired, values, drawn[: min(resamples, 2_000)], here)
    found = []
    for i, candidate in enumerate(tried):
        differing = int((np.trace(tables[:, i], axis1=1, axis2=2) < counts).sum())
        agreed = _known(intervals[0][i])
        if candidate.when is not None and differing < FEWEST_OTHERS:
            # So few tasks say nothing of their spread: the exact bound on the share of such tasks holds in any case.
            agreed = (min(agreed[0] or 0.0, 1.0 - _highest_share(differing, len(here))), agreed[1])
        share = float(sums[:, i].sum() / counts.sum())
        found.append(
            Figures(
                len(paired.strong), len(here), differing, share, _known(shares[i]),
                *_expenses(candidate, share, _known(shares[i]), costs),
                _number(estimates[0][i]), agreed, _number(estimates[1][i]), _known(intervals[1][i]),
                _number(estimates[2][i]), _known(intervals[2][i]), ranked[i],
            )  # fmt: skip
        )
    return found


def _escalated(candidate: Candidate, paired: PairedVerdicts) -> Flags:
    if candidate.when is None:
        return np.ones(len(paired.strong), dtype=np.bool_)
    return np.asarray(np.logical_or.reduce(list(escalations(candidate.when, paired.facts).values())))


def _tables(place: Places, n_tasks: int, values: Floats, strong: Floats) -> Floats:
    """Counts of (cascade, strong) by task, shape (n_tasks, 3, 3): not met, met in part, met."""
    cell = (place * 3 + (values * 2).astype(np.int64)) * 3 + (strong * 2).astype(np.int64)
    return np.bincount(cell, minlength=n_tasks * 9).reshape(n_tasks, 3, 3).astype(np.float64)


def _expenses(
    candidate: Candidate, share: float, share_ci: Interval, costs: Costs
) -> tuple[float, float, float | None, Interval]:
    """Strong calls, cheap calls, USD and its interval, of 1,000 verdicts."""
    n_cheap = 0 if candidate.when is None else candidate.when.n_repetitions(2)
    strong, cheap = 1_000 * share, 1_000.0 * n_cheap
    if costs.strong_usd is None or (n_cheap and costs.cheap_usd is None):
        return strong, cheap, None, _NONE
    fixed, each = n_cheap * (costs.cheap_usd or 0.0), costs.strong_usd
    low, high = (None if end is None else 1_000 * (fixed + end * each) for end in share_ci)
    return strong, cheap, 1_000 * (fixed + share * each), (low, high)


def _nothing(candidate: Candidate, costs: Costs) -> Figures:
    _, cheap, _, _ = _expenses(candidate, 0.0, _NONE, costs)
    unknown = Ranking(None, _NONE, None, _NONE, None)
    return Figures(0, 0, 0, None, _NONE, None, cheap, None, _NONE, None, _NONE, None, _NONE, None, _NONE, unknown)


def _highest_share(n_yes: int, n: int) -> float:
    """The high end of the exact 95 % interval of a share (Clopper and Pearson, 1934)."""
    return 1.0 if n_yes >= n else float(betaincinv(n_yes + 1, n - n_yes, 0.975))


def _known(ends: Floats) -> Interval:
    return _number(ends[0]), _number(ends[1])


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
