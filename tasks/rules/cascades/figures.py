"""The figures of rules to escalate: what they cost, and how far their verdicts agree with those of the strong judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
_NO_VERDICT = 3
"""The place, after those of not met, met in part and met, that stands for no verdict."""
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
        n: criteria that the rule can be replayed on.
        n_tasks: tasks.
        differing: tasks with a verdict that is not the strong judge's, or with none.
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
    replays = [_replayed(each, paired) for each in tried]
    place = np.searchsorted(here, paired.task)
    drawn = draws(len(here), resamples, _SEED)
    counts, sums = (
        np.stack([np.bincount(place, each, minlength=len(here)) for each in which], axis=1).astype(np.float64)
        for which in ([each.counted for each in replays], [each.counted & each.escalated for each in replays])
    )
    shares = ratio_intervals(sums, counts, drawn=drawn)
    tables = np.stack([_tables(place, len(here), each, paired.strong) for each in replays], axis=1)
    differing = (np.trace(tables, axis1=2, axis2=3) < counts).sum(axis=0)
    agreed = _agreement(tables, tried, differing, drawn)
    values = [np.where(each.counted, each.values, np.nan) for each in replays]
    ranked = rankings(paired, values, drawn[: min(resamples, _RANKING_RESAMPLES)], here)
    found = []
    for i, candidate in enumerate(tried):
        n, n_tasks = int(counts[:, i].sum()), int((counts[:, i] > 0).sum())
        if not n:
            found.append(_nothing(candidate))
            continue
        share = estimate(sums[:, i].sum() / n, shares[i])
        calls = 1_000 * float(share.value or 0.0), 1_000.0 * _n_cheap(candidate)
        cost = _cost(candidate, share, costs)
        found.append(Figures(n, n_tasks, int(differing[i]), share, *calls, cost, *agreed[i], ranked[i]))
    return found


@dataclass(frozen=True)
class _Replay:
    """What a rule does with criteria: which it can be replayed on, which of them it escalates, and what is said then.

    A value is NaN where nothing is said.
    """

    counted: Flags
    escalated: Flags
    values: Floats


def _replayed(candidate: Candidate, paired: PairedVerdicts) -> _Replay:
    """A rule on criteria.

    A rule that compares repetitions is not known for criteria that the cheap judge was not asked a second time; not
    even where another of its conditions holds, because those alone would make the escalated share too large. The cheap
    judge alone escalates nothing, so it says nothing where it failed.
    """
    when, everything = candidate.when, np.ones(len(paired.strong), dtype=np.bool_)
    first = paired.facts.first[:, 0]
    if when is None:
        return _Replay(everything, everything, paired.strong)
    if not when.n_conditions:
        return _Replay(everything, ~everything, first)
    escalated = np.asarray(np.logical_or.reduce(list(escalations(when, paired.facts).values())))
    counted = paired.has_second if when.disagreement else everything
    return _Replay(counted, escalated, np.where(escalated, paired.strong, first))


def _agreement(
    tables: Floats, tried: Sequence[Candidate], differing: NDArray[np.int64], drawn: NDArray[np.float32]
) -> list[tuple[Estimate, Estimate, Estimate]]:
    """Agreement, kappa and macro-F1 of each rule.

    Agreement is a pooled share and has the interval of one, which covers the truth more often than that of the others.
    No verdict agrees with none.
    """
    pooled = tables.sum(axis=0)
    alike = np.trace(tables, axis1=2, axis2=3)
    ends = [ratio_intervals(alike, tables.sum(axis=(2, 3)), drawn=drawn)]
    ends += agreement_intervals(tables, kappa, _verdicts_f1, drawn=drawn)
    measures = (raw_agreement, kappa, _verdicts_f1)
    n_tasks = (tables.sum(axis=(2, 3)) > 0).sum(axis=0)
    by_measure = [list(map(estimate, measure(pooled), of)) for measure, of in zip(measures, ends, strict=True)]
    found = []
    each_rule = zip(tried, differing, n_tasks, zip(*by_measure, strict=True), strict=True)
    for candidate, n_differing, n, (agreed, *others) in each_rule:
        if candidate.when is None:
            found.append((Estimate(1.0, 1.0, 1.0), *others))
        elif n_differing < FEWEST_OTHERS:
            # So few tasks say nothing of their spread. The low end is then that of a world in which a task that differs
            # differs in all its criteria.
            found.append((agreed._replace(low=1.0 - _highest_share(int(n_differing), int(n)), high=1.0), *others))
        else:
            found.append((agreed, *others))
    return found


def _tables(place: Places, n_tasks: int, replay: _Replay, strong: Floats) -> Floats:
    """Counts of (cascade, strong) by task, shape (n_tasks, 4, 4): not met, met in part, met, no verdict."""
    size = _NO_VERDICT + 1
    said = np.where(np.isnan(replay.values), _NO_VERDICT, 2 * np.nan_to_num(replay.values)).astype(np.int64)
    cell = ((place * size + said) * size + (strong * 2).astype(np.int64))[replay.counted]
    return np.bincount(cell, minlength=n_tasks * size**2).reshape(n_tasks, size, size).astype(np.float64)


def _verdicts_f1(tables: NDArray[Any]) -> Floats:
    """Macro-F1 of the verdicts: no verdict is none of the labels, but it misses the one that the strong judge gave."""
    by_cascade, by_strong = np.asarray(tables).sum(axis=-1), np.asarray(tables).sum(axis=-2)
    n_labels = (by_cascade + by_strong > 0).sum(axis=-1)
    n_verdicts = np.maximum(1, n_labels - (by_cascade[..., _NO_VERDICT] > 0))
    return np.asarray(macro_f1(tables) * (n_labels / n_verdicts))


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
