"""Control limits: a test of a judge's agreement with its first verdicts against that of earlier nights.

The chart is Shewhart's for proportions, with one limit, because only low agreement is a fault. Its limit is not three
standard deviations below the centre: agreement is close to 1, where the distribution is far from normal, so that up to
3 % of a stable judge's nights would be out of control. Instead tonight's agreements are predicted from those of the
earlier nights (beta-binomial, Jeffreys' prior), and the limit is the 0.135 % quantile of the prediction, where three
standard deviations are in a normal distribution. The prediction includes the uncertainty of the centre.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

METHOD = "beta-binomial-1"
FALSE_ALARMS = 0.00135
"""The probability that a stable judge falls below its limit in a night."""
_PRIOR = 0.5
LIMIT, BAR = "limit", "bar"


@dataclass(frozen=True)
class ControlNight:
    """The decisions of a judge on its control set in one night, and the number that agrees with the first ones.

    `bar` is the configured bar.
    """

    label: str
    n_decided: int
    n_agreeing: int
    bar: float | None = None

    @property
    def agreement(self) -> float | None:
        """The share of decided members with the first decision."""
        return self.n_agreeing / self.n_decided if self.n_decided else None


@dataclass(frozen=True)
class ControlLimits:
    """The expected agreement of a night, and its limit.

    Attributes:
        centre: the expected agreement; None without an earlier night in control.
        lower_limit: the lowest agreement that is in control; None without an earlier night in control, or tonight's.
        cause: None in control, else the bounds above the agreement: `limit`, `bar`, or `limit and bar`.
    """

    label: str
    centre: float | None
    lower_limit: float | None
    cause: str | None


@dataclass(frozen=True)
class Drifted:
    """A judge whose agreement with its first verdicts was out of control in a night.

    Attributes:
        n_decided: number of members of the control set that it decided in the night.
        agreement: the share of them with the first decision.
        centre: the agreement expected from the earlier nights in control; None without any.
        lower_limit: the lowest agreement that would be in control; None without such nights.
        min_agreement: the configured bar; None without one.
        met_share: the share of them that it calls met now; a partial one counts as a half.
        first_met_share: the share of them that it called met at first.
        cause: the bounds above the agreement: `limit`, `bar`, or `limit and bar`.
    """

    judge: str
    night: str
    n_decided: int
    agreement: float
    centre: float | None
    lower_limit: float | None
    min_agreement: float | None
    met_share: float
    first_met_share: float
    cause: str

    @property
    def line(self) -> str:
        """The finding in one line."""
        below = f"the configured {self.min_agreement:.1%}" if self.cause == BAR else f"the limit {self.lower_limit:.1%}"
        return (
            f"{self.judge}: agrees with its first verdicts on {self.agreement:.1%} of {self.n_decided}, below {below}; "
            f"it calls {self.met_share:.1%} of them met, at first {self.first_met_share:.1%}; "
            "a change in scores may be the judge's"
        )


def limits(nights: Iterable[ControlNight]) -> list[ControlLimits]:
    """Return the limits of each night from the earlier ones in control, in the order of their labels.

    A night that is out of control does not count for later ones. The result depends only on the nights, not on the
    order in which they were judged: a night that is judged late changes the limits of later nights.
    """
    charted = []
    n_pooled = n_pooled_agreeing = 0
    for night in sorted(nights, key=lambda night: night.label):
        centre = lower_limit = None
        if n_pooled:
            centre = (n_pooled_agreeing + _PRIOR) / (n_pooled + 2 * _PRIOR)
            if night.n_decided:
                least = least_agreeing(n_pooled, n_pooled_agreeing, night.n_decided)
                lower_limit = least / night.n_decided
        below = [
            name
            for name, bound in ((LIMIT, lower_limit), (BAR, night.bar))
            if bound is not None and night.agreement is not None and night.agreement < bound
        ]
        cause = " and ".join(below) or None
        charted.append(ControlLimits(night.label, centre, lower_limit, cause))
        if cause is None:
            n_pooled += night.n_decided
            n_pooled_agreeing += night.n_agreeing
    return charted


def least_agreeing(n_pooled: int, n_pooled_agreeing: int, n: int) -> int:
    """Return the fewest agreements among `n` that are in control, given `n_pooled_agreeing` among `n_pooled`.

    It is the lowest number with a predicted probability of at least `FALSE_ALARMS` at or below it.
    """
    agreeing, differing = n_pooled_agreeing + _PRIOR, n_pooled - n_pooled_agreeing + _PRIOR
    below = 0.0
    for k in range(n):
        # C(n, k) B(k + agreeing, n - k + differing) / B(agreeing, differing)
        below += math.exp(
            _log_beta(k + agreeing, n - k + differing)
            - _log_beta(agreeing, differing)
            - _log_beta(k + 1, n - k + 1)
            - math.log(n + 1)
        )
        if below >= FALSE_ALARMS:
            return k
    return n


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
