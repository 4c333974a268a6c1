"""Control limits: tests of a judge's agreement with its first verdicts against earlier nights.

For single nights, tonight's agreements are predicted from those of the earlier nights
(beta-binomial, Jeffreys' prior). The limit is the 0.135 % quantile of the prediction, where three
standard deviations are in a normal distribution; there is no upper one, because only low agreement
is a fault. Shewhart's limit for proportions is not used: agreement is close to 1, where the
distribution is far from normal, so up to 3 % of a stable judge's nights would be out of control.
The prediction includes the uncertainty of the centre.

The joint limit holds over all nights: it finds changes that are too small for single nights. If the
judge changed before some night, the agreements since then and before then have different shares.
The evidence for that is the Bayes factor of two shares against one (beta-binomial, Jeffreys'
prior), and evidence for a change is the sum of these factors over all nights at which it may have
begun (Shiryaev and Roberts; as an e-detector: Shin, Ramdas and Rinaldo, "E-detectors: a
nonparametric framework for sequential change detection", 2024). As long as the judge is steady, a
factor has a mean of 1, so that the sum has a mean of at most n after n nights, and the chance that
it ever reaches 365 / `YEARLY_FALSE_ALARMS` in a year is at most `YEARLY_FALSE_ALARMS` (Doob). The
mean is exactly 1 for independent decisions with a share from the prior. For given shares, and for
decisions that go together, whose numbers are divided by a design effect, simulations show it
(`tests/benchmarks/drift_detection.py`).

The assumption: given its first verdicts, a steady judge's nights are independent and have the same
distribution, and tasks are independent of each other within a night. Verdicts of a task need not
be. So noise of the first verdicts lowers the agreement of all nights alike, and is no change.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them

from tasks.rules.statistics.intervals import Floats

NightRow = Mapping[str, Any]
"""A night of a judge on its control set."""
METHOD = "beta-binomial-2"
FALSE_ALARMS = 0.00135
"""The probability that a stable judge falls below its limit in a night."""
YEARLY_FALSE_ALARMS = 0.05
"""The probability that a stable judge falls below its joint limit in a year of 365 nights."""
_PRIOR = 0.5
_ONE_SIDED_5_PERCENT = 1.645
"""Quantile of the normal distribution."""
_LEAST_DESIGN_EFFECT = 0.5
"""Lower bound of the design effect, because its estimate from few changes may be too small."""


def limits(nights: Iterable[NightRow]) -> list[dict[str, Any]]:
    """Return the limits of each night from the earlier ones in control, in the order of their
    labels.

    A night that is out of control does not count for later ones. The result depends only on the
    nights, not on the order in which they were judged: a night that is judged late changes the
    limits of later nights.

    Args:
        nights: a judge's decisions on its control set: the label of the `night`, `n_decided`,
            `n_agreeing` (with the first decisions), and the bounds that are known: `joint_limit`
            (of `joint_limits`) and `min_agreement` (the configured bar), or None.

    Returns:
        The nights with the expected agreement (`centre`; None without an earlier night in control),
        the lowest agreement that is in control (`lower_limit`; None also without a decision), and
        the `cause`: None in control, else the bounds above the agreement, such as `limit and bar`.
    """
    rows: list[dict[str, Any]] = []
    n_pooled = 0
    n_pooled_agreeing = 0
    for night in sorted(nights, key=itemgetter("night")):
        n = night["n_decided"]
        n_agreeing = night["n_agreeing"]
        centre = None
        lower_limit = None
        if n_pooled:
            centre = (n_pooled_agreeing + _PRIOR) / (n_pooled + 2 * _PRIOR)
            if n:
                lower_limit = least_agreeing(n_pooled, n_pooled_agreeing, n) / n
        causes = []
        bounds = {
            "limit": lower_limit,
            "joint limit": night["joint_limit"],
            "bar": night["min_agreement"],
        }
        for name, bound in bounds.items():
            if n and bound is not None and n_agreeing / n < bound:
                causes.append(name)
        rows.append(
            {
                **night,
                "centre": centre,
                "lower_limit": lower_limit,
                "cause": " and ".join(causes) or None,
            }
        )
        if not causes:
            n_pooled += n
            n_pooled_agreeing += n_agreeing
    return rows


def least_agreeing(n_pooled: int, n_pooled_agreeing: int, n: int) -> int:
    """Return the fewest agreements among `n` verdicts that are in control.

    It is the lowest number with a predicted probability of at least `FALSE_ALARMS` at or below it,
    given `n_pooled_agreeing` agreements among `n_pooled`.
    """
    agreeing = n_pooled_agreeing + _PRIOR
    differing = n_pooled - n_pooled_agreeing + _PRIOR
    k = np.arange(n)
    betaln = scipy.special.betaln
    # C(n, k) B(k + agreeing, n - k + differing) / B(agreeing, differing)
    choices = -betaln(k + 1, n - k + 1) - np.log(n + 1)
    odds = betaln(k + agreeing, n - k + differing) - betaln(agreeing, differing)
    probabilities = np.exp(odds + choices)
    return int((probabilities.cumsum() < FALSE_ALARMS).sum())


def joint_limits(nights: Sequence[NightRow], differing: Floats) -> list[float | None]:
    """Return the joint limit of each night: the lowest agreement with which it and the nights
    before it are in control together.

    A night below its joint limit does not count for later ones, so that later nights are below it
    as long as the change lasts, and no longer.

    Args:
        nights: as for `limits`, in the order of their labels.
        differing: number of decisions that are not the first one, shape (n_nights, n_tasks).

    Returns:
        None for a night without a decision, or without a night before it.
    """
    limits_by_night: list[float | None] = []
    n_decided = np.array([night["n_decided"] for night in nights], dtype=float)
    n_agreeing = np.array([night["n_agreeing"] for night in nights], dtype=float)
    pool: list[int] = []
    for index, n in enumerate(n_decided):
        limit = None
        if n and pool:
            effect = design_effect(differing[[*pool, index]], n_decided[[*pool, index]])
            fewest = _least_jointly_agreeing(n_agreeing[pool], n_decided[pool], int(n), effect)
            limit = fewest / n
        limits_by_night.append(limit)
        if n and (limit is None or n_agreeing[index] / n >= limit):
            pool.append(index)
    return limits_by_night


def design_effect(differing: Floats, n_decided: Floats) -> float:
    """Return the variance of a night's number of differing decisions, divided by that of
    independent decisions with one probability.

    It is above 1 if the decisions of a task change together, and below 1 if few of the decisions
    ever change. The variance is the sum over tasks of half the mean squared difference of
    successive nights (von Neumann), because a lasting change adds little to it; the first night
    follows the last one, so that each night counts twice.

    Args:
        differing: shape (n_nights, n_tasks).
        n_decided: shape (n_nights,).
    """
    steps = differing - np.roll(differing, 1, axis=0)
    variance = (steps**2).sum() / 2 / len(steps)
    share = (differing.sum() + _PRIOR) / (n_decided.sum() + 2 * _PRIOR)
    effect = variance / (n_decided.mean() * share * (1 - share))
    return max(_LEAST_DESIGN_EFFECT, float(effect))


def _least_jointly_agreeing(
    agreeing: Floats,
    decided: Floats,
    n: int,
    effect: float,
) -> int:
    """Return the fewest agreements among `n` verdicts tonight that are in control, after nights
    with the given numbers, shape (n_nights,).
    """

    def is_in_control(n_agreeing: int) -> bool:
        agreements = np.append(agreeing, n_agreeing) / effect
        differences = np.append(decided - agreeing, n - n_agreeing) / effect
        evidence = change_evidence(agreements, differences)
        return evidence < math.log(365 / YEARLY_FALSE_ALARMS)

    return bisect_left(range(n), True, key=is_in_control)


def change_evidence(agreeing: Floats, differing: Floats) -> float:
    """Return the evidence that agreement has fallen in one of the nights, as a logarithm.

    It is -inf if agreement is lower after no night than before it.

    Args:
        agreeing: number of agreements of each night, divided by the design effect.
        differing: number of differences, likewise.
    """
    agreeing_before = np.cumsum(agreeing)[:-1]
    differing_before = np.cumsum(differing)[:-1]
    agreeing_since = agreeing.sum() - agreeing_before
    differing_since = differing.sum() - differing_before
    factors = (
        _log_probability(agreeing_before, differing_before)
        + _log_probability(agreeing_since, differing_since)
        - _log_probability(agreeing.sum(), differing.sum())
    )
    has_fallen = agreeing_since * differing_before < agreeing_before * differing_since
    return float(np.logaddexp.reduce(factors[has_fallen]))


def _log_probability(agreeing: Floats, differing: Floats) -> Floats:
    """Return the log-probability of decisions with one unknown share of agreement."""
    log_integrals = scipy.special.betaln(agreeing + _PRIOR, differing + _PRIOR)
    log_probabilities: Floats = log_integrals - scipy.special.betaln(_PRIOR, _PRIOR)
    return log_probabilities


def drift_line(row: NightRow) -> str:
    """Return a row of the view `judge_drift`, of a night out of control, as a sentence."""
    bounds = []
    columns = {
        "usual": "centre",
        "limit": "lower_limit",
        "joint limit": "joint_limit",
        "bar": "min_agreement",
    }
    for name, column in columns.items():
        if row[column] is not None:
            bounds.append(f"{name} {row[column]:.1%}")
    change = row["met_share"] - row["first_met_share"]
    return (
        f"{row['judge']} repeated its first decision on {row['agreement']:.1%} of"
        f" {row['n_decided']} control verdicts in {row['night']}, below the {row['cause']}"
        f" ({', '.join(bounds)}); criteria met: {row['met_share']:.1%}, at first"
        f" {row['first_met_share']:.1%} ({change * 100:+.1f} points)"
        f"{people_clause(row)}; the judge may be the cause of this night's changes"
    )


def people_clause(row: NightRow) -> str:
    """Return how agreement with people has changed, as the end of a sentence on a row of
    `judge_drift`; it is empty without labels.

    It says which decisions are better unless the change may be chance by a one-sided sign test at
    5 %, which assumes that the same share of the labelled decisions has changed as of all.
    """
    n_labelled = row["n_labelled"]
    if not n_labelled:
        return ""
    share = row["people_agreement"]
    first_share = row["first_people_agreement"]
    change = f"stayed at {share:.1%}"
    side = ""
    if share < first_share:
        change = f"fell from {first_share:.1%} to {share:.1%}"
        side = ", so the first decisions were better"
    elif share > first_share:
        change = f"rose from {first_share:.1%} to {share:.1%}"
        side = ", so the new decisions are better"
    n_changed = (1 - row["agreement"]) * n_labelled
    net_change = abs(share - first_share) * n_labelled
    if side and net_change < _ONE_SIDED_5_PERCENT * math.sqrt(n_changed):
        side = ", which may be chance"
    return (
        f"; agreement with people {change} on {n_labelled} labelled verdicts"
        f" ({row['labels_represent']}){side}"
    )
