"""The evaluation of rules to escalate: chosen on one half of the tasks, measured on the other.

The figures are a rule's cost, the agreement of its verdicts with those of the strong judge, and its
effect on the ranking of models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from tasks.rules.cascades.rules import (
    CandidateRule,
    Flags,
    Floats,
    Indices,
    PairedVerdicts,
    escalations,
)
from tasks.rules.identity import digest
from tasks.rules.statistics import intervals
from tasks.rules.statistics.agreement import agreement_intervals, kappa, macro_f1, raw_agreement
from tasks.rules.statistics.intervals import Draws, none_if_nan

Figures = dict[str, Any]
"""The figures of a rule on some tasks, by the names of their columns; None for an unknown one.

`n_paired` are the criteria that the rule can be replayed on, in `n_tasks` tasks; `n_differing` of
these have a verdict other than the strong judge's, or a missing one. `strong_calls`, `cheap_calls`
and the cost `thousand_usd` are for 1,000 verdicts. `agreement`, `kappa` and `macro_f1` are those of
the rule's verdicts with the strong judge's. `ranking_tau` is Kendall's tau-b of the rankings by
cascade and strong judge, unknown with fewer than two models; `score_change` the largest change in a
model's mean score, `changed_model` that model. `n_ranked_responses` are in the ranking: those with
a verdict on each criterion under both. `is_small`: too few tasks, or too few that differ, for
reliable intervals.
"""


_FIRST = (
    "n_paired",
    "n_tasks",
    "strong_calls",
    "cheap_calls",
    "changed_model",
    "n_ranked_responses",
    "is_small",
)
"""The columns before those with intervals."""


def _estimate(name: str, value: Any = np.nan, ends: Any = (np.nan, np.nan)) -> Figures:
    """Return the columns of a figure and of its 95 % interval over tasks, from numbers that may be
    NaN.
    """
    return dict(
        zip(
            (name, f"{name}_ci_low", f"{name}_ci_high"),
            map(none_if_nan, (value, *ends)),
            strict=True,
        )
    )


_SAME = 1e-9
"""Mean scores with a smaller difference are equal: their last digits depend on the order of the
sum.
"""


def _ranking(paired: PairedVerdicts, values: Floats, sampled: Draws, here: Indices) -> Figures:
    """Return the figures on the ranking under a rule, from the responses with a verdict on all
    criteria under the rule.

    Args:
        paired: criteria of some tasks.
        values: of the criteria, NaN if the rule has none.
        sampled: draws of these tasks, shape (n_resamples, n_tasks).
        here: the indices of these tasks, in order.
    """
    weights = sampled.astype(np.float64)
    strong = _means_by_task(paired, np.where(np.isnan(values), np.nan, paired.strong), here)
    known = ~np.isnan(strong)
    scores = _means_by_task(paired, values, here)
    counts = weights @ known
    sampled_means = (
        intervals.quotient(weights @ np.where(known, each, 0.0), counts)
        for each in (scores, strong)
    )
    tau = kendall_tau(intervals.means(scores), intervals.means(strong))
    taus = kendall_tau(*sampled_means)
    taus = taus[~np.isnan(taus)]
    has_ends = len(taus) > 0 and not np.isnan(tau)
    ends = np.quantile(taus, (0.025, 0.975), method="nearest") if has_ends else (np.nan, np.nan)
    n_ranked = int((~np.isnan(paired.scores(values))).sum())
    ranking = {**_estimate("ranking_tau", tau, ends), "n_ranked_responses": n_ranked}
    changes = scores - strong
    means = intervals.means(changes)
    if np.isnan(means).all():
        return {
            **ranking,
            **_estimate("score_change"),
            "changed_model": None,
        }
    most = int(np.nanargmax(np.abs(means)))
    change = _estimate(
        "score_change",
        means[most],
        intervals.mean_intervals(changes[:, [most]], sampled=sampled)[0],
    )
    return {
        **ranking,
        **change,
        "changed_model": paired.models[most],
    }


def kendall_tau(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b of two rankings by scores (1945): 1 for the same, -1 for the reverse,
    ties considered.

    Args:
        one, other: scores, shape (..., n_models), NaN if a model has none.

    Returns:
        The leading shape; NaN if fewer than two models have scores, or one ranking ties them all.
    """
    first, second = np.triu_indices(one.shape[-1], k=1)
    gaps = (each[..., first] - each[..., second] for each in (one, other))
    signs_one, signs_other = (np.where(np.abs(gap) <= _SAME, 0.0, np.sign(gap)) for gap in gaps)
    both = ~np.isnan(signs_one) & ~np.isnan(signs_other)
    signs_one = np.where(both, signs_one, 0.0)
    signs_other = np.where(both, signs_other, 0.0)
    scale = np.sqrt((signs_one**2).sum(axis=-1) * (signs_other**2).sum(axis=-1))
    return intervals.quotient((signs_one * signs_other).sum(axis=-1), scale)


def _means_by_task(paired: PairedVerdicts, values: Floats, here: Indices) -> Floats:
    """Return each model's mean score on each task, shape (n_tasks, n_models); NaN without a
    complete response.
    """
    scores = paired.scores(values)
    complete = ~np.isnan(scores)
    sums, counts = np.zeros((2, len(paired.tasks), len(paired.models)))
    cells = (paired.task_of_response[complete], paired.model_of_response[complete])
    np.add.at(sums, cells, scores[complete])
    np.add.at(counts, cells, 1.0)
    return intervals.quotient(sums, counts)[here]


_NO_VERDICT = 3
"""The index for no verdict, after those for not met, partly met and met."""


@dataclass(frozen=True)
class Costs:
    """Mean cost of a verdict in USD: of one repetition of the cheap judge, and of the strong one;
    None if unknown.
    """

    cheap_usd: float | None
    strong_usd: float | None


def figures_of(
    paired: PairedVerdicts, tried: Sequence[CandidateRule], costs: Costs, resamples: int
) -> list[Figures]:
    """Return the figures of some rules on the criteria of some tasks.

    Args:
        resamples: of the tasks, for intervals.
    """
    here = np.unique(paired.task)
    # Two calls of the cheap judge for a verdict if repetitions are compared.
    n_cheap = [0 if each.when is None else each.when.n_repetitions(2) for each in tried]
    cheap_usd, strong_usd = 1_000 * np.array(
        [costs.cheap_usd, costs.strong_usd], dtype=np.float64
    )  # NaN for None
    fixed = [n * cheap_usd if n else 0.0 for n in n_cheap]
    counted, escalated, values = map(
        np.stack, zip(*(_replayed(each, paired) for each in tried), strict=True)
    )
    task_index = np.searchsorted(here, paired.task)
    sampled = intervals.draws(len(here), resamples)
    values = np.where(counted, values, np.nan)
    of_rules = zip(counted, values, strict=True)
    tables = np.stack(
        [_tables(task_index, len(here), *each, paired.strong) for each in of_rules], axis=1
    )
    counts = tables.sum(axis=(2, 3))
    agreed = _agreement(tables, tried, sampled)
    by_rule = [np.bincount(task_index, each, minlength=len(here)) for each in counted & escalated]
    sums = np.stack(by_rule, axis=1).astype(np.float64)
    n_paired = counts.sum(axis=0)
    ends = intervals.ratio_intervals(sums, counts, sampled=sampled)
    shares = intervals.quotient(sums.sum(axis=0), n_paired)
    return [
        {
            **dict.fromkeys(_FIRST),
            "n_paired": int(n_paired[i]),
            "strong_calls": none_if_nan(1_000 * shares[i]),
            "cheap_calls": 1_000.0 * n_cheap[i],
            **_estimate("escalated_share", shares[i], ends[i]),
            **_estimate(
                "thousand_usd", shares[i] * strong_usd + fixed[i], ends[i] * strong_usd + fixed[i]
            ),
            **agreed[i],
            **_ranking(paired, values[i], sampled[:2_000], here),
        }
        for i in range(len(tried))
    ]


def _replayed(candidate: CandidateRule, paired: PairedVerdicts) -> tuple[Flags, Flags, Floats]:
    """Return the criteria that a rule can be replayed on, those that it escalates, and values (NaN:
    no decision).

    A rule that compares repetitions is unknown for criteria without a second verdict of the cheap
    judge, even if another condition is met: those criteria alone would make the escalated share too
    large. The cheap judge alone escalates no criterion, so it has no decision after a failure.
    """
    when = candidate.when
    everything = np.ones(len(paired.strong), dtype=np.bool_)
    first = paired.facts.first[:, 0]
    if candidate.threshold is not None:
        is_known = ~np.isnan(paired.facts.probability)
        first = np.where(
            is_known, (paired.facts.probability >= candidate.threshold).astype(np.float64), first
        )
    if when is None:
        return everything, everything, paired.strong
    if not when.conditions:
        return everything, ~everything, first
    escalated = np.asarray(np.logical_or.reduce(list(escalations(when, paired.facts).values())))
    counted = paired.has_second if when.disagreement else everything
    return counted, escalated, np.where(escalated, paired.strong, first)


def _agreement(tables: Floats, tried: Sequence[CandidateRule], sampled: Draws) -> list[Figures]:
    """Return agreement, kappa and macro-F1 of each rule, its number of tasks, and the number of
    those that differ.

    Agreement is a pooled share with an interval for shares, which covers the truth more often than
    the others. A missing verdict agrees with no verdict.
    """
    alike = np.trace(tables, axis1=2, axis2=3)
    counts = tables.sum(axis=(2, 3))
    ends = [intervals.ratio_intervals(alike, counts, sampled=sampled)]
    ends += agreement_intervals(tables, kappa, _verdicts_f1, sampled=sampled)
    agreed, kappas, f1s = (
        measure(tables.sum(axis=0)) for measure in (raw_agreement, kappa, _verdicts_f1)
    )
    figures = []
    for i, (candidate, has_cases, differs) in enumerate(
        zip(tried, (counts > 0).T, (alike < counts).T, strict=True)
    ):
        n = int(has_cases.sum())
        n_differing = int(differs.sum())
        if candidate.when is None:
            ends[0][i] = 1.0
        elif n and n_differing < intervals.FEWEST_OTHERS:
            # So few tasks do not show their spread. The low end then assumes that a task that
            # differs does so in all its criteria. The exact interval of a share (Clopper and
            # Pearson, 1934).
            low = (
                0.0
                if n_differing >= n
                else 1.0 - float(betaincinv(n_differing + 1, n - n_differing, 0.975))
            )
            ends[0][i] = low, 1.0
        figures.append(
            {
                "n_tasks": n,
                "n_differing": n_differing,
                "is_small": n < intervals.SMALL or n_differing < intervals.FEW_OTHERS,
                **_estimate("agreement", agreed[i], ends[0][i]),
                **_estimate("kappa", kappas[i], ends[1][i]),
                **_estimate("macro_f1", f1s[i], ends[2][i]),
            }
        )
    return figures


def _tables(
    task_index: Indices, n_tasks: int, counted: Flags, values: Floats, strong: Floats
) -> Floats:
    """Return counts of (cascade, strong) by task, shape (n_tasks, 4, 4): not met, met in part, met,
    no verdict.
    """
    tables = np.zeros((n_tasks, _NO_VERDICT + 1, _NO_VERDICT + 1))
    decided, by_strong = (
        np.nan_to_num(2 * each, nan=_NO_VERDICT).astype(np.int64) for each in (values, strong)
    )
    np.add.at(tables, (task_index[counted], decided[counted], by_strong[counted]), 1.0)
    return tables


def _verdicts_f1(tables: NDArray[Any]) -> Floats:
    """Return the macro-F1 of the verdicts; a missing verdict counts only as a miss of the strong
    judge's label.
    """
    by_cascade = np.asarray(tables).sum(axis=-1)
    by_strong = np.asarray(tables).sum(axis=-2)
    n_labels = (by_cascade + by_strong > 0).sum(axis=-1)
    n_verdicts = np.maximum(1, n_labels - (by_cascade[..., _NO_VERDICT] > 0))
    return np.asarray(macro_f1(tables) * (n_labels / n_verdicts))


MEASURES = {
    "agreement": "agreement",
    "kappa": "kappa",
    "ranking": "ranking_tau",
}
"""Measure of a bound -> its column."""


@dataclass(frozen=True)
class Evaluation:
    """A rule with its figures on the tasks for choosing rules, and on the held-out tasks."""

    candidate: CandidateRule
    chosen_on: Figures
    held_out: Figures

    @property
    def expense(self) -> tuple[float, float, int]:
        """The key that orders rules by expense.

        It is the cost, or else the calls of the strong judge and then of the cheap one; then the
        number of conditions.
        """
        figures = self.chosen_on
        when = self.candidate.when
        conditions = 0 if when is None else len(when.conditions)
        if figures["thousand_usd"] is not None:
            return figures["thousand_usd"], 0.0, conditions
        calls = np.inf if figures["strong_calls"] is None else figures["strong_calls"]
        return calls, figures["cheap_calls"], conditions

    def value(self, measure: str) -> float:
        """Return the estimate of a measure on the tasks for choosing rules.

        It is below all numbers if it is unknown.
        """
        value = self.chosen_on[MEASURES[measure]]
        return -np.inf if value is None else float(value)


@dataclass(frozen=True)
class Bound:
    """The bound that a rule must keep: `measure` (agreement, kappa or ranking) is at least
    `least`.
    """

    measure: str
    least: float

    def is_kept(self, evaluation: Evaluation) -> bool:
        """Return whether the low end of the measure's interval keeps the bound, on the tasks for
        choosing rules.
        """
        if evaluation.candidate.when is None:
            return True
        figures = evaluation.chosen_on
        low = figures[f"{MEASURES[self.measure]}_ci_low"]
        is_known = self.measure != "kappa" or figures["n_differing"] >= intervals.FEWEST_OTHERS
        return is_known and low is not None and low >= self.least


def for_choosing(tasks: Sequence[str]) -> Flags:
    """Return flags of the tasks on which rules are chosen; on the others they are measured.

    They are the half with the lower hashes of ids, so that the order of tasks does not matter; the
    other half is larger if the number is odd.
    """
    order = sorted(
        range(len(tasks)),
        key=lambda task_index: digest("cascade", intervals.SEED, tasks[task_index]),
    )
    chosen = np.zeros(len(tasks), dtype=np.bool_)
    chosen[order[: len(tasks) // 2]] = True
    return chosen


def evaluate(
    paired: PairedVerdicts, tried: Sequence[CandidateRule], costs: Costs, resamples: int = 10_000
) -> list[Evaluation]:
    """Return the rules with their figures on both halves of the tasks.

    Args:
        paired: the criteria of all tasks.
        resamples: of the tasks, for intervals.
    """
    choosing = for_choosing(paired.tasks)
    halves = [
        figures_of(paired.of_tasks(half), tried, costs, resamples) for half in (choosing, ~choosing)
    ]
    return [Evaluation(*each) for each in zip(tried, *halves, strict=True)]


def picked(evaluations: Sequence[Evaluation], bound: Bound) -> Evaluation:
    """Return the cheapest rule that keeps a bound on the tasks for choosing rules.

    If none does, it is the strong judge alone. Of rules with the same cost, it is the one with the
    fewest conditions.
    """
    return min((each for each in evaluations if bound.is_kept(each)), key=lambda each: each.expense)


def front(evaluations: Sequence[Evaluation], measure: str) -> list[Evaluation]:
    """Return the rules that no other rule beats in both expense and a measure, on the tasks for
    choosing rules.
    """
    best = -np.inf
    kept = []
    for each in sorted(
        evaluations, key=lambda each: (each.expense[:2], -each.value(measure), each.expense[2])
    ):
        if each.value(measure) > best:
            best = each.value(measure)
            kept.append(each)
    return kept
