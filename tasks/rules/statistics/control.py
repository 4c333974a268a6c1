"""Control limits: whether a judge agrees with its first verdicts as it did on earlier nights.

The chart is Shewhart's for proportions, with one limit, since only too little agreement is a fault. Its limit is not
three standard deviations below the centre: agreement is close to 1, where that is far from normal and calls up to three
nights in a hundred of a stable judge out of control. Instead the agreements of tonight are predicted from those of the
earlier nights (beta-binomial, Jeffreys' prior), and the limit stands where the prediction leaves 0.135 % below it, what
three standard deviations leave in a normal distribution. The uncertainty of the centre is in the prediction.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

METHOD = "beta-binomial-1"
FALSE_ALARMS = 0.00135
"""The chance that a stable judge falls below its limit in a night."""
_PRIOR = 0.5
LIMIT, BAR = "limit", "bar"


@dataclass(frozen=True)
class ControlNight:
    """The decisions of a judge on its control set in one night, and how many agree with the first ones.

    `bar` is the configured bar.
    """

    label: str
    n_decided: int
    n_agreeing: int
    bar: float | None = None

    @property
    def agreement(self) -> float | None:
        """The share of the decided that is as at first."""
        return self.n_agreeing / self.n_decided if self.n_decided else None


@dataclass(frozen=True)
class ControlLimits:
    """A night beside what is expected of it.

    Attributes:
        centre: the expected agreement; None without an earlier night in control.
        lower_limit: the lowest agreement that is in control; None without an earlier night in control, or tonight's.
        cause: None in control, else what the agreement is below: `limit`, `bar`, or `limit and bar`.
    """

    label: str
    centre: float | None
    lower_limit: float | None
    cause: str | None


@dataclass(frozen=True)
class Drifted:
    """A judge whose agreement with its first verdicts was out of control in a night.

    Attributes:
        n_decided: members of the control set that it decided in the night.
        agreement: the share of them that it decided as at first.
        centre: the agreement that the earlier nights in control lead to expect; None without any.
        lower_limit: the lowest agreement that would be in control; None without such nights.
        min_agreement: the configured bar; None without one.
        met_share: the share of them that it calls met now; a partial one counts as a half.
        first_met_share: the share of them that it called met at first.
        cause: what the agreement is below: `limit`, `bar`, or `limit and bar`.
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

    A night that is out of control does not count for later ones. The result depends on the nights alone and not on the
    order in which they were judged: one that is judged late changes the limits of those after it.
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
    """Return the fewest agreements among `n` that are in control after so many among `n_pooled`.

    It is the lowest number that a prediction leaves at least `FALSE_ALARMS` at or below.
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
