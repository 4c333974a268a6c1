"""Control limits: tests of a judge's agreement with its first verdicts against earlier nights.

The chart is Shewhart's for proportions, with one limit, because only low agreement is a fault. Its
limit is not three standard deviations below the centre: agreement is close to 1, where the
distribution is far from normal, so that up to 3 % of a stable judge's nights would be out of
control. Instead tonight's agreements are predicted from those of the earlier nights (beta-binomial,
Jeffreys' prior), and the limit is the 0.135 % quantile of the prediction, where three standard
deviations are in a normal distribution. The prediction includes the uncertainty of the centre.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import scipy  # its parts are loaded on use: readers need none of them

METHOD = "beta-binomial-1"
FALSE_ALARMS = 0.00135
"""The probability that a stable judge falls below its limit in a night."""
_PRIOR = 0.5


def limits(nights: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the limits of each night from the earlier ones in control, in the order of their
    labels.

    A night that is out of control does not count for later ones. The result depends only on the
    nights, not on the order in which they were judged: a night that is judged late changes the
    limits of later nights.

    Args:
        nights: a judge's decisions on its control set: the label of the `night`, `n_decided`,
            `n_agreeing` (with the first decisions), and `min_agreement`, the configured bar or
            None.

    Returns:
        The nights with the expected agreement (`centre`; None without an earlier night in control),
        the lowest agreement that is in control (`lower_limit`; None also without a decision), and
        the `cause`: None in control, else the bounds above the agreement: `limit`, `bar`, or `limit
        and bar`.
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
        for name, bound in (("limit", lower_limit), ("bar", night["min_agreement"])):
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


def drift_line(row: Mapping[str, Any]) -> str:
    """Return a row of the view `judge_drift`, of a night out of control, as a sentence."""
    bounds = []
    for name, column in (("usual", "centre"), ("limit", "lower_limit"), ("bar", "min_agreement")):
        if row[column] is not None:
            bounds.append(f"{name} {row[column]:.1%}")
    change = row["met_share"] - row["first_met_share"]
    return (
        f"{row['judge']} repeated its first decision on {row['agreement']:.1%} of"
        f" {row['n_decided']} control verdicts in {row['night']}, below the {row['cause']}"
        f" ({', '.join(bounds)}); criteria met: {row['met_share']:.1%}, at first"
        f" {row['first_met_share']:.1%} ({change * 100:+.1f} points); the judge may be the cause"
        " of this night's changes"
    )
