"""The figures of rules to escalate: what they cost, and how far their verdicts agree with those of the strong judge."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from tasks.rules.cascades.candidates import Candidate
from tasks.rules.cascades.estimate import Estimate, estimate
from tasks.rules.cascades.ranking import Ranking, rankings
from tasks.rules.cascades.verdicts import PairedVerdicts, Places
from tasks.rules.cascades.when import Flags, Floats, escalations
from tasks.rules.statistics.agreement import agreement_intervals, kappa, macro_f1, raw_agreement
from tasks.rules.statistics.intervals import FEW_OTHERS, FEWEST_OTHERS, SMALL, draws, ratio_intervals

_SEED = 20251114
_MEASURES = (raw_agreement, kappa, macro_f1)
_RANKING_RESAMPLES = 2_000


@dataclass(frozen=True)
class Costs:
    """Mean cost of a verdict in USD: of one repetition of the cheap judge, and of the strong one; None if unknown."""

    cheap_usd: float | None
    strong_usd: float | None


@dataclass(frozen=True)
class Figures:
    """The figures of a rule on some tasks.

    Attributes:
        n: criteria.
        n_tasks: tasks.
        differing: tasks with a verdict that is not the strong judge's.
        share: of the criteria, those that are escalated, from 0 to 1.
        strong_calls, cheap_calls: for 1,000 verdicts; None without criteria.
        cost_usd: of 1,000 verdicts.
        agreement, kappa, macro_f1: of the rule's verdicts with those of the strong judge.
        ranking: what becomes of the ranking of models.
    """

    n: int
    n_tasks: int
    differing: int
    share: Estimate
    strong_calls: float | None
    cheap_calls: float
    cost_usd: Estimate
    agreement: Estimate
    kappa: Estimate
    macro_f1: Estimate
    ranking: Ranking

    def measured(self, measure: str) -> Estimate:
        """The figure that a bound is about: agreement, kappa or ranking."""
        return {"agreement": self.agreement, "kappa": self.kappa, "ranking": self.ranking.tau}[measure]

    @property
    def is_small(self) -> bool:
        """Whether the figures rest on too few tasks, or on too few that differ, for their intervals to be relied on."""
        return self.n_tasks < SMALL or self.differing < FEW_OTHERS


def figures_of(paired: PairedVerdicts, tried: Sequence[Candidate], costs: Costs, resamples: int) -> list[Figures]:
    """The figures of some rules on the criteria of some tasks.

    Args:
        resamples: of the tasks, for intervals.
    """
    here = np.unique(paired.task)
    if not len(here):
        return [_nothing(each) for each in tried]
    escalated = [_escalated(each, paired) for each in tried]
    values = [np.where(which, paired.strong, paired.facts.first[:, 0]) for which in escalated]
    place = np.searchsorted(here, paired.task)
    drawn = draws(len(here), resamples, _SEED)
    counts = np.bincount(place, minlength=len(here)).astype(np.float64)
    sums = np.stack([np.bincount(place, which, minlength=len(here)) for which in escalated], axis=1)
    shares = ratio_intervals(sums.astype(np.float64), np.repeat(counts[:, None], len(tried), axis=1), drawn=drawn)
    tables = np.stack([_tables(place, len(here), value, paired.strong) for value in values], axis=1)
    differing = (np.trace(tables, axis1=2, axis2=3) < counts[:, None]).sum(axis=0)
    agreed = _agreement(tables, tried, differing, drawn)
    ranked = rankings(paired, values, drawn[: min(resamples, _RANKING_RESAMPLES)], here)
    found = []
    for i, candidate in enumerate(tried):
        share = estimate(sums[:, i].sum() / counts.sum(), shares[i])
        n_cheap, cost = _n_cheap(candidate), _cost(candidate, share, costs)
        sizes = len(paired.strong), len(here), int(differing[i])
        calls = 1_000 * float(share.value or 0.0), 1_000.0 * n_cheap
        found.append(Figures(*sizes, share, *calls, cost, *agreed[i], ranked[i]))
    return found


def _agreement(
    tables: Floats, tried: Sequence[Candidate], differing: NDArray[np.int64], drawn: NDArray[np.float32]
) -> list[tuple[Estimate, Estimate, Estimate]]:
    """Agreement, kappa and macro-F1 of each rule.

    Agreement is a pooled share and has the interval of one, which covers the truth more often than that of the others.
    """
    pooled = tables.sum(axis=0)
    alike = np.trace(tables, axis1=2, axis2=3)
    ends = [ratio_intervals(alike, tables.sum(axis=(2, 3)), drawn=drawn)]
    ends += agreement_intervals(tables, kappa, macro_f1, drawn=drawn)
    by_measure = [list(map(estimate, measure(pooled), of)) for measure, of in zip(_MEASURES, ends, strict=True)]
    found = []
    for candidate, n_differing, (agreed, *others) in zip(tried, differing, zip(*by_measure, strict=True), strict=True):
        if candidate.when is None:
            found.append((Estimate(1.0, 1.0, 1.0), *others))
        elif n_differing < FEWEST_OTHERS:
            # So few tasks say nothing of their spread. The low end is then that of a world in which a task that differs
            # differs in all its criteria.
            found.append((agreed._replace(low=1.0 - _highest_share(int(n_differing), len(tables)), high=1.0), *others))
        else:
            found.append((agreed, *others))
    return found


def _escalated(candidate: Candidate, paired: PairedVerdicts) -> Flags:
    if candidate.when is None:
        return np.ones(len(paired.strong), dtype=np.bool_)
    return np.asarray(np.logical_or.reduce(list(escalations(candidate.when, paired.facts).values())))


def _tables(place: Places, n_tasks: int, values: Floats, strong: Floats) -> Floats:
    """Counts of (cascade, strong) by task, shape (n_tasks, 3, 3): not met, met in part, met."""
    cell = (place * 3 + (values * 2).astype(np.int64)) * 3 + (strong * 2).astype(np.int64)
    return np.bincount(cell, minlength=n_tasks * 9).reshape(n_tasks, 3, 3).astype(np.float64)


def _n_cheap(candidate: Candidate) -> int:
    """How often a rule asks the cheap judge: twice where repetitions are compared."""
    return 0 if candidate.when is None else candidate.when.n_repetitions(2)


def _cost(candidate: Candidate, share: Estimate, costs: Costs) -> Estimate:
    """USD of 1,000 verdicts."""
    n_cheap = _n_cheap(candidate)
    if costs.strong_usd is None or (n_cheap and costs.cheap_usd is None):
        return Estimate()
    return share.times(1_000 * costs.strong_usd, 1_000 * n_cheap * (costs.cheap_usd or 0.0))


def _nothing(candidate: Candidate) -> Figures:
    unknown = Estimate()
    return Figures(0, 0, 0, unknown, None, 1_000.0 * _n_cheap(candidate), *(unknown,) * 4, Ranking())


def _highest_share(n_yes: int, n: int) -> float:
    """The high end of the exact 95 % interval of a share (Clopper and Pearson, 1934)."""
    return 1.0 if n_yes >= n else float(betaincinv(n_yes + 1, n - n_yes, 0.975))
