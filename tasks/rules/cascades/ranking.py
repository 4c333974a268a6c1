"""How a cascade's verdicts change the ranking of models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.rules.cascades.estimate import UNKNOWN, Estimate, estimate
from tasks.rules.cascades.verdicts import PairedVerdicts, Places
from tasks.rules.cascades.when import Floats
from tasks.rules.statistics.intervals import SMALL, mean_intervals
from tasks.rules.statistics.studentised import Draws

_SAME = 1e-9
"""Mean scores that differ by no more are equal: their last digits depend on the order of the sum."""
_TAILS = (0.025, 0.975)


@dataclass(frozen=True)
class Ranking:
    """Kendall's tau-b of the rankings by cascade and strong judge, and the largest change in a model's mean score.

    Not known with fewer than two models, or where no response has all its criteria. It rests on the responses of some
    tasks that have a verdict on each criterion under both.
    """

    tau: Estimate = UNKNOWN
    change: Estimate = UNKNOWN
    changed: str | None = None
    n_responses: int = 0
    n_tasks: int = 0

    @property
    def is_small(self) -> bool:
        """Whether it rests on too few tasks for its intervals to be relied on."""
        return self.n_tasks < SMALL


def rankings(paired: PairedVerdicts, values: Sequence[Floats], drawn: Draws, here: Places) -> list[Ranking]:
    """The rankings under several rules.

    Args:
        paired: criteria of some tasks.
        values: of each rule the values of the criteria, NaN where it has none.
        drawn: draws of these tasks, shape (n_resamples, n_tasks).
        here: the places of these tasks, in order.
    """
    weights = drawn.astype(np.float64)
    return [_ranking(paired, each, weights, drawn, here) for each in values]


def _ranking(
    paired: PairedVerdicts, values: Floats, weights: Floats, drawn: Draws, here: Places
) -> Ranking:  # fmt: skip
    """One rule's. Both judges' scores are of the responses that have all criteria under the rule."""
    strong = _means_by_task(paired, np.where(np.isnan(values), np.nan, paired.strong), here)
    known = ~np.isnan(strong)
    if not known.any():
        return Ranking()
    scores = _means_by_task(paired, values, here)
    counts = weights @ known
    drawn_scores, strong_drawn = (_ratio(weights @ np.where(known, each, 0.0), counts) for each in (scores, strong))
    tau = kendall_tau(_mean(scores), _mean(strong))
    taus = kendall_tau(drawn_scores, strong_drawn)
    taus = taus[~np.isnan(taus)]
    has_ends = len(taus) > 0 and not np.isnan(tau)
    ends = np.quantile(taus, _TAILS, method="nearest") if has_ends else (np.nan, np.nan)
    n_responses = int((~np.isnan(paired.scores(values))).sum())
    change = _change(paired, scores - strong, drawn)
    return Ranking(estimate(tau, ends), *change, n_responses, int(known.any(axis=1).sum()))


def kendall_tau(one: Floats, other: Floats) -> Floats:
    """Kendall's tau-b of two rankings by scores (Kendall, 1945): 1 for the same, -1 for the reverse, ties considered.

    Args:
        one, other: scores, shape (..., n_models), NaN where a model has none.

    Returns:
        The leading shape; NaN where fewer than two models have scores, or one ranking ties them all.
    """
    first, second = np.triu_indices(one.shape[-1], k=1)
    signs_one, signs_other = (_signs(each[..., first] - each[..., second]) for each in (one, other))
    both = ~np.isnan(signs_one) & ~np.isnan(signs_other)
    signs_one, signs_other = np.where(both, signs_one, 0.0), np.where(both, signs_other, 0.0)
    scale = np.sqrt((signs_one**2).sum(axis=-1) * (signs_other**2).sum(axis=-1))
    return _ratio((signs_one * signs_other).sum(axis=-1), scale)


def _signs(differences: Floats) -> Floats:
    return np.where(np.abs(differences) <= _SAME, 0.0, np.sign(differences))


def _means_by_task(paired: PairedVerdicts, values: Floats, here: Places) -> Floats:
    """The mean score of each model's complete responses to each task, shape (n_tasks, n_models), NaN without one."""
    scores = paired.scores(values)
    cell = paired.task_of_response * len(paired.models) + paired.model_of_response
    complete = ~np.isnan(scores)
    size = len(paired.tasks) * len(paired.models)
    sums = np.bincount(cell[complete], scores[complete], minlength=size).astype(np.float64)
    counts = np.bincount(cell[complete], minlength=size).astype(np.float64)
    return _ratio(sums, counts).reshape(len(paired.tasks), len(paired.models))[here]


def _mean(by_task: Floats) -> Floats:
    known = ~np.isnan(by_task)
    return _ratio(np.where(known, by_task, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def _change(paired: PairedVerdicts, changes: Floats, drawn: Draws) -> tuple[Estimate, str | None]:
    """The largest change in a model's mean score, with its sign, and the model."""
    means = _mean(changes)
    if np.isnan(means).all():
        return Estimate(), None
    most = int(np.nanargmax(np.abs(means)))
    return estimate(means[most], mean_intervals(changes[:, most : most + 1], drawn=drawn)[0]), paired.models[most]


def _ratio(over: Floats, under: Floats) -> Floats:
    quotient: Floats = np.full(np.broadcast_shapes(np.shape(over), np.shape(under)), np.nan)
    np.divide(over, under, out=quotient, where=np.asarray(under) > 0)
    return quotient
