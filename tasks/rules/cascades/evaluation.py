"""The evaluation of rules to escalate: chosen on one half of the tasks, measured on the other.

The figures are a rule's cost, the agreement of its verdicts with those of the strong judge, and its
effect on the ranking of models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them
from numpy.typing import NDArray

from tasks.rules.cascades.rules import (
    CandidateRule,
    PairedVerdicts,
    escalations,
)
from tasks.rules.identity import digest
from tasks.rules.statistics import intervals
from tasks.rules.statistics.agreement import agreement_intervals, kappa, macro_f1, raw_agreement
from tasks.rules.statistics.intervals import Draws, Flags, Floats, Ints, none_if_nan

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


_RANKING_RESAMPLES = 2_000
_SAME = 1e-9
"""Mean scores with a smaller difference are equal: their last digits depend on the order of the
sum.
"""
_NO_VERDICT = 3
"""The index for no verdict, after those for not met, partly met and met."""


def _estimate(name: str, value: Any, ends: Any) -> Figures:
    """Return the columns of a figure and of its interval, from numbers that may be NaN."""
    low, high = ends
    return {
        name: none_if_nan(value),
        f"{name}_ci_low": none_if_nan(low),
        f"{name}_ci_high": none_if_nan(high),
    }


@dataclass(frozen=True)
class _Replay:
    """A rule replayed on criteria; all arrays have the shape (n_criteria,).

    Attributes:
        is_counted: true for the criteria that it can be replayed on.
        is_escalated: true for those that it escalates.
        values: its verdicts, NaN without one.
    """

    is_counted: Flags
    is_escalated: Flags
    values: Floats


def _ranking(paired: PairedVerdicts, values: Floats, sampled: Draws, tasks: Ints) -> Figures:
    """Return the figures on the ranking of models under a rule.

    They are computed from the responses with a verdict on all criteria under the rule.

    Args:
        paired: criteria of some tasks.
        values: of the criteria, NaN if the rule has none.
        sampled: draws of these tasks, shape (n_resamples, n_tasks).
        tasks: the indices of these tasks, in order.
    """
    strong_values = np.where(np.isnan(values), np.nan, paired.strong)
    strong_scores = _means_by_task(paired, strong_values, tasks)  # (n_tasks, n_models)
    scores = _means_by_task(paired, values, tasks)
    tau = kendall_tau(intervals.means(scores), intervals.means(strong_scores))
    taus = kendall_tau(
        _resampled_means(scores, sampled),
        _resampled_means(strong_scores, sampled),
    )
    taus = taus[~np.isnan(taus)]
    ends = np.full(2, np.nan)
    if len(taus) > 0 and not np.isnan(tau):
        ends = np.quantile(taus, (0.025, 0.975), method="nearest")
    ranking = _estimate("ranking_tau", tau, ends)
    ranking["n_ranked_responses"] = int((~np.isnan(paired.scores(values))).sum())
    ranking |= _largest_change(scores - strong_scores, paired.models, sampled)
    return ranking


def _resampled_means(scores: Floats, sampled: Draws) -> Floats:
    """Return each model's mean score in each resample, shape (n_resamples, n_models)."""
    weights = sampled.astype(float)
    is_scored = ~np.isnan(scores)
    return intervals.quotient(weights @ np.where(is_scored, scores, 0.0), weights @ is_scored)


def _largest_change(changes: Floats, models: Sequence[str], sampled: Draws) -> Figures:
    """Return the largest change in a model's mean score, from changes by task and model."""
    means = intervals.means(changes)
    if np.isnan(means).all():
        return _estimate("score_change", np.nan, (np.nan, np.nan)) | {"changed_model": None}
    model = int(np.nanargmax(np.abs(means)))
    (ends,) = intervals.mean_intervals(changes[:, [model]], sampled=sampled)
    return _estimate("score_change", means[model], ends) | {"changed_model": models[model]}


def kendall_tau(scores_a: Floats, scores_b: Floats) -> Floats:
    """Return Kendall's tau-b of two rankings by scores (1945), ties considered.

    1 for the same, -1 for the reverse.

    Args:
        scores_a, scores_b: shape (..., n_models), NaN if a model has none.

    Returns:
        The leading shape; NaN if fewer than two models have scores, or one ranking ties them all.
    """
    signs_a = _order_signs(scores_a)
    signs_b = _order_signs(scores_b)
    is_missing = np.isnan(signs_a) | np.isnan(signs_b)
    signs_a[is_missing] = 0.0
    signs_b[is_missing] = 0.0
    scale = np.sqrt((signs_a**2).sum(axis=-1) * (signs_b**2).sum(axis=-1))
    return intervals.quotient((signs_a * signs_b).sum(axis=-1), scale)


def _order_signs(scores: Floats) -> Floats:
    """Return 1, -1 or 0 (a tie) for each pair of models, NaN if one has no score."""
    index_a, index_b = np.triu_indices(scores.shape[-1], k=1)
    gaps = scores[..., index_a] - scores[..., index_b]
    return np.where(np.abs(gaps) <= _SAME, 0.0, np.sign(gaps))


def _means_by_task(paired: PairedVerdicts, values: Floats, tasks: Ints) -> Floats:
    """Return each model's mean score on each task; NaN without a complete response."""
    scores = paired.scores(values)
    is_complete = ~np.isnan(scores)
    sums = np.zeros((len(paired.tasks), len(paired.models)))
    counts = np.zeros(sums.shape)
    cells = (paired.task_of_response[is_complete], paired.model_of_response[is_complete])
    np.add.at(sums, cells, scores[is_complete])
    np.add.at(counts, cells, 1.0)
    return intervals.quotient(sums, counts)[tasks]


@dataclass(frozen=True)
class Costs:
    """Mean cost of a verdict in USD: of one repetition of the cheap judge, and of the strong one;
    None if unknown.
    """

    cheap_usd: float | None
    strong_usd: float | None


def figures_of(
    paired: PairedVerdicts,
    rules: Sequence[CandidateRule],
    costs: Costs,
    resamples: int,
) -> list[Figures]:
    """Return the figures of some rules on the criteria of some tasks.

    Args:
        resamples: of the tasks, for intervals.
    """
    tasks = np.unique(paired.task)
    n_tasks = len(tasks)
    task_index = np.searchsorted(tasks, paired.task)
    sampled = intervals.draws(n_tasks, resamples)
    replays = [_replayed(candidate, paired) for candidate in rules]
    tables = _tables(replays, paired.strong, task_index, n_tasks)
    n_escalated = np.zeros((n_tasks, len(rules)))
    for index, replay in enumerate(replays):
        is_escalated = replay.is_counted & replay.is_escalated
        n_escalated[:, index] = np.bincount(task_index, is_escalated, minlength=n_tasks)
    counts = tables.sum(axis=(2, 3))
    share_ends = intervals.ratio_intervals(n_escalated, counts, sampled=sampled)
    shares = intervals.quotient(n_escalated.sum(axis=0), counts.sum(axis=0))
    agreement = _agreement(tables, rules, sampled)
    rows = []
    for index, candidate in enumerate(rules):
        calls = _calls(candidate, shares[index], share_ends[index], costs)
        values = replays[index].values
        ranking = _ranking(paired, values, sampled[:_RANKING_RESAMPLES], tasks)
        rows.append(calls | agreement[index] | ranking)
    return rows


def _calls(candidate: CandidateRule, share: float, share_ends: Floats, costs: Costs) -> Figures:
    """Return a rule's calls and their cost, from the share of criteria that it escalates."""
    n_cheap = 0
    if candidate.when is not None:
        # Two calls of the cheap judge for a verdict if repetitions are compared.
        n_cheap = candidate.when.n_repetitions(2)
    # NumPy makes NaN of None.
    cheap_usd, strong_usd = 1_000 * np.array([costs.cheap_usd, costs.strong_usd], dtype=float)
    # Without a call of the cheap judge its price does not matter, even if it is unknown.
    fixed_usd = n_cheap * cheap_usd if n_cheap else 0.0
    return {
        "strong_calls": none_if_nan(1_000 * share),
        "cheap_calls": 1_000.0 * n_cheap,
        **_estimate("escalated_share", share, share_ends),
        **_estimate(
            "thousand_usd", share * strong_usd + fixed_usd, share_ends * strong_usd + fixed_usd
        ),
    }


def _replayed(candidate: CandidateRule, paired: PairedVerdicts) -> _Replay:
    """Replay a rule on criteria.

    A rule that compares repetitions is unknown for criteria without a second verdict of the cheap
    judge, even if another condition is met: those criteria alone would make the escalated share too
    large. The cheap judge alone escalates no criterion, so it has no decision after a failure.
    """
    when = candidate.when
    all_criteria = np.ones(len(paired.strong), dtype=bool)
    if when is None:
        return _Replay(all_criteria, all_criteria, paired.strong)
    values = paired.facts.first[:, 0]
    if candidate.threshold is not None:
        probability = paired.facts.probability
        is_met = (probability >= candidate.threshold).astype(float)
        values = np.where(np.isnan(probability), values, is_met)
    if not when.conditions:
        return _Replay(all_criteria, ~all_criteria, values)
    reasons = list(escalations(when, paired.facts).values())
    is_escalated = np.logical_or.reduce(reasons)
    is_counted = paired.has_second if when.disagreement else all_criteria
    values = np.where(is_escalated, paired.strong, values)
    return _Replay(is_counted, is_escalated, np.where(is_counted, values, np.nan))


def _agreement(tables: Floats, rules: Sequence[CandidateRule], sampled: Draws) -> list[Figures]:
    """Return agreement, kappa and macro-F1 of each rule, and its numbers of criteria and tasks.

    Agreement is a pooled share with an interval for shares, which covers the truth more often than
    the others. A missing verdict agrees with no verdict.

    Args:
        tables: shape (n_tasks, n_rules, 4, 4).
        rules: the rules, in the order of the tables.
        sampled: draws of the tasks.
    """
    n_agreeing = np.trace(tables, axis1=2, axis2=3)  # (n_tasks, n_rules)
    counts = tables.sum(axis=(2, 3))
    agreement_ends = intervals.ratio_intervals(n_agreeing, counts, sampled=sampled)
    kappa_ends, f1_ends = agreement_intervals(tables, kappa, _verdicts_f1, sampled=sampled)
    rows = []
    for index, candidate in enumerate(rules):
        total = tables[:, index].sum(axis=0)
        n_tasks = int((counts[:, index] > 0).sum())
        n_differing = int((n_agreeing[:, index] < counts[:, index]).sum())
        ends = agreement_ends[index]
        if candidate.when is None:
            ends = np.ones(2)
        elif n_tasks and n_differing < intervals.FEWEST_DIFFERING:
            ends = _exact_interval(n_tasks, n_differing)
        row: Figures = {
            "n_paired": int(total.sum()),
            "n_tasks": n_tasks,
            "n_differing": n_differing,
            "is_small": n_tasks < intervals.SMALL or n_differing < intervals.FEW_DIFFERING,
        }
        row |= _estimate("agreement", raw_agreement(total), ends)
        row |= _estimate("kappa", kappa(total), kappa_ends[index])
        row |= _estimate("macro_f1", _verdicts_f1(total), f1_ends[index])
        rows.append(row)
    return rows


def _exact_interval(n_tasks: int, n_differing: int) -> Floats:
    """Return the interval of the share of agreeing tasks, if few differ.

    It is the exact interval of a share (Clopper and Pearson, 1934), because so few tasks do not
    show their spread. A task that differs is taken to do so in all its criteria.
    """
    low = 0.0
    if n_differing < n_tasks:
        low = 1.0 - float(
            scipy.special.betaincinv(n_differing + 1, n_tasks - n_differing, intervals.UPPER)
        )
    return np.array([low, 1.0])


def _tables(replays: Sequence[_Replay], strong: Floats, task_index: Ints, n_tasks: int) -> Floats:
    """Return counts of (cascade, strong) by task and rule, shape (n_tasks, n_rules, 4, 4).

    The labels are not met, met in part, met, no verdict.
    """
    n_labels = _NO_VERDICT + 1
    tables = np.zeros((n_tasks, len(replays), n_labels, n_labels))
    by_strong = _label_index(strong)
    for rule, replay in enumerate(replays):
        cells = np.stack([task_index, _label_index(replay.values), by_strong])
        np.add.at(tables[:, rule], tuple(cells[:, replay.is_counted]), 1.0)
    return tables


def _label_index(values: Floats) -> Ints:
    return np.nan_to_num(2 * values, nan=_NO_VERDICT).astype(np.int64)


def _verdicts_f1(tables: NDArray[Any]) -> Floats:
    """Return the mean F1 of the labels that are verdicts.

    A missing verdict counts only as a miss of the strong judge's label.
    """
    by_cascade = tables.sum(axis=-1)
    by_strong = tables.sum(axis=-2)
    n_used = (by_cascade + by_strong > 0).sum(axis=-1)
    # `macro_f1` counts the label "no verdict" too, with an F1 of 0.
    n_used_verdicts = np.maximum(1, n_used - (by_cascade[..., _NO_VERDICT] > 0))
    return np.asarray(macro_f1(tables) * (n_used / n_used_verdicts))


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
        n_conditions = 0 if when is None else len(when.conditions)
        if figures["thousand_usd"] is not None:
            return figures["thousand_usd"], 0.0, n_conditions
        calls = figures["strong_calls"]
        if calls is None:
            calls = np.inf
        return calls, figures["cheap_calls"], n_conditions

    def value(self, measure: str) -> float:
        """Return the estimate of a measure on the tasks for choosing rules.

        It is below all numbers if it is unknown.
        """
        value = self.chosen_on[MEASURES[measure]]
        return -np.inf if value is None else float(value)


@dataclass(frozen=True)
class Bound:
    """The bound that a rule must keep: a measure (agreement, kappa or ranking) is at least
    `lowest`.
    """

    measure: str
    lowest: float

    def is_kept(self, evaluation: Evaluation) -> bool:
        """Return whether the measure's interval on the tasks for choosing rules begins at `lowest`
        or above.

        The strong judge alone keeps every bound. If too few tasks differ, other rules keep no bound
        of kappa.
        """
        if evaluation.candidate.when is None:
            return True
        figures = evaluation.chosen_on
        if self.measure == "kappa" and figures["n_differing"] < intervals.FEWEST_DIFFERING:
            return False
        low = figures[f"{MEASURES[self.measure]}_ci_low"]
        return low is not None and low >= self.lowest


def for_choosing(tasks: Sequence[str]) -> Flags:
    """Return flags of the tasks on which rules are chosen; on the others they are measured.

    They are the half with the lower hashes of ids, so that the order of tasks does not matter; the
    other half is larger if the number is odd.
    """
    hashes = [digest("cascade", intervals.SEED, task_id) for task_id in tasks]
    is_for_choosing = np.zeros(len(tasks), dtype=bool)
    is_for_choosing[np.argsort(hashes)[: len(tasks) // 2]] = True
    return is_for_choosing


def evaluate(
    paired: PairedVerdicts,
    rules: Sequence[CandidateRule],
    costs: Costs,
    resamples: int,
) -> list[Evaluation]:
    """Return the rules with their figures on both halves of the tasks.

    Args:
        paired: the criteria of all tasks.
        resamples: of the tasks, for intervals.
    """
    is_for_choosing = for_choosing(paired.tasks)
    chosen_on = figures_of(paired.of_tasks(is_for_choosing), rules, costs, resamples)
    held_out = figures_of(paired.of_tasks(~is_for_choosing), rules, costs, resamples)
    return list(map(Evaluation, rules, chosen_on, held_out))


def picked(evaluations: Sequence[Evaluation], bound: Bound) -> Evaluation:
    """Return the cheapest rule that keeps a bound on the tasks for choosing rules.

    If none does, it is the strong judge alone. Of rules with the same cost, it is the one with the
    fewest conditions.
    """
    return min(filter(bound.is_kept, evaluations), key=lambda evaluation: evaluation.expense)


def front(evaluations: Sequence[Evaluation], measure: str) -> list[Evaluation]:
    """Return the rules that no other rule beats in both expense and a measure.

    Both are those on the tasks for choosing rules.
    """

    def front_key(evaluation: Evaluation) -> tuple[Any, float, int]:
        *expense, n_conditions = evaluation.expense
        return expense, -evaluation.value(measure), n_conditions

    largest = -np.inf
    unbeaten = []
    for evaluation in sorted(evaluations, key=front_key):
        value = evaluation.value(measure)
        if value > largest:
            largest = value
            unbeaten.append(evaluation)
    return unbeaten
